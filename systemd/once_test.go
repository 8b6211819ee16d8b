package systemd

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentd/internal/sandbox"
)

func TestOnceTimerIsNeverEarly(t *testing.T) {
	now := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		at         time.Time
		name, want string
	}{
		{now.Add(10*time.Minute + time.Nanosecond), "TimersCalendar", "2026-12-01 09:10:01 UTC"},
		{now.Add(10 * time.Minute).In(time.FixedZone("X", 3600)), "TimersCalendar", "2026-12-01 09:10:00 UTC"},
		{now.Add(2 * time.Second), "TimersMonotonic", "2000000"},
		{now.Add(-time.Hour), "TimersMonotonic", "0"},
	} {
		got := OnceTimer{At: c.at}.when(now)
		if got.Name != c.name || !strings.Contains(got.Value.String(), c.want) {
			t.Errorf("%v: %s=%s, want %s of %s", c.at, got.Name, got.Value, c.name, c.want)
		}
	}
}

func TestOnceRefusesNames(t *testing.T) {
	for _, name := range []string{"", "a", ".timer", "a/b.timer", "a b.timer", "a\n.timer", strings.Repeat("x", 250) + ".timer"} {
		if checkUnitName(name) == nil {
			t.Errorf("%q passes for a name", name)
		}
	}
	if err := checkUnitName("agentd-resume-019a0000-0000-7000-8000-000000000000.timer"); err != nil {
		t.Error(err)
	}
}

func TestBootedOnceUser(t *testing.T) {
	if !sandbox.Inside() {
		sandbox.Test(t, sandbox.Options{User: "bob"})
		return
	}
	bootedOnce(t, User, filepath.Join(os.Getenv("HOME"), ".config/systemd/user"))
}

func TestBootedOnceSystem(t *testing.T) {
	if !sandbox.Inside() {
		sandbox.Test(t, sandbox.Options{})
		return
	}
	bootedOnce(t, System, "/etc/systemd/system")
}

// A timer starts its unit one time, and nothing of it is left.
func bootedOnce(t *testing.T, scope Scope, dir string) {
	conn, err := Connect(t.Context(), scope, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "fired")
	unit := JobName{"bob", "triage"}.Service()
	text := "[Service]\nType=oneshot\nExecStart=/bin/bash -c 'echo x >>" + out + "'\n"
	if err := os.WriteFile(filepath.Join(dir, unit), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := conn.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	late := OnceTimer{
		Name: OnceName("019a0000-0000-7000-8000-000000000001"), At: time.Now().Add(time.Hour).Truncate(time.Second).UTC(),
		Unit: unit, Description: `50% "of" it`, Workspace: `/home/bob/it's 100% $HOME\`,
	}
	now := late
	now.Name, now.At = OnceName("019a0000-0000-7000-8000-000000000002"), time.Now().Add(6*time.Second)
	past := late
	past.Name, past.At = OnceName("019a0000-0000-7000-8000-000000000003"), time.Now().Add(-time.Hour)
	for _, timer := range []OnceTimer{late, late, now, past} { // the second time is no error
		if err := conn.StartOnce(t.Context(), timer); err != nil {
			t.Fatal(err)
		}
	}
	fired := func() string {
		text, _ := os.ReadFile(out) // not there before the first
		return string(text)
	}
	for deadline := time.Now().Add(30 * time.Second); fired() != "x\nx\n"; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			journal, _ := exec.Command("journalctl", "--no-pager", "-n", "40").CombinedOutput()
			t.Fatalf("fired %q\n%s", fired(), journal)
		}
	}
	list, err := conn.Onces(t.Context())
	late.Description = "agentd starts " + unit + ` once: 50% "of" it`
	if err != nil || len(list) != 1 || !list[0].At.Equal(late.At) {
		t.Fatalf("waiting: %+v, %v", list, err)
	}
	list[0].At = late.At
	if list[0] != late {
		t.Errorf("waiting %+v, want %+v", list[0], late)
	}
	for range 2 { // the second time is no error
		if err := conn.CancelOnce(t.Context(), late.Name); err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		left, _ := exec.Command("systemctl", "--"+string(scope), "list-units", "--all", "--plain", "--no-legend", OncePrefix+"*").Output()
		if len(left) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("left behind:\n%s", left)
		}
	}
	if fired() != "x\nx\n" {
		t.Errorf("fired %q", fired())
	}
}
