// Package process runs a program and everything it starts as one tree, and
// leaves nothing of the tree behind: not a background child, not one that
// ignores SIGTERM, not one that made itself a daemon.
//
// The members of a tree are found in three ways, because each alone can be
// escaped: the session of the program, the chain of parents (this process
// adopts orphans as a child subreaper), and a mark in the environment.
//
// In a process that uses Run, other code may start children with os/exec as
// usual, but not in a session of their own (Setsid): such a child looks like
// an adopted orphan.
package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"agentd/exitcodes"
)

// MarkEnv is the environment variable that carries the run id; EndMarked finds
// processes by it.
const MarkEnv = "AGENTD_RUN_ID"

const (
	settleTime    = 500 * time.Millisecond // for what ends by itself just after the leader
	leftoverGrace = 2 * time.Second        // most time between SIGTERM and SIGKILL for what the leader left behind
	killLimit     = 10 * time.Second       // how long SIGKILL may take to show
	drainLimit    = 10 * time.Second       // how long the output's reader may take once the tree is dead
	reapEvery     = 10 * time.Second       // how often dead orphans are collected during a run
)

// Spec says what to run.
type Spec struct {
	// Argv is the program and its arguments. A program without a slash is
	// looked up in the PATH of Env; one with a relative path is in Dir.
	Argv []string
	Dir  string   // working folder; empty: the current one
	Env  []string // the complete environment; nil is an empty one

	// Stdin is copied to the program and then closed; nil is an empty input.
	// An *os.File is handed over as it is. Any other reader must not block.
	Stdin io.Reader
	// Stdout and Stderr receive the output; nil discards it. If both are the
	// same writer the order is kept and only one goroutine writes; otherwise
	// each has a goroutine of its own.
	Stdout, Stderr io.Writer

	// Grace is the time between SIGTERM and SIGKILL when the context ends;
	// zero means SIGKILL at once. What the program leaves behind when it ends by
	// itself gets 2 s of it at most.
	Grace time.Duration
	// Mark, if set, becomes AGENTD_RUN_ID in the environment of the tree.
	Mark string
}

// Result says how the program ended.
type Result struct {
	Status  int    // exit status; 128 + the signal's number if a signal ended it
	Signal  string // e.g. "SIGKILL", if a signal ended the program
	OOM     bool   // killed, and the kernel counted an out-of-memory kill meanwhile
	Stopped bool   // ended because the context did
	// Ended lists what had to be ended by a signal: if Stopped, all that was
	// there; else what the program left behind. It is cut at 50.
	Ended []Ended
	// OutputErr is the first error of a writer. The program was not disturbed
	// by it; its further output was thrown away.
	OutputErr error
}

// ErrNotEnded is in the chain of an error of Run when something of the tree
// still runs.
var ErrNotEnded = errors.New("not all of its processes could be ended")

// Run starts the program, waits until it ends or ctx does, and then ends all
// that is left of its tree. When ctx ends, Result.Stopped is set and the error
// is nil; the reason is in context.Cause(ctx).
//
// The error is for a program that did not start (an *exitcodes.Error with 127,
// 126 or what else fits), or whose tree could not be ended.
func Run(ctx context.Context, spec Spec) (Result, error) {
	if ctx.Err() != nil {
		return Result{}, fmt.Errorf("cannot start %s: %w", spec.name(), context.Cause(ctx))
	}
	path, err := spec.resolve()
	if err != nil {
		return Result{}, err
	}
	// Without it orphans go to init and are still found by session and mark.
	_ = Subreap()

	oomBefore := oomKills()
	pl, err := newPlumbing(spec)
	if err != nil {
		return Result{}, exitcodes.Errorf(exitcodes.IO, "cannot start %s: %w", spec.name(), err)
	}
	mark := newTreeMark()
	c, err := start(path, spec, mark, pl.child)
	pl.closeChildEnds()
	if err != nil {
		pl.abort()
		return Result{}, startError(spec, path, err)
	}
	pl.run()

	t := newTree(c.id, mark)
	var res Result
	res.Stopped = wait(ctx, c, t)
	e := &ender{find: t.search, group: c.id.pid}
	if res.Stopped {
		err = e.run(context.Background(), 0, spec.Grace)
	} else {
		err = e.run(context.Background(), settleTime, min(spec.Grace, leftoverGrace))
	}
	res.Ended = e.list()
	res.OutputErr = pl.finish()
	state, reapErr := c.reap()
	if err = errors.Join(err, reapErr); err != nil {
		return res, exitcodes.Errorf(exitcodes.Failure, "cannot end %s: %w: %w", spec.name(), ErrNotEnded, oneLine(err))
	}
	res.setStatus(state)
	if !res.Stopped && res.Status == 128+int(unix.SIGKILL) {
		res.OOM = oomKills() > oomBefore
	}
	return res, nil
}

// wait returns when the leader has ended (false) or ctx has (true). Meanwhile
// it collects orphans that have died, which would otherwise pile up.
func wait(ctx context.Context, c *child, t *tree) (stopped bool) {
	tick := time.NewTicker(reapEvery)
	defer tick.Stop()
	for {
		select {
		case <-c.exited:
			return false
		case <-ctx.Done():
			select {
			case <-c.exited: // both: the program was quicker
				return false
			default:
				return true
			}
		case <-tick.C:
			_, _ = t.search() // an unreadable /proc shows at the end
		}
	}
}

func (r *Result) setStatus(state *os.ProcessState) {
	ws, ok := state.Sys().(syscall.WaitStatus)
	if ok && ws.Signaled() {
		r.Signal = SignalName(ws.Signal())
		r.Status = 128 + int(ws.Signal())
		return
	}
	r.Status = state.ExitCode()
}

// SignalName returns the usual name of a signal, e.g. "SIGTERM".
func SignalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", int(s))
}

func (s Spec) name() string {
	if len(s.Argv) == 0 {
		return "the program"
	}
	return s.Argv[0]
}

// oneLine keeps errors.Join from spreading over several lines.
func oneLine(err error) error {
	return &lineError{err}
}

type lineError struct{ error }

func (e *lineError) Error() string { return strings.ReplaceAll(e.error.Error(), "\n", "; ") }
func (e *lineError) Unwrap() error { return e.error }
