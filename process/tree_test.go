package process

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentd/exitcodes"
)

func TestRunEndsWhatTheProgramLeftBehind(t *testing.T) {
	dir := t.TempDir()
	pidfile := filepath.Join(dir, "pid")
	stubborn := "trap '' TERM HUP; echo $$ >" + pidfile + "; while :; do sleep 0.05; done"
	daemon := filepath.Join(dir, "daemon.sh")
	if err := os.WriteFile(daemon, []byte(stubborn), 0o600); err != nil {
		t.Fatal(err)
	}
	waitFor := "\nwhile [ ! -s " + pidfile + " ]; do sleep 0.01; done"
	for _, c := range []struct{ name, script, signal string }{
		{"background child holds stdout", "echo hi; sh -c 'echo $$ >" + pidfile + "; exec sleep 1000' &", "SIGTERM"},
		{"ignores SIGTERM", "echo hi; sh " + daemon + " &", "SIGKILL"},
		{"own session", "echo hi; setsid sh " + daemon + " &", "SIGKILL"},
		{"daemon", "echo hi; (setsid sh -c 'sh " + daemon + " & exit' &)", "SIGKILL"},
		{"daemon without environment", "echo hi; (env -i setsid sh -c '/bin/sh " + daemon + " & exit' >/dev/null 2>&1 &)", "SIGKILL"},
		{"job control", "echo hi; bash -c 'set -m; sh " + daemon + " &'", "SIGKILL"},
		{"stopped", "echo hi; sh -c 'echo $$ >" + pidfile + "; kill -STOP $$; exit' &", "SIGTERM"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_ = os.Remove(pidfile)
			spec := sh(c.script + waitFor)
			spec.Grace = 300 * time.Millisecond
			res, out := run(t, t.Context(), spec)
			pid := readPID(t, pidfile)
			if running(pid) {
				t.Errorf("process %d still runs", pid)
			}
			if out != "hi\n" || res.Status != 0 || res.Stopped {
				t.Errorf("got %+v, output %q", res, out)
			}
			if got := signalOf(res.Ended, pid); got != c.signal {
				t.Errorf("ended %v, want %d by %s", res.Ended, pid, c.signal)
			}
		})
	}
}

// With several trees at once an orphan's mark tells whose it is.
func TestRunEndsItsOwnDaemonOnly(t *testing.T) {
	dir := t.TempDir()
	daemon := func(name string) string {
		return "(setsid sh -c 'echo $$ >" + dir + "/" + name + "; exec sleep 1000' &); while [ ! -s " + dir + "/" + name + " ]; do sleep 0.01; done; "
	}
	type outcome struct {
		res Result
		err error
	}
	own := make(chan outcome, 1)
	go func() {
		res, err := Run(t.Context(), sh(daemon("own")+"while [ ! -s "+dir+"/other ]; do sleep 0.01; done"))
		own <- outcome{res, err}
	}()
	pid := readPID(t, dir+"/own")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	other := make(chan error, 1)
	go func() {
		_, err := Run(ctx, sh(daemon("other")+"sleep 1000"))
		other <- err
	}()
	o := <-own
	if o.err != nil || running(pid) || signalOf(o.res.Ended, pid) != "SIGTERM" {
		t.Errorf("own daemon runs: %v; %+v", running(pid), o)
	}
	otherPID := readPID(t, dir+"/other")
	if !running(otherPID) {
		t.Error("the daemon of another tree was ended")
	}
	cancel()
	if err := <-other; err != nil || running(otherPID) {
		t.Errorf("the other tree: %v, its daemon runs: %v", err, running(otherPID))
	}
	noChildren(t)
}

func signalOf(ended []Ended, pid int) string {
	for _, e := range ended {
		if e.PID == pid {
			return e.Signal
		}
	}
	return ""
}

// What ends by itself right after the leader is left to do so: `cmd >(tee)`.
func TestRunLetsStragglersFinish(t *testing.T) {
	res, out := run(t, t.Context(), sh("(sleep 0.05; echo late) & echo early"))
	if out != "early\nlate\n" || len(res.Ended) != 0 {
		t.Errorf("got %+v, output %q", res, out)
	}
}

func TestRunStopsTheWholeTree(t *testing.T) {
	for _, c := range []struct {
		name, script string
		grace        time.Duration
		signal       string
		out          string
	}{
		{"orderly", "trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.05; done", 20 * time.Second, "", "ready\nbye\n"},
		{"by default", "echo ready; exec sleep 1000", 20 * time.Second, "SIGTERM", "ready\n"},
		{"stubborn", "trap '' TERM; echo ready; while :; do sleep 0.05; done", 200 * time.Millisecond, "SIGKILL", "ready\n"},
		{"no grace", "trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.05; done", 0, "SIGKILL", "ready\n"},
		{"stubborn daemon", "setsid sh -c 'trap \"\" TERM; while :; do sleep 0.05; done' & echo ready; wait", 200 * time.Millisecond, "SIGTERM or SIGKILL", "ready\n"},
		{"keeps forking", "f() { sleep 0.02; (f &) ; }; trap '' TERM; f & echo ready; sleep 1000 & wait", 100 * time.Millisecond, "SIGKILL", "ready\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var out bytes.Buffer
			spec := sh(c.script)
			spec.Grace = c.grace
			spec.Stdout = writerFunc(func(p []byte) (int, error) {
				out.Write(p)
				cancel() // it is ready
				return len(p), nil
			})
			res, _ := run(t, ctx, spec)
			if !res.Stopped || !slices.Contains(strings.Split(c.signal, " or "), res.Signal) || out.String() != c.out {
				t.Errorf("got %+v, output %q", res, &out)
			}
			if c.signal == "" && res.Status != 7 {
				t.Errorf("status %d, want 7", res.Status)
			}
			if len(res.Ended) == 0 {
				t.Error("nothing is listed as ended")
			}
		})
	}
}

// A chain of processes, each of which starts the next and ends: whoever looks at
// them one by one may see none alive.
func TestRunEndsAChainOfForks(t *testing.T) {
	for _, link := range []string{"", "sleep 0.003; "} {
		script := filepath.Join(t.TempDir(), "chain")
		if err := os.WriteFile(script, []byte("trap '' TERM\n"+link+"sh \"$0\" &\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			spec := sh("echo $$; sh " + script + " >/dev/null 2>&1 &")
			spec.Grace = 10 * time.Millisecond
			res, out := run(t, t.Context(), spec)
			session, err := strconv.Atoi(strings.TrimSpace(out))
			if err != nil || len(res.Ended) == 0 {
				t.Fatalf("%+v, output %q", res, out)
			}
			for range 5 {
				procs, _, err := snapshot()
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range procs {
					if p.sid == session {
						t.Fatalf("%d (%s) of the chain escaped", p.pid, p.name)
					}
				}
			}
		}
	}
}

// A stranger outside the tree holds the output pipe: it cannot make us wait.
func TestRunStrangerHoldsThePipe(t *testing.T) {
	var stranger *os.File
	var out bytes.Buffer
	spec := sh("echo $$; sleep 0.1; echo end")
	spec.Stdout = writerFunc(func(p []byte) (int, error) {
		if stranger == nil {
			f, err := os.OpenFile("/proc/"+strings.TrimSpace(string(p))+"/fd/1", os.O_WRONLY, 0)
			if err != nil {
				t.Error(err)
			}
			stranger = f
		}
		return out.Write(p)
	})
	run(t, t.Context(), spec)
	defer stranger.Close()
	if !strings.HasSuffix(out.String(), "\nend\n") {
		t.Errorf("output %q", &out)
	}
}

// An agentd that is SIGKILLed: its program dies with it, and whatever the
// program started is found by its mark.
func TestEndMarkedAfterTheOwnerWasKilled(t *testing.T) {
	dir := t.TempDir()
	leader, grandchild, other := filepath.Join(dir, "leader"), filepath.Join(dir, "grandchild"), filepath.Join(dir, "other")
	runID := fmt.Sprintf("test-%d-%d", os.Getpid(), time.Now().UnixNano())
	supervise := func(mark, script string) *exec.Cmd {
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(exe, "sh", "-c", script)
		cmd.Env = append(env(), roleEnv+"=supervisor", "PROCESS_TEST_MARK="+mark)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		return cmd
	}
	owner := supervise(runID, fmt.Sprintf(
		`setsid sh -c 'trap "" TERM; echo $$ >%s; while :; do sleep 0.05; done' & echo $$ >%s; trap '' TERM; while :; do sleep 0.05; done`, grandchild, leader))
	supervise(runID+"-other", fmt.Sprintf("echo $$ >%s; exec sleep 1000", other))
	leaderPID, grandchildPID, otherPID := readPID(t, leader), readPID(t, grandchild), readPID(t, other)

	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the leader dies with its supervisor", func() bool { return !running(leaderPID) })
	if !running(grandchildPID) {
		t.Fatal("the grandchild did not survive: this test shows nothing")
	}
	ended, err := EndMarked(t.Context(), runID, 100*time.Millisecond)
	if err != nil || signalOf(ended, grandchildPID) != "SIGKILL" {
		t.Errorf("ended %v, %v; want %d by SIGKILL", ended, err, grandchildPID)
	}
	if running(grandchildPID) || !running(otherPID) {
		t.Errorf("grandchild runs: %v, other run's process runs: %v", running(grandchildPID), running(otherPID))
	}
	if ended, err := EndMarked(t.Context(), runID, time.Second); err != nil || len(ended) != 0 {
		t.Errorf("a second time: %v, %v", ended, err)
	}
}

func TestEndMarkedSparesItselfAndItsAncestors(t *testing.T) {
	m := &marked{assignment: "PATH=" + os.Getenv("PATH"), known: map[key]bool{}, dead: map[key]bool{}}
	for pid := os.Getpid(); pid > 1; {
		p, err := readProc(pid)
		if err != nil {
			break
		}
		m.known[p.key()] = true // as if all ancestors were marked
		pid = p.ppid
	}
	s, err := m.search()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range s.living {
		if p.pid == os.Getpid() || p.pid == os.Getppid() {
			t.Errorf("would end %d (%s)", p.pid, p.name)
		}
	}
}

func TestEndMarkedRefuses(t *testing.T) {
	for _, id := range []string{"", "a\x00b"} {
		if _, err := EndMarked(t.Context(), id, 0); exitcodes.From(err) != exitcodes.Software {
			t.Errorf("%q: got %v", id, err)
		}
	}
}

func TestEndMarkedObeysContext(t *testing.T) {
	runID := "ctx-" + strconv.Itoa(os.Getpid())
	cmd := exec.Command("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done")
	cmd.Env = append(env(), MarkEnv+"="+runID)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	if _, err := out.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := EndMarked(ctx, runID, time.Hour); exitcodes.From(err) != exitcodes.Timeout {
		t.Errorf("got %v", err)
	}
}
