package scheduler

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentd/firings"
	"agentd/systemd"
)

// marksOf returns how far the schedules of jobs of my-bot have been worked off.
func marksOf(t *testing.T, target Target, jobs ...string) map[string]firings.Mark {
	t.Helper()
	marks := map[string]firings.Mark{}
	for _, job := range jobs {
		mark, ok, err := (firings.Book{Dir: target.State}).Last("my-bot", job)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			marks[job] = mark
		}
	}
	return marks
}

// What a new or a changed schedule would have run before the install is not
// due, also after an uninstall; an install that changes nothing skips nothing.
func TestInstallSkipsWhatWasDue(t *testing.T) {
	target, _ := newTarget(t)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	target.Now = func() time.Time { return now }
	dir := t.TempDir()
	ws := loadIn(t, dir, twoJobs)
	taken := func(want time.Time) {
		t.Helper()
		marks := marksOf(t, target, "triage", "by-hand")
		if len(marks) != 1 || !marks["triage"].Taken.Equal(want) {
			t.Errorf("marks %v, want triage at %v", marks, want)
		}
	}
	for _, m := range []Manager{newFake(target), nil} {
		now = now.Add(time.Hour)
		first := now
		apply(t, plan(t, ws, target, Options{}), m)
		taken(first)
		now = now.Add(time.Hour)
		apply(t, plan(t, ws, target, Options{Force: true}), m)
		taken(first)
		// Another description is no other schedule.
		ws = loadIn(t, dir, strings.Replace(twoJobs, "[jobs.triage]", "[jobs.triage]\ndescription = \"d\"", 1))
		apply(t, plan(t, ws, target, Options{}), m)
		taken(first)
		ws = loadIn(t, dir, strings.Replace(twoJobs, "*/30", "*/20", 1))
		apply(t, plan(t, ws, target, Options{}), m)
		taken(now)
		p, err := NewRemoval("my-bot", target)
		if err != nil {
			t.Fatal(err)
		}
		apply(t, p, m)
		ws = loadIn(t, dir, twoJobs)
	}
}

// Root leaves another user's book alone: files of root's there would be in the
// way of the user's own runs.
func TestInstallForAnotherUserSkipsNothing(t *testing.T) {
	target, _ := newTarget(t)
	target.Scope, target.User = systemd.System, "nobody"
	p := plan(t, load(t, twoJobs), target, Options{})
	apply(t, p, nil)
	if d := cmp.Diff(map[string]firings.Mark{}, marksOf(t, target, "triage")); d != "" {
		t.Error(d)
	}
}
