package backend

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"agentd/exitcodes"
	"agentd/session"
	"agentd/workspace"
)

// cliDesk is a job for an agent CLI, with a fake of that in its PATH.
type cliDesk struct {
	t       *testing.T
	preset  workspace.Backend
	job     *workspace.Job
	home    string // also where the fake keeps what it got
	store   session.Store
	env     []string
	locks   string
	resumed bool
	now     time.Time
	n       int
	log     int64 // bytes of output that go to the log; 0: as always

	out    bytes.Buffer
	events []Event
}

// newCLIDesk has a fake of the preset's program that runs the shell script.
// Before that the fake writes its arguments, input and environment down, as
// args, stdin and env in $FAKE.
func newCLIDesk(t *testing.T, name, script string) *cliDesk {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		if !t.Failed() {
			goleak.VerifyNone(t, before)
		}
	})
	preset, err := workspace.BackendPreset(name)
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	d := &cliDesk{t: t, preset: preset, home: home, store: session.Store{Dir: t.TempDir()}, locks: t.TempDir(), now: recordedAt}
	d.job = &workspace.Job{
		Agent: "bob", Name: "work", Backend: name, Model: "some-model", Grace: 2 * time.Second, MaxSteps: 7,
		Recovery: workspace.Recovery{Requests: 11},
	}
	d.env = []string{"PATH=" + home + "/bin:" + os.Getenv("PATH"), "HOME=" + home, "FAKE=" + home, "TZ=UTC"}
	d.script(script)
	return d
}

func (d *cliDesk) script(script string) {
	d.t.Helper()
	head := `#!/bin/sh
for a in "$@"; do printf '%s\037' "$a"; done > "$FAKE/args"
env > "$FAKE/env"
echo x >> "$FAKE/calls"
`
	if d.preset.PromptVia == "stdin" {
		head += "cat > \"$FAKE/stdin\"\n"
	}
	d.write("bin/"+d.preset.Command[0], head+script+"\n", 0o700)
}

func (d *cliDesk) write(name, text string, mode os.FileMode) {
	d.t.Helper()
	path := filepath.Join(d.home, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		d.t.Fatal(err)
	}
}

func (d *cliDesk) got(name string) string {
	d.t.Helper()
	data, err := os.ReadFile(filepath.Join(d.home, name))
	if err != nil {
		d.t.Fatal(err)
	}
	return string(data)
}

func (d *cliDesk) args() []string {
	return strings.Split(strings.TrimSuffix(d.got("args"), "\037"), "\037")
}

// prompt returns what the fake was asked, whichever way it went.
func (d *cliDesk) prompt() string {
	d.t.Helper()
	switch d.preset.PromptVia {
	case "stdin":
		return d.got("stdin")
	case "file":
		args := d.args()
		data, err := os.ReadFile(args[len(args)-1])
		if err != nil {
			d.t.Fatal(err)
		}
		return string(data)
	}
	args := d.args()
	return args[len(args)-1]
}

func (d *cliDesk) calls() int { return strings.Count(d.got("calls"), "x") }

// run makes an attempt in the session "s".
func (d *cliDesk) run(ctx context.Context, prompt string) Outcome {
	d.t.Helper()
	s, err := d.store.Open("bob", "s", session.Options{})
	if err != nil {
		d.t.Fatal(err)
	}
	defer s.Close()
	d.n++
	if err := s.AttemptStarted("run", d.n, d.preset.Name, ""); err != nil {
		d.t.Fatal(err)
	}
	x, err := NewExternal(ExternalOptions{Backend: d.preset, Locks: d.locks, Now: func() time.Time { return d.now }})
	if err != nil {
		d.t.Fatal(err)
	}
	if d.log > 0 {
		x.(*external).logLimit = d.log
	}
	o := x.Run(ctx, Attempt{
		RunID: "run", N: d.n, Job: d.job, Dir: d.home, RunDir: d.t.TempDir(), Prompt: prompt, Resumed: d.resumed,
		Env: d.env, Session: s, Output: &d.out, Events: func(e Event) { d.events = append(d.events, e) },
	})
	if o.Code != exitcodes.From(o.Err) || (o.Code == exitcodes.OK) != (o.Err == nil) {
		d.t.Errorf("code %d and the error %v do not agree", o.Code, o.Err)
	}
	if o.Err != nil && strings.Contains(o.Err.Error(), "\n") {
		d.t.Errorf("the error has several lines: %q", o.Err)
	}
	return o
}

func (d *cliDesk) transcript() *session.Transcript {
	d.t.Helper()
	s, err := d.store.Open("bob", "s", session.Options{})
	if err != nil {
		d.t.Fatal(err)
	}
	defer s.Close()
	return s.Transcript()
}

// hello makes the fake succeed, with what the real program printed where there
// is a record of it.
func (d *cliDesk) hello() {
	d.t.Helper()
	text := "Hello from mock\n"
	if d.preset.Output != "text" {
		data, err := os.ReadFile(filepath.Join(recordedDir, d.preset.Name+"-ok.out"))
		if os.IsNotExist(err) { // the form of another program's
			data, err = os.ReadFile(filepath.Join(recordedDir, d.preset.Output+"-ok.out"))
		}
		if err != nil {
			d.t.Fatal(err)
		}
		text = string(data)
	}
	d.write("hello", text, 0o600)
	d.script(`cat "$FAKE/hello"`)
}

func eachPreset(t *testing.T, f func(t *testing.T, d *cliDesk)) {
	t.Helper()
	for _, name := range workspace.BackendPresets() {
		t.Run(name, func(t *testing.T) { f(t, newCLIDesk(t, name, "")) })
	}
}
