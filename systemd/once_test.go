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
		at   time.Time
		want Entry
	}{
		{now.Add(10*time.Minute + time.Nanosecond), Entry{"OnCalendar", "2026-12-01 09:10:01 UTC"}},
		{now.Add(10 * time.Minute).In(time.FixedZone("X", 3600)), Entry{"OnCalendar", "2026-12-01 09:10:00 UTC"}},
		{now.Add(2 * time.Second), Entry{"OnActiveSec", "2s"}},
		{now.Add(1500 * time.Millisecond), Entry{"OnActiveSec", "1500000us"}},
		{now.Add(-time.Hour), Entry{"OnActiveSec", "1us"}},
	} {
		if got := (OnceTimer{At: c.at}).when(now); got != c.want {
			t.Errorf("%v: %v, want %v", c.at, got, c.want)
		}
	}
}

func TestOnceRefusesNames(t *testing.T) {
	for _, name := range []string{
		"", "agentd--resume-", "agentd-bob-x", OncePrefix + "/x", OncePrefix + "..", OncePrefix + "a b", OncePrefix + "a\n", OncePrefix + strings.Repeat("x", 250),
	} {
		if checkOnceName(name) == nil {
			t.Errorf("%q passes for a name", name)
		}
	}
	good := OnceTimer{Name: OnceName("019a0000-0000-7000-8000-000000000000"), Unit: JobName{"bob", "triage"}.Service(), Workspace: "/w"}
	text, err := good.bytes(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if owner, ok := OwnerOf(text); !ok || !owner.Intact || owner.Name != (JobName{"bob", "triage"}) || owner.Workspace != "/w" {
		t.Errorf("owner %+v, %v", owner, ok)
	}
	if _, ok := ParseName(good.Name + ".timer"); ok {
		t.Errorf("%s is taken for a job's", good.Name)
	}
	for _, unit := range []string{"", "ssh.service", JobName{"bob", "triage"}.Timer()} {
		bad := good
		bad.Unit = unit
		if _, err := bad.bytes(time.Now()); err == nil {
			t.Errorf("a timer for %q", unit)
		}
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

// once is a systemd with a job's service that notes who started it.
type once struct {
	*testing.T
	conn  *Conn
	out   string
	timer OnceTimer // in an hour
}

// A timer starts its unit one time, and nothing of it is left.
func bootedOnce(t *testing.T, scope Scope, dir string) {
	conn, err := Connect(t.Context(), scope, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	o := &once{T: t, conn: conn, out: filepath.Join(t.TempDir(), "fired")}
	o.timer = OnceTimer{
		Name: OnceName("late"), At: time.Now().Add(time.Hour), Unit: JobName{"bob", "triage"}.Service(),
		Description: `50% "of" it`, Workspace: `/home/bob/it's 100% $HOME\`,
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	// It runs on until it is told to end.
	text := "[Service]\nType=oneshot\nExecStart=/bin/bash -c 'echo $TRIGGER_UNIT >>" + o.out + "; until [[ -e " + o.out + ".end ]]; do sleep 0.02; done'\n"
	if err := os.WriteFile(filepath.Join(dir, o.timer.Unit), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := conn.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.start("late", time.Now().Add(time.Hour))
	o.start("late", time.Now().Add(time.Hour)) // no error
	if s := o.state("late"); s != "waiting" {
		t.Errorf("late is %s", s)
	}
	o.start("now", time.Now().Add(6*time.Second))
	o.start("past", time.Now().Add(-time.Hour))
	o.fires("past")
	// As a run does that is not yet through: the same timer once more.
	o.start("past", time.Now().Add(time.Hour))
	if s := o.state("past"); s != "waiting" {
		t.Errorf("past is %s, not started anew", s)
	}
	if err := os.WriteFile(o.out+".end", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o.fires("now")
	o.takeBack()
}

func (o *once) start(name string, at time.Time) {
	o.Helper()
	timer := o.timer
	timer.Name, timer.At = OnceName(name), at
	if err := o.conn.StartOnce(o.Context(), timer); err != nil {
		o.Fatal(err)
	}
}

func (o *once) state(name string) string {
	o.Helper()
	list, err := o.conn.bus.ListUnitsByNamesContext(o.Context(), []string{OnceName(name) + ".timer"})
	if err != nil || len(list) != 1 {
		o.Fatalf("%s: %v, %v", name, list, err)
	}
	return list[0].SubState
}

// fires waits for the last start to be by that timer.
func (o *once) fires(name string) {
	o.Helper()
	o.eventually(name, func() bool {
		text, _ := os.ReadFile(o.out) // not there before the first
		return strings.HasSuffix(string(text), OnceName(name)+".timer\n")
	})
}

func (o *once) eventually(what string, so func() bool) {
	o.Helper()
	for deadline := time.Now().Add(30 * time.Second); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			journal, _ := exec.Command("journalctl", "--no-pager", "-n", "40").CombinedOutput()
			o.Fatalf("%s did not happen\n%s", what, journal)
		}
	}
}

func (o *once) takeBack() {
	o.Helper()
	list, err := o.conn.Onces()
	if err != nil || len(list) != 3 || list[0] != (Once{OnceName("late"), Owner{JobName{"bob", "triage"}, o.timer.Workspace, true}}) {
		o.Fatalf("there are %+v, %v", list, err)
	}
	for range 2 { // the second time is no error
		for _, timer := range list {
			if err := o.conn.CancelOnce(o.Context(), timer.Name); err != nil {
				o.Fatal(err)
			}
		}
	}
	o.eventually("the end of all timers", func() bool {
		left, _ := exec.Command("systemctl", "--"+string(o.conn.Scope), "list-units", "--all", "--plain", "--no-legend", OncePrefix+"*").Output()
		return len(left) == 0
	})
	if list, err := o.conn.Onces(); err != nil || len(list) > 0 {
		o.Errorf("left %+v, %v", list, err)
	}
	text, _ := os.ReadFile(o.out)
	if n := strings.Count(string(text), "\n"); n != 2 {
		o.Errorf("%d starts:\n%s", n, text)
	}
}
