package scheduler

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentd/exitcodes"
)

// A failure at any call to systemd leaves the former state.
func TestRollback(t *testing.T) {
	changed := strings.Replace(twoJobs, "*/30 9-17", "15 7", 1) + "\n[jobs.third]\nschedule = \"@daily\"\nprompt = \"x\"\n"
	changed = strings.Replace(changed, "[jobs.by-hand]", "[jobs.renamed]", 1)
	for failAt := 1; ; failAt++ {
		target, home := newTarget(t)
		m := newFake(target)
		dir := t.TempDir()
		apply(t, plan(t, loadIn(t, dir, twoJobs), target, Options{}), m)
		stamp := filepath.Join(target.StampDir, "stamp-agentd-my--bot-triage.timer")
		if err := os.MkdirAll(target.StampDir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := putStamp(stamp, time.Unix(1e9, 0)); err != nil {
			t.Fatal(err)
		}
		before, enabled, active := tree(t, home), fmt.Sprint(m.enabled), fmt.Sprint(m.active)
		marks := marksOf(t, target, "triage", "third")

		m.calls, m.failAt = nil, failAt
		_, err := plan(t, loadIn(t, dir, changed), target, Options{}).Apply(t.Context(), m)
		if err == nil {
			if failAt < 5 {
				t.Fatalf("only %d calls could fail: %q", failAt-1, m.calls)
			}
			return
		}
		if !errors.Is(err, errFake) {
			t.Errorf("fail at call %d: err = %v", failAt, err)
		}
		if d := cmp.Diff(before, tree(t, home)); d != "" {
			t.Errorf("fail at call %d (%q): files differ:\n%s", failAt, m.calls, d)
		}
		if info, err := os.Stat(stamp); err != nil || !info.ModTime().Equal(time.Unix(1e9, 0)) {
			t.Errorf("fail at call %d: stamp %v, %v", failAt, info, err)
		}
		if fmt.Sprint(m.enabled) != enabled || fmt.Sprint(m.active) != active {
			t.Errorf("fail at call %d: enabled %v, active %v", failAt, m.enabled, m.active)
		}
		if d := cmp.Diff(marks, marksOf(t, target, "triage", "third")); d != "" {
			t.Errorf("fail at call %d: firings:\n%s", failAt, d)
		}
	}
}

// A file that cannot be written or removed, whichever of them it is, leaves the
// former state. (The calls of systemd are in TestRollback.)
func TestFailureAtEachFile(t *testing.T) {
	changed := strings.Replace(twoJobs, "*/30 9-17", "15 7", 1) + "\n[jobs.third]\nschedule = \"@daily\"\nprompt = \"x\"\n"
	changed = strings.Replace(changed, "[jobs.by-hand]", "[jobs.renamed]", 1)
	for k := 0; ; k++ {
		target, home := newTarget(t)
		m := newFake(target)
		dir := t.TempDir()
		apply(t, plan(t, loadIn(t, dir, twoJobs), target, Options{}), m)
		p := plan(t, loadIn(t, dir, changed), target, Options{})
		var paths []string
		for _, j := range p.Jobs {
			for _, f := range j.Files {
				if f.Action != Keep {
					paths = append(paths, f.Path)
				}
			}
		}
		if k == len(paths) {
			if k < 8 {
				t.Errorf("only %d files changed", k)
			}
			return
		}
		// What stands in the way comes after the plan.
		_ = os.Remove(paths[k])
		if err := os.MkdirAll(filepath.Join(paths[k], "in the way"), 0o700); err != nil {
			t.Fatal(err)
		}
		before, enabled, active := tree(t, home), fmt.Sprint(m.enabled), fmt.Sprint(m.active)
		_, err := p.Apply(t.Context(), m)
		if err == nil || !strings.Contains(err.Error(), paths[k]) || exitcodes.From(err) != exitcodes.CannotCreate {
			t.Errorf("%s is in the way: %v", paths[k], err)
		}
		if d := cmp.Diff(before, tree(t, home)); d != "" {
			t.Errorf("%s is in the way: files differ:\n%s", paths[k], d)
		}
		if fmt.Sprint(m.enabled) != enabled || fmt.Sprint(m.active) != active {
			t.Errorf("%s is in the way: enabled %v, active %v", paths[k], m.enabled, m.active)
		}
	}
}

// A unit that systemd does not take leaves the former state, and so does the
// end of the context.
func TestRefusedUnit(t *testing.T) {
	target, home := newTarget(t)
	m := newFake(target)
	dir := t.TempDir()
	apply(t, plan(t, loadIn(t, dir, twoJobs), target, Options{}), m)
	before, active := tree(t, home), fmt.Sprint(m.active)
	ws := loadIn(t, dir, strings.Replace(twoJobs, "*/30 9-17", "15 7", 1))

	m.refused = map[string]string{"agentd-my--bot-triage.service": "agentd-my--bot-triage.service is bad-setting"}
	_, err := plan(t, ws, target, Options{}).Apply(t.Context(), m)
	if exitcodes.From(err) != exitcodes.Config || !strings.Contains(err.Error(), "my-bot/triage: agentd-my--bot-triage.service is bad-setting") ||
		exitcodes.HintOf(err) != "look at its drop-ins: systemctl --user cat agentd-my--bot-triage.service" {
		t.Errorf("err = %v, hint %q", err, exitcodes.HintOf(err))
	}
	m.refused = nil
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := plan(t, ws, target, Options{}).Apply(ctx, m); err == nil {
		t.Error("no error although the context had ended")
	}
	if d := cmp.Diff(before, tree(t, home)); d != "" || fmt.Sprint(m.active) != active {
		t.Errorf("active %v, files differ:\n%s", m.active, d)
	}
}
