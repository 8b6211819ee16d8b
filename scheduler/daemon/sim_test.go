package daemon

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentd/firings"
	"agentd/scheduler/expr"
)

// sim is a world for an engine in a synctest bubble. Its clock on the wall can
// be set, and each run takes its firing from the book as a real one does.
type sim struct {
	t      *testing.T
	engine *Engine
	stop   func()

	mu      sync.Mutex
	offset  time.Duration // of the wall clock
	marks   map[Name]firings.Mark
	jobs    map[Name]Job
	fired   map[Name][]fired
	refused int
	said    []string
	boot    string
	first   bool // the daemon is a container's first process
	off     bool // all jobs are disabled
}

// fired is a firing that was taken.
type fired struct{ due, wall time.Time }

func newSim(t *testing.T) *sim {
	return &sim{t: t, marks: map[Name]firings.Mark{}, jobs: map[Name]Job{}, fired: map[Name][]fired{}, boot: "boot"}
}

func (s *sim) wall() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Round(0).Add(s.offset)
}

// set turns the wall clock.
func (s *sim) set(by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offset += by
}

func (s *sim) Last(agent, job string) (firings.Mark, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.marks[Name{agent, job}]
	return m, ok, nil
}

func (s *sim) Begin(agent, job string, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.marks[Name{agent, job}]; !ok {
		s.marks[Name{agent, job}] = firings.Mark{Taken: now, Boot: s.boot}
	}
	return nil
}

func (s *sim) Skip(agent, job string, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.marks[Name{agent, job}] = firings.Mark{Taken: now, Boot: s.boot}
	return nil
}

// dispatch is a run that takes no time.
func (s *sim) dispatch(f Firing) {
	s.engine.Settle(f.Name)
	now := s.wall()
	s.mu.Lock()
	defer s.mu.Unlock()
	mark, known := s.marks[f.Name]
	if known && !mark.Due(s.jobs[f.Name].Schedules, now, s.boot) {
		s.refused++
		return
	}
	s.marks[f.Name] = firings.Mark{Taken: now, Boot: s.boot}
	s.fired[f.Name] = append(s.fired[f.Name], fired{f.Due, now})
}

func (s *sim) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = append(s.said, fmt.Sprintf(format, args...))
}

// start starts a daemon's engine.
func (s *sim) start(jobs ...Job) {
	s.engine = NewEngine(Options{Wall: s.wall, Book: s, Dispatch: s.dispatch, Say: s.say, Boot: s.boot, First: s.first, Disabled: func(Name) bool { return s.off }})
	s.setJobs(jobs...)
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.engine.Run(ctx)
	}()
	s.stop = func() { cancel(); <-done }
	synctest.Wait()
}

func (s *sim) setJobs(jobs ...Job) {
	s.mu.Lock()
	for _, j := range jobs {
		s.jobs[j.Name] = j
	}
	s.mu.Unlock()
	if err := s.engine.Set("bob", "/bob", jobs); err != nil {
		s.t.Fatal(err)
	}
}

// pass lets time pass.
func (s *sim) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (s *sim) count(job string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.fired[Name{"bob", job}])
}

func job(t testing.TB, name string, catchUp bool, zone string, schedules ...string) Job {
	t.Helper()
	j := Job{Name: Name{"bob", name}, Dir: "/bob", CatchUp: catchUp, Zone: zone}
	for _, s := range schedules {
		j.Schedules = append(j.Schedules, mustParse(t, s, zone))
	}
	return j
}

var zones = []string{
	"UTC", "Europe/Stockholm", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Africa/Cairo",
	"Asia/Kolkata", "Pacific/Auckland", "America/St_Johns", "Antarctica/Troll",
}

// randomJobs are jobs of many kinds, which fire a few hundred times a year each
// on average.
func randomJobs(t testing.TB, n int, r *rand.Rand) []Job {
	t.Helper()
	m, h := func() int { return r.IntN(60) }, func() int { return r.IntN(24) }
	kinds := []func() string{
		func() string { return fmt.Sprintf("%d %d * * *", m(), h()) },
		func() string { return fmt.Sprintf("%d %d * * *", m(), r.IntN(4)) }, // where clocks change
		func() string { return fmt.Sprintf("%d %d * * 1-5", m(), h()) },
		func() string { return fmt.Sprintf("%d %d L * *", m(), h()) },
		func() string { return fmt.Sprintf("%d %d 31 * *", m(), h()) },
		func() string { return fmt.Sprintf("%d %d 29 2 *", m(), h()) },
		func() string { return fmt.Sprintf("%d %d * * FRI#2", m(), h()) },
		func() string { return fmt.Sprintf("%d */%d * * *", m(), 4+r.IntN(8)) },
		func() string { return fmt.Sprintf("%d %d,%d 1,15 * 0", m(), h(), h()) },
		func() string { return fmt.Sprintf("@every %dm", 600+r.IntN(3000)) },
		func() string { return fmt.Sprintf("at 2000-%02d-%02d %02d:%02d", 1+r.IntN(12), 1+r.IntN(28), h(), m()) },
		func() string { return fmt.Sprintf("OnCalendar: Mon *-*-* %02d:%02d", h(), m()) },
	}
	var list []Job
	for i := range n {
		j := job(t, fmt.Sprint("j", i), i%2 == 0, zones[r.IntN(len(zones))], kinds[i%len(kinds)]())
		if i%5 == 0 {
			j.Jitter = time.Duration(r.IntN(600)) * time.Second
		}
		list = append(list, j)
	}
	list = append(list, job(t, "hourly", true, "Europe/Stockholm", "@hourly"), job(t, "half", false, "Australia/Lord_Howe", "*/30 * * * *"))
	return list
}

// TestYear lets a leap year pass with 1,000 jobs and wants each time of each
// schedule to be a firing, in time, once.
func TestYear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t)
		jobs := randomJobs(t, 1000, rand.New(rand.NewPCG(1, 2)))
		begin := s.wall()
		s.start(jobs...)
		s.pass(366 * 24 * time.Hour)
		s.stop()
		end := s.wall()
		total := 0
		for _, j := range jobs {
			var want []time.Time
			for at := begin; ; {
				at = expr.Earliest(at, j.Schedules)
				if at.IsZero() || at.Add(j.delay()).After(end) {
					break
				}
				want = append(want, at)
			}
			got := s.fired[j.Name]
			total += len(got)
			if len(got) != len(want) {
				t.Errorf("%s (%s, %s) fired %d times, want %d", j.Name, j.Schedules[0], j.Zone, len(got), len(want))
				continue
			}
			for i, f := range got {
				if !f.due.Equal(want[i]) || !f.wall.Equal(want[i].Add(j.delay())) {
					t.Errorf("%s (%s, %s) fired for %v at %v, want %v and %v later", j.Name, j.Schedules[0], j.Zone, f.due, f.wall, want[i], j.delay())
					break
				}
			}
		}
		if s.refused > 0 || len(s.said) > 0 {
			t.Errorf("%d firings were not due; said %q", s.refused, s.said)
		}
		if total < 100_000 {
			t.Errorf("only %d firings: the test is too weak", total)
		}
	})
}

// TestClockChanges counts by hand what the year of TestYear has where the
// clocks change.
func TestClockChanges(t *testing.T) {
	for _, c := range []struct {
		name, schedule, zone string
		from                 string // 00:00 UTC of this day, for two days
		want                 int
	}{
		{"in the gap, once", "30 2 * * *", "Europe/Stockholm", "2000-03-25 00:00:00", 2},
		{"twice on the clock, once", "30 2 * * *", "Europe/Stockholm", "2000-10-28 00:00:00", 2},
		{"every real hour in spring", "0 * * * *", "Europe/Stockholm", "2000-03-25 00:00:00", 48},
		{"every real hour in autumn", "0 * * * *", "Europe/Stockholm", "2000-10-28 00:00:00", 48},
		{"a zone that changes by half an hour", "15 * * * *", "Australia/Lord_Howe", "2000-03-25 00:00:00", 48},
		{"each hour of the office", "0 9-17 * * *", "America/New_York", "2000-04-01 00:00:00", 18},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSim(t)
				s.set(at(t, c.from).Sub(s.wall()))
				s.set(-time.Second)
				s.start(job(t, "x", false, c.zone, c.schedule))
				s.pass(48 * time.Hour)
				s.stop()
				if got := s.count("x"); got != c.want {
					t.Errorf("%d firings, want %d: %v", got, c.want, s.fired)
				}
			})
		})
	}
}
