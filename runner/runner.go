// Package runner is the life of a run: it opens the record, takes the lane,
// picks the session, loops over attempts and closes the record.
package runner

import (
	"context"
	"errors"
	"io"
	"time"

	"agentd/backend"
	"agentd/exitcodes"
	"agentd/history"
	"agentd/lanes"
	"agentd/process"
	"agentd/session"
	"agentd/workspace"
)

// Runner holds what all runs of one process share.
type Runner struct {
	Folders  workspace.Folders
	Environ  []string // the environment agentd was started with
	Backends Backends
	Waker    Waker // nil: pending runs wait for the job's next firing or a person
	Now      func() time.Time
}

// Waker has something start a pending run's job when the run may go on; a
// systemd does that with a transient timer.
type Waker interface {
	Wake(ctx context.Context, run *history.Run) error
	Forget(ctx context.Context, run *history.Run) error
}

// Backends makes the backend for a job of a workspace; getenv reads the job's
// env files and the caller's environment, where the provider's key may be.
type Backends func(job *workspace.Job, ws *workspace.Workspace, getenv func(string) string) (backend.Backend, error)

// Request asks for one run.
type Request struct {
	Workspace *workspace.Workspace
	Job       *workspace.Job
	Trigger   string    // timer, daemon, manual, resume, script
	RunID     string    // made elsewhere (by the run script); empty: make one
	Prompt    string    // instead of the job's; empty: the job's
	Session   string    // continue this session; empty: by the job's rule
	Resume    bool      // continue the job's latest session
	Args      []string  // extra arguments for the backend's program
	Output    io.Writer // where the plain lines go
	KeepLog   bool      // also write them to the run's output.log
}

// run is one firing under way.
type run struct {
	*Runner
	req     Request
	job     *workspace.Job
	store   *history.Store
	record  *history.Run
	hold    *history.Hold
	out     *output
	env     environment
	held    *lanes.Held
	backend backend.Backend
	prompt  string
}

// Run does the whole of it: a firing of the job, or where a run of it is to go
// on, that one. It returns the closed record (nil if none could be opened) and
// the error whose code the process should end with.
func (r *Runner) Run(ctx context.Context, req Request) (*history.Run, error) {
	store, err := r.open()
	if err != nil {
		return nil, err
	}
	defer store.Close()
	w := &run{Runner: r, req: req, job: req.Job, store: store}
	if due, err := w.takeFiring(); err != nil || !due {
		return nil, firstError(err, w.discard())
	}
	pending, err := w.pending()
	if err != nil {
		return nil, err
	}
	if pending != nil && !w.tooEarly(pending) {
		if record, err := w.goOn(ctx, pending.RunID); record != nil || err != nil {
			return record, err
		}
	}
	if w.onlyPending() { // another firing has gone on with the run already
		return nil, w.discard()
	}
	if err := w.begin(); err != nil {
		return nil, err
	}
	return w.finish(ctx, func() error {
		if pending != nil && w.tooEarly(pending) {
			return limited(pending)
		}
		return w.work(ctx)
	})
}

// Resume goes on with a pending run now, whatever its reset time. It returns
// nil and no error if another agentd has taken it meanwhile.
func (r *Runner) Resume(ctx context.Context, req Request, runID string) (*history.Run, error) {
	store, err := r.open()
	if err != nil {
		return nil, err
	}
	defer store.Close()
	w := &run{Runner: r, req: req, job: req.Job, store: store}
	return w.goOn(ctx, runID)
}

func (r *Runner) open() (*history.Store, error) {
	store, err := history.Open(r.Folders.State)
	if err != nil {
		return nil, err
	}
	if err := r.CloseCrashed(store); err != nil {
		return nil, firstError(err, store.Close())
	}
	return store, nil
}

// pending returns the run that a scheduled firing goes on with. A person who
// asks for a run gets a new one.
func (w *run) pending() (*history.Run, error) {
	if w.req.Trigger == "manual" || w.req.Prompt != "" || w.req.Session != "" || w.req.Resume {
		return nil, nil
	}
	return pendingOf(w.store, w.job.Agent, w.job.Name)
}

// onlyPending reports whether the firing is for a pending run and nothing else.
func (w *run) onlyPending() bool {
	return w.req.Trigger == "resume" && w.req.Prompt == "" && w.req.Session == "" && !w.req.Resume
}

// tooEarly reports whether a limit still holds; only that is worth waiting for.
func (w *run) tooEarly(pending *history.Run) bool {
	p := pending.PendingResume
	return !w.onlyPending() && p.Reason == exitcodes.RateLimited.String() && w.Now().Before(p.NotBefore)
}

// goOn continues a pending run under its own record.
func (w *run) goOn(ctx context.Context, id string) (*history.Run, error) {
	record, hold, err := w.claim(w.store, id)
	if record == nil || err != nil {
		return nil, err
	}
	w.record, w.hold = record, hold
	if err := w.discard(); err != nil {
		w.record.Notes = append(w.record.Notes, err.Error())
	}
	w.forget(ctx)
	w.req.KeepLog = true
	return w.finish(ctx, func() error { return w.work(ctx) })
}

// discard removes the folder that a script made for a new run, which is not
// going to be one.
func (w *run) discard() error {
	if w.req.RunID == "" {
		return nil
	}
	return w.store.Discard(w.req.RunID)
}

// finish does the work under an open record and closes that, whatever happens.
func (w *run) finish(ctx context.Context, work func() error) (*history.Run, error) {
	defer w.hold.Release()
	err := w.prepare()
	if err == nil {
		err = work()
	}
	return w.record, w.close(ctx, err)
}

// begin makes the run's record and folder, before anything else is tried, so
// that whatever goes wrong later has a place to be told.
func (w *run) begin() error {
	id := w.req.RunID
	if id == "" {
		id = history.NewRunID()
	}
	w.record = &history.Run{
		RunID:     id,
		Agent:     w.job.Agent,
		Job:       w.job.Name,
		Lane:      w.job.Lane,
		Trigger:   w.req.Trigger,
		Workspace: w.req.Workspace.Dir,
		StartedAt: w.Now(),
		Process:   process.Self(),
	}
	// Held first: an open record that nobody holds is taken for a crashed run's.
	hold, ok, err := w.store.Reserve(id)
	if err == nil && !ok {
		err = exitcodes.Errorf(exitcodes.Usage, "run %s is in use already", id)
	}
	if err != nil {
		return err
	}
	if err := w.store.Begin(w.record); err != nil {
		return firstError(err, hold.Release())
	}
	w.hold = hold
	return nil
}

// prepare opens the output, with the secrets that it must mask.
func (w *run) prepare() error {
	var err, envErr error
	w.env, envErr = readEnvironment(w.Environ, w.req.Workspace, w.job)
	w.out, err = openOutput(w.req.Output, w.store.RunDir(w.record.RunID), w.req.KeepLog, w.env.secrets, w.Now)
	if err == nil {
		err = envErr
	}
	return err
}

// work is the run between the opening and the closing of its record.
func (w *run) work(ctx context.Context) error {
	if err := w.readPrompt(); err != nil {
		return err
	}
	var err error
	if w.backend, err = w.Backends(w.job, w.req.Workspace, w.env.get); err != nil {
		return err
	}
	if w.record.Session == "" {
		if w.record.Session, err = w.sessionName(); err != nil {
			return err
		}
	}
	if err := w.takeLane(ctx, w.job.LaneWait); err != nil {
		return err
	}
	defer w.releaseLane()
	if len(w.record.Attempts) > 0 { // the agentd of the last one may have died
		if err := w.endLeftovers(ctx, w.record.RunID); err != nil {
			return err
		}
	}
	w.out.line("%s  run %s  lane %s  session %s", w.job.Address(), w.record.RunID, w.job.Lane, w.record.Session)
	return w.attempts(ctx)
}

func (w *run) readPrompt() error {
	w.prompt = w.req.Prompt
	if w.prompt != "" {
		return nil
	}
	var err error
	w.prompt, err = w.job.ReadPrompt()
	return err
}

// sessionName picks the conversation: the one asked for, the job's latest, or
// what the job's own rule says.
func (w *run) sessionName() (string, error) {
	if w.req.Session != "" {
		info, err := session.Store{Dir: w.Folders.Sessions()}.Find(w.job.Agent, w.req.Session)
		if err == nil && info.Agent != w.job.Agent {
			err = exitcodes.Errorf(exitcodes.NoInput, "%s cannot go on with session %s/%s: it is another agent's", w.job.Address(), info.Agent, info.Name)
		}
		return info.Name, err
	}
	if w.req.Resume {
		if last, err := w.store.Last(w.job.Agent, w.job.Name); err == nil && last != nil && last.Session != "" {
			return last.Session, nil
		}
	}
	return w.job.SessionName(w.record.RunID, w.record.StartedAt), nil
}

// close ends the record with the code of err and saves it. A record that
// cannot be saved is an error of its own, unless the run failed already.
func (w *run) close(ctx context.Context, err error) error {
	err = stopCause(ctx, err)
	code := exitcodes.From(err)
	ended := w.Now()
	w.record.EndedAt = &ended
	w.record.SetCode(code)
	w.record.EndAttempts(code, ended)
	if err != nil {
		w.record.Error = w.redact(err.Error())
		w.record.Hint = exitcodes.HintOf(err)
		if at := exitcodes.ResetOf(err); !at.IsZero() {
			w.record.ResetAt = &at
		}
	}
	if w.out != nil {
		w.out.line("%s", w.summary(code))
		if closeErr := w.out.Close(); closeErr != nil && err == nil {
			err = exitcodes.Errorf(exitcodes.IO, "cannot keep the run's log: %w", closeErr)
			w.record.SetCode(exitcodes.IO)
			w.record.Error = err.Error()
		}
	}
	if saveErr := w.store.Save(w.record); saveErr != nil && err == nil {
		return saveErr
	}
	w.endFiring(ended)
	w.wake(ctx)
	return err
}

// stopCause puts the reason of an orderly stop (which signal, or the timeout)
// in the place of a bare context error.
func stopCause(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return context.Cause(ctx)
	}
	return err
}
