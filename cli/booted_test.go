package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentd/atomicfile"
	"agentd/internal/sandbox"
)

const bootedConfig = `[agent]
name = "bob"

[jobs.tick]
schedule = "* * * * * *"
prompt   = "Write the journal."
model    = "rehearsal/hello"

[jobs.limited]
schedule = "@yearly"
prompt   = "Write the digest."
model    = "rehearsal/usage-limit"

[jobs.busy]
schedule = "@yearly"
backend  = "command"
command  = ["true"]
lane     = "held"

[jobs.holder]
backend = "command"
command = ["sh", "-c", "touch started; until test -e go; do sleep 0.02; done"]
lane    = "held"
`

// person is somebody at the shell of a machine with a systemd.
type person struct {
	*testing.T
	agentd string
	work   string
}

func TestBooted(t *testing.T) {
	if !sandbox.Inside() {
		sandbox.Test(t, sandbox.Options{User: "bob"})
		return
	}
	u := newPerson(t)
	before := u.listing()
	u.mustSay("12 added", "install")
	u.mustSay("0 added, 0 changed, 0 removed", "install")

	// The timer fires, again and again; its service runs run.sh, which runs agentd.
	var runs []struct {
		Trigger string `json:"trigger"`
	}
	u.eventually("three runs", func() bool {
		u.decode(&runs, "history", "tick", "--code", "ok", "--json")
		return len(runs) >= 3
	})
	for _, r := range runs {
		if r.Trigger != "timer" {
			t.Errorf("triggers %v, want timer each time", runs)
			break
		}
	}
	if entry, err := filepath.Glob(filepath.Join(u.work, "journal/*.md")); err != nil || len(entry) == 0 {
		t.Errorf("the agent wrote no journal entry: %v", err)
	}
	var states []struct {
		Job   string     `json:"job"`
		State string     `json:"state"`
		Next  *time.Time `json:"next"`
	}
	u.decode(&states, "status", "--json")
	if s := states[1]; s.Job != "limited" || s.State != "idle" || s.Next == nil || s.Next.Month() != time.January || s.Next.Day() != 1 {
		t.Errorf("status of limited: %+v", s)
	}

	// systemd sees a rate limit as a failure, and a busy lane as none.
	u.service("limited", "exit-code 75")
	holder := u.start("run", "holder")
	u.awaitFile("started")
	u.service("busy", "success 80")
	if err := os.WriteFile(filepath.Join(u.work, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := holder.Wait(); err != nil {
		t.Errorf("the holder of the lane: %v", err)
	}

	u.mustSay("12 files removed", "uninstall")
	if after := u.listing(); after != before {
		t.Errorf("uninstall left something:\n%s\nbefore:\n%s", after, before)
	}
}

func newPerson(t *testing.T) *person {
	t.Helper()
	home := os.Getenv("HOME")
	u := &person{T: t, agentd: filepath.Join(home, "bin/agentd"), work: filepath.Join(home, "agents/bob's own")}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	// What a lived-in home has, so that the listings compare.
	for _, dir := range []string{"bin", "agents/bob's own/journal", ".config", ".local/share"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	// The test program under this name is agentd: see TestMain. On a second boot
	// it may be running already.
	if err := atomicfile.Write(u.agentd, self, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(u.work, "agentd.toml"), []byte(bootedConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	return u
}

func (u *person) start(args ...string) *exec.Cmd {
	u.Helper()
	c := exec.CommandContext(u.Context(), u.agentd, args...)
	c.Dir = u.work
	if err := c.Start(); err != nil {
		u.Fatal(err)
	}
	return c
}

func (u *person) output(args ...string) (string, error) {
	c := exec.CommandContext(u.Context(), u.agentd, args...)
	c.Dir = u.work
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		err = errors.New(err.Error() + ": " + stderr.String())
	}
	return string(out), err
}

func (u *person) mustSay(want string, args ...string) {
	u.Helper()
	out, err := u.output(args...)
	if err != nil || !strings.Contains(out, want) {
		u.Fatalf("agentd %s: %v\n%s\nwant %q", strings.Join(args, " "), err, out, want)
	}
}

func (u *person) decode(v any, args ...string) {
	u.Helper()
	out, err := u.output(args...)
	if err == nil {
		err = json.Unmarshal([]byte(out), v)
	}
	if err != nil {
		u.Fatalf("agentd %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// eventually asks until it is so; there is a limit, but nothing hangs on how
// long it takes.
func (u *person) eventually(what string, so func() bool) {
	u.Helper()
	for deadline := time.Now().Add(time.Minute); !so(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			u.Fatalf("%s did not happen", what)
		}
	}
}

// eventuallySays asks until agentd prints what is wanted.
func (u *person) eventuallySays(want string, args ...string) {
	u.Helper()
	u.eventually("agentd "+strings.Join(args, " ")+" saying "+want, func() bool {
		out, err := u.output(args...)
		return err == nil && strings.Contains(out, want)
	})
}

// await asks until the list that agentd prints is not empty.
func (u *person) await(args ...string) {
	u.Helper()
	u.eventually("agentd "+strings.Join(args, " "), func() bool {
		out, err := u.output(args...)
		return err == nil && strings.TrimSpace(out) != "[]"
	})
}

func (u *person) awaitFile(name string) {
	u.Helper()
	u.eventually("the file "+name, func() bool {
		_, err := os.Stat(filepath.Join(u.work, name))
		return err == nil
	})
}

// service starts a job's service and checks systemd's result and status.
func (u *person) service(job, want string) {
	u.Helper()
	unit := "agentd-bob-" + job + ".service"
	_ = exec.Command("systemctl", "--user", "start", unit).Run() // fails with the job, which is checked below
	out, err := exec.Command("systemctl", "--user", "show", "--value", "-p", "Result", "-p", "ExecMainStatus", unit).Output()
	if got := strings.Join(strings.Fields(string(out)), " "); err != nil || got != want && got != reversed(want) {
		u.Errorf("%s: %q, %v, want %q", unit, got, err, want)
	}
}

// reversed is "b a" of "a b": systemctl prints properties in an order of its own.
func reversed(s string) string {
	a, b, _ := strings.Cut(s, " ")
	return b + " " + a
}

// listing is all that an install could leave: files, and units that systemd knows.
func (u *person) listing() string {
	u.Helper()
	var list strings.Builder
	for _, argv := range [][]string{
		{"systemctl", "--user", "list-units", "--all", "--plain", "--no-legend", "agentd-*"},
		{"systemctl", "--user", "list-unit-files", "--no-legend", "agentd-*"},
		{"find", os.Getenv("HOME"), "-not", "-path", "*/.local/state*", "-not", "-path", "*/agents/*", "-not", "-path", "*/.local/share/systemd*"},
		{"find", os.Getenv("HOME") + "/.local/share/systemd", "-name", "*agentd*"},
	} {
		out, _ := exec.Command(argv[0], argv[1:]...).Output() // find minds a folder that is not there
		list.Write(out)
	}
	return list.String()
}
