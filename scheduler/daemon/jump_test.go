package daemon

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentd/scheduler/expr"
)

// TestJumps sets the clock by an hour forth and back, and has the machine
// sleep for three days, at any time, for months. Each time of a schedule that
// the clock has come to is in one firing, its own or one that makes up for it.
// DAEMON_JUMPS makes it a campaign, as `make soak` does.
func TestJumps(t *testing.T) {
	rounds := 1
	if text := os.Getenv("DAEMON_JUMPS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		rounds = n
	}
	for seed := range rounds {
		synctest.Test(t, func(t *testing.T) { jumps(t, rand.New(rand.NewPCG(3, uint64(seed)))) })
		if t.Failed() {
			t.Fatalf("with seed %d", seed)
		}
	}
}

func jumps(t *testing.T, r *rand.Rand) {
	s := newSim(t)
	jobs := slices.DeleteFunc(randomJobs(t, 600, r), func(j Job) bool { return j.has(expr.Every) })
	for i := range jobs {
		jobs[i].CatchUp = i%3 > 0
	}
	begin := s.wall()
	s.start(jobs...)
	latest := begin
	for range 100 {
		s.pass(time.Duration(r.Int64N(int64(24 * time.Hour))))
		latest = later(latest, s.wall())
		s.set([]time.Duration{time.Hour, -time.Hour, 72 * time.Hour}[r.IntN(3)])
		latest = later(latest, s.wall())
		if r.IntN(5) == 0 { // the daemon is not there for a while
			s.pass(tolerance)
			s.stop()
			s.pass(time.Duration(r.Int64N(int64(48 * time.Hour))))
			s.start(jobs...)
		}
	}
	s.pass(25 * time.Hour) // past all that was set back
	s.stop()
	latest = later(latest, s.wall())
	made := 0
	for _, j := range jobs {
		made += jumpMistakes(t, j, s.fired[j.Name], begin, latest)
	}
	if made < 100 || s.refused > 0 {
		t.Errorf("%d times were made up for, %d firings refused", made, s.refused)
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// until is the last time of the schedule that the firing is for.
func (f fired) until(j Job) time.Time {
	if f.wall.Sub(f.due) > j.delay()+tolerance {
		return f.wall
	}
	return f.wall.Add(-j.delay())
}

// jumpMistakes checks the firings of a job, and returns how many times were
// made up for by a later one.
func jumpMistakes(t *testing.T, j Job, got []fired, begin, end time.Time) (madeUp int) {
	t.Helper()
	if !slices.IsSortedFunc(got, func(a, b fired) int { return a.due.Compare(b.due) }) {
		t.Errorf("%s (%s) fired out of order", j.Name, j.Schedules[0])
	}
	i := 0
	for at := begin; ; {
		at = expr.Earliest(at, j.Schedules)
		if at.IsZero() || at.Add(j.delay()).After(end) {
			break
		}
		// A firing is for all times from its due one to when it was.
		for i < len(got) && got[i].until(j).Before(at) {
			i++
		}
		has := i < len(got) && !got[i].due.After(at)
		switch {
		case !has && j.CatchUp:
			t.Errorf("%s (%s): %v is lost", j.Name, j.Schedules[0], at)
		case has && !got[i].due.Equal(at):
			madeUp++
		case has && !j.CatchUp && got[i].wall.Add(-j.delay()).Sub(at) > tolerance &&
			expr.Earliest(got[i].wall.Add(-j.delay()-tolerance-time.Second), j.Schedules).After(got[i].wall):
			t.Errorf("%s (%s): %v ran at %v, though nothing is to be made up for", j.Name, j.Schedules[0], at, got[i].wall)
		}
		if i+1 < len(got) && !got[i+1].due.After(at) {
			t.Errorf("%s (%s): %v fired twice", j.Name, j.Schedules[0], at)
		}
	}
	return madeUp
}

// TestJump is what single jumps do.
func TestJump(t *testing.T) {
	for _, c := range []struct {
		name, schedule string
		catchUp        bool
		jump           time.Duration
		during, after  int // firings in the two hours before the jump and the two after
		said           string
	}{
		{"forward, made up for", "30 * * * *", true, 48 * time.Hour, 2, 3, "missed 48 times since Sat 1 Jan 02:30:00: one run makes up"},
		{"forward, left out", "30 * * * *", false, 48 * time.Hour, 2, 2, "catch_up is off, so it runs next at Mon 3 Jan 02:30:00"},
		{"forward over one", "30 * * * *", true, time.Hour, 2, 3, "missed Sat 1 Jan 02:30:00: one run makes up"},
		{"forward to just before", "30 * * * *", false, 29 * time.Minute, 2, 2, "gone forward by 29m0s"},
		{"back an hour", "30 * * * *", true, -time.Hour, 2, 1, "set back by 1h0m0s"},
		{"back by days: the clock was wrong", "30 * * * *", true, -72 * time.Hour, 2, 2, "set back by 72h0m0s"},
		{"a distance, back", "@every 30m", true, -time.Hour, 4, 3, "set back"},
		{"a distance, back by days", "@every 30m", true, -72 * time.Hour, 4, 3, "set back"},
		{"a distance, forward", "@every 30m", true, 48 * time.Hour, 4, 4, "one run makes up"},
		{"a distance, forward, left out", "@every 30m", false, 48*time.Hour + 10*time.Minute, 4, 3, "catch_up is off"},
		{"slewed", "30 * * * *", true, time.Second, 2, 2, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSim(t)
				s.start(job(t, "x", c.catchUp, "UTC", c.schedule))
				s.pass(2*time.Hour + time.Second)
				during := s.count("x")
				s.set(c.jump)
				s.pass(2*time.Hour - time.Minute)
				s.stop()
				if after := s.count("x") - during; during != c.during || after != c.after {
					t.Errorf("%d firings and %d, want %d and %d: %v", during, after, c.during, c.after, s.fired)
				}
				if all := strings.Join(s.said, "\n"); !strings.Contains(all, c.said) || c.said == "" && all != "" {
					t.Errorf("said %q, want %q", all, c.said)
				}
			})
		})
	}
}

// TestDowntime ends a daemon and starts another one later.
func TestDowntime(t *testing.T) {
	for _, c := range []struct {
		name, schedule string
		catchUp        bool
		down           time.Duration
		boot           string
		atStart        int // firings
	}{
		{"made up for once", "0 * * * *", true, 72 * time.Hour, "boot", 1},
		{"left out", "0 * * * *", false, 72 * time.Hour, "boot", 0},
		{"nothing was due", "0 * * * *", true, 20 * time.Minute, "boot", 0},
		{"a distance", "@every 1h", true, 72 * time.Hour, "boot", 1},
		{"a distance that is not over", "@every 4h", true, time.Hour, "boot", 0},
		{"once", "at 2000-01-02 00:00", true, 72 * time.Hour, "boot", 1},
		{"the same boot", "@reboot", true, time.Hour, "boot", 0},
		{"a new boot", "@reboot", true, time.Hour, "another", 1},
		{"a new boot, though nothing is made up for", "@reboot", false, time.Hour, "another", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSim(t)
				j := job(t, "x", c.catchUp, "UTC", c.schedule)
				s.start(j)
				s.pass(2*time.Hour + 10*time.Minute)
				s.stop()
				before := s.count("x")
				s.boot = c.boot
				s.pass(c.down)
				s.start(j)
				s.pass(time.Second)
				if got := s.count("x") - before; got != c.atStart {
					t.Errorf("%d firings at the start, want %d; said %q", got, c.atStart, s.said)
				}
				s.stop()
				s.start(j)
				s.pass(time.Second)
				s.stop()
				if got := s.count("x") - before; got != c.atStart {
					t.Errorf("%d firings after another start, want %d", got, c.atStart)
				}
			})
		})
	}
}

// TestManyMissed does not flood whoever reads what the daemon says.
func TestManyMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t)
		var jobs []Job
		for i := range 100 {
			jobs = append(jobs, job(t, fmt.Sprint("j", i), true, "UTC", "0 12 * * *"))
		}
		s.start(jobs...)
		s.pass(time.Hour)
		s.set(48 * time.Hour)
		s.pass(time.Minute)
		s.stop()
		if len(s.fired) != 100 || len(s.said) != 2+maxTold || s.said[1+maxTold] != "so did 80 jobs more" {
			t.Errorf("%d fired; said %d lines, the last %q", len(s.fired), len(s.said), s.said[len(s.said)-1])
		}
	})
}

// TestFirstStart is the first start of all, and one with jobs that are
// disabled.
func TestFirstStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jobs := []Job{job(t, "boot", true, "UTC", "@reboot"), job(t, "daily", true, "UTC", "0 12 * * *"), job(t, "every", true, "UTC", "@every 2h")}
		s := newSim(t)
		s.start(jobs...)
		s.pass(time.Hour)
		s.stop()
		if len(s.fired) > 0 {
			t.Errorf("fired %v, though nothing before the start is due", s.fired)
		}
		s = newSim(t)
		s.first = true
		s.start(jobs...)
		s.pass(time.Hour)
		s.stop()
		if s.count("boot") != 1 || len(s.fired) != 1 {
			t.Errorf("fired %v, want the start of the container to be one for boot", s.fired)
		}
		s.pass(72 * time.Hour)
		s.off = true
		s.start(jobs...)
		s.pass(time.Minute)
		s.stop()
		if len(s.fired) != 1 || len(s.said) > 0 {
			t.Errorf("fired %v and said %q, though all are disabled", s.fired, s.said)
		}
	})
}

// TestJitter wants the firings of many jobs at one time to be spread, and each
// to be as late every time, over a restart too.
func TestJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t)
		var jobs []Job
		for i := range 50 {
			j := job(t, fmt.Sprint("j", i), false, "UTC", "0 * * * *")
			j.Jitter = 20 * time.Minute
			jobs = append(jobs, j)
		}
		s.start(jobs...)
		s.pass(70 * time.Minute) // some have fired, some not yet
		s.stop()
		s.pass(time.Second)
		s.start(jobs...)
		s.pass(2*time.Hour + 20*time.Minute)
		s.stop()
		seconds := map[int]bool{}
		for _, j := range jobs {
			got := s.fired[j.Name]
			if len(got) != 3 {
				t.Errorf("%s fired %d times, want 3", j.Name, len(got))
			}
			for _, f := range got {
				seconds[int(f.wall.Sub(f.due).Seconds())] = true
				if f.wall.Sub(f.due) != j.delay() {
					t.Errorf("%s was %v late, want %v", j.Name, f.wall.Sub(f.due), j.delay())
				}
			}
		}
		if len(seconds) < 40 {
			t.Errorf("50 jobs fire at %d different times", len(seconds))
		}
	})
}
