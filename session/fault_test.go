package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"agentd/exitcodes"
	"agentd/provider/message"
)

// faultDisk fails at its at-th operation and remembers what a power cut would
// leave of each file.
type faultDisk struct {
	at     int
	err    error
	half   bool // of a failing write, half is done
	torn   bool // and cannot be taken back
	ops    int
	synced map[string]int64
}

func (d *faultDisk) fails() bool {
	d.ops++
	return d.ops == d.at
}

func (d *faultDisk) op(f func() error) error {
	if d.fails() {
		return d.err
	}
	return f()
}

func (d *faultDisk) open(f func(string, fs.FileMode) (file, error), path string, perm fs.FileMode) (file, error) {
	if d.fails() {
		return nil, d.err
	}
	inner, err := f(path, perm)
	if err != nil {
		return nil, err
	}
	if fi, err := os.Stat(path); err == nil && d.synced != nil {
		d.synced[path] = fi.Size()
	}
	return &faultFile{file: inner, disk: d, path: path}, nil
}

func (d *faultDisk) OpenAppend(path string, perm fs.FileMode) (file, error) {
	return d.open(osDisk{}.OpenAppend, path, perm)
}

func (d *faultDisk) CreateAppend(path string, perm fs.FileMode) (file, error) {
	return d.open(osDisk{}.CreateAppend, path, perm)
}

func (d *faultDisk) WriteWhole(path string, data []byte, perm fs.FileMode) error {
	if filepath.Base(path) == metaFile {
		return nil // a cache; it comes after everything else
	}
	return d.op(func() error { return osDisk{}.WriteWhole(path, data, perm) })
}

func (d *faultDisk) MkdirAll(path string, perm fs.FileMode) error {
	return d.op(func() error { return osDisk{}.MkdirAll(path, perm) })
}

func (d *faultDisk) SyncDir(path string) error {
	return d.op(func() error { return osDisk{}.SyncDir(path) })
}

type faultFile struct {
	file
	disk *faultDisk
	path string
}

func (f *faultFile) Write(p []byte) (int, error) {
	if f.disk.fails() {
		n := 0
		if f.disk.half {
			n, _ = f.file.Write(p[:len(p)/2])
		}
		return n, f.disk.err
	}
	return f.file.Write(p)
}

func (f *faultFile) Sync() error {
	return f.disk.op(func() error {
		if err := f.file.Sync(); err != nil {
			return err
		}
		fi, err := os.Stat(f.path)
		if err == nil && f.disk.synced != nil {
			f.disk.synced[f.path] = fi.Size()
		}
		return err
	})
}

func (f *faultFile) Truncate(size int64) error {
	if f.disk.torn {
		return f.disk.err
	}
	return f.file.Truncate(size)
}

// work is a run of two attempts with tools, large outputs and a compaction. It
// calls committed after each step with the text that the journal now holds for
// good.
func work(st Store, committed func(string)) (err error) {
	s, err := st.Open("bob", "triage", Options{segment: 1500})
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := s.Close(); err == nil {
			err = closeErr
		}
	}()
	step := func(text string, err error) bool {
		if err == nil {
			committed(text)
		}
		return err == nil
	}
	for n := 1; n <= 2; n++ {
		run := fmt.Sprintf("run-%d", n)
		if err = s.AttemptStarted(run, n, "builtin", "m"); !step(run, err) {
			return err
		}
		for i := range 3 {
			id := fmt.Sprintf("call-%d-%d", n, i)
			if err = s.Message(calls(toolCall(id, "shell", `{"cmd":"x"}`)), message.Usage{InputTokens: 7}, "tool_calls"); !step(`"id":"`+id, err) {
				return err
			}
			if err = s.Intent(toolCall(id, "shell", `{"cmd":"x"}`), Unknown); !step(`"tool_intent","call_id":"`+id, err) {
				return err
			}
			if err = s.Result(result(id, strings.Repeat(id, 1+i*4000)), OutcomeOK); !step(`"tool_result","call_id":"`+id, err) {
				return err
			}
		}
		if err = s.Compaction(0, message.NewText(message.User, "summary-"+run)); !step("summary-"+run, err) {
			return err
		}
		if err = s.AttemptEnded(run, n, exitcodes.OK, 3, 0, message.Usage{}); !step(`"attempt_ended","run_id":"`+run, err) {
			return err
		}
	}
	return nil
}

// journalText is all of a session's journal.
func journalText(t *testing.T, st Store) string {
	t.Helper()
	var b strings.Builder
	for n := 1; ; n++ {
		data, err := os.ReadFile(segmentPath(st.dir("bob", "triage"), n))
		if err != nil {
			return b.String()
		}
		b.Write(data)
	}
}

func TestFaultAtEveryOperation(t *testing.T) {
	count := &faultDisk{}
	must(t, work(Store{Dir: fastDir(t), disk: count}, func(string) {}))
	if count.ops < 40 {
		t.Fatalf("the work has only %d operations", count.ops)
	}
	for _, tt := range []faultDisk{
		{err: syscall.ENOSPC, half: true},
		{err: syscall.ENOSPC, half: true, torn: true},
		{err: syscall.EIO},
		{err: syscall.EDQUOT, torn: true},
	} {
		for at := 1; at <= count.ops; at++ {
			d := tt
			d.at, d.synced = at, map[string]int64{}
			checkFault(t, &d)
		}
	}
}

func checkFault(t *testing.T, d *faultDisk) {
	t.Helper()
	st := Store{Dir: fastDir(t)}
	var held []string
	err := work(Store{Dir: st.Dir, disk: d}, func(text string) { held = append(held, text) })
	if !errors.Is(err, d.err) || exitcodes.From(err) != exitcodes.IO {
		t.Fatalf("fault %v at operation %d: error = %v (code %d), want code 74", d.err, d.at, err, exitcodes.From(err))
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("the error has several lines: %q", err)
	}
	check := func(when string) {
		s, err := st.Open("bob", "triage", Options{})
		if err != nil {
			t.Fatalf("fault %v at operation %d, %s: the next open: %v", d.err, d.at, when, err)
		}
		text := journalText(t, st)
		for _, want := range held {
			if !strings.Contains(text, want) {
				t.Fatalf("fault %v at operation %d, %s: record %q is lost", d.err, d.at, when, want)
			}
		}
		must(t, s.Note("test", "it goes on"))
		must(t, s.Close())
		if r, err := st.Verify("bob", "triage"); err != nil || !r.Good() {
			t.Fatalf("fault %v at operation %d, %s: verify = %+v, %v", d.err, d.at, when, r, err)
		}
	}
	// A power cut takes what no fsync has returned for.
	other := fastDir(t)
	must(t, os.CopyFS(other, os.DirFS(st.Dir)))
	for path, size := range d.synced {
		rel, err := filepath.Rel(st.Dir, path)
		must(t, err)
		must(t, os.Truncate(filepath.Join(other, rel), size))
	}
	check("after the fault")
	st.Dir = other
	check("after a power cut")
}

func TestFaultWhileTheTornEndIsSealed(t *testing.T) {
	journal := sample(t)
	journal = journal[:len(journal)-9]
	for _, tt := range []faultDisk{{err: syscall.ENOSPC, half: true}, {err: syscall.EIO}, {err: syscall.ENOSPC, half: true, torn: true}} {
		for at := 1; at < 100; at++ {
			st, _ := put(t, journal)
			d := tt
			d.at = at
			s, err := Store{Dir: st.Dir, disk: &d}.Open("bob", "triage", Options{})
			if err == nil {
				must(t, s.Close())
			} else if exitcodes.From(err) != exitcodes.IO {
				t.Fatalf("fault %v at operation %d: %v, want code 74", d.err, at, err)
			}
			s, err = st.Open("bob", "triage", Options{})
			if err != nil {
				t.Fatalf("fault %v at operation %d: the next open: %v", d.err, at, err)
			}
			must(t, s.Close())
			whole := journal[:strings.LastIndex(string(journal), "\n")+1]
			if text := journalText(t, st); !strings.HasPrefix(text, string(whole)) || !strings.Contains(text, `"sealed"`) {
				t.Fatalf("fault %v at operation %d: the journal is not what it was, sealed: %q", d.err, at, text)
			}
			if d.ops < at {
				if at < 5 && !d.torn {
					t.Fatalf("sealing has only %d operations", d.ops)
				}
				break
			}
		}
	}
}

func TestNothingIsWrittenAfterAFault(t *testing.T) {
	d := &faultDisk{err: syscall.ENOSPC, half: true}
	st := Store{Dir: fastDir(t), disk: d}
	s := open(t, st)
	must(t, s.Note("test", "good"))
	d.at = d.ops + 1
	first := s.Note("test", "bad")
	before := journalText(t, st)
	for _, err := range []error{s.Note("test", "more"), s.Message(message.NewText(message.User, "x"), message.Usage{}, ""), s.Sync()} {
		if err == nil || err.Error() != first.Error() {
			t.Errorf("after the fault %v: %v, want the same error", first, err)
		}
	}
	if after := journalText(t, st); after != before || !strings.HasSuffix(after, "\n") {
		t.Errorf("the journal changed or has half a line after the fault: %q", after)
	}
}

func TestFailedOutputIsNotRecorded(t *testing.T) {
	d := &faultDisk{err: syscall.ENOSPC}
	st := Store{Dir: fastDir(t), disk: d}
	s := open(t, st)
	must(t, s.Message(calls(toolCall("a", "x", "")), message.Usage{}, ""))
	must(t, s.Intent(toolCall("a", "x", ""), Read))
	d.at = d.ops + 2 // the folder of outputs is made first
	if err := s.Result(result("a", strings.Repeat("x", maxInline+1)), OutcomeOK); exitcodes.From(err) != exitcodes.IO {
		t.Fatalf("Result with a full disk = %v, want code 74", err)
	}
	if p := s.Transcript().Pending; len(p) != 1 || !p[0].Started {
		t.Errorf("pending = %+v, want the call, started", p)
	}
	must(t, s.Result(result("a", "short"), OutcomeOK)) // the journal itself still works
}
