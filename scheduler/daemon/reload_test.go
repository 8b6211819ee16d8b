package daemon

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentd/exitcodes"
	"agentd/scheduler/expr"
)

// TestReload changes the jobs of a workspace under a running engine.
func TestReload(t *testing.T) {
	hourly := func(t *testing.T, name string) Job { return job(t, name, true, "UTC", "0 * * * *") }
	for _, c := range []struct {
		name   string
		before []Job
		after  []Job
		want   map[string]int // firings in the hour after the change, at half past
	}{
		{"no change keeps the times", []Job{hourly(t, "a")}, []Job{hourly(t, "a")}, map[string]int{"a": 1}},
		{"a distance is not begun anew", []Job{job(t, "a", true, "UTC", "@every 50m")}, []Job{job(t, "a", true, "UTC", "@every 50m")}, map[string]int{"a": 2}},
		{"a new job starts from now", []Job{hourly(t, "a")}, []Job{hourly(t, "a"), job(t, "b", true, "UTC", "@every 40m")}, map[string]int{"a": 1, "b": 1}},
		{"a job that is gone", []Job{hourly(t, "a"), hourly(t, "b")}, []Job{hourly(t, "b")}, map[string]int{"a": 0, "b": 1}},
		{"another schedule", []Job{hourly(t, "a")}, []Job{job(t, "a", true, "UTC", "*/10 * * * *")}, map[string]int{"a": 6}},
		{"another zone", []Job{hourly(t, "a")}, []Job{job(t, "a", true, "Asia/Kolkata", "15 * * * *")}, map[string]int{"a": 1}},
		{"a schedule more", []Job{hourly(t, "a")}, []Job{job(t, "a", true, "UTC", "0 * * * *", "45 * * * *")}, map[string]int{"a": 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSim(t)
				s.start(c.before...)
				s.pass(90 * time.Minute)
				before := map[string]int{}
				for name := range c.want {
					before[name] = s.count(name)
				}
				s.setJobs(c.after...)
				s.pass(time.Hour)
				s.stop()
				for name, want := range c.want {
					if got := s.count(name) - before[name]; got != want {
						t.Errorf("%s fired %d times, want %d: %v", name, got, want, s.fired)
					}
				}
				if s.refused > 0 {
					t.Errorf("%d firings were refused", s.refused)
				}
			})
		})
	}
}

// TestReloadAtTheTime changes jobs at the very time of a firing: it is neither
// lost nor doubled.
func TestReloadAtTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t)
		a, more := job(t, "a", true, "UTC", "* * * * *"), job(t, "b", true, "UTC", "0 0 1 1 *")
		s.start(a)
		for i := range 60 {
			time.Sleep(time.Minute) // the engine may or may not have been quicker
			if i%2 == 0 {
				s.setJobs(a, more)
			} else {
				s.setJobs(a)
			}
		}
		s.pass(time.Second)
		s.stop()
		if got := s.count("a"); got != 60 {
			t.Errorf("%d firings in an hour, want 60", got)
		}
	})
}

// TestChangedIsNotMadeUpFor changes a schedule, and starts another daemon: what
// the new schedule would have had before the change is not due.
func TestChangedIsNotMadeUpFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t)
		s.start(job(t, "a", true, "UTC", "0 12 * * *"))
		s.pass(13 * time.Hour)
		changed := job(t, "a", true, "UTC", "30 12 * * *")
		s.setJobs(changed)
		s.pass(time.Second)
		s.stop()
		s.start(changed)
		s.pass(time.Minute)
		s.stop()
		if got := s.count("a"); got != 1 {
			t.Errorf("%d firings, want the one at 12:00", got)
		}
	})
}

// TestTwoWorkspaces keeps the jobs of workspaces apart.
func TestTwoWorkspaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t)
		s.start(job(t, "a", true, "UTC", "* * * * *"))
		other := job(t, "a", true, "UTC", "* * * * *")
		other.Name, other.Dir = Name{"eve", "a"}, "/eve"
		s.jobs[other.Name] = other
		if err := s.engine.Set("eve", "/eve", []Job{other}); err != nil {
			t.Fatal(err)
		}
		if err := s.engine.Set("bob", "/another", nil); exitcodes.From(err) != exitcodes.Config {
			t.Errorf("a second agent bob: %v, want an error", err)
		}
		s.pass(90 * time.Second)
		s.engine.Unset("/bob")
		s.pass(time.Minute)
		s.stop()
		if bob, eve := s.count("a"), len(s.fired[other.Name]); bob != 1 || eve != 2 {
			t.Errorf("%d and %d firings, want 1 and 2", bob, eve)
		}
		if n, next := s.engine.Jobs(); n != 1 || next.IsZero() {
			t.Errorf("%d jobs, next %v", n, next)
		}
	})
}

// TestPanicOfAJob breaks one job; the others go on.
func TestPanicOfAJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t)
		s.start(job(t, "a", true, "UTC", "* * * * *"), job(t, "b", true, "UTC", "* * * * *"))
		s.engine.mu.Lock()
		s.engine.entries[Name{"bob", "a"}].job.Schedules = []*expr.Schedule{nil}
		s.engine.mu.Unlock()
		s.pass(10*time.Minute + time.Second)
		s.stop()
		if got := s.count("b"); got != 10 {
			t.Errorf("the other job fired %d times, want 10", got)
		}
		if len(s.said) != 1 || !strings.Contains(s.said[0], "bob/a: a bug in agentd") {
			t.Errorf("said %q", s.said)
		}
	})
}

// TestPending goes on with runs that are to go on.
func TestPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t)
		begin := time.Now()
		pending := []Firing{
			{Name: Name{"bob", "a"}, Dir: "/bob", Trigger: "resume", RunID: "1", Due: begin.Add(90 * time.Second)},
			{Name: Name{"eve", "a"}, Dir: "/eve", Trigger: "resume", RunID: "2", Due: begin},    // not ours
			{Name: Name{"bob", "gone"}, Dir: "/bob", Trigger: "resume", RunID: "3", Due: begin}, // no job any more
		}
		starts := make(chan time.Duration, 10)
		s.engine = NewEngine(Options{
			Wall: s.wall, Book: s, Say: s.say, Dispatch: func(f Firing) { starts <- time.Since(begin) },
			Pending: func() []Firing { s.mu.Lock(); defer s.mu.Unlock(); return pending },
		})
		if err := s.engine.Set("bob", "/bob", nil, Name{"bob", "a"}); err != nil {
			t.Fatal(err)
		}
		go s.engine.Run(t.Context())
		wants := func(what string, want ...time.Duration) {
			t.Helper()
			for _, w := range want {
				select {
				case got := <-starts:
					if got != w {
						t.Errorf("%s: started after %v, want %v", what, got, w)
					}
				default:
					t.Errorf("%s: not started, want that after %v", what, w)
				}
			}
			if len(starts) > 0 {
				t.Errorf("%s: started after %v, want no more", what, <-starts)
			}
		}
		change := func(due time.Time) {
			s.mu.Lock()
			defer s.mu.Unlock()
			pending = []Firing{pending[0]}
			pending[0].Due = due
		}
		s.pass(2 * time.Minute)
		wants("at its time", 90*time.Second)
		for range 20 {
			s.engine.LookAgain()
			s.pass(time.Second)
		}
		wants("it did not get on, and is left alone for a while")
		s.pass(5 * time.Minute)
		wants("it did not get on", 90*time.Second+again)
		limit := time.Now().Add(time.Minute)
		change(limit)
		s.engine.LookAgain()
		s.pass(2 * time.Minute)
		wants("it met another limit", limit.Sub(begin))
		s.mu.Lock()
		pending = nil
		s.mu.Unlock()
		s.engine.LookAgain()
		s.pass(time.Hour)
		wants("it has ended")
	})
}
