package backend

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"agentd/exitcodes"
	"agentd/workspace"
)

// program returns an attempt that runs a shell script, its output and events.
func program(t *testing.T, script string) (*Attempt, *bytes.Buffer, *[]Event) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	var out bytes.Buffer
	var events []Event
	return &Attempt{
		RunID: "run-1", N: 2, Dir: t.TempDir(), RunDir: t.TempDir(), Prompt: "do it",
		Env:    []string{"PATH=" + os.Getenv("PATH")},
		Job:    &workspace.Job{Name: "j", Command: []string{"sh", "-c", script, "sh"}, Grace: 5 * time.Second},
		Output: &out, Events: func(e Event) { events = append(events, e) },
	}, &out, &events
}

func TestCommandStatus(t *testing.T) {
	for _, c := range []struct {
		script string
		code   exitcodes.Code
		status int
		signal string
		err    string
	}{
		{"echo done", exitcodes.OK, 0, "", ""},
		{"echo no such model; exit 78", exitcodes.Config, 78, "", "sh ended with status 78: no such model"},
		{"echo limit >&2; exit 75", exitcodes.RateLimited, 75, "", "sh ended with status 75: limit"},
		{"exit 1", exitcodes.Failure, 1, "", "sh ended with status 1"},
		{"exit 2", exitcodes.Failure, 2, "", "sh ended with status 2"},
		{"exit 41", exitcodes.Failure, 41, "", "sh ended with status 41"},
		{"exit 255", exitcodes.Failure, 255, "", "sh ended with status 255"},
		{"exit 143", exitcodes.Terminated, 143, "", "sh ended with status 143"},
		{"no-such-program-here", exitcodes.NotFound, 127, "", "no-such-program-here: "},
		{"kill -SEGV $$", exitcodes.Failure, 139, "SIGSEGV", "sh was ended by SIGSEGV"},
		{"echo working; kill -9 $$", exitcodes.Failure, 137, "SIGKILL", "sh was ended by SIGKILL: working"},
	} {
		t.Run(c.script, func(t *testing.T) {
			a, _, _ := program(t, c.script)
			o := NewCommand().Run(t.Context(), *a)
			if o.Code != c.code || o.Status != c.status || o.Signal != c.signal {
				t.Errorf("got %+v", o)
			}
			switch {
			case c.err == "" && o.Err != nil:
				t.Errorf("error %v", o.Err)
			case c.err != "" && (o.Err == nil || !strings.Contains(o.Err.Error(), c.err)):
				t.Errorf("error %v, want %q", o.Err, c.err)
			}
			if exitcodes.From(o.Err) != o.Code {
				t.Errorf("code %d, but the error says %d", o.Code, exitcodes.From(o.Err))
			}
		})
	}
}

func TestCommandStartErrors(t *testing.T) {
	a, _, _ := program(t, "")
	plain := filepath.Join(a.Dir, "plain")
	if err := os.WriteFile(plain, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		set  func(*Attempt)
		code exitcodes.Code
	}{
		{"not found", func(a *Attempt) { a.Job.Command = []string{"no-such-program-here"} }, exitcodes.NotFound},
		{"not executable", func(a *Attempt) { a.Job.Command = []string{plain} }, exitcodes.NotExecutable},
		{"no command", func(a *Attempt) { a.Job.Command = nil }, exitcodes.Config},
		{"no workspace", func(a *Attempt) { a.Dir += "/gone" }, exitcodes.NoInput},
		{"no run folder", func(a *Attempt) { a.RunDir += "/gone" }, exitcodes.NoInput},
		{"NUL in the prompt", func(a *Attempt) { a.Prompt = "a\x00b" }, exitcodes.Config},
		{"NUL in an argument", func(a *Attempt) { a.Args = []string{"a\x00b"} }, exitcodes.Config},
		{"unknown way", func(a *Attempt) { a.Job.PromptVia = "mail" }, exitcodes.Config},
		{"prompt too long for an argument", func(a *Attempt) {
			a.Job.PromptVia, a.Prompt = "arg", strings.Repeat("x", maxArgument)
		}, exitcodes.Config},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, _, _ := program(t, "exit 9")
			c.set(a)
			if o := NewCommand().Run(t.Context(), *a); o.Code != c.code || o.Err == nil || o.Status != 0 {
				t.Errorf("got %+v, want code %d", o, c.code)
			}
		})
	}
}

func TestCommandPrompt(t *testing.T) {
	const show = `echo "args: $*"; echo "stdin: $(cat)"; echo "file: $(cat "$AGENTD_PROMPT_FILE")"; stat -c %a "$AGENTD_PROMPT_FILE"; echo "$AGENTD_RUN_ID $AGENTD_ATTEMPT"`
	const common = "file: -do it\n600\nrun-1 2\n"
	for _, c := range []struct {
		via     string
		command []string
		want    func(file string) string
	}{
		{"", nil, func(string) string { return "args: extra\nstdin: -do it\n" }},
		{"stdin", nil, func(string) string { return "args: extra\nstdin: -do it\n" }},
		{"arg", nil, func(string) string { return "args: extra -do it\nstdin: \n" }},
		{"file", nil, func(f string) string { return "args: extra " + f + "\nstdin: \n" }},
		{"file", []string{"--from={prompt_file}"}, func(f string) string { return "args: --from=" + f + " extra\nstdin: \n" }},
	} {
		t.Run(fmt.Sprint(c.via, c.command), func(t *testing.T) {
			a, out, _ := program(t, show)
			a.Prompt, a.Args, a.Job.PromptVia = "-do it", []string{"extra"}, c.via
			a.Job.Command = append(a.Job.Command, c.command...)
			before := fmt.Sprint(a.Job.Command)
			o := NewCommand().Run(t.Context(), *a)
			if want := c.want(filepath.Join(a.RunDir, "prompt-2.txt")) + common; o.Code != 0 || out.String() != want {
				t.Errorf("got  %q\nwant %q (%v)", out.String(), want, o.Err)
			}
			if fmt.Sprint(a.Job.Command) != before {
				t.Errorf("the job's command was changed to %v", a.Job.Command)
			}
		})
	}
}

func TestCommandLongPromptOnStdin(t *testing.T) {
	a, out, _ := program(t, "wc -c")
	a.Prompt = strings.Repeat("x", 5<<20)
	if o := NewCommand().Run(t.Context(), *a); o.Code != 0 || strings.TrimSpace(out.String()) != "5242880" || o.Text != "5242880" {
		t.Errorf("got %+v, %q", o, out)
	}
	a, _, _ = program(t, "exit 0") // does not read it
	a.Prompt = strings.Repeat("x", 5<<20)
	if o := NewCommand().Run(t.Context(), *a); o.Code != 0 {
		t.Errorf("got %+v", o)
	}
}

func TestCommandOutput(t *testing.T) {
	a, out, _ := program(t, `printf '\033[1mone\033[0m\r\ntw'; sleep 0.05; printf 'o\n\377\nno end'; echo err >&2`)
	o := NewCommand().Run(t.Context(), *a)
	if want := "one\ntwo\n\uFFFD\nno enderr\n"; out.String() != want || o.Text != strings.TrimSpace(want) {
		t.Errorf("got %q, text %q", out, o.Text)
	}
}

func TestCommandOutputError(t *testing.T) {
	a, _, events := program(t, "echo a; sleep 0.05; echo b")
	a.Output = failing{errors.New("disk full")}
	o := NewCommand().Run(t.Context(), *a)
	if o.Code != 0 || len(*events) != 1 || (*events)[0].Kind != "warning" || !strings.Contains((*events)[0].Text, "disk full") {
		t.Errorf("got %+v, events %+v", o, *events)
	}
}

func TestCommandStopped(t *testing.T) {
	const orderly = "trap 'exit 0' TERM; echo $$ >pid; while :; do sleep 0.05; done"
	const stubborn = "(setsid sh -c 'trap \"\" TERM; echo $$ >pid; while :; do sleep 0.05; done' &) ; trap '' TERM; while :; do sleep 0.05; done"
	for _, c := range []struct {
		name, script string
		cause        error
		code         exitcodes.Code
		signal       string
	}{
		{"interrupted", orderly, nil, exitcodes.Cancelled, ""},
		{"terminated", orderly, exitcodes.Errorf(exitcodes.Terminated, "SIGTERM"), exitcodes.Terminated, ""},
		{"timeout", orderly, context.DeadlineExceeded, exitcodes.Timeout, ""},
		{"stubborn", stubborn, context.DeadlineExceeded, exitcodes.Timeout, "SIGKILL"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, _, _ := program(t, c.script)
			a.Job.Grace = 300 * time.Millisecond
			if c.signal == "" {
				a.Job.Grace = 20 * time.Second
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			pid := make(chan int, 1)
			go func() {
				pid <- waitPID(filepath.Join(a.Dir, "pid"))
				cancel(c.cause)
			}()
			o := NewCommand().Run(ctx, *a)
			if o.Code != c.code || o.Signal != c.signal || o.Err == nil || !strings.Contains(o.Err.Error(), "was stopped") {
				t.Errorf("got %+v", o)
			}
			p := <-pid
			if _, err := os.Stat(fmt.Sprintf("/proc/%d", p)); p == 0 || err == nil {
				t.Errorf("process %d still runs", p)
			}
			if o := NewCommand().Run(ctx, *a); o.Code != c.code {
				t.Errorf("when already stopped: %+v", o)
			}
		})
	}
}

// waitPID waits for a file with a pid; 0 if none comes.
func waitPID(file string) int {
	for range 6000 {
		if data, _ := os.ReadFile(file); bytes.HasSuffix(data, []byte("\n")) {
			pid, _ := strconv.Atoi(strings.TrimSpace(string(data)))
			return pid
		}
		<-time.After(5 * time.Millisecond)
	}
	return 0
}

func TestCommandDeadline(t *testing.T) {
	a, _, _ := program(t, "exec sleep 1000")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if o := NewCommand().Run(ctx, *a); o.Code != exitcodes.Timeout || o.Signal != "SIGTERM" || strings.Contains(o.Err.Error(), "\n") {
		t.Errorf("got %+v", o)
	}
}

func TestCommandTellsWhatWasLeftBehind(t *testing.T) {
	a, out, events := program(t, "sleep 1000 & echo done")
	o := NewCommand().Run(t.Context(), *a)
	if o.Code != 0 || out.String() != "done\n" || len(*events) != 1 || !strings.Contains((*events)[0].Text, "left behind: sleep (pid ") {
		t.Errorf("got %+v, %q, %+v", o, out, *events)
	}
}

func TestCommandFlood(t *testing.T) {
	a, out, _ := program(t, "head -c 50000000 /dev/zero; yes 'a line of text' | head -n 5000000; echo the end; exit 3")
	a.Output = out
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	o := command{logLimit: 1 << 20}.Run(t.Context(), *a)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if o.Status != 3 || !strings.HasSuffix(o.Err.Error(), ": the end") || !strings.Contains(out.String(), "bytes of output left out here") ||
		!strings.HasSuffix(out.String(), "a line of text\nthe end\n") {
		t.Errorf("got %+v, %d bytes", o, out.Len())
	}
	if out.Len() > 1<<20+maxTail+1000 || int64(after.HeapInuse)-int64(before.HeapInuse) > 32<<20 {
		t.Errorf("%d bytes in the log, heap grew by %d", out.Len(), int64(after.HeapInuse)-int64(before.HeapInuse))
	}
}
