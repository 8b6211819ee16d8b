package daemon

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"agentd/firings"
	"agentd/scheduler/expr"
)

// Book remembers which firings have been taken; firings.Book is one. The
// engine only reads it, and says what is not due any more: taking a firing is
// for the run itself.
type Book interface {
	Last(agent, job string) (firings.Mark, bool, error)
	Begin(agent, job string, now time.Time) error
	Skip(agent, job string, now time.Time) error
}

// Options is the world of an Engine. Wall, Book, Dispatch and Say must be set.
type Options struct {
	Wall     func() time.Time // the clock on the wall, without a monotonic reading
	Book     Book
	Dispatch func(Firing)                     // must not block
	Say      func(format string, args ...any) // a line for the person who looks after the daemon
	Disabled func(Name) bool                  // what such a job has missed is not made up for
	Pending  func() []Firing                  // runs that are to go on, with Due set
	Tick     func()                           // called at each look at the clock
	Recheck  time.Duration                    // how often to look at the clock at least; 0: every 30 s
	Boot     string                           // id of this boot
	First    bool                             // the daemon is what boots this machine: a container's first process
}

// Engine knows when each job fires next. It has one goroutine, that of Run,
// and one timer. Set may be called from anywhere.
type Engine struct {
	o    Options
	wake chan struct{}
	book *bookkeeper

	mu      sync.Mutex
	entries map[Name]*entry
	owners  map[string]string // an agent's name to its workspace
	others  map[Name]string   // jobs that do not fire, to their workspace
	agenda  agenda
	pending []Firing
	resumed map[string]time.Time // run ids to when a run was started to go on with it
	look    bool                 // at what is pending
	told    int                  // jobs that missed something, in this step
	running bool                 // Run has begun: new jobs start from now
}

// NewEngine returns an engine without jobs.
func NewEngine(o Options) *Engine {
	if o.Pending == nil {
		o.Pending = func() []Firing { return nil }
	}
	if o.Disabled == nil {
		o.Disabled = func(Name) bool { return false }
	}
	if o.Tick == nil {
		o.Tick = func() {}
	}
	if o.Recheck == 0 {
		o.Recheck = recheck
	}
	return &Engine{
		o: o, wake: make(chan struct{}, 1), book: newBookkeeper(o.Book, o.Say),
		entries: map[Name]*entry{}, owners: map[string]string{}, others: map[Name]string{}, resumed: map[string]time.Time{}, look: true,
	}
}

// Run fires until ctx ends.
func (e *Engine) Run(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.book.run(ctx)
	}()
	defer func() { <-done }()

	e.mu.Lock()
	e.running = true
	e.mu.Unlock()
	timer := time.NewTimer(0)
	defer timer.Stop()
	clock := e.newClock()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-e.wake:
		}
		timer.Reset(e.step(clock))
	}
}

// clock notices when the wall clock does not go on as time does.
type clock struct {
	wall time.Time
	mono time.Time
}

func (e *Engine) newClock() *clock { return &clock{e.o.Wall(), time.Now()} }

// jump returns how far the clock on the wall was set since the last look.
func (c *clock) jump(wall, mono time.Time) time.Duration {
	d := wall.Sub(c.wall) - mono.Sub(c.mono)
	c.wall, c.mono = wall, mono
	return d
}

// minJump is less than any jump that matters, and more than a clock is slewed
// between two looks.
const minJump = 2 * time.Second

// maxTold is how many jobs are named that have missed something at one time.
const maxTold = 20

// step fires what is due and returns how long to sleep.
func (e *Engine) step(c *clock) time.Duration {
	now := e.o.Wall()
	if jump := c.jump(now, time.Now()); jump.Abs() > minJump {
		e.jumped(now, jump)
	}
	e.o.Tick()
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.agenda) > 0 && !e.agenda[0].at.After(now) {
		e.fire(e.agenda[0], now)
	}
	if more := e.told - maxTold; more > 0 {
		e.o.Say("so did %s more", count(more))
	}
	e.told = 0
	e.resume(now)
	sleep := e.o.Recheck
	if len(e.agenda) > 0 {
		sleep = min(sleep, e.agenda[0].at.Sub(now))
	}
	for _, p := range e.pending {
		sleep = min(sleep, max(p.At.Sub(now), time.Millisecond))
	}
	return sleep
}

// jumped puts right what a jump of the clock makes wrong. A job whose clock
// was set back does not fire a second time at a time that it has had; unless it
// was set back so far that it must have been wrong. A fixed distance does not
// ask the clock on the wall.
func (e *Engine) jumped(now time.Time, jump time.Duration) {
	if jump > 0 {
		e.o.Say("the clock has gone forward by %v, or the machine has slept", jump.Round(time.Second))
		return
	}
	e.o.Say("the clock was set back by %v", (-jump).Round(time.Second))
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, en := range e.entries {
		switch {
		case en.index < 0:
		case en.job.has(expr.Every) && len(en.job.Schedules) == 1:
			en.set(en.due.Add(jump))
		case jump < -distrust:
			en.after(now)
		}
		e.agenda.place(en)
	}
}

// fire does what there is to do about the entry at the top. Nothing that goes
// wrong with it reaches another.
func (e *Engine) fire(en *entry, now time.Time) {
	defer func() {
		if p := recover(); p != nil {
			e.o.Say("%s: a bug in agentd: its times are lost until agentd.toml changes (70, software): panic: %v\n%s", en.job.Name, p, debug.Stack())
			e.agenda.remove(en)
		}
	}()
	at := en.at
	v := en.take(now)
	e.agenda.place(en)
	if v.missed > 0 {
		if e.told++; e.told <= maxTold {
			e.o.Say("%s: %s", en.job.Name, v.text(en))
		}
	}
	if !v.run {
		return
	}
	if now.Sub(at) > tolerance { // it is late for what it makes up for, not for itself
		at = now
	}
	e.o.Dispatch(Firing{Name: en.job.Name, Dir: en.job.Dir, Trigger: "daemon", Due: v.due, At: at, Grace: en.job.Grace})
}

// text tells about times that were missed.
func (v verdict) text(en *entry) string {
	what := "missed " + v.due.Format("Mon 2 Jan 15:04:05")
	switch {
	case v.missed >= maxMissed:
		what = fmt.Sprintf("missed %d times or more since %s", v.missed, v.due.Format("Mon 2 Jan 15:04:05"))
	case v.missed > 1:
		what = fmt.Sprintf("missed %d times since %s", v.missed, v.due.Format("Mon 2 Jan 15:04:05"))
	}
	switch {
	case en.job.CatchUp:
		return what + ": one run makes up for that"
	case en.due.IsZero():
		return what + ": catch_up is off, so nothing makes up for that"
	}
	return what + ": catch_up is off, so it runs next at " + en.at.Format("Mon 2 Jan 15:04:05")
}

// Settle is called before a run takes a firing: the book then says what it has
// to say against that.
func (e *Engine) Settle(n Name) { e.book.settle(n) }

// poke has Run look at the clock now.
func (e *Engine) poke() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}
