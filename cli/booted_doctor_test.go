package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentd/internal/sandbox"
)

// Doctor finds what keeps timers from running jobs, and mends what it may.
func TestBootedDoctor(t *testing.T) {
	if !sandbox.Inside() {
		sandbox.Test(t, sandbox.Options{User: "bob"})
		return
	}
	p := newPerson(t)
	p.write("agentd.toml", "[agent]\nname = \"bob\"\n[jobs.daily]\nschedule = \"@daily\"\nbackend = \"command\"\ncommand = [\"true\"]\n")
	before := p.listing()
	p.mustSay("added", "install")
	p.mustSay("in order", "doctor")
	const timer, service = "agentd-bob-daily.timer", "agentd-bob-daily.service"
	finds := func(want string, args ...string) {
		t.Helper()
		out, _ := p.output(append([]string{"doctor"}, args...)...) // ends with 78 if something fails
		if !strings.Contains(out, want) {
			t.Errorf("agentd doctor %q does not find %q:\n%s", args, want, out)
		}
	}
	undo := func(unit string) {
		t.Helper()
		if err := os.RemoveAll(filepath.Join(os.Getenv("HOME"), ".config/systemd/user", unit+".d")); err != nil {
			t.Fatal(err)
		}
		p.systemctl("daemon-reload")
	}

	p.systemctl("disable", "--now", timer)
	finds("fail    bob/daily: its timer does not run, or not after a boot")
	finds("mended  bob/daily: its timer does not run", "--fix")
	p.mustSay("in order", "doctor")

	p.dropIn(timer, "[Timer]\nOnCalendar=\nOnCalendar=2001-01-01\n")
	p.systemctl("daemon-reload")
	p.systemctl("restart", timer)
	finds("bob/daily: its timer runs and never fires")
	finds("sets times at which no run comes")
	undo(timer)
	p.systemctl("restart", timer)
	p.mustSay("in order", "doctor")

	p.dropIn(service, "[Service]\nRestart=always\n")
	p.systemctl("daemon-reload")
	finds("bob/daily: systemd does not take a unit of it: " + service + " is bad-setting")
	undo(service)
	p.mustSay("in order", "doctor")

	// The workspace goes, and then even what knew of it.
	kept := p.work + ".kept"
	if err := os.Rename(p.work, kept); err != nil {
		t.Fatal(err)
	}
	home := &person{T: t, agentd: p.agentd, work: os.Getenv("HOME")}
	out, err := home.output("doctor")
	if err == nil || !strings.Contains(out, "its workspace "+p.work+" is gone") {
		t.Errorf("%v\n%s", err, out)
	}
	if err := os.RemoveAll(filepath.Join(os.Getenv("HOME"), ".config/agentd/agents")); err != nil {
		t.Fatal(err)
	}
	out, err = home.output("doctor", "--fix")
	if !strings.Contains(out, "mended  bob has units, but its workspace "+p.work+" is gone") {
		t.Errorf("%v\n%s", err, out)
	}
	if err := os.RemoveAll(filepath.Join(os.Getenv("HOME"), ".config/agentd")); err != nil {
		t.Fatal(err)
	}
	if after := p.listing(); after != before {
		t.Errorf("left:\n%s\nbefore:\n%s", after, before)
	}
}
