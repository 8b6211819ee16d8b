package backend

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"agentd/exitcodes"
	"agentd/provider/message"
)

var (
	errLingered = errors.New("it stayed after its last event")
	errLost     = errors.New("it began another session than the one asked for")
)

// watch ends a program that is silent for too long, does not go when it has
// finished, repeats a request for ever, or uses more than it may. The reasons
// are causes of the program's context.
type watch struct {
	cancel  context.CancelCauseFunc
	startup time.Duration // 0: no limit
	idle    time.Duration // 0: no limit
	linger  time.Duration
	others  func() time.Time // another sign of life; nil: none

	maxSteps  int
	maxCost   float64
	maxTokens int64

	onSession func(id string)
	onRepeat  func(times int, why string) error // why it has to end; nil: it may go on

	begun  time.Time
	last   atomic.Int64 // nanoseconds from begun to the newest sign of life; 0: none yet
	left   atomic.Int64 // the same to the last event; 0: not yet
	wake   chan struct{}
	done   chan struct{}
	ended  sync.WaitGroup
	closed sync.Once
}

func (w *watch) start() {
	w.begun = time.Now()
	w.wake, w.done = make(chan struct{}, 1), make(chan struct{})
	w.ended.Go(w.run)
}

// stop ends the watch, once the program has ended.
func (w *watch) stop() {
	w.closed.Do(func() { close(w.done) })
	w.ended.Wait()
}

func (w *watch) since() time.Duration { return max(time.Since(w.begun), 1) }

// touched is a sign of life.
func (w *watch) touched() { w.last.Store(int64(w.since())) }

// ending is called when nothing more is to be expected of the program.
func (w *watch) ending() {
	if w.left.CompareAndSwap(0, int64(w.since())) {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// repeating is called before the program sends a request again, for the given
// number of times in a row.
func (w *watch) repeating(times int, why string) {
	if w.onRepeat == nil {
		return
	}
	if cause := w.onRepeat(times, why); cause != nil {
		w.cancel(cause)
	}
}

func (w *watch) session(id string) {
	if w.onSession != nil {
		w.onSession(id)
	}
}

// spent compares what the program has used so far with the limits that it
// could not be told.
func (w *watch) spent(steps int, u message.Usage) {
	switch tokens := u.InputTokens + u.OutputTokens; {
	case w.maxSteps > 0 && steps > w.maxSteps:
		w.cancel(exitcodes.Errorf(exitcodes.Limit, "it has taken the %d steps that max_steps allows", w.maxSteps))
	case w.maxCost > 0 && u.CostUSD > w.maxCost:
		w.cancel(exitcodes.Errorf(exitcodes.Limit, "it has used $%.2f of the $%.2f that max_cost_usd allows", u.CostUSD, w.maxCost))
	case w.maxTokens > 0 && tokens > w.maxTokens:
		w.cancel(exitcodes.Errorf(exitcodes.Limit, "it has used %d of the %d tokens that max_tokens allows", tokens, w.maxTokens))
	}
}

func (w *watch) run() {
	for {
		wait, cause := w.next()
		if cause != nil {
			w.cancel(cause)
			return
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-w.wake:
		case <-w.done:
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// next returns when to look again, or why the program is to be ended now.
func (w *watch) next() (time.Duration, error) {
	now := w.since()
	wait := time.Hour
	if left := time.Duration(w.left.Load()); left > 0 {
		if now-left >= w.linger {
			return 0, errLingered
		}
		return w.linger - (now - left), nil
	}
	last, limit := time.Duration(w.last.Load()), w.idle
	if last == 0 {
		limit = w.startup
	}
	if limit == 0 {
		return min(wait, max(w.idle, time.Second)), nil // the other limit may begin to hold
	}
	if rest := limit - (now - last); rest > 0 {
		if last == 0 && w.idle > 0 {
			rest = min(rest, w.idle)
		}
		return min(wait, rest), nil
	}
	if w.others != nil {
		if at := w.others(); !at.IsZero() && time.Since(at) < limit {
			w.last.Store(int64(now))
			return limit - max(time.Since(at), 0), nil
		}
	}
	if last == 0 {
		return 0, exitcodes.Errorf(exitcodes.Timeout, "it said nothing for %s after its start", limit)
	}
	return 0, exitcodes.Errorf(exitcodes.Timeout, "it was silent for %s", limit)
}

// newest returns when a file that matches the pattern was written last.
func newest(pattern string) time.Time {
	var at time.Time
	paths, _ := filepath.Glob(pattern) // a bad pattern matches nothing
	for _, p := range paths {
		if info, err := os.Stat(p); err == nil && info.ModTime().After(at) {
			at = info.ModTime()
		}
	}
	return at
}
