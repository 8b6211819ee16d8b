package scheduler

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentd/exitcodes"
	"agentd/systemd"
)

var (
	triage = systemd.JobName{Agent: "my-bot", Job: "triage"}
	byHand = systemd.JobName{Agent: "my-bot", Job: "by-hand"}
)

// A job that a person disabled stays so through installs, until enabled.
func TestDisableSurvivesInstall(t *testing.T) {
	target, home := newTarget(t)
	m := newFake(target)
	dir := t.TempDir()
	apply(t, plan(t, loadIn(t, dir, twoJobs), target, Options{}), m)
	before := tree(t, home)

	m.onces = []systemd.Once{{Name: systemd.OnceName("1"), Owner: systemd.Owner{Name: triage}}}
	for _, want := range []bool{true, false} { // the second time changes nothing
		got, err := target.Disable(t.Context(), m, triage)
		if err != nil || !slices.Equal(got, []Switched{{"my-bot", "triage", want}}) {
			t.Errorf("Disable = %+v, %v", got, err)
		}
	}
	if m.enabled[triage.Timer()] || m.active[triage.Timer()] || len(m.onces) > 0 {
		t.Errorf("enabled %v, active %v, onces %v", m.enabled, m.active, m.onces)
	}
	if since := target.DisabledSince(triage); time.Since(since) > time.Hour {
		t.Errorf("disabled since %v", since)
	}
	for _, toml := range []string{twoJobs, strings.Replace(twoJobs, "*/30 9-17", "15 7", 1), twoJobs} {
		p := plan(t, loadIn(t, dir, toml), target, Options{})
		if !p.Jobs[0].Disabled || p.Jobs[1].Disabled {
			t.Errorf("the plan knows of %v, %v", p.Jobs[0].Disabled, p.Jobs[1].Disabled)
		}
		apply(t, p, m)
		if m.enabled[triage.Timer()] || m.active[triage.Timer()] {
			t.Fatalf("install started a disabled job: %q", m.calls)
		}
	}

	writeFile(t, target.stamp(triage), "", 0o600) // a run was missed: it is not made up for
	for _, want := range []bool{true, false} {
		got, err := target.Enable(t.Context(), m, triage)
		if err != nil || !slices.Equal(got, []Switched{{"my-bot", "triage", want}}) {
			t.Errorf("Enable = %+v, %v", got, err)
		}
	}
	if !m.enabled[triage.Timer()] || !m.active[triage.Timer()] || isFile(target.stamp(triage)) {
		t.Errorf("enabled %v, active %v, stamp %v", m.enabled, m.active, isFile(target.stamp(triage)))
	}
	if err := os.RemoveAll(filepath.Join(home, ".local/share/systemd")); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(before, tree(t, home)); d != "" {
		t.Errorf("files differ:\n%s", d)
	}
}

func TestUninstallForgetsDisabled(t *testing.T) {
	target, home := newTarget(t)
	m := newFake(target)
	if err := os.MkdirAll(filepath.Join(home, ".local/share"), 0o700); err != nil {
		t.Fatal(err)
	}
	apply(t, plan(t, load(t, twoJobs), target, Options{}), m)
	if _, err := target.Disable(t.Context(), m, triage); err != nil {
		t.Fatal(err)
	}
	removal, err := NewRemoval("my-bot", target)
	if err != nil {
		t.Fatal(err)
	}
	apply(t, removal, m)
	if _, err := os.Stat(target.Data); err == nil {
		t.Errorf("left:\n%v", tree(t, home))
	}
}

func TestStartAndStop(t *testing.T) {
	target, _ := newTarget(t)
	m := newFake(target)
	apply(t, plan(t, load(t, twoJobs), target, Options{}), m)
	for _, do := range []struct {
		f    func() ([]Switched, error)
		want []Switched
	}{
		{func() ([]Switched, error) { return target.Stop(t.Context(), m, byHand, triage) }, []Switched{{"my-bot", "by-hand", false}, {"my-bot", "triage", false}}},
		{func() ([]Switched, error) { return target.Start(t.Context(), m, byHand) }, []Switched{{"my-bot", "by-hand", true}}},
		{func() ([]Switched, error) { return target.Start(t.Context(), m, byHand) }, []Switched{{"my-bot", "by-hand", false}}},
		{func() ([]Switched, error) { return target.Stop(t.Context(), m, byHand) }, []Switched{{"my-bot", "by-hand", true}}},
	} {
		if got, err := do.f(); err != nil || !slices.Equal(got, do.want) {
			t.Errorf("got %+v, %v, want %+v", got, err, do.want)
		}
	}
	if !m.active[triage.Timer()] {
		t.Error("stopping a job's run stopped its timer")
	}
}

// What cannot be switched is told before anything is.
func TestSwitchRefuses(t *testing.T) {
	target, home := newTarget(t)
	m := newFake(target)
	apply(t, plan(t, load(t, twoJobs), target, Options{}), m)
	before, calls := tree(t, home), len(m.calls)
	nobody := systemd.JobName{Agent: "my-bot", Job: "nobody"}
	for name, err := range map[string]error{
		"is not installed": second(target.Disable(t.Context(), m, triage, nobody)),
		"has no schedule":  second(target.Enable(t.Context(), m, byHand)),
	} {
		if exitcodes.From(err) != exitcodes.NoInput || !strings.Contains(err.Error(), name) || !strings.Contains(exitcodes.HintOf(err), "agentd install") {
			t.Errorf("%s: %v, hint %q", name, err, exitcodes.HintOf(err))
		}
	}
	if d := cmp.Diff(before, tree(t, home)); d != "" || len(m.calls) != calls {
		t.Errorf("calls %q, files:\n%s", m.calls[calls:], d)
	}
}

func second(_ []Switched, err error) error { return err }
