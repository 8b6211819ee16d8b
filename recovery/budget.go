// Package recovery decides whether a failed generation may be asked again. One
// Budget belongs to one generation: it counts every physical request before it
// is sent, bounds replays by a deadline, and waits between them as the provider
// asks, or with full-jitter backoff where it does not say.
package recovery

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"agentd/exitcodes"
)

// The defaults of Options.
const (
	DefaultRequests = 11
	DefaultDeadline = 600 * time.Second

	backoffBase = time.Second
	backoffCap  = time.Minute
)

// Options set up a Budget. A zero field means its default.
type Options struct {
	Requests int              // physical requests, the first included: 11
	Deadline time.Duration    // bounds admission and waits, not a request in flight: 600 s
	Now      func() time.Time // time.Now; must be monotonic
	Rand     func() float64   // in [0,1): math/rand/v2
	// Wait returns after d, or earlier with the reason why ctx ended.
	Wait func(ctx context.Context, d time.Duration) error
}

// Budget is the allowance of one generation, shared by everything that sends on
// its behalf. It is safe for concurrent use.
type Budget struct {
	opts  Options
	start time.Time

	mu       sync.Mutex
	stats    Stats
	replayed int    // replays since the last success, the exponent of the backoff
	last     *Fault // the latest fault that asked for a replay
	off      string // why replay is off, if it is
}

// Stats is what a Budget did, for the run record.
type Stats struct {
	Requests int           // physical requests debited
	Replays  int           // replays admitted
	Waited   time.Duration // time spent waiting before replays
	Why      []string      // why each replay was made, one line each
}

// New returns a Budget whose deadline starts now.
func New(o Options) *Budget {
	if o.Requests <= 0 {
		o.Requests = DefaultRequests
	}
	if o.Deadline <= 0 {
		o.Deadline = DefaultDeadline
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Rand == nil {
		o.Rand = rand.Float64
	}
	if o.Wait == nil {
		o.Wait = wait
	}
	return &Budget{opts: o, start: o.Now()}
}

// wait sleeps for d and leaves at once when ctx ends.
func wait(ctx context.Context, d time.Duration) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Reserve debits one physical request. It is called before every send; on an
// error nothing may be sent. The error is an *Exhausted.
func (b *Budget) Reserve() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stats.Requests >= b.opts.Requests {
		return b.exhausted(b.last, b.spent())
	}
	// The first request is always admitted: the deadline bounds recovery.
	if b.stats.Requests > 0 && b.left() <= 0 {
		return b.exhausted(b.last, b.late())
	}
	b.stats.Requests++
	return nil
}

// Replay admits another attempt after f: it returns nil when the same request
// may be sent again, after the wait that is due. Otherwise it returns why not:
// f itself when a replay cannot help, an *Exhausted when it is not allowed, or
// the cause for which ctx ended.
func (b *Budget) Replay(ctx context.Context, f *Fault) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if !f.Transient() {
		return f
	}
	d, err := b.admit(ctx, f)
	if err != nil {
		return err
	}
	before := b.opts.Now()
	err = b.opts.Wait(ctx, d)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stats.Waited += max(b.opts.Now().Sub(before), 0)
	if err != nil {
		return err
	}
	if b.left() <= 0 {
		return b.exhausted(f, b.late())
	}
	b.replayed++
	b.stats.Replays++
	b.stats.Why = append(b.stats.Why, f.Error())
	return nil
}

// admit says how long to wait before the replay of f, or why there is none.
func (b *Budget) admit(ctx context.Context, f *Fault) (time.Duration, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = f
	if why := b.offFor(ctx); why != "" {
		return 0, b.exhausted(f, "replay is off: "+why)
	}
	if b.stats.Requests >= b.opts.Requests {
		return 0, b.exhausted(f, b.spent())
	}
	left := b.left()
	if left <= 0 {
		return 0, b.exhausted(f, b.late())
	}
	asked := b.asked(f)
	if asked >= left {
		e := b.exhausted(f, fmt.Sprintf("the provider asks to wait %s, %s are left", round(asked), round(left)))
		// Waiting is what would help, so the code says so, whatever the fault.
		e.Code = exitcodes.RateLimited
		e.ResetAt = b.opts.Now().Add(asked)
		return 0, e
	}
	if asked > 0 {
		return asked, nil
	}
	d := b.backoff()
	if d >= left {
		return 0, b.exhausted(f, fmt.Sprintf("the next wait is %s, %s are left", round(d), round(left)))
	}
	return d, nil
}

// asked returns how long the provider still asks to wait. ResetAt was fixed
// when the answer came, so time that has passed since counts.
func (b *Budget) asked(f *Fault) time.Duration {
	if !f.ResetAt.IsZero() {
		return max(f.ResetAt.Sub(b.opts.Now()), 0)
	}
	return max(f.RetryAfter, 0)
}

// backoff returns a uniformly random wait below an exponentially growing bound.
func (b *Budget) backoff() time.Duration {
	bound := backoffBase << min(b.replayed, 10)
	return time.Duration(b.opts.Rand() * float64(min(bound, backoffCap)))
}

func (b *Budget) left() time.Duration { return b.opts.Deadline - b.opts.Now().Sub(b.start) }

func (b *Budget) spent() string {
	return fmt.Sprintf("all %d requests of this generation are used", b.opts.Requests)
}

func (b *Budget) late() string {
	return fmt.Sprintf("the deadline of %s for this generation has passed", b.opts.Deadline)
}

// Stats returns what has happened so far.
func (b *Budget) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.stats
	s.Why = append([]string(nil), s.Why...)
	return s
}

// Limit returns how many physical requests the budget allows in all.
func (b *Budget) Limit() int { return b.opts.Requests }

// DisableReplay turns replay off for the rest of the generation, for instance
// because something outside has already acted on a preview.
func (b *Budget) DisableReplay(why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.off == "" {
		b.off = why
	}
}

// offFor returns why a replay under ctx is off, or "".
func (b *Budget) offFor(ctx context.Context) string {
	if b.off != "" {
		return b.off
	}
	why, _ := ctx.Value(noReplayKey{}).(string)
	return why
}

// round makes a wait readable.
func round(d time.Duration) time.Duration {
	if d >= time.Second {
		return d.Round(time.Second)
	}
	return d.Round(time.Millisecond)
}
