package scheduler

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentd/exitcodes"
	"agentd/internal/sandbox"
	"agentd/systemd"
)

func TestDropIns(t *testing.T) {
	target, home := newTarget(t)
	m := newFake(target)
	dir := t.TempDir()
	ws := loadIn(t, dir, twoJobs)
	apply(t, plan(t, ws, target, Options{}), m)
	before := tree(t, home)
	const comment = "# ours \\\n# [Service]\n[Service]\nNice=5" // no newline at its end
	writeFile(t, filepath.Join(dir, "systemd/service.conf"), comment, 0o600)
	writeFile(t, filepath.Join(dir, "systemd/triage.service.conf"), "[Service]\nNice=6\n", 0o600)
	writeFile(t, filepath.Join(dir, "systemd/timer.conf"), "[Timer]\nAccuracySec=1min\n", 0o600)
	writeFile(t, filepath.Join(dir, "systemd/README"), "of no interest", 0o600)

	m.calls = nil
	want := []string{
		"add .config/systemd/user/agentd-my--bot-triage.service.d/10-agentd-workspace.conf",
		"add .config/systemd/user/agentd-my--bot-triage.service.d/20-agentd-job.conf",
		"add .config/systemd/user/agentd-my--bot-triage.timer.d/10-agentd-workspace.conf",
		"add .config/systemd/user/agentd-my--bot-by-hand.service.d/10-agentd-workspace.conf",
	}
	p := plan(t, ws, target, Options{})
	if d := cmp.Diff(want, actions(p, home)); d != "" {
		t.Fatal(d)
	}
	apply(t, p, m)
	timer := "agentd-my--bot-triage.timer"
	if want := []string{"stop " + timer, "reload", "start " + timer}; !slices.Equal(m.calls, want) {
		t.Errorf("calls %q, want %q", m.calls, want)
	}
	text, err := os.ReadFile(filepath.Join(home, strings.TrimPrefix(want[0], "add ")))
	if err != nil || !strings.HasPrefix(string(text), comment+"\n\n[X-Agentd]\nAgent=my-bot\nJob=triage\n") {
		t.Errorf("%v\n%s", err, text)
	}
	if a := actions(plan(t, ws, target, Options{}), home); len(a) > 0 {
		t.Errorf("a second plan: %q", a)
	}
	// One that goes is taken away, and with all the folder.
	if err := os.RemoveAll(filepath.Join(dir, "systemd")); err != nil {
		t.Fatal(err)
	}
	apply(t, plan(t, ws, target, Options{}), m)
	if d := cmp.Diff(before, tree(t, home)); d != "" {
		t.Errorf("left behind:\n%s", d)
	}

	for name, text := range map[string]string{
		"triag.service.conf": "[Service]\n", "triage.conf": "", "triage.socket.conf": "",
		"service.conf": "Nice=5\n", "triage.timer.conf": "[Timer]\nOnCalendar=daily\n", "by-hand.service.conf": "[Service]\nNice=1\\", "timer.conf": "[X-Agentd]\nHash=0\n",
	} {
		path := filepath.Join(dir, "systemd", name)
		writeFile(t, path, text, 0o600)
		if _, err := NewPlan(ws, target, Options{}); exitcodes.From(err) != exitcodes.Config || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// systemd reads the drop-ins after agentd's own settings.
func TestBootedDropIns(t *testing.T) {
	if !sandbox.Inside() {
		sandbox.Test(t, sandbox.Options{User: "bob"})
		return
	}
	b := newBooted(t, systemd.User)
	before := b.listing()
	ws := loadIn(t, b.work, twoJobs)
	writeFile(t, filepath.Join(b.work, "systemd/service.conf"), "[Service]\nNice=5\nEnvironment=A=1\n", 0o600)
	writeFile(t, filepath.Join(b.work, "systemd/triage.service.conf"), "[Service]\nNice=6\n", 0o600)
	writeFile(t, filepath.Join(b.work, "systemd/triage.timer.conf"), "[Timer]\nAccuracySec=7s\n", 0o600)
	apply(t, plan(t, ws, b.target, Options{}), b.conn)
	for unit, want := range map[string]string{
		"agentd-my--bot-triage.service": "6 A=1", "agentd-my--bot-by-hand.service": "5 A=1",
	} {
		got := b.command("systemctl", "--user", "show", "--value", "--property=Nice", unit) +
			b.command("systemctl", "--user", "show", "--value", "--property=Environment", unit)
		if words := strings.Fields(got); words[0] != strings.Fields(want)[0] || !slices.Contains(words, "A=1") {
			t.Errorf("%s has %q, want %q", unit, words, want)
		}
	}
	if got := b.command("systemctl", "--user", "show", "--value", "--property=AccuracyUSec", "agentd-my--bot-triage.timer"); got != "7s\n" {
		t.Errorf("the timer is accurate to %q", got)
	}
	removal, err := NewRemoval("my-bot", b.target)
	if err != nil {
		t.Fatal(err)
	}
	apply(t, removal, b.conn)
	if err := os.RemoveAll(filepath.Join(b.work, "systemd")); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(before, b.listing()); d != "" {
		t.Errorf("uninstall left behind or took away:\n%s", d)
	}
}
