package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"agentd/recovery"
)

const (
	drainLimit = 30 * time.Second // waiting for the rest after a chat finish_reason
	closeLimit = time.Second      // waiting for the end after the last event
	errorLimit = 10 * time.Second // waiting for the body of an error
	maxNoise   = 1 << 20          // read after the last event, in bytes
)

// localError is a reader's error that is not of provider origin.
type localError struct{ err error }

func (e *localError) Error() string { return e.err.Error() }
func (e *localError) Unwrap() error { return e.err }

// watch is the body of one response under the timers of its request. Only time
// spent waiting for the provider counts against the idle timers, so a slow
// reader of previews does not end a healthy stream.
type watch struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	parent context.Context
	limits Timeouts
	body   io.Reader

	total *time.Timer
	first *time.Timer
	idle  *time.Timer
	why   atomic.Pointer[error] // why idle ends the request

	silent error         // no byte came
	left   time.Duration // of waiting, until an event has to come
	what   error         // why the request ends when left is used up
	ending bool          // the terminal was seen
	noise  int           // bytes that may still follow the last event; -1: no bound
}

func newWatch(parent context.Context, t Timeouts) *watch {
	ctx, cancel := context.WithCancelCause(parent)
	w := &watch{ctx: ctx, cancel: cancel, parent: parent, limits: t, noise: -1}
	w.total = time.AfterFunc(t.Request, func() {
		cancel(timedOut("the request took longer than %s", t.Request))
	})
	w.first = time.AfterFunc(t.FirstByte, func() {
		cancel(timedOut("no answer for %s", t.FirstByte))
	})
	w.idle = time.AfterFunc(t.Request, func() { cancel(*w.why.Load()) })
	w.idle.Stop()
	w.silent = timedOut("no byte for %s", t.BytesIdle)
	w.why.Store(&w.silent)
	w.left = t.EventIdle
	w.what = timedOut("no event that carries meaning for %s", t.EventIdle)
	return w
}

func timedOut(format string, args ...any) *recovery.Fault {
	return &recovery.Fault{Kind: recovery.Transport, Type: "timeout", Message: fmt.Sprintf(format, args...)}
}

// stop ends the request and all timers.
func (w *watch) stop() {
	w.cancel(nil)
	w.total.Stop()
	w.first.Stop()
	w.idle.Stop()
}

// answered ends the wait for the response header.
func (w *watch) answered() { w.first.Stop() }

// progress says that an event carried meaning.
func (w *watch) progress() {
	if !w.ending {
		w.left = w.limits.EventIdle
	}
}

// drain bounds the wait for the end of the stream once the terminal was seen.
func (w *watch) drain(s stage) {
	w.ending = true
	if s == closed {
		w.left, w.what, w.noise = closeLimit, errIdleEnd, maxNoise
		return
	}
	w.left = min(drainLimit, w.limits.EventIdle)
	w.what = timedOut("the stream did not end within %s of its last event", w.left)
}

// cause returns why the request was ended from here, or nil.
func (w *watch) cause() error {
	if err := context.Cause(w.parent); err != nil {
		return &localError{err}
	}
	return context.Cause(w.ctx)
}

// Read reads from the body under the idle timers.
func (w *watch) Read(p []byte) (int, error) {
	if w.noise == 0 {
		return 0, errIdleEnd
	}
	wait := w.limits.BytesIdle
	w.why.Store(&w.silent)
	if w.left < wait {
		wait = w.left
		w.why.Store(&w.what)
	}
	begin := time.Now()
	w.idle.Reset(wait)
	n, err := w.body.Read(p)
	w.idle.Stop()
	w.left = max(w.left-time.Since(begin), 0)
	if w.noise > 0 {
		w.noise = max(w.noise-n, 0)
	}
	if err != nil && err != io.EOF {
		if cause := w.cause(); cause != nil {
			err = cause
		}
	}
	return n, err
}

// errorBody reads the body of an error as far as it comes.
func (w *watch) errorBody() ([]byte, error) { return w.bounded(w) }

// bounded reads from in, which reads from w, what fits and comes in time. A body
// that breaks off is taken as far as it came.
func (w *watch) bounded(in io.Reader) ([]byte, error) {
	w.left = min(w.left, errorLimit)
	body, err := io.ReadAll(io.LimitReader(in, maxErrorBody))
	if local, ok := errors.AsType[*localError](err); ok {
		return nil, local.err
	}
	return body, nil
}
