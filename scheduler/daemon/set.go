package daemon

import (
	"maps"
	"slices"
	"time"

	"agentd/exitcodes"
)

// Set makes jobs the jobs of the workspace in dir; it had others before, or
// none; others are its jobs that fire at no time. Jobs that fire at the same times as before are not disturbed. When the
// engine runs already, other jobs start from now; before, they go on where the
// book says. The error has the code exitcodes.Config: the agent is another
// workspace's.
func (e *Engine) Set(agent, dir string, jobs []Job, others ...Name) error {
	defer e.poke()
	now := e.o.Wall()
	e.mu.Lock()
	defer e.mu.Unlock()
	if owner, ok := e.owners[agent]; ok && owner != dir {
		return exitcodes.Errorf(exitcodes.Config, "the agent of %s is named %s, as that of %s", dir, agent, owner).
			WithHint("Give one of the two another name in its agentd.toml")
	}
	wanted := map[Name]bool{}
	for _, job := range jobs {
		wanted[job.Name] = true
		e.setJob(job, now)
	}
	e.remove(func(en *entry) bool { return en.job.Dir == dir && !wanted[en.job.Name] })
	e.disown(dir)
	e.owners[agent] = dir
	for _, n := range others {
		e.others[n] = dir
	}
	return nil
}

// Unset forgets the workspace in dir.
func (e *Engine) Unset(dir string) {
	defer e.poke()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.remove(func(en *entry) bool { return en.job.Dir == dir })
	e.disown(dir)
}

func (e *Engine) disown(dir string) {
	maps.DeleteFunc(e.owners, func(_, d string) bool { return d == dir })
	maps.DeleteFunc(e.others, func(_ Name, d string) bool { return d == dir })
}

// has reports whether the job of a run that is to go on is still there.
func (e *Engine) has(f Firing) bool {
	_, fires := e.entries[f.Name]
	_, rests := e.others[f.Name]
	return e.owners[f.Agent] == f.Dir && (fires || rests)
}

func (e *Engine) remove(gone func(*entry) bool) {
	for name, en := range e.entries {
		if gone(en) {
			e.agenda.remove(en)
			delete(e.entries, name)
		}
	}
}

func (e *Engine) setJob(job Job, now time.Time) {
	old, known := e.entries[job.Name]
	if known && old.job.sameTimes(&job) {
		jitter := old.job.Jitter
		old.job, old.delay = job, job.delay()
		if job.Jitter != jitter {
			old.set(old.due)
			e.agenda.place(old)
		}
		return
	}
	en := newEntry(job)
	if known {
		e.agenda.remove(old)
	}
	e.entries[job.Name] = en
	e.begin(en, now)
	e.agenda.place(en)
}

// begin finds the first time of a job.
func (e *Engine) begin(en *entry, now time.Time) {
	n := en.job.Name
	if e.running {
		e.book.later(n, note{at: now, skip: true})
		en.after(now)
		return
	}
	mark, known, err := e.o.Book.Last(n.Agent, n.Job)
	if err != nil {
		e.o.Say("%s: %v; it starts from now", n, err)
	}
	switch {
	case known && e.o.Disabled(n):
		en.after(now)
	case known:
		en.resume(mark, now, e.o.Boot)
	case e.o.First && err == nil: // the machine has started just now
		mark.Taken = now
		en.resume(mark, now, e.o.Boot)
	default:
		en.after(now)
	}
	if !known {
		e.book.later(n, note{at: now})
	}
}

// Jobs counts the jobs that have a next time, and returns the first of those.
func (e *Engine) Jobs() (count int, next time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.agenda) > 0 {
		next = e.agenda[0].at
	}
	return len(e.agenda), next
}

// LookAgain has the engine ask what runs are to go on.
func (e *Engine) LookAgain() {
	e.mu.Lock()
	e.look = true
	e.mu.Unlock()
	e.poke()
}

// usualGrace is for a run of a job that has no schedule.
const usualGrace = 30 * time.Second

// again is how long a run that is to go on, and did not, is left alone.
const again = 5 * time.Minute

// resume starts what is to go on now. It asks at each look at the clock, but
// not more than once for what is due at one time.
func (e *Engine) resume(now time.Time) {
	if e.look {
		e.look = false
		e.pending = slices.DeleteFunc(slices.Clone(e.o.Pending()), func(f Firing) bool { return !e.has(f) })
		maps.DeleteFunc(e.resumed, func(id string, _ time.Time) bool {
			return !slices.ContainsFunc(e.pending, func(f Firing) bool { return f.RunID == id })
		})
		for i := range e.pending {
			f := &e.pending[i]
			f.At, f.Grace = f.Due, usualGrace
			if en, ok := e.entries[f.Name]; ok {
				f.Grace = en.job.Grace
			}
			if last, ok := e.resumed[f.RunID]; ok && f.At.Before(last.Add(again)) && !f.Due.After(last) {
				f.At = last.Add(again)
			}
		}
	}
	e.pending = slices.DeleteFunc(e.pending, func(f Firing) bool {
		if f.At.After(now) {
			return false
		}
		e.resumed[f.RunID] = now
		e.o.Dispatch(f)
		return true
	})
}
