package daemon

import (
	"container/heap"
	"time"

	"agentd/firings"
	"agentd/scheduler/expr"
)

const (
	// recheck is the longest the engine sleeps without a look at the wall clock.
	recheck = 30 * time.Second
	// tolerance is how late a firing may be and still count as on time. It is
	// more than recheck, so that a clock set forward costs no firing.
	tolerance = time.Minute
	// distrust is how far in the future a job may have fired last before that is
	// taken for the work of a clock that was wrong.
	distrust = 24 * time.Hour
	// maxMissed bounds the count of what was missed.
	maxMissed = 1000
)

// entry is a job and when it fires next.
type entry struct {
	job   Job
	delay time.Duration
	due   time.Time // the next time of the schedule; zero: none
	at    time.Time // due and the delay
	index int       // in the agenda; -1: not there
}

func newEntry(job Job) *entry {
	return &entry{job: job, delay: job.delay(), index: -1}
}

// after makes the first time of the schedule after since the next one.
func (e *entry) after(since time.Time) {
	e.set(expr.Earliest(since, e.job.Schedules))
}

func (e *entry) set(due time.Time) {
	e.due, e.at = due, due
	if !due.IsZero() {
		e.at = due.Add(e.delay)
	}
}

// resume goes on where an earlier daemon, or a timer, has left off: what was
// due since then is due still.
func (e *entry) resume(mark firings.Mark, now time.Time, boot string) {
	if mark.Boot != boot && e.job.has(expr.Boot) {
		e.set(now)
		return
	}
	taken := mark.Taken
	if taken.Sub(now) > distrust {
		taken = now
	}
	ended := taken // what fell due during a run is gone
	if mark.Ended.After(taken) && !mark.Ended.After(now) {
		ended = mark.Ended
	}
	var first time.Time
	for _, s := range e.job.Schedules {
		since := ended
		if s.Kind() == expr.Every {
			since = taken
		}
		if t := s.Next(since); !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	e.set(first)
}

// verdict is what becomes of a time that has come.
type verdict struct {
	run     bool
	due     time.Time // the first time that it is about
	missed  int       // how many times have passed too long ago; at most maxMissed
	catchUp bool      // the run is for those
}

// take decides about all times that have come until now, and goes on to the
// next one.
func (e *entry) take(now time.Time) verdict {
	horizon := now.Add(-e.delay)
	v := verdict{run: true, due: e.due}
	last := e.due
	for {
		if horizon.Sub(last) > tolerance {
			v.missed++
		}
		next := expr.Earliest(last, e.job.Schedules)
		if next.IsZero() || next.After(horizon) {
			break
		}
		last = next
		if v.missed == maxMissed {
			last = e.lastBefore(horizon, last)
			break
		}
	}
	if horizon.Sub(last) > tolerance {
		v.run, v.catchUp = e.job.CatchUp, e.job.CatchUp
	}
	if v.run && v.missed > 0 {
		e.after(now) // the run stands for all until then
		return v
	}
	e.after(e.since(last, horizon))
	return v
}

// lastBefore is a time of the schedule that is not long before horizon, or the
// one it is given.
func (e *entry) lastBefore(horizon, last time.Time) time.Time {
	if t := expr.Earliest(horizon.Add(-tolerance), e.job.Schedules); !t.IsZero() && !t.After(horizon) {
		return horizon
	}
	return last
}

// since is where the next time is looked for: after horizon, in any case. A
// fixed distance counts from a firing that is late, not from when it was due.
func (e *entry) since(last, horizon time.Time) time.Time {
	for _, s := range e.job.Schedules {
		if s.Kind() != expr.Every {
			continue
		}
		if period := s.Next(last).Sub(last); horizon.Sub(last) > period/20 {
			return horizon
		}
		return last
	}
	return horizon
}

// agenda is a heap of entries, the one that fires next at the top.
type agenda []*entry

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].at.Before(a[j].at) }
func (a agenda) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].index, a[j].index = i, j
}

func (a *agenda) Push(x any) {
	e := x.(*entry)
	e.index = len(*a)
	*a = append(*a, e)
}

func (a *agenda) Pop() any {
	old := *a
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*a = old[:len(old)-1]
	e.index = -1
	return e
}

// place puts an entry where its next time belongs; one without goes.
func (a *agenda) place(e *entry) {
	switch {
	case e.due.IsZero():
		a.remove(e)
	case e.index < 0:
		heap.Push(a, e)
	default:
		heap.Fix(a, e.index)
	}
}

func (a *agenda) remove(e *entry) {
	if e.index >= 0 {
		heap.Remove(a, e.index)
	}
}
