package daemon

import (
	"context"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"agentd/exitcodes"
)

// Launcher starts runs.
type Launcher interface {
	// Start starts a run and calls ended once, when it has ended, from another
	// goroutine; not if it returns an error, which has the code of the firing.
	Start(f Firing, ended func(exitcodes.Code)) (Process, error)
}

// Process is a run that was started.
type Process interface {
	// Signal sends sig to the run; one that has ended does not get it.
	Signal(sig syscall.Signal)
}

// starters is how many goroutines start runs. The kernel starts a process in
// a millisecond, in which the one that asks for it waits.
const starters = 2

// Pool starts runs, so many at once; other firings wait, one a job.
type Pool struct {
	launcher Launcher
	max      int
	ready    func(Firing) bool // the firing may run; false: the job is disabled
	say      func(format string, args ...any)
	ended    func(exitcodes.Code)

	mu      sync.Mutex
	some    sync.Cond // something is queued, or there is room, or it is closed
	queue   []Firing
	queued  map[key]bool
	running map[*slot]bool
	closed  bool
	idle    chan struct{} // closed when the pool is closed and nothing runs
	group   sync.WaitGroup
}

// key is what of a firing waits only once.
type key struct {
	Name
	trigger string
}

// slot is a run that is going on.
type slot struct {
	firing Firing
	run    Process // nil until it is started
	begun  time.Time
}

// NewPool returns a pool that runs at most limit firings at once. ready is
// asked before each whether it may; ended is called after each run.
func NewPool(launcher Launcher, limit int, ready func(Firing) bool, ended func(exitcodes.Code), say func(string, ...any)) *Pool {
	p := &Pool{
		launcher: launcher, max: limit, ready: ready, ended: ended, say: say,
		queued: map[key]bool{}, running: map[*slot]bool{}, idle: make(chan struct{}),
	}
	p.some.L = &p.mu
	for range starters {
		p.group.Go(p.work)
	}
	return p
}

// Dispatch queues a firing. It does not block.
func (p *Pool) Dispatch(f Firing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := key{f.Name, f.Trigger}
	switch {
	case p.closed:
	case p.queued[k]:
		p.say("%s: still waits for one of %d runs to end; one run is enough for this time too", f.Name, p.max)
	default:
		p.queued[k] = true
		p.queue = append(p.queue, f)
		p.some.Signal()
	}
}

// work starts queued firings.
func (p *Pool) work() {
	for {
		s := p.next()
		if s == nil {
			return
		}
		p.start(s)
	}
}

// next waits for a firing and for room, and returns nil when the pool is
// closed.
func (p *Pool) next() *slot {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.closed && (len(p.queue) == 0 || len(p.running) >= p.max) {
		p.some.Wait()
	}
	if p.closed {
		return nil
	}
	s := &slot{firing: p.queue[0], begun: time.Now()}
	p.queue = p.queue[1:]
	if len(p.queue) == 0 {
		p.queue = nil // lets go of what a burst has needed
	}
	delete(p.queued, key{s.firing.Name, s.firing.Trigger})
	p.running[s] = true
	return s
}

// start starts a run. Nothing that goes wrong with it reaches another.
func (p *Pool) start(s *slot) {
	defer func() {
		if r := recover(); r != nil {
			p.say("%s: a bug in agentd: panic: %v\n%s", s.firing.Name, r, debug.Stack())
			p.end(s, exitcodes.Software)
		}
	}()
	if !p.ready(s.firing) {
		p.end(s, exitcodes.OK)
		return
	}
	run, err := p.launcher.Start(s.firing, func(code exitcodes.Code) { p.end(s, code) })
	if err != nil {
		p.say("%s: cannot start its run: %v", s.firing.Name, err)
		p.end(s, exitcodes.From(err))
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s.run = run
	if p.closed { // meanwhile: Close has not seen it
		run.Signal(syscall.SIGTERM)
	}
}

// end takes note that a run has ended; a second time it does nothing.
func (p *Pool) end(s *slot, code exitcodes.Code) {
	p.mu.Lock()
	if !p.running[s] {
		p.mu.Unlock()
		return
	}
	delete(p.running, s)
	if p.closed && len(p.running) == 0 {
		close(p.idle)
	}
	p.some.Signal()
	p.mu.Unlock()
	if code != exitcodes.OK {
		p.say("%s: ended with %d (%s) after %v", s.firing.Name, int(code), code, time.Since(s.begun).Round(10*time.Millisecond))
	}
	p.ended(code)
}

// Running counts the runs that go on.
func (p *Pool) Running() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.running)
}

// margin is what a run needs beyond its job's grace to end in good order: to
// see that its programs have ended, and to write its record.
const margin = 15 * time.Second

// Close starts nothing more, has all runs end in good order, and returns when
// they have. A run that takes longer than its grace and a margin, and all when
// ctx ends, get SIGKILL. What was queued is still due at the next start.
func (p *Pool) Close(ctx context.Context) {
	limit := p.shut()
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-p.idle:
	case <-ctx.Done():
	case <-late.C:
		p.say("%d runs do not end: SIGKILL", p.Running())
	}
	p.kill()
	last := time.NewTimer(margin)
	defer last.Stop()
	select {
	case <-p.idle:
	case <-last.C:
		p.say("%d runs do not end, even by SIGKILL; they are left", p.Running())
	}
	p.group.Wait()
}

// shut closes the pool and returns how long its runs may take to end.
func (p *Pool) shut() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.queue = nil
	clear(p.queued)
	p.some.Broadcast()
	if len(p.running) == 0 {
		close(p.idle)
	}
	limit := margin
	for s := range p.running {
		limit = max(limit, s.firing.Grace+margin)
		if s.run != nil {
			s.run.Signal(syscall.SIGTERM)
		}
	}
	return limit
}

func (p *Pool) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.running {
		if s.run != nil {
			s.run.Signal(syscall.SIGKILL)
		}
	}
}
