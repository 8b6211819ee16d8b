package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"agentd/exitcodes"
)

func TestRunStatus(t *testing.T) {
	for _, c := range []struct {
		script string
		want   Result
		out    string
	}{
		{"exit 0", Result{}, ""},
		{"exit 75", Result{Status: 75}, ""},
		{"echo out; echo err >&2; exit 3", Result{Status: 3}, "out\nerr\n"},
		{"kill -SEGV $$", Result{Status: 139, Signal: "SIGSEGV"}, ""},
		{"kill -9 $$", Result{Status: 137, Signal: "SIGKILL"}, ""},
		{`echo "$AGENTD_RUN_ID"`, Result{}, "run-1\n"},
		{"cat", Result{}, ""}, // no input is an empty input
		{"[ -t 0 ] || : </dev/tty && echo terminal", Result{Status: 2}, ""},
	} {
		t.Run(c.script, func(t *testing.T) {
			spec := sh(c.script)
			spec.Mark = "run-1"
			res, out := run(t, t.Context(), spec)
			if i := strings.Index(out, "/dev/tty"); i >= 0 {
				out = "" // the shell's own words
				res.Status = 2
			}
			if fmt.Sprint(res) != fmt.Sprint(c.want) || out != c.out {
				t.Errorf("got %+v, output %q; want %+v, %q", res, out, c.want, c.out)
			}
		})
	}
}

func TestRunInput(t *testing.T) {
	spec := Spec{Argv: []string{"cat"}, Env: env(), Stdin: strings.NewReader("some input")}
	if res, out := run(t, t.Context(), spec); out != "some input" || res.Status != 0 {
		t.Errorf("cat: %+v %q", res, out)
	}
	spec = Spec{Argv: []string{"true"}, Env: env(), Stdin: bytes.NewReader(make([]byte, 10<<20))}
	if res, _ := run(t, t.Context(), spec); res.Status != 0 {
		t.Errorf("a program that does not read its input: %+v", res)
	}
	f, err := os.Open("main_test.go")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	spec = Spec{Argv: []string{"head", "-n1"}, Env: env(), Stdin: f}
	if _, out := run(t, t.Context(), spec); out != "package process\n" {
		t.Errorf("a file as input: %q", out)
	}
}

func TestRunSeparateOutputs(t *testing.T) {
	var out, err bytes.Buffer
	spec := sh("echo out; echo err >&2")
	spec.Stdout, spec.Stderr = &out, &err
	run(t, t.Context(), spec)
	if out.String() != "out\n" || err.String() != "err\n" {
		t.Errorf("stdout %q, stderr %q", &out, &err)
	}
}

func TestRunOutputError(t *testing.T) {
	full := errors.New("disk full")
	spec := sh("head -c 1000000 /dev/zero; exit 4")
	spec.Stdout = writerFunc(func([]byte) (int, error) { return 0, full })
	res, err := Run(t.Context(), spec)
	if err != nil || res.Status != 4 || !errors.Is(res.OutputErr, full) {
		t.Errorf("got %+v, %v", res, err)
	}
}

// What is still in the pipe when the tree is dead is delivered, however slow the
// reader is.
func TestRunDeliversAllToASlowReader(t *testing.T) {
	var out bytes.Buffer
	pidfile := filepath.Join(t.TempDir(), "pid")
	spec := sh("echo $$ >" + pidfile + "; echo one; sleep 0.05; echo two")
	spec.Stdout = writerFunc(func(p []byte) (int, error) {
		if out.Len() == 0 {
			pid := readPID(t, pidfile)
			eventually(t, "the program has gone", func() bool { return !running(pid) })
			<-time.After(300 * time.Millisecond) // Run now waits for the output only
		}
		return out.Write(p)
	})
	run(t, t.Context(), spec)
	if out.String() != "one\ntwo\n" {
		t.Errorf("output %q", &out)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestRunLargeOutputKeepsMemoryFlat(t *testing.T) {
	var n int64
	spec := Spec{Argv: []string{"head", "-c", "1073741824", "/dev/zero"}, Env: env()}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	spec.Stdout = writerFunc(func(p []byte) (int, error) { n += int64(len(p)); return len(p), nil })
	run(t, t.Context(), spec)
	runtime.ReadMemStats(&after)
	if n != 1<<30 {
		t.Errorf("got %d bytes", n)
	}
	if grown := int64(after.TotalAlloc - before.TotalAlloc); grown > 64<<20 {
		t.Errorf("allocated %d bytes for 1 GiB of output", grown)
	}
}

func TestRunStartErrors(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		name string
		spec Spec
		code exitcodes.Code
		text string
	}{
		{"no such name", Spec{Argv: []string{"no-such-program-here"}, Env: env()}, 127, "no-such-program-here"},
		{"no such path", Spec{Argv: []string{dir + "/nothing"}}, 127, "/nothing"},
		{"path through a file", Spec{Argv: []string{write("plain", "", 0o600) + "/x"}}, 127, "plain/x"},
		{"relative is in Dir", Spec{Argv: []string{"./nothing"}, Dir: dir}, 127, dir + "/nothing"},
		{"not executable", Spec{Argv: []string{write("text", "#!/bin/sh\n", 0o600)}}, 126, "permission denied"},
		{"not executable in PATH", Spec{Argv: []string{"text"}, Env: []string{"PATH=" + dir}}, 126, "permission denied"},
		{"folder", Spec{Argv: []string{dir}}, 126, "is a folder"},
		{"no format", Spec{Argv: []string{write("noformat", "hello\n", 0o700)}}, 126, "not a program"},
		{"no interpreter", Spec{Argv: []string{write("noint", "#!/no/such/sh\n", 0o700)}}, 127, `interpreter "/no/such/sh" is missing`},
		{"argument too long", Spec{Argv: []string{"true", strings.Repeat("x", 200<<10)}, Env: env()}, 126, "more than the kernel takes"},
		{"no folder", Spec{Argv: []string{"true"}, Env: env(), Dir: dir + "/none"}, 66, "no folder"},
		{"folder is a file", Spec{Argv: []string{"true"}, Env: env(), Dir: dir + "/plain"}, 66, "not a folder"},
		{"empty", Spec{}, 78, "empty"},
		{"NUL", Spec{Argv: []string{"true", "a\x00b"}, Env: env()}, 78, "argument 1 contains a NUL"},
		{"bad environment", Spec{Argv: []string{"true"}, Env: []string{"PATH=/bin", "S=secret\x00"}}, 78, `"S"`},
		{"PATH does not reach the working folder", Spec{Argv: []string{"noformat"}, Dir: dir, Env: []string{"PATH=.::/nowhere"}}, 127, "noformat"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Run(t.Context(), c.spec)
			if exitcodes.From(err) != c.code || err == nil || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v (%d), want %d with %q", err, exitcodes.From(err), c.code, c.text)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error tells a value: %v", err)
			}
			noChildren(t)
		})
	}
}

func TestRunNotStartedWhenContextEnded(t *testing.T) {
	cause := exitcodes.Errorf(exitcodes.Terminated, "stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	marker := filepath.Join(t.TempDir(), "ran")
	_, err := Run(ctx, sh("touch "+marker))
	if !errors.Is(err, cause) || exitcodes.From(err) != exitcodes.Terminated {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("the program ran")
	}
}

// Many trees at once, beside os/exec, must not take each other's children.
func TestRunsDoNotDisturbEachOther(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			want := 10 + i
			if i%3 == 0 {
				err := exec.Command("sh", "-c", fmt.Sprintf("sleep 0.0%d; exit %d", i, want)).Run()
				var exit *exec.ExitError
				if !errors.As(err, &exit) || exit.ExitCode() != want {
					t.Errorf("os/exec: %v, want status %d", err, want)
				}
				return
			}
			spec := sh(fmt.Sprintf("setsid sh -c 'sleep 0.0%d' & (sleep 0.01 &) ; sleep 0.0%d; exit %d", i, i, want))
			spec.Stdout = io.Discard
			res, err := Run(t.Context(), spec)
			if err != nil || res.Status != want {
				t.Errorf("got %+v, %v; want status %d", res, err, want)
			}
		})
	}
	wg.Wait()
	noChildren(t)
}

// The parent-death signal follows the thread that forked. Threads that come
// and go must not end the child.
func TestRunSurvivesThreadsThatEnd(t *testing.T) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
				ended := make(chan struct{})
				go func() {
					runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
					close(ended)
				}()
				<-ended
			}
		}
	})
	res, _ := run(t, t.Context(), sh("sleep 0.3; exit 5"))
	close(done)
	wg.Wait()
	if res.Status != 5 {
		t.Errorf("got %+v", res)
	}
}
