package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentd/internal/sandbox"
)

const firingConfig = `[agent]
name = "bob"

[defaults]
backend = "command"

[jobs.long]
schedule = "*/5 * * * * *"
command  = ["sh", "-c", "echo >>started; until test -e go; do sleep 0.02; done"]

[jobs.edited]
schedule = "0 0 1 1 *"
timezone = "UTC"
command  = ["true"]
`

// A run that takes longer than its period is not followed by another at once,
// although systemd starts the service again (systemd#34591); and an edit of the
// times runs nothing (systemd#16732), whoever makes it.
func TestBootedFirings(t *testing.T) {
	if !sandbox.Inside() {
		sandbox.Test(t, sandbox.Options{User: "bob"})
		return
	}
	p := newPerson(t)
	p.write("agentd.toml", firingConfig)
	p.countStarts("long")
	p.countStarts("edited")
	p.mustSay("added", "install")

	p.awaitFile("started")
	const period = 5 * time.Second
	first := p.runs("long")[0].StartedAt
	p.eventually("another time of the schedule passes", func() bool {
		return time.Now().After(first.Truncate(period).Add(period + time.Second))
	})
	p.write("go", "")
	p.eventually("systemd starts the service again, or the next time comes", func() bool { return p.starts("long") > 1 })
	p.eventually("a second run", func() bool { return len(p.runs("long")) > 1 })
	runs := p.runs("long") // the latest first
	second, ended := runs[len(runs)-2].StartedAt, runs[len(runs)-1].EndedAt
	if due := ended.Truncate(period).Add(period); second.Before(due) {
		t.Errorf("a run from %v to %v was followed by one at %v, before %v", first, ended, second, due)
	}
	if out, _ := exec.Command("systemctl", "--version").Output(); strings.HasPrefix(string(out), "systemd 252") && p.starts("long") <= len(p.runs("long")) {
		t.Error("systemd did not start the service again after the long run: this test shows nothing")
	}

	p.editByHand("edited")
	started := p.starts("edited")
	hour := time.Now().UTC().Add(-time.Hour)
	p.write("agentd.toml", strings.Replace(firingConfig, "0 0 1 1 *", fmt.Sprintf("%d %d * * *", hour.Minute(), hour.Hour()), 1))
	p.stampOf("edited", time.Now().Add(-48*time.Hour))
	p.mustSay("1 changed", "install")
	before := len(p.runs("long"))
	p.eventually("other jobs run", func() bool { return len(p.runs("long")) > before })
	if runs := p.runs("edited"); len(runs) > 0 {
		t.Errorf("the edits ran the job: %+v", runs)
	}
	if n := p.starts("edited"); n != started {
		t.Errorf("install started the job %d times", n-started)
	}
	p.mustSay("removed", "uninstall")
}

// editByHand gives the job's timer a time that has passed, in a drop-in.
func (u *person) editByHand(job string) {
	u.Helper()
	timer := "agentd-bob-" + job + ".timer"
	hour := time.Now().UTC().Add(-time.Hour)
	u.dropIn(timer, fmt.Sprintf("[Timer]\nOnCalendar=\nOnCalendar=*-*-* %02d:%02d:00 UTC\n", hour.Hour(), hour.Minute()))
	u.systemctl("stop", timer)
	u.stampOf(job, time.Now().Add(-48*time.Hour))
	u.systemctl("daemon-reload")
	u.systemctl("start", timer)
	u.eventually("systemd starts the job of the edited timer", func() bool { return u.starts(job) > 0 })
	if err := os.RemoveAll(filepath.Join(os.Getenv("HOME"), ".config/systemd/user", timer+".d")); err != nil {
		u.Fatal(err)
	}
	u.systemctl("daemon-reload")
}

// stampOf sets when systemd last fired the job's timer.
func (u *person) stampOf(job string, at time.Time) {
	u.Helper()
	stamp := filepath.Join(os.Getenv("HOME"), ".local/share/systemd/timers/stamp-agentd-bob-"+job+".timer")
	if err := os.Chtimes(stamp, at, at); err != nil {
		u.Fatal(err)
	}
}

func (u *person) systemctl(args ...string) {
	u.Helper()
	if out, err := exec.Command("systemctl", append([]string{"--user"}, args...)...).CombinedOutput(); err != nil {
		u.Fatalf("systemctl %q: %v: %s", args, err, out)
	}
}

func (u *person) write(name, text string) {
	u.Helper()
	if err := os.WriteFile(filepath.Join(u.work, name), []byte(text), 0o600); err != nil {
		u.Fatal(err)
	}
}

type timedRun struct {
	StartedAt time.Time `json:"started_at"`
	EndedAt   time.Time `json:"ended_at"`
}

// runs returns the job's runs, the latest first.
func (u *person) runs(job string) (runs []timedRun) {
	u.Helper()
	u.decode(&runs, "history", job, "--json")
	return runs
}

// countStarts notes each start of the job's service by systemd.
func (u *person) countStarts(job string) {
	u.Helper()
	u.dropIn("agentd-bob-"+job+".service", "[Service]\nExecStartPre=/bin/sh -c 'echo >>%h/starts-"+job+"'\n")
}

func (u *person) starts(job string) int {
	u.Helper()
	text, err := os.ReadFile(filepath.Join(os.Getenv("HOME"), "starts-"+job))
	if err != nil && !os.IsNotExist(err) {
		u.Fatal(err)
	}
	return len(text)
}

// dropIn gives a unit a drop-in, as a person does.
func (u *person) dropIn(unit, text string) {
	u.Helper()
	dir := filepath.Join(os.Getenv("HOME"), ".config/systemd/user", unit+".d")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		u.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "mine.conf"), []byte(text), 0o600); err != nil {
		u.Fatal(err)
	}
}
