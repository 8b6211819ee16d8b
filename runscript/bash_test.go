package runscript

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"agentd/exitcodes"
)

// bench is a rendered script with a fake agentd behind it.
type bench struct {
	dir, script, state, record string
	spec                       Spec
}

// newBench puts program, workspace, state and script into dir.
func newBench(t *testing.T, dir string) *bench {
	t.Helper()
	b := &bench{
		dir:    dir,
		script: filepath.Join(dir, "run.sh"),
		state:  filepath.Join(dir, "state"),
		record: filepath.Join(t.TempDir(), "call.json"),
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "agentd")); err != nil {
		t.Fatal(err)
	}
	b.spec = Spec{
		Agent: "bob", Job: "triage", Path: b.script,
		Agentd:    filepath.Join(dir, "agentd"),
		Workspace: filepath.Join(dir, "work space"),
		StateDir:  b.state,
		Env:       []string{"PATH=" + os.Getenv("PATH"), "NASTY=" + dir},
	}
	if err := os.WriteFile(b.script, render(t, b.spec), 0o700); err != nil {
		t.Fatal(err)
	}
	return b
}

// command runs the script with an environment as bare as cron's.
func (b *bench) command(env []string, args ...string) *exec.Cmd {
	cmd := exec.Command("/bin/bash", append([]string{b.script}, args...)...)
	cmd.Env = append([]string{"HOME=/", "SHELL=/bin/sh", "PATH=/usr/bin:/bin", "FAKE_RECORD=" + b.record}, env...)
	cmd.WaitDelay = 30 * time.Second
	return cmd
}

func (b *bench) call(t *testing.T) call {
	t.Helper()
	data, err := os.ReadFile(b.record)
	if err != nil {
		t.Fatalf("agentd was not called: %v", err)
	}
	var c call
	if err := gob.NewDecoder(bytes.NewReader(data)).Decode(&c); err != nil {
		t.Fatal(err)
	}
	return c
}

// log returns the path and content of the only run's output.log.
func (b *bench) log(t *testing.T) (path, content string) {
	t.Helper()
	runs, err := os.ReadDir(filepath.Join(b.state, "runs"))
	if err != nil || len(runs) != 1 {
		t.Fatalf("run folders: %v, %v", runs, err)
	}
	path = filepath.Join(b.state, "runs", runs[0].Name(), "output.log")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, string(data)
}

func statusOf(t *testing.T, err error) int {
	t.Helper()
	if err == nil {
		return 0
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	t.Fatal(err)
	return -1
}

func nastyPaths() []string {
	return []string{
		"/tmp/with space",
		`/tmp/quote " and ' both`,
		"/tmp/$HOME and ${x} and $(id) and `id`",
		"/tmp/100% %h %%n",
		"/tmp/new\nline",
		"/tmp/naïve/日本語 🙂",
		`/tmp/back\slash\`,
		"/tmp/-rf ;& |<>*?[x]~!#{a,b}",
		"/tmp/\ttab\x01control\x7f",
		"/tmp/not utf-8 \xff\xfe",
	}
}

func TestPathsAndArguments(t *testing.T) {
	args := []string{"--prompt", "two words", "", "*", "$HOME", "a\nb", `"'\`, "--", "-x", "ü"}
	for _, path := range nastyPaths() {
		t.Run(fmt.Sprintf("%q", path), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, filepath.Join(t.TempDir(), path))
			out, err := b.command([]string{"FAKE_STATUS=75"}, args...).CombinedOutput()
			if status := statusOf(t, err); status != 75 {
				t.Fatalf("status %d, want 75; output:\n%s", status, out)
			}
			log, content := b.log(t)
			id := filepath.Base(filepath.Dir(log))
			want := append([]string{"run", "--workspace", b.spec.Workspace, "--run-id", id, "--trigger", "script", "triage"}, args...)
			c := b.call(t)
			if !slices.Equal(c.Args, want) {
				t.Errorf("agentd's arguments\n got %q\nwant %q", c.Args, want)
			}
			if !slices.Contains(c.Env, "NASTY="+b.dir) {
				t.Errorf("the exported variable is not in %q", c.Env)
			}
			if content != string(out) || !strings.Contains(content, "to stdout\nto stderr\n") {
				t.Errorf("the log has %q, the script printed %q", content, out)
			}
		})
	}
}

func TestExitCodes(t *testing.T) {
	b := newBench(t, t.TempDir())
	for _, e := range exitcodes.Table() {
		_, err := b.command([]string{fmt.Sprintf("FAKE_STATUS=%d", e.Code)}).CombinedOutput()
		if status := statusOf(t, err); status != int(e.Code) {
			t.Errorf("status %d when agentd ended with %d (%s)", status, e.Code, e.Name)
		}
	}
}

func TestRunFolder(t *testing.T) {
	b := newBench(t, t.TempDir())
	before := time.Now().Add(-time.Second)
	if out, err := b.command(nil).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	log, _ := b.log(t)
	id, err := uuid.Parse(filepath.Base(filepath.Dir(log)))
	if err != nil || id.Version() != 7 || id.Variant() != uuid.RFC4122 {
		t.Fatalf("run id %v: version %d, variant %v, %v", id, id.Version(), id.Variant(), err)
	}
	if at := time.Unix(id.Time().UnixTime()); at.Before(before) || at.After(time.Now().Add(time.Second)) {
		t.Errorf("the id says %v, it is %v", at, time.Now())
	}
	for path, want := range map[string]os.FileMode{log: 0o600, filepath.Dir(log): 0o700 | os.ModeDir} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("mode of %s: %v, %v, want %v", path, info.Mode(), err, want)
		}
	}
}

func TestTrigger(t *testing.T) {
	for _, c := range []struct {
		want string
		env  []string
	}{
		{"script", []string{"AGENTD_TRIGGER="}},
		{"script", []string{"TRIGGER_UNIT=x.timer"}}, // inherited from who knows where
		{"timer", []string{"AGENTD_TRIGGER=timer"}},
		{"systemd-user", []string{"AGENTD_TRIGGER=systemd-user", "TRIGGER_UNIT=x.timer"}},
		{"resume", []string{"AGENTD_TRIGGER=resume", "TRIGGER_UNIT=x.timer"}},
	} {
		b := newBench(t, t.TempDir())
		if out, err := b.command(c.env).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		call := b.call(t)
		if got := call.Args[slices.Index(call.Args, "--trigger")+1]; got != c.want {
			t.Errorf("with %q the trigger is %q, want %q", c.env, got, c.want)
		}
		if slices.ContainsFunc(call.Env, func(e string) bool {
			return strings.HasPrefix(e, "AGENTD_TRIGGER=") || strings.HasPrefix(e, "TRIGGER_UNIT=")
		}) {
			t.Errorf("the trigger is passed on: what the agent starts would claim it")
		}
	}
}

func TestAgentdIsGone(t *testing.T) {
	b := newBench(t, t.TempDir())
	if err := os.Remove(b.spec.Agentd); err != nil {
		t.Fatal(err)
	}
	out, err := b.command(nil).CombinedOutput()
	if status := statusOf(t, err); status != int(exitcodes.NotFound) {
		t.Errorf("status %d, want 127", status)
	}
	if !strings.Contains(string(out), b.spec.Agentd) || !strings.Contains(string(out), "agentd install") {
		t.Errorf("the message does not say what is missing and what to do: %s", out)
	}
}

// Where the run folder cannot be made, agentd runs all the same: it is the one
// that knows the right code.
func TestStateUnwritable(t *testing.T) {
	b := newBench(t, t.TempDir())
	if err := os.WriteFile(b.state, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	cmd := b.command([]string{"FAKE_STATUS=73"})
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if status := statusOf(t, cmd.Run()); status != 73 {
		t.Errorf("status %d, want agentd's 73", status)
	}
	if !strings.Contains(stderr.String(), "mkdir") || !strings.Contains(stdout.String(), "to stdout") {
		t.Errorf("stdout %q, stderr %q", &stdout, &stderr)
	}
}

func TestReaderGoesAway(t *testing.T) {
	b := newBench(t, t.TempDir())
	cmd := exec.Command("/bin/bash", "-c", `"$0" "$@" | head -n 1 >/dev/null; exit "${PIPESTATUS[0]}"`, "/bin/bash", b.script)
	cmd.Env = b.command([]string{"FAKE=flood", "FAKE_STATUS=80"}).Env
	out, err := cmd.CombinedOutput()
	if status := statusOf(t, err); status != 80 {
		t.Errorf("status %d, want agentd's 80; %s", status, out)
	}
	if _, log := b.log(t); !strings.Contains(log, "line 19999\nto stdout\nto stderr\n") {
		t.Errorf("the log ends early: %d bytes", len(log))
	}
}

func TestDiskFull(t *testing.T) {
	b := newBench(t, t.TempDir())
	if err := os.Mkdir(b.state, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := b.command([]string{"FAKE=flood", "FAKE_STATUS=75"})
	// A namespace of its own gives a tiny disk to root and to a plain user alike.
	const inside = `mount -t tmpfs -o size=16k tmpfs "$1" || exit 42; shift; exec "$@"`
	cmd.Args = append([]string{"unshare", "--user", "--map-root-user", "--mount", "bash", "-c", inside, "-", b.state}, cmd.Args...)
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		t.Skip("unshare is not installed")
	}
	cmd.Path = unshare
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	status := statusOf(t, cmd.Run())
	if status == 42 || strings.Contains(stderr.String(), "unshare failed") {
		t.Skipf("no namespace with a tiny disk here: %s", &stderr)
	}
	if status != 75 {
		t.Errorf("status %d, want agentd's 75", status)
	}
	if !strings.Contains(stderr.String(), "No space left") {
		t.Errorf("nothing on stderr about the full disk: %q", &stderr)
	}
	if !strings.Contains(stdout.String(), "line 19999\nto stdout\nto stderr\n") {
		t.Errorf("stdout ends early: %d bytes", stdout.Len())
	}
}
