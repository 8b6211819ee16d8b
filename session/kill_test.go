package session

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentd/exitcodes"
	"agentd/provider/message"
)

// The test binary becomes the program that is killed when these are set, and
// that of a benchmark with benchOpen.
const (
	killStore = "AGENTD_TEST_KILL_STORE" // folder of the store
	killAt    = "AGENTD_TEST_KILL_AT"    // which operation kills; 0: none
	killHow   = "AGENTD_TEST_KILL_HOW"   // before, half, after
	killCalls = 20                       // tool calls of the whole job
)

func TestMain(m *testing.M) {
	for name, other := range map[string]func(dir string) error{killStore: victim, benchOpen: openForBench} {
		if dir := os.Getenv(name); dir != "" {
			if err := other(dir); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

// victim does the job from where the journal says that it stands: every tool
// call appends its own line to a file. It says on stdout what is committed.
func victim(dir string) (err error) {
	at, _ := strconv.Atoi(os.Getenv(killAt)) // "" is none
	s, err := Store{Dir: dir, disk: &killDisk{at: at, how: os.Getenv(killHow)}}.Open("bob", "job", Options{segment: 4000})
	if err != nil {
		return err
	}
	defer func() { err = firstError(err, s.Close()) }()
	v := &worker{s: s, dir: dir}
	for {
		if err := v.settle(); err != nil {
			return err
		}
		done := 0
		for _, m := range s.Transcript().Messages {
			done += len(m.ToolCalls())
		}
		if done >= killCalls {
			return nil
		}
		call := toolCall(fmt.Sprintf("call-%d", done), "append", strconv.Itoa(done))
		if err := v.commit(s.Message(calls(call), message.Usage{InputTokens: 1}, "tool_calls")); err != nil {
			return err
		}
	}
}

type worker struct {
	s   *Session
	dir string
}

// commit tells the parent how far the journal is durable.
func (v *worker) commit(err error) error {
	if err == nil {
		fmt.Println(v.s.Transcript().Seq)
	}
	return err
}

// settle runs the calls that were not started, and gives those up of which
// nobody knows how they ended.
func (v *worker) settle() error {
	for _, p := range v.s.Transcript().Pending {
		if p.Started {
			if err := v.commit(v.s.Result(p.Result(), OutcomeUnknown)); err != nil {
				return err
			}
			continue
		}
		if err := v.commit(v.s.Intent(p.Call, Unknown)); err != nil {
			return err
		}
		if err := v.tool(p.Call.ID); err != nil {
			return err
		}
		if err := v.commit(v.s.Result(result(p.Call.ID, strings.Repeat("out ", 10)), OutcomeOK)); err != nil {
			return err
		}
	}
	return nil
}

func (v *worker) tool(id string) error {
	f, err := os.OpenFile(filepath.Join(v.dir, "done"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(id + "\n"); err != nil {
		return closeAfter(f, err)
	}
	return f.Close()
}

// killDisk ends the process at its at-th operation.
type killDisk struct {
	osDisk
	at, ops int
	how     string
}

func (d *killDisk) kill() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL); select {} }

func (d *killDisk) op(f func() error) error {
	d.ops++
	if d.ops == d.at && d.how != "after" {
		d.kill()
	}
	err := f()
	if d.ops == d.at {
		d.kill()
	}
	return err
}

func (d *killDisk) OpenAppend(path string, perm fs.FileMode) (f file, err error) {
	err = d.op(func() error { f, err = d.osDisk.OpenAppend(path, perm); return err })
	return &killFile{f, d}, err
}

func (d *killDisk) CreateAppend(path string, perm fs.FileMode) (f file, err error) {
	err = d.op(func() error { f, err = d.osDisk.CreateAppend(path, perm); return err })
	return &killFile{f, d}, err
}

func (d *killDisk) WriteWhole(path string, data []byte, perm fs.FileMode) error {
	return d.op(func() error { return d.osDisk.WriteWhole(path, data, perm) })
}

func (d *killDisk) SyncDir(path string) error {
	return d.op(func() error { return d.osDisk.SyncDir(path) })
}

type killFile struct {
	file
	d *killDisk
}

func (f *killFile) Write(p []byte) (n int, err error) {
	f.d.ops++
	if f.d.ops == f.d.at {
		switch f.d.how {
		case "half":
			_, _ = f.file.Write(p[:len(p)/2])
		case "after":
			_, _ = f.file.Write(p)
		}
		f.d.kill()
	}
	return f.file.Write(p)
}

func (f *killFile) Sync() error { return f.d.op(f.file.Sync) }

func (f *killFile) Truncate(size int64) error {
	return f.d.op(func() error { return f.file.Truncate(size) })
}

// startVictim runs the victim until it ends or, after a while, is killed, and
// returns the last record that it said was committed, and whether it finished.
func startVictim(t *testing.T, dir string, at int, how string, after time.Duration) (seq uint64, finished bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), killStore+"="+dir, fmt.Sprintf("%s=%d", killAt, at), killHow+"="+how)
	out, err := cmd.StdoutPipe()
	must(t, err)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	must(t, cmd.Start())
	if after > 0 {
		timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		defer timer.Stop()
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if n, err := strconv.ParseUint(lines.Text(), 10, 64); err == nil {
			seq = n
		}
	}
	err = cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		return seq, false
	}
	if err != nil {
		t.Fatalf("the victim failed: %v: %s", err, stderr.String())
	}
	return seq, true
}

// checkCommitted proves that the journal still has what was committed.
func checkCommitted(t *testing.T, dir string, seq uint64, when string) {
	t.Helper()
	tr, err := Store{Dir: dir}.Read("bob", "job")
	if exitcodes.From(err) == exitcodes.NoInput && seq == 0 {
		return
	}
	if err != nil {
		t.Fatalf("%s: %v", when, err)
	}
	if tr.Seq < seq {
		t.Fatalf("%s: the journal ends at record %d, but %d was committed", when, tr.Seq, seq)
	}
}

// checkFinished proves that no tool ran twice and none was skipped in silence.
func checkFinished(t *testing.T, dir, when string) (unknown int) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "done"))
	must(t, err)
	ran := map[string]int{}
	for line := range strings.Lines(string(data)) {
		ran[strings.TrimSpace(line)]++
	}
	outcomes := map[string]Outcome{}
	must(t, Store{Dir: dir}.Records("bob", "job", func(rec *Record) error {
		if rec.Type == TypeResult {
			outcomes[rec.CallID] = rec.Outcome
		}
		return nil
	}))
	for i := range killCalls {
		id := fmt.Sprintf("call-%d", i)
		switch n, outcome := ran[id], outcomes[id]; {
		case outcome == OutcomeOK && n == 1:
		case outcome == OutcomeUnknown && n <= 1:
			unknown++
		default:
			t.Fatalf("%s: %s ran %d times with outcome %q", when, id, n, outcome)
		}
	}
	r, err := Store{Dir: dir}.Verify("bob", "job")
	if err != nil || !r.Good() || r.Files < 3 {
		t.Fatalf("%s: verify = %+v, %v", when, r, err)
	}
	return unknown
}

// TestKillAtEveryOperation kills the job once at each operation on its disk.
func TestKillAtEveryOperation(t *testing.T) {
	step := 4 // a campaign (SESSION_KILLS) leaves none out
	if os.Getenv("SESSION_KILLS") != "" {
		step = 1
	}
	for _, how := range []string{"before", "half", "after"} {
		for at := 1 + rand.IntN(step); ; at += step {
			dir, when := fastDir(t), fmt.Sprintf("killed %s operation %d", how, at)
			seq, finished := startVictim(t, dir, at, how, 0)
			if finished {
				if at < 6*killCalls {
					t.Fatalf("the job has only %d operations", at)
				}
				break
			}
			checkCommitted(t, dir, seq, when)
			if _, finished := startVictim(t, dir, 0, "", 0); !finished {
				t.Fatalf("%s: the second run was killed", when)
			}
			if unknown := checkFinished(t, dir, when); unknown > 1 {
				t.Fatalf("%s: %d outcomes are unknown after one kill", when, unknown)
			}
			must(t, os.RemoveAll(dir))
		}
	}
}

// TestKillAtRandom kills one job after another again and again until it is
// done.
func TestKillAtRandom(t *testing.T) {
	kills := 40
	if v := os.Getenv("SESSION_KILLS"); v != "" {
		var err error
		kills, err = strconv.Atoi(v)
		must(t, err)
	}
	for killed := 0; killed < kills; {
		dir := t.TempDir() // a real disk, so that most of the time is spent on it
		for finished := false; !finished; {
			// A start takes some milliseconds, the whole job some ten more.
			after := time.Duration(1+rand.IntN(25_000)) * time.Microsecond
			var seq uint64
			if seq, finished = startVictim(t, dir, 0, "", after); !finished {
				killed++
			}
			checkCommitted(t, dir, seq, fmt.Sprintf("killed after %v", after))
			if killed > 10*kills {
				break // a machine too slow for that: enough
			}
		}
		if _, finished := startVictim(t, dir, 0, "", 0); finished {
			checkFinished(t, dir, "killed at random")
		}
	}
}
