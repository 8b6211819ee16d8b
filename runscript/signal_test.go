package runscript

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// running is a script whose agentd waits for signals.
type running struct {
	*bench
	cmd *exec.Cmd
	out *bufio.Scanner
}

func start(t *testing.T, prefix ...string) *running {
	t.Helper()
	b := newBench(t, t.TempDir())
	cmd := b.command([]string{"FAKE=signals"})
	if len(prefix) > 0 {
		path, err := exec.LookPath(prefix[0])
		if err != nil {
			t.Skip(err)
		}
		cmd.Path, cmd.Args = path, append(prefix, cmd.Args...)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	r := &running{bench: b, cmd: cmd, out: bufio.NewScanner(stdout)}
	if !r.out.Scan() || r.out.Text() != "ready" {
		t.Fatalf("agentd did not start: %q", r.out.Text())
	}
	return r
}

// end waits for the script and checks that the orderly end was seen to.
func (r *running) end(t *testing.T, wantStatus int, wantSignals string) {
	t.Helper()
	var lines []string
	for r.out.Scan() {
		lines = append(lines, r.out.Text())
	}
	if status := statusOf(t, r.cmd.Wait()); status != wantStatus {
		t.Errorf("status %d, want %d", status, wantStatus)
	}
	const last = "the orderly end\nto stdout"
	if got := strings.Join(lines, "\n"); !strings.Contains(got, last) {
		t.Errorf("stdout ends with %q", got)
	}
	if _, log := r.log(t); !strings.Contains(log, last) {
		t.Errorf("the log ends with %q", log)
	}
	if got := strings.Join(r.call(t).Signals, ","); got != wantSignals {
		t.Errorf("agentd got the signals %q, want %q", got, wantSignals)
	}
	if left := membersOf(t, r.cmd.Process.Pid); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// membersOf returns the processes that are still in a process group.
func membersOf(t *testing.T, pgid int) []string {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var members []string
	for _, path := range stats {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // it ended meanwhile
		}
		// pid (name) state ppid pgrp ...; the name may hold anything.
		text := string(data)
		fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
		if fields[2] == strconv.Itoa(pgid) && fields[0] != "Z" {
			members = append(members, text)
		}
	}
	return members
}

func TestSignals(t *testing.T) {
	for _, c := range []struct {
		name   string
		send   syscall.Signal
		status int
		got    string
	}{
		{"TERM", syscall.SIGTERM, 143, "terminated"},
		{"INT", syscall.SIGINT, 130, "interrupt"},
		{"HUP", syscall.SIGHUP, 129, "hangup"},
	} {
		t.Run(c.name+" to the script alone", func(t *testing.T) {
			t.Parallel()
			r := start(t)
			if err := r.cmd.Process.Signal(c.send); err != nil {
				t.Fatal(err)
			}
			r.end(t, c.status, c.got)
		})
		t.Run(c.name+" to the process group", func(t *testing.T) {
			t.Parallel()
			r := start(t)
			if err := syscall.Kill(-r.cmd.Process.Pid, c.send); err != nil {
				t.Fatal(err)
			}
			r.end(t, c.status, c.got)
		})
		t.Run(c.name+" twice in a row", func(t *testing.T) {
			t.Parallel()
			r := start(t)
			for range 2 {
				if err := r.cmd.Process.Signal(c.send); err != nil {
					t.Fatal(err)
				}
			}
			r.end(t, c.status, c.got)
		})
	}
}

// A control group gets its signal process by process: the script, tee and
// agentd itself. tee has to see the end through.
func TestSignalToEveryProcess(t *testing.T) {
	t.Parallel()
	r := start(t)
	agentd := r.call(t)
	if agentd.PGID == r.cmd.Process.Pid {
		t.Fatal("agentd is in the script's process group: it would get Ctrl-C twice")
	}
	if err := syscall.Kill(-r.cmd.Process.Pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(agentd.PID, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	var log string
	for r.out.Scan() {
		log += r.out.Text() + "\n"
	}
	if status := statusOf(t, r.cmd.Wait()); status != 143 {
		t.Errorf("status %d, want 143", status)
	}
	if !strings.Contains(log, "the orderly end\n") {
		t.Errorf("tee did not see the end: %q", log)
	}
}

// Under nohup a hangup stays ignored, in the script and in agentd.
func TestNohup(t *testing.T) {
	t.Parallel()
	r := start(t, "nohup")
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM} {
		if err := r.cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	r.end(t, 143, "terminated")
}

// A process that the agent left behind holds the pipe: the script ends anyway.
func TestLeftoverHoldsTheOutput(t *testing.T) {
	t.Parallel()
	b := newBench(t, t.TempDir())
	cmd := b.command([]string{"FAKE=leftover", "FAKE_STATUS=82"})
	begin := time.Now()
	status := statusOf(t, cmd.Run())
	stray := b.call(t).PID
	t.Cleanup(func() { _ = syscall.Kill(stray, syscall.SIGKILL) })
	if status != 82 {
		t.Errorf("status %d, want 82", status)
	}
	if took := time.Since(begin); took > time.Minute {
		t.Errorf("the script waited %v for the leftover", took)
	}
}
