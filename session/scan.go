package session

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"agentd/exitcodes"
)

// formatVersion is written into the first record of each file.
const formatVersion = 1

// segmentPath returns the n-th file of the journal in dir; n counts from 1.
func segmentPath(dir string, n int) string {
	if n == 1 {
		return filepath.Join(dir, "journal.jsonl")
	}
	return filepath.Join(dir, fmt.Sprintf("journal.%06d.jsonl", n))
}

// place is where a line stands.
type place struct {
	segment int
	line    int
	offset  int64
}

// scanned is how far a scan came.
type scanned struct {
	segments int    // number of files
	seq      uint64 // of the last good record
	end      int64  // offset behind it, in the last file
	line     int    // its number there
	torn     int64  // bytes behind end that are no whole line
	bytes    int64  // of all files, without the torn ones
}

// scanner reads the records of a journal in order.
type scanner struct {
	agent, name, dir string
	visit            func(rec *Record, at place) error
}

// scan reads all files. It stops at damage (a *Damage) and at an error of
// visit. A last line that has no end is not damage: its write did not finish.
// The error is fs.ErrNotExist if there is no journal.
func (s *scanner) scan() (scanned, error) {
	var done scanned
	for n := 1; ; n++ {
		more, err := s.file(n, &done)
		if (err == nil && !more) || (n == 1 && errors.Is(err, fs.ErrNotExist)) {
			missing := n + 1
			if err != nil {
				missing = n
			}
			if lastSegment(s.dir) > missing {
				return done, s.damage(missing, 0, 0, "the file is missing, but there is a later one")
			}
		}
		if err != nil || !more {
			return done, err
		}
	}
}

// lastSegment returns the highest number of a journal file in dir.
func lastSegment(dir string) int {
	last := 0
	names, _ := filepath.Glob(filepath.Join(dir, "journal*.jsonl")) // the pattern is well formed
	for _, name := range names {
		n := 1
		if filepath.Base(name) != "journal.jsonl" {
			if _, err := fmt.Sscanf(filepath.Base(name), "journal.%06d.jsonl", &n); err != nil {
				continue
			}
		}
		last = max(last, n)
	}
	return last
}

// file reads the n-th file and says whether there is another one.
func (s *scanner) file(n int, done *scanned) (more bool, err error) {
	path := segmentPath(s.dir, n)
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close() // only read
	done.segments, done.end, done.line, done.torn = n, 0, 0, 0
	r := bufio.NewReaderSize(f, 256<<10)
	for {
		if err := s.lines(r, n, done); err != nil {
			return false, err
		}
		if more {
			break
		}
		if _, err := os.Lstat(segmentPath(s.dir, n+1)); errors.Is(err, fs.ErrNotExist) {
			return false, nil
		} else if err != nil {
			return false, err
		}
		// The writer has gone on to the next file, so that this one does not grow
		// any more; but it may have grown since its end was seen.
		more = true
		if _, err := f.Seek(done.end, io.SeekStart); err != nil {
			return false, err
		}
		r.Reset(f)
	}
	if done.torn > 0 {
		return false, s.damage(n, done.line+1, done.end, "the line has no end, but there is a later file")
	}
	return true, nil
}

// lines reads whole lines until the file ends.
func (s *scanner) lines(r *bufio.Reader, n int, done *scanned) error {
	var rec Record
	var long []byte
	for {
		line, err := readLine(r, &long)
		if errors.Is(err, io.EOF) {
			done.torn = int64(len(line))
			return nil
		}
		at := place{segment: n, line: done.line + 1, offset: done.end}
		if errors.Is(err, errLongLine) {
			return s.damage(n, at.line, at.offset, fmt.Sprintf("the line is longer than %d bytes", maxLine))
		}
		if err != nil {
			return err
		}
		if err := decode(line[:len(line)-1], &rec); err != nil {
			return s.damage(n, at.line, at.offset, err.Error())
		}
		if err := s.check(&rec, at, done); err != nil {
			return err
		}
		if err := s.visit(&rec, at); err != nil {
			return err
		}
		done.seq = rec.Seq
		done.line = at.line
		done.end += int64(len(line))
		done.bytes += int64(len(line))
	}
}

// check refuses a record that is whole but does not belong here.
func (s *scanner) check(rec *Record, at place, done *scanned) error {
	if rec.Seq != done.seq+1 {
		return s.damage(at.segment, at.line, at.offset, fmt.Sprintf("record %d follows record %d", rec.Seq, done.seq))
	}
	if (at.line == 1) != (rec.Type == TypeSegment) {
		return s.damage(at.segment, at.line, at.offset, "the file does not begin with its one segment record")
	}
	if rec.Type == TypeSegment {
		if rec.Version > formatVersion {
			return exitcodes.Errorf(exitcodes.Data, "session %s/%s was written by a newer agentd (format %d, this one knows %d)", s.agent, s.name, rec.Version, formatVersion)
		}
		if rec.Segment != at.segment {
			return s.damage(at.segment, at.line, at.offset, fmt.Sprintf("this is file %d of the journal", rec.Segment))
		}
	}
	return nil
}

func (s *scanner) damage(n, line int, offset int64, reason string) *Damage {
	return &Damage{Agent: s.agent, Name: s.name, File: segmentPath(s.dir, n), Line: line, Offset: offset, Reason: reason}
}

var errLongLine = errors.New("line too long")

// readLine returns the next line with its newline, valid until the next call.
// At the end it returns what is left without one, and io.EOF.
func readLine(r *bufio.Reader, long *[]byte) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	b := (*long)[:0]
	for errors.Is(err, bufio.ErrBufferFull) {
		if b = append(b, line...); len(b) > maxLine {
			return nil, errLongLine
		}
		line, err = r.ReadSlice('\n')
	}
	b = append(b, line...)
	*long = b
	if cap(b) > 1<<20 {
		*long = nil // one huge line must not be paid for until the end
	}
	return b, err
}
