package runner

import (
	"time"

	"agentd/backend"
	"agentd/exitcodes"
	"agentd/history"
	"agentd/process"
)

// leavePending ends the run for now: it goes on when the cooldown is over,
// started by a timer, a daemon, the job's next firing or a person.
func (w *run) leavePending(o backend.Outcome, err error) error {
	at := w.Now().Add(w.cooldown(o))
	w.record.PendingResume = &history.Pending{NotBefore: at, Attempt: len(w.record.Attempts) + 1, Reason: o.Code.String()}
	w.out.timed("the run goes on at %s", at.Local().Format("2 Jan 15:04:05"))
	return err
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

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
