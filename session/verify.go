package session

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"agentd/provider/message"
)

// Report is what a look at every byte of a session found.
type Report struct {
	Agent    string   `json:"agent"`
	Name     string   `json:"name"`
	Records  int      `json:"records"` // good ones, before any damage
	Files    int      `json:"files"`   // of the journal
	Bytes    int64    `json:"bytes"`   // of the journal, as far as it is good
	Outputs  int      `json:"outputs"` // kept beside the journal
	Unused   int      `json:"unused"`  // of these, how many no record speaks of
	Unended  int64    `json:"unended"` // bytes of a last line that is not whole; no harm
	Damage   string   `json:"damage,omitempty"`
	Lost     int      `json:"lost"`               // readable records behind the damage
	Problems []string `json:"problems,omitempty"` // outputs that are gone, records that contradict each other

	damage  *Damage
	blobs   []*Blob // that are gone
	scanned scanned
}

// Good reports whether nothing is wrong.
func (r *Report) Good() bool { return r.Damage == "" && len(r.Problems) == 0 }

// Verify reads all of a session. What is wrong with it is in the report, not an
// error.
func (st Store) Verify(agent, name string) (*Report, error) {
	if err := checkNames(agent, name); err != nil {
		return nil, err
	}
	var r *Report
	for range readTries { // as in read
		v := verifier{dir: st.dir(agent, name), args: map[string][]string{}, used: map[string]bool{}, lost: map[string]string{}}
		v.report = &Report{Agent: agent, Name: name}
		if err := v.run(); err != nil {
			return nil, readError(err, agent, name)
		}
		if r = v.report; r.damage == nil {
			break
		}
	}
	return r, nil
}

type verifier struct {
	dir    string
	report *Report
	args   map[string][]string // checksums of the arguments of the last assistant message's calls, by id
	used   map[string]bool     // outputs that a record speaks of, by sha256
	lost   map[string]string   // what is wrong with one, by sha256
}

func (v *verifier) run() error {
	r := v.report
	sc := scanner{agent: r.Agent, name: r.Name, dir: v.dir, visit: v.record}
	var err error
	r.scanned, err = sc.scan()
	r.Files, r.Bytes, r.Unended = r.scanned.segments, r.scanned.bytes, r.scanned.torn
	if d, ok := errors.AsType[*Damage](err); ok {
		r.damage, r.Damage = d, d.Error()
		r.Lost = countBehind(v.dir, r.scanned, d)
	} else if err != nil {
		return err
	}
	v.finish()
	return v.outputs()
}

func (v *verifier) record(rec *Record, at place) error {
	v.report.Records++
	switch rec.Type {
	case TypeMessage:
		if rec.Message != nil && rec.Message.Role == message.Assistant {
			clear(v.args)
			for _, c := range rec.Message.ToolCalls() {
				sum := sha256.Sum256([]byte(c.Arguments))
				v.args[c.ID] = append(v.args[c.ID], hex.EncodeToString(sum[:])) // an id may stand twice
			}
		}
	case TypeIntent:
		if !slices.Contains(v.args[rec.CallID], rec.ArgsSHA256) {
			v.problem("%s starts tool call %q with arguments that the model did not give", v.where(rec, at), rec.CallID)
		}
	case TypeResult:
		v.output(rec, at)
	case TypeBlobLost:
		if rec.Blob != nil {
			delete(v.lost, rec.Blob.SHA256) // a repair has dealt with it
		}
	}
	return nil
}

func (v *verifier) where(rec *Record, at place) string {
	return fmt.Sprintf("record %d (line %d of %s)", rec.Seq, at.line, filepath.Base(segmentPath(v.dir, at.segment)))
}

// output looks at the output that a record speaks of.
func (v *verifier) output(rec *Record, at place) {
	b := rec.Blob
	if b == nil || v.used[b.SHA256] {
		return
	}
	v.used[b.SHA256] = true
	if _, err := getBlob(v.dir, b); err != nil {
		v.lost[b.SHA256] = fmt.Sprintf("%s: %v", v.where(rec, at), err)
		v.report.blobs = append(v.report.blobs, b)
	}
}

// finish puts what is still wrong into the report.
func (v *verifier) finish() {
	r := v.report
	r.blobs = slices.DeleteFunc(r.blobs, func(b *Blob) bool {
		text, lost := v.lost[b.SHA256]
		if lost {
			r.Problems = append(r.Problems, text)
		}
		return !lost
	})
}

func (v *verifier) problem(format string, args ...any) {
	v.report.Problems = append(v.report.Problems, fmt.Sprintf(format, args...))
}

// outputs counts the files beside the journal.
func (v *verifier) outputs() error {
	entries, err := os.ReadDir(filepath.Join(v.dir, blobFolder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		v.report.Outputs++
		if !v.used[e.Name()] {
			v.report.Unused++
		}
	}
	return nil
}

// countBehind counts the whole records behind the damage: what a repair would
// lose.
func countBehind(dir string, done scanned, d *Damage) int {
	count := 0
	for n := max(1, done.segments); n <= lastSegment(dir); n++ {
		f, err := os.Open(segmentPath(dir, n))
		if err != nil {
			continue // it is the one that is missing
		}
		if n == done.segments && d.Line > 0 {
			_, err = f.Seek(done.end, io.SeekStart)
		}
		if err == nil && (n > done.segments || d.Line > 0) {
			count += countRecords(f)
		}
		_ = f.Close() // only read
	}
	return count
}

func countRecords(f io.Reader) int {
	r := bufio.NewReaderSize(f, 256<<10)
	var long []byte
	var rec Record
	count := 0
	for {
		line, err := readLine(r, &long)
		if err != nil && !errors.Is(err, errLongLine) {
			return count
		}
		if err == nil && decode(line[:len(line)-1], &rec) == nil {
			count++
		}
	}
}
