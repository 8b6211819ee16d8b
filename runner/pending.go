package runner

import (
	"context"
	"fmt"
	"time"

	"agentd/backend"
	"agentd/exitcodes"
	"agentd/history"
	"agentd/process"
)

// wakeLimit bounds talking to the systemd that is to wake a run.
const wakeLimit = 10 * time.Second

// leavePending ends the run for now: it goes on when the cooldown is over,
// started by a timer, a daemon, the job's next firing or a person.
func (w *run) leavePending(o backend.Outcome, err error) error {
	at := w.Now().Add(w.cooldown(o))
	w.record.PendingResume = &history.Pending{NotBefore: at, Attempt: len(w.record.Attempts) + 1, Reason: o.Code.String()}
	w.out.timed("the run goes on at %s", at.Local().Format("2 Jan 15:04:05"))
	return err
}

// stopped ends the run in a cooldown. SIGTERM is how a machine goes down: the
// run goes on after that. A person who pressed Ctrl-C does not want more of it.
func (w *run) stopped(o backend.Outcome, cause error) error {
	if exitcodes.From(cause) == exitcodes.Terminated {
		return w.leavePending(o, cause)
	}
	return cause
}

// pendingOf returns the job's run that is to go on, the oldest if there are
// several, or nil.
func pendingOf(store *history.Store, agent, job string) (*history.Run, error) {
	runs, err := store.PendingRuns()
	if err != nil {
		return nil, err
	}
	for _, r := range runs {
		if r.Agent == agent && r.Job == job {
			return r, nil
		}
	}
	return nil, nil
}

// claim takes a pending run over: of many that try, one gets it. From then on
// it is an open run like any other; nil means that somebody was quicker.
func (r *Runner) claim(store *history.Store, id string) (*history.Run, *history.Hold, error) {
	hold, ok, err := store.Hold(id)
	if err != nil || !ok {
		return nil, nil, err
	}
	run, err := store.Read(id)
	if err != nil || run.PendingResume == nil {
		return nil, nil, firstError(err, hold.Release())
	}
	run.PendingResume, run.EndedAt, run.Code, run.ResetAt, run.Error, run.Hint = nil, nil, nil, nil, "", ""
	run.Process = process.Self()
	if err := store.Save(run); err != nil {
		return nil, nil, firstError(err, hold.Release())
	}
	return run, hold, nil
}

// limited is the end of a firing that comes before its job's limit resets: the
// provider would only refuse again.
func limited(pending *history.Run) error {
	p := pending.PendingResume
	return &exitcodes.Error{
		Code:    exitcodes.RateLimited,
		Err:     exitcodes.Errorf(exitcodes.RateLimited, "the limit that run %s met lasts until %s: nothing was sent", pending.RunID, p.NotBefore.Local().Format(time.DateTime)),
		ResetAt: p.NotBefore,
		Hint:    "To go on now all the same: agentd resume " + pending.Address(),
	}
}

// wake has the run started again when it may go on. Without that it still goes
// on with the job's next firing, so a failure is only told.
func (w *run) wake(ctx context.Context) {
	if w.record.PendingResume == nil || w.Waker == nil {
		return
	}
	// Also after a stop: the machine may be going down, but not for ever.
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), wakeLimit)
	defer cancel()
	if err := w.Waker.Wake(limited, w.record); err != nil {
		fmt.Fprintf(w.req.Output, "no timer for the rest of the run: %v\n", err)
	}
}

// forget takes back the timer of a run that goes on by other means. One that is
// left finds nothing pending.
func (w *run) forget(ctx context.Context) {
	if w.Waker != nil {
		limited, cancel := context.WithTimeout(ctx, wakeLimit)
		defer cancel()
		_ = w.Waker.Forget(limited, w.record)
	}
}

// Arm has a pending run started at its time, as after a boot, which takes the
// timers away.
func (r *Runner) Arm(ctx context.Context, pending *history.Run) error {
	if r.Waker == nil {
		return exitcodes.Errorf(exitcodes.Unavailable, "there is no systemd to wake run %s", pending.RunID)
	}
	return r.Waker.Wake(ctx, pending)
}

// Cancel drops a pending run: it stays as it ended.
func (r *Runner) Cancel(ctx context.Context, id string) error {
	store, err := history.Open(r.Folders.State)
	if err != nil {
		return err
	}
	defer store.Close()
	hold, ok, err := store.Hold(id)
	if err != nil {
		return err
	}
	if !ok {
		return exitcodes.Errorf(exitcodes.LaneBusy, "run %s is going on already", id).WithHint("Who holds which lane: agentd lanes")
	}
	defer hold.Release()
	run, err := store.Read(id)
	if err != nil {
		return err
	}
	if r.Waker != nil {
		_ = r.Waker.Forget(ctx, run) // a timer that is left finds nothing pending
	}
	run.PendingResume = nil
	run.Notes = append(run.Notes, "the rest of the run was dropped by a person")
	return store.Save(run)
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
