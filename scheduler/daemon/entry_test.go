package daemon

import (
	"testing"
	"time"

	"agentd/firings"
	"agentd/scheduler/expr"
)

func mustParse(t testing.TB, text, zone string) *expr.Schedule {
	t.Helper()
	s, err := expr.Parse(text, zone)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func at(t testing.TB, text string) time.Time {
	t.Helper()
	if text == "" {
		return time.Time{}
	}
	tm, err := time.Parse("2006-01-02 15:04:05", text)
	if err != nil {
		t.Fatal(err)
	}
	return tm
}

// TestTake is what becomes of a time that the engine comes to at now.
func TestTake(t *testing.T) {
	for _, c := range []struct {
		name, schedule string
		catchUp        bool
		due, now, next string
		run, madeUp    bool
		missed         int
	}{
		{"on time", "0 * * * *", false, "2026-03-01 10:00:00", "2026-03-01 10:00:00", "2026-03-01 11:00:00", true, false, 0},
		{"late by a look at the clock", "0 * * * *", false, "2026-03-01 10:00:00", "2026-03-01 10:00:59", "2026-03-01 11:00:00", true, false, 0},
		{"too late", "0 * * * *", false, "2026-03-01 10:00:00", "2026-03-01 10:01:01", "2026-03-01 11:00:00", false, false, 1},
		{"too late, made up for", "0 * * * *", true, "2026-03-01 10:00:00", "2026-03-01 10:30:00", "2026-03-01 11:00:00", true, true, 1},
		{"three days, one run", "0 * * * *", true, "2026-03-01 10:00:00", "2026-03-04 10:30:00", "2026-03-04 11:00:00", true, true, 73},
		{"three days, none", "0 * * * *", false, "2026-03-01 10:00:00", "2026-03-04 10:30:00", "2026-03-04 11:00:00", false, false, 73},
		{"missed some, and now is one", "0 * * * *", false, "2026-03-01 08:00:00", "2026-03-01 10:00:10", "2026-03-01 11:00:00", true, false, 2},
		{"more than are counted", "* * * * * *", false, "2026-03-01 08:00:00", "2026-03-01 10:00:10", "2026-03-01 10:00:11", true, false, 1000},
		{"a stall of some firings", "* * * * * *", false, "2026-03-01 10:00:00", "2026-03-01 10:00:05", "2026-03-01 10:00:06", true, false, 0},
		{"a fixed distance keeps its times", "@every 5m", false, "2026-03-01 10:00:00", "2026-03-01 10:00:01", "2026-03-01 10:05:00", true, false, 0},
		{"a fixed distance counts from a late run", "@every 5m", true, "2026-03-01 10:00:00", "2026-03-01 12:03:00", "2026-03-01 12:08:00", true, true, 25},
		{"a fixed distance counts from now", "@every 5m", false, "2026-03-01 10:00:00", "2026-03-01 12:03:00", "2026-03-01 12:08:00", false, false, 25},
		{"once", "at 2026-03-01 10:00", false, "2026-03-01 10:00:00", "2026-03-01 10:00:00", "", true, false, 0},
		{"once, missed", "at 2026-03-01 10:00", false, "2026-03-01 10:00:00", "2026-03-01 11:00:00", "", false, false, 1},
		{"once, made up for", "at 2026-03-01 10:00", true, "2026-03-01 10:00:00", "2026-03-09 11:00:00", "", true, true, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newEntry(Job{Name: Name{"bob", "x"}, Schedules: []*expr.Schedule{mustParse(t, c.schedule, "UTC")}, CatchUp: c.catchUp})
			e.set(at(t, c.due))
			v := e.take(at(t, c.now))
			if v.run != c.run || v.catchUp != c.madeUp || v.missed != c.missed {
				t.Errorf("run %v, made up %v, missed %d; want %v, %v, %d", v.run, v.catchUp, v.missed, c.run, c.madeUp, c.missed)
			}
			if !e.due.Equal(at(t, c.next)) {
				t.Errorf("next %v, want %q", e.due, c.next)
			}
		})
	}
}

// TestResume is where a job goes on when the daemon starts.
func TestResume(t *testing.T) {
	now := "2026-03-01 10:30:00"
	for _, c := range []struct {
		name     string
		schedule []string
		taken    string
		ended    string
		boot     string
		first    string
	}{
		{"nothing missed", []string{"0 * * * *"}, "2026-03-01 10:00:00", "", "b", "2026-03-01 11:00:00"},
		{"missed", []string{"0 * * * *"}, "2026-03-01 08:30:00", "", "b", "2026-03-01 09:00:00"},
		{"what fell due during a run is gone", []string{"0 * * * *"}, "2026-03-01 08:30:00", "2026-03-01 10:10:00", "b", "2026-03-01 11:00:00"},
		{"an end that has not come yet says nothing", []string{"0 * * * *"}, "2026-03-01 08:30:00", "2026-03-01 12:10:00", "b", "2026-03-01 09:00:00"},
		{"the clock was set back", []string{"0 * * * *"}, "2026-03-01 11:00:00", "", "b", "2026-03-01 12:00:00"},
		{"the clock was wrong", []string{"0 * * * *"}, "2036-03-01 11:00:00", "", "b", "2026-03-01 11:00:00"},
		{"fixed distance", []string{"@every 45m"}, "2026-03-01 10:00:00", "2026-03-01 10:20:00", "b", "2026-03-01 10:45:00"},
		{"this boot was seen", []string{"@reboot", "0 12 * * *"}, "2026-03-01 10:00:00", "", "b", "2026-03-01 12:00:00"},
		{"a new boot", []string{"@reboot", "0 12 * * *"}, "2026-03-01 10:00:00", "", "a", now},
		{"a new boot is nothing to others", []string{"0 12 * * *"}, "2026-03-01 10:00:00", "", "a", "2026-03-01 12:00:00"},
		{"once, missed", []string{"at 2026-03-01 10:15"}, "2026-03-01 10:00:00", "", "b", "2026-03-01 10:15:00"},
		{"once, had", []string{"at 2026-03-01 10:15"}, "2026-03-01 10:15:00", "", "b", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			job := Job{Name: Name{"bob", "x"}}
			for _, s := range c.schedule {
				job.Schedules = append(job.Schedules, mustParse(t, s, "UTC"))
			}
			e := newEntry(job)
			e.resume(firings.Mark{Taken: at(t, c.taken), Ended: at(t, c.ended), Boot: c.boot}, at(t, now), "b")
			if !e.due.Equal(at(t, c.first)) {
				t.Errorf("first %v, want %q", e.due, c.first)
			}
		})
	}
}

// TestDelay wants a job's delay to be its own, and always the same.
func TestDelay(t *testing.T) {
	delays := map[time.Duration]bool{}
	for i := range 100 {
		job := Job{Name: Name{"bob", string(rune('a' + i))}, Jitter: time.Minute}
		d := job.delay()
		if d < 0 || d >= time.Minute || d != job.delay() {
			t.Fatalf("the delay of %s is %v", job.Name, d)
		}
		delays[d] = true
	}
	if len(delays) < 90 {
		t.Errorf("100 jobs have only %d delays", len(delays))
	}
	// A change here would move everybody's firings.
	job := Job{Name: Name{"bob", "triage"}, Jitter: 2 * time.Minute}
	if d := job.delay(); d != 89296*time.Millisecond {
		t.Errorf("bob/triage is delayed by %v", d)
	}
}
