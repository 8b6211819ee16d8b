package backend

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"agentd/exitcodes"
	"agentd/lanes"
	"agentd/process"
	"agentd/redact"
	"agentd/workspace"
)

// ExternalOptions are what an agent CLI needs beyond an Attempt.
type ExternalOptions struct {
	Backend workspace.Backend
	// Locks is the folder of the locks on the programs' own folders; empty: runs
	// do not take turns.
	Locks string
	Now   func() time.Time // nil: time.Now
}

// NewExternal returns the backend that lets an agent CLI do the work, as its
// preset says. The error of a preset that cannot be used has the code
// exitcodes.Config.
func NewExternal(o ExternalOptions) (Backend, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if _, err := newClassifier(o.Backend, o.Now, time.Local); err != nil {
		return nil, err
	}
	return &external{ExternalOptions: o, logLimit: logLimit}, nil
}

type external struct {
	ExternalOptions
	logLimit int64
}

// Run calls the program once, and once more if it has lost the session that it
// was to continue.
func (x *external) Run(ctx context.Context, a Attempt) Outcome {
	if err := checkPrompt(a); err != nil {
		return Outcome{Code: exitcodes.From(err), Err: err}
	}
	held, err := x.takeState(ctx, a)
	if err != nil {
		return Outcome{Code: exitcodes.From(err), Err: err}
	}
	if held != nil {
		defer x.releaseState(held, a)
	}
	if err := sayPrompt(a); err != nil {
		return Outcome{Code: exitcodes.From(err), Err: err}
	}
	talk := converse(x.Backend, a, "")
	o, lost := x.invoke(ctx, a, talk)
	if lost && talk.resumed {
		note := fmt.Sprintf("%s has lost its session %s: a new one starts with a summary", x.Backend.Name, talk.id)
		a.Events(Event{At: x.Now(), Kind: "session", Text: note})
		if err := a.Session.Note("session", note); err != nil {
			return Outcome{Code: exitcodes.From(err), Err: err}
		}
		o, _ = x.invoke(ctx, a, converse(x.Backend, a, talk.id))
	}
	if err := sayReply(a, o); err != nil && o.Err == nil {
		o.Code, o.Err = exitcodes.From(err), err
	}
	return o
}

// invoke runs the program. lost reports that it does not have the session.
func (x *external) invoke(ctx context.Context, a Attempt, talk conversation) (o Outcome, lost bool) {
	fail := func(err error) (Outcome, bool) {
		return Outcome{Code: exitcodes.From(err), Err: err}, false
	}
	c, err := callOf(x.Backend, a, talk.prompt, talk.id, talk.resumed)
	if err != nil {
		return fail(err)
	}
	judge, err := newClassifier(x.Backend, x.Now, zoneOf(c.spec.Env))
	if err != nil {
		return fail(err)
	}
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := newReading(a.Output, a.Events, x.Now)
	r.watch = x.watchOf(a, c, cancel)
	r.watch.onRepeat = x.repeats(a, judge)
	pipes, err := x.attach(&c.spec, r, a)
	if err != nil {
		return fail(err)
	}
	x.tellCall(a, c)
	r.watch.start()
	res, runErr := process.Run(inner, c.spec)
	r.watch.stop()
	if err := pipes.close(); err != nil && res.OutputErr == nil {
		res.OutputErr = err
	}
	tellProblems(a, res)
	if runErr != nil && !errors.Is(runErr, process.ErrNotEnded) && ctx.Err() == nil {
		return fail(runErr)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	v := x.verdict(ctx, inner, judge, r, c, res)
	if runErr != nil && errors.Is(runErr, process.ErrNotEnded) { // never start another one beside it
		v = verdict{code: exitcodes.Failure, text: runErr.Error()}
	}
	lost = errors.Is(context.Cause(inner), errLost) || v.code != exitcodes.OK && c.resumed && judge.isLost(append(r.errorLines(), v.text)...)
	if lost && ctx.Err() == nil {
		return x.outcome(r, c, res, v), true
	}
	if err := x.keep(a, c, r, v); err != nil {
		return fail(err)
	}
	return x.outcome(r, c, res, v), false
}

// watchOf sets the limits of a call.
func (x *external) watchOf(a Attempt, c call, cancel context.CancelCauseFunc) *watch {
	b := x.Backend
	w := &watch{cancel: cancel, startup: b.StartupTimeout, idle: b.IdleTimeout, linger: b.Linger, maxTokens: a.Job.MaxTokens}
	if len(b.MaxSteps) == 0 {
		w.maxSteps = a.Job.MaxSteps
	}
	if len(b.MaxCost) == 0 {
		w.maxCost = a.Job.MaxCostUSD
	}
	if b.Transcript != "" {
		w.others = func() time.Time {
			return newest(strings.ReplaceAll(place(b.Transcript, c.spec.Env), "{session}", c.session))
		}
	}
	w.onSession = func(id string) {
		if c.resumed && b.Session == "output" && id != c.session {
			cancel(errLost)
			return
		}
		if b.SessionKept == "success" {
			return
		}
		if err := keepSession(a.Session, b.Name, id); err != nil {
			cancel(err)
		}
	}
	return w
}

// maxRepeats is how often a request may be repeated without a reply between,
// where the job does not say less: after that it goes on for ever.
const maxRepeats = 12

// repeats bounds what a program does again by itself, as the engine's own
// requests are bounded: by their number, and by waits that are never slept
// inside a run.
func (x *external) repeats(a Attempt, judge *classifier) func(times int, why string) error {
	most := maxRepeats
	if n := a.Job.Recovery.Requests; n > 0 {
		most = min(most, n-1)
	}
	return func(times int, why string) error {
		v := judge.repeated(why)
		switch {
		case !v.reset.IsZero() && v.reset.Sub(x.Now()) > a.Job.Resume.MaxWait:
			return &exitcodes.Error{Code: v.code, ResetAt: v.reset, Err: fmt.Errorf("it waits for a limit: %s", why)}
		case times > most:
			return &exitcodes.Error{Code: v.code, ResetAt: v.reset, Err: fmt.Errorf("it has sent its request %d times: %s", times, why)}
		}
		return nil
	}
}

// verdict says how a call went. Our own reasons to stop go before everything
// that the program says.
func (x *external) verdict(ctx, inner context.Context, judge *classifier, r *reading, c call, res process.Result) verdict {
	cause := context.Cause(inner)
	end := ending{status: res.Status, signal: res.Signal, oom: res.OOM}
	switch {
	case ctx.Err() != nil:
		// Also where the program heard of it first and went by itself.
		if v := judge.judge(r, end, x.Backend.Judge); !res.Stopped && v.code == exitcodes.OK {
			return v
		}
		err := stopped(ctx, x.name(c), res)
		return verdict{code: exitcodes.From(err), text: afterRepeats(err.Error(), r)}
	case res.Stopped && errors.Is(cause, errLingered):
		end = ending{} // it had finished; what it did when it was ended does not count
	case res.Stopped:
		return verdict{code: exitcodes.From(cause), text: afterRepeats("was stopped: "+cause.Error(), r), reset: exitcodes.ResetOf(cause)}
	case end.signal == "" && (end.status == 130 || end.status == 137 || end.status == 143):
		end.signal = map[int]string{130: "SIGINT", 137: "SIGKILL", 143: "SIGTERM"}[end.status]
	}
	return judge.judge(r, end, x.Backend.Judge)
}

// afterRepeats adds what the program was waiting for, if it was.
func afterRepeats(text string, r *reading) string {
	if r.repeats == 0 || strings.Contains(text, r.lastRepeat) {
		return text
	}
	return text + "; it was repeating a request: " + shorten(r.lastRepeat, maxLast)
}

func (x *external) name(c call) string { return filepath.Base(c.spec.Argv[0]) }

// keep records the session's id where the output did not tell it, or where it
// counts from the first success.
func (x *external) keep(a Attempt, c call, r *reading, v verdict) error {
	if x.Backend.Session == "none" || x.Backend.SessionKept == "success" && v.code != exitcodes.OK {
		return nil
	}
	id := r.session
	if id == "" && x.Backend.Session == "preset" && x.Backend.Output == "text" {
		id = c.session
	}
	return keepSession(a.Session, x.Backend.Name, id)
}

func (x *external) outcome(r *reading, c call, res process.Result, v verdict) Outcome {
	o := Outcome{Code: v.code, ResetAt: v.reset, Status: res.Status, Signal: res.Signal, Steps: r.steps, Text: r.text, Usage: r.usage}
	if v.code == exitcodes.OK {
		return o
	}
	text := firstLine(v.text)
	if !strings.HasPrefix(text, x.name(c)+" ") {
		sep := ": "
		if strings.HasPrefix(text, "was ") || strings.HasPrefix(text, "ended ") {
			sep = " "
		}
		text = x.name(c) + sep + text
	}
	e := &exitcodes.Error{Code: v.code, Err: errors.New(text), ResetAt: v.reset}
	if v.code == exitcodes.NoPermission && len(x.Backend.Credentials) > 0 {
		e.Hint = fmt.Sprintf("log in to %s as the user that runs the job, or name its key in pass_env (it looks at %s)",
			x.name(c), strings.Join(x.Backend.Credentials, ", "))
	}
	o.Err = e
	return o
}

// firstLine makes one line of what a program said, shortened.
func firstLine(s string) string {
	return shorten(strings.Join(strings.Fields(string(plainText(s))), " "), 2*maxLast)
}

// tellCall records what is called, and with which of the things that differ
// between a login and a unit.
func (x *external) tellCall(a Attempt, c call) {
	_, secrets, _ := a.Job.Variables() // the runner has reported what is wrong with them
	hide := redact.New(secrets)
	argv := make([]string, len(c.spec.Argv))
	for i, arg := range c.spec.Argv {
		argv[i] = shorten(hide.String(arg), maxLast)
	}
	a.Events(Event{At: x.Now(), Kind: "process", Data: map[string]any{
		"argv": argv, "path": lookUp(c.spec.Env, "PATH"), "home": lookUp(c.spec.Env, "HOME"),
		"session": c.session, "resumed": c.resumed, "tried": x.Backend.Tried,
	}})
}

// takeState takes the lock on the program's own folder: two runs at once damage
// what is in there.
func (x *external) takeState(ctx context.Context, a Attempt) (*lanes.Held, error) {
	folder := stateFolder(x.Backend, asLogin(append([]string(nil), a.Env...)))
	if x.Locks == "" || folder == "" {
		return nil, nil
	}
	dir := lanes.Dir(x.Locks)
	req := lanes.Request{Name: lockName(x.Backend.Name, folder), Slots: x.Backend.StateSlots,
		Owner: lanes.Owner{Process: process.Self(), RunID: a.RunID, Job: a.Job.Address(), Since: x.Now()}}
	held, err := dir.Acquire(ctx, req)
	if busy, ok := errors.AsType[*lanes.Busy](err); ok {
		a.Events(Event{At: x.Now(), Kind: "wait", Text: fmt.Sprintf("waiting for %s: another run uses it", folder), Data: map[string]any{"holders": busy.Holders}})
		req.Wait = x.Backend.StateWait
		held, err = dir.Acquire(ctx, req)
		if _, still := errors.AsType[*lanes.Busy](err); still {
			return nil, exitcodes.Errorf(exitcodes.LaneBusy, "cannot use %s: %w", folder, err)
		}
	}
	if err != nil {
		return nil, err
	}
	if former := held.Former(); former != nil && former.RunID != "" && former.RunID != a.RunID {
		if _, err := process.EndMarked(ctx, former.RunID, a.Job.Grace); err != nil {
			_ = held.Release() // the error that counts is the other one
			return nil, exitcodes.Errorf(exitcodes.LaneBusy, "cannot use %s: %w", folder, err)
		}
	}
	return held, nil
}

func lockName(backend, folder string) string {
	sum := sha256.Sum256([]byte(folder))
	return backend[:min(len(backend), 40)] + "-" + hex.EncodeToString(sum[:6])
}

func (x *external) releaseState(held *lanes.Held, a Attempt) {
	if err := held.Release(); err != nil {
		a.Events(Event{At: x.Now(), Kind: "warning", Text: fmt.Sprintf("cannot release the lock on the folder of %s cleanly: %v", x.Backend.Name, err)})
	}
}

// zoneOf is the zone in which a program with the environment prints times.
func zoneOf(env []string) *time.Location {
	if name := strings.TrimPrefix(lookUp(env, "TZ"), ":"); name != "" {
		if loc, err := time.LoadLocation(name); err == nil {
			return loc
		}
	}
	return time.Local
}
