package runner

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"agentd/backend"
	"agentd/exitcodes"
	"agentd/history"
	"agentd/lanes"
	"agentd/process"
	"agentd/session"
)

// attempts runs the backend until it is done, out of attempts, or would have
// to wait longer than a run may.
func (w *run) attempts(ctx context.Context) error {
	for {
		outcome, err := w.attempt(ctx)
		if err != nil {
			return err
		}
		if outcome.Code == exitcodes.OK {
			return nil
		}
		failed := outcomeError(outcome)
		if ctx.Err() != nil || !w.mayResume(outcome.Code) {
			w.sayUsedUp(outcome.Code)
			return failed
		}
		wait := w.cooldown(outcome)
		if wait > w.job.Resume.MaxWait {
			return w.leavePending(outcome, failed)
		}
		if err := w.pause(ctx, outcome, wait, failed); err != nil {
			return err
		}
	}
}

// attempt runs the backend once, under the job's timeout, with the session
// open for this attempt only.
func (w *run) attempt(ctx context.Context) (backend.Outcome, error) {
	store := session.Store{Dir: w.Folders.Sessions()}
	s, err := store.Open(w.job.Agent, w.record.Session, session.Options{Now: w.Now, RunID: w.record.RunID})
	if err != nil {
		return backend.Outcome{}, err
	}
	defer s.Close()

	n := len(w.record.Attempts) + 1
	w.record.Attempts = append(w.record.Attempts, history.Attempt{N: n, Backend: w.job.Backend, Model: w.job.Model, StartedAt: w.Now()})
	if err := s.AttemptStarted(w.record.RunID, n, w.job.Backend, w.job.Model); err != nil {
		return backend.Outcome{}, err
	}
	if err := w.store.Save(w.record); err != nil {
		return backend.Outcome{}, err
	}
	w.out.timed("attempt %d  %s", n, strings.TrimSpace(w.job.Backend+" "+w.job.Model))

	limited, cancel := context.WithTimeoutCause(ctx, w.job.Timeout,
		exitcodes.Errorf(exitcodes.Timeout, "the attempt's timeout of %s passed", w.job.Timeout))
	defer cancel()
	outcome := w.backend.Run(limited, backend.Attempt{
		RunID:   w.record.RunID,
		N:       n,
		Job:     w.job,
		Dir:     w.req.Workspace.Dir,
		RunDir:  w.store.RunDir(w.record.RunID),
		Prompt:  w.prompt,
		Resumed: n > 1,
		Args:    w.req.Args,
		Env:     w.env.child(w, n),
		Session: s,
		Output:  w.out,
		Events:  w.out.event,
	})
	outcome.Err = stopCause(limited, outcome.Err)
	if outcome.Err != nil && outcome.Code != exitcodes.From(outcome.Err) && limited.Err() != nil {
		outcome.Code = exitcodes.From(outcome.Err)
	}
	w.note(n, outcome)
	if err := s.AttemptEnded(w.record.RunID, n, outcome.Code, outcome.Requests, outcome.Replays, outcome.Usage); err != nil {
		return outcome, err
	}
	return outcome, nil
}

// note puts the outcome of attempt n into the record.
func (w *run) note(n int, o backend.Outcome) {
	a := &w.record.Attempts[n-1]
	ended := w.Now()
	a.EndedAt = &ended
	a.SetCode(o.Code)
	a.Requests, a.Replays, a.Waited = o.Requests, o.Replays, o.Waited.Seconds()
	for _, why := range o.Why {
		a.Why = append(a.Why, w.redact(why))
	}
	a.Status, a.Signal, a.Steps = o.Status, o.Signal, o.Steps
	if o.Err != nil {
		a.Error = w.redact(o.Err.Error())
	}
	if !o.ResetAt.IsZero() {
		at := o.ResetAt
		a.ResetAt = &at
	}
	w.record.Usage = w.record.Usage.Add(o.Usage)
}

func (w *run) mayResume(code exitcodes.Code) bool {
	return len(w.record.Attempts) < w.job.Resume.Attempts && slices.Contains(w.job.Resume.On, code.String())
}

// sayUsedUp tells of a run that would go on, had it not been tried so often.
func (w *run) sayUsedUp(code exitcodes.Code) {
	if n := len(w.record.Attempts); n > 1 && n >= w.job.Resume.Attempts && slices.Contains(w.job.Resume.On, code.String()) {
		w.out.timed("the run does not go on: resume.attempts = %d of it are used up", w.job.Resume.Attempts)
	}
}

// cooldown is how long to wait before the next attempt: the job's cooldown or
// until the limit resets, whichever is later.
func (w *run) cooldown(o backend.Outcome) time.Duration {
	wait := w.job.Resume.Cooldown
	if !o.ResetAt.IsZero() {
		wait = max(wait, o.ResetAt.Sub(w.Now()))
	}
	return wait
}

// pause releases the lane for the wait, so that others may use it, and takes it
// again. If somebody else has it then, the run is pending and ends as its last
// attempt did: failed.
func (w *run) pause(ctx context.Context, o backend.Outcome, wait time.Duration, failed error) error {
	if err := w.store.Save(w.record); err != nil {
		return err
	}
	w.releaseLane()
	reason := o.Code.String()
	if !o.ResetAt.IsZero() {
		reason += " until " + o.ResetAt.Local().Format("15:04:05")
	}
	w.out.timed("attempt %d  %s; lane released, waiting %s", len(w.record.Attempts), reason, wait.Round(time.Second))
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return w.stopped(o, context.Cause(ctx))
	case <-timer.C:
	}
	err := w.takeLane(ctx, w.job.LaneWait)
	if _, busy := errors.AsType[*lanes.Busy](err); busy {
		w.out.timed("%v", err)
		return w.leavePending(o, failed)
	}
	return err
}

// takeLane takes the job's lane, and makes sure that nothing of a former holder
// that died works on in it.
func (w *run) takeLane(ctx context.Context, wait time.Duration) error {
	held, err := lanes.Dir(w.Folders.Lanes()).Acquire(ctx, lanes.Request{
		Name:  w.job.Lane,
		Slots: w.job.LaneSlots,
		Wait:  wait,
		Owner: lanes.Owner{Process: w.record.Process, RunID: w.record.RunID, Job: w.job.Address(), Since: w.Now()},
	})
	if err != nil {
		return err
	}
	w.held = held
	for _, former := range held.Formers() {
		if err := w.endLeftovers(ctx, former.RunID); err != nil {
			return err
		}
	}
	return nil
}

// slowEnd is how long ending what was left behind may take without a word.
const slowEnd = time.Second

// endLeftovers ends what a run whose agentd died left behind, so that two runs
// never work side by side.
func (w *run) endLeftovers(ctx context.Context, runID string) error {
	said := make(chan struct{})
	slow := time.AfterFunc(slowEnd, func() {
		defer close(said)
		w.out.timed("what run %s left behind in lane %s is asked to end; it has %s", runID, w.job.Lane, w.job.Grace)
	})
	ended, err := process.EndMarked(ctx, runID, w.job.Grace)
	if !slow.Stop() {
		<-said
	}
	if err != nil {
		// Not a release: the next taker has to try it again.
		_ = w.held.Abandon()
		w.held = nil
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return exitcodes.Errorf(exitcodes.LaneBusy, "lane %s is not free: %w", w.job.Lane, err)
	}
	for _, e := range ended {
		w.out.timed("ended process %d (%s), left behind by run %s", e.PID, e.Name, runID)
		w.record.Notes = append(w.record.Notes, "ended a process left behind by run "+runID+": "+e.Name)
	}
	return nil
}

// releaseLane gives the lane back; it may be called when it is not held.
func (w *run) releaseLane() {
	if w.held == nil {
		return
	}
	if err := w.held.Release(); err != nil {
		w.out.timed("cannot release lane %s cleanly: %v", w.job.Lane, err)
	}
	w.held = nil
}

// outcomeError is the outcome as the error that the run ends with.
func outcomeError(o backend.Outcome) error {
	err := o.Err
	if err == nil {
		err = errors.New(o.Code.String())
	}
	if exitcodes.From(err) == o.Code && (o.ResetAt.IsZero() || exitcodes.ResetOf(err).Equal(o.ResetAt)) {
		return err
	}
	return &exitcodes.Error{Code: o.Code, Err: err, ResetAt: o.ResetAt, Hint: exitcodes.HintOf(err)}
}
