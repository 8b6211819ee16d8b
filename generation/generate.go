package generation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"agentd/exitcodes"
	"agentd/provider"
	"agentd/provider/message"
	"agentd/recovery"
)

// Generated is one complete reply and what it took.
type Generated struct {
	Reply *provider.Reply
	Stats recovery.Stats
	// Shorter is the view of the conversation that the reply answers, if the
	// whole did not fit; nil otherwise. Note says what was left out.
	Shorter []message.Message
	Note    string
}

// Generate asks for one reply to the messages. It asks again where package
// recovery admits it and with smaller views where the context does not fit, all
// under one Budget: that of ctx, or a new one. Nothing is committed here. The
// error carries its exit code; Generated.Stats is filled in also then.
func (e *Engine) Generate(ctx context.Context, messages []message.Message) (Generated, error) {
	a := &asking{engine: e, whole: messages}
	reply, stats, err := a.run(ctx)
	out := Generated{Reply: reply, Stats: stats}
	if a.view != nil {
		out.Shorter, out.Note = a.view.messages, a.view.note
	}
	return out, err
}

// asking is one generation: a conversation, the view of it that is sent, and
// the attempts at a reply.
type asking struct {
	engine *Engine
	budget *recovery.Budget
	whole  []message.Message
	view   *view // nil: the whole
	last   *attempt
	why    string // why the request is to be repeated
	told   bool   // people have been told why
}

// run returns the reply. However the end of ctx shows further down, its cause
// is what is returned then.
func (a *asking) run(ctx context.Context) (*provider.Reply, recovery.Stats, error) {
	ctx, a.budget = recovery.Ensure(ctx, a.recoveryOptions())
	before := a.budget.Stats()
	for {
		reply, err := a.once(ctx)
		if cause := context.Cause(ctx); cause != nil {
			reply, err = nil, cause
		}
		if err != nil && a.last.shown {
			a.engine.preview(provider.Event{Kind: provider.Reset, Text: err.Error()})
		}
		if reply != nil || err != nil {
			return reply, statsSince(before, a.budget.Stats()), err
		}
	}
}

// once makes one attempt. It returns neither a reply nor an error when the
// generation is to be asked again.
func (a *asking) once(ctx context.Context) (*provider.Reply, error) {
	messages := a.whole
	if a.view != nil {
		messages = a.view.messages
	}
	t := &attempt{engine: a.engine, budget: a.budget}
	a.last = t
	reply, err := t.send(ctx, messages)
	fault := faultOf(err)
	switch {
	case err == nil && t.full(reply, messages):
		fault = &recovery.Fault{Kind: recovery.Overflow, Type: reply.RawFinish, Message: "the context window is full"}
	case err == nil:
		return reply, nil
	case fault == nil:
		return nil, err
	}
	if fault.Kind == recovery.Overflow {
		err = a.shorten(t, fault)
	} else {
		err = a.replay(ctx, t, fault)
	}
	if err == nil {
		t.shown = false
		a.engine.preview(provider.Event{Kind: provider.Reset, Text: fault.Error()})
	}
	return nil, err
}

// replay gets the same request admitted once more.
func (a *asking) replay(ctx context.Context, t *attempt, f *recovery.Fault) error {
	a.why, a.told = t.reason(f)+t.threwAway(), false
	if err := a.budget.Replay(ctx, f); err != nil {
		return err
	}
	text := a.again()
	if !a.told {
		text = a.why + ", " + text
	}
	a.engine.notify(Notice{Kind: NoticeReplay, Text: text, Fault: f})
	return nil
}

// shorten takes the next smaller view of the conversation.
func (a *asking) shorten(t *attempt, f *recovery.Fault) error {
	if t.hooked {
		return &recovery.Exhausted{Code: exitcodes.Overflow, Fault: f, Reason: hookActed}
	}
	next := smallerView(a.whole, a.view)
	if next == nil {
		return exitcodes.Errorf(exitcodes.Overflow, "%w; the conversation cannot be made smaller", f).
			WithHint("start a new session, or shorten the prompt and AGENTS.md")
	}
	a.view = next
	a.engine.notify(Notice{Kind: NoticeOverflow, Text: "the context does not fit; " + next.note + ", " + a.again(), Fault: f})
	return nil
}

// again says which request comes next.
func (a *asking) again() string {
	return fmt.Sprintf("asking again (request %d of %d)", a.budget.Stats().Requests+1, a.budget.Limit())
}

// attempt is one send with everything that belongs to it alone.
type attempt struct {
	engine *Engine
	budget *recovery.Budget
	bytes  int  // of previews seen
	shown  bool // any preview was seen
	hooked bool // a chunk hook has run
}

// hookActed is why replay is off once a chunk hook has run.
const hookActed = "a chunk hook has acted on the preview"

// send makes one generation request.
func (t *attempt) send(ctx context.Context, messages []message.Message) (*provider.Reply, error) {
	e := t.engine
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var hookErr error
	preview := func(ev provider.Event) {
		if hookErr != nil {
			return // what is still on its way when the hook has said stop
		}
		t.shown = true
		t.bytes += len(ev.Text)
		e.preview(ev)
		if e.ChunkHook == nil {
			return
		}
		t.hooked = true
		t.budget.DisableReplay(hookActed)
		if err := e.ChunkHook(ev); err != nil {
			hookErr = exitcodes.Errorf(exitcodes.Tool, "the chunk hook failed: %w", err)
			cancel(hookErr)
		}
	}
	reply, err := e.Client.Send(ctx, &provider.Request{
		Model: e.Model, System: e.System, Messages: messages, Tools: e.Tools.Definitions(),
		MaxOutputTokens: e.MaxOutputTokens, Effort: e.Effort,
	}, preview)
	if hookErr != nil {
		return nil, hookErr
	}
	return reply, err
}

// suspiciousWeight is the size in bytes from which a conversation that gets no
// reply at all is suspected of not fitting.
const suspiciousWeight = 400_000

// full reports whether a reply says, if only by its silence, that the context
// window is full.
func (t *attempt) full(r *provider.Reply, messages []message.Message) bool {
	if r.Finish == provider.Overflown {
		return true
	}
	if t.shown || !empty(r.Message) {
		return false
	}
	return r.Finish == provider.Length ||
		(r.Finish == provider.Stop && r.Usage.OutputTokens == 0 && weight(messages) > suspiciousWeight)
}

// reason says in a few words what ended the attempt.
func (t *attempt) reason(f *recovery.Fault) string {
	switch {
	case f.Kind == recovery.Truncated && t.bytes > 0:
		return "stream cut after " + size(t.bytes)
	case f.Kind == recovery.Truncated:
		return "stream cut before the first word"
	case f.Kind == recovery.RateLimited:
		return "rate limited"
	case f.Kind == recovery.Transport:
		return "no answer: " + oneLine(f.Message)
	case f.Status >= 400:
		return fmt.Sprintf("provider error (HTTP %d)", f.Status)
	}
	return "provider error: " + oneLine(f.Error())
}

// threwAway says what became of what was shown.
func (t *attempt) threwAway() string {
	if !t.shown {
		return ""
	}
	return "; threw away the partial reply"
}

// faultOf returns the fault that asks for a decision, or nil. What recovery has
// decided already is no fault any more.
func faultOf(err error) *recovery.Fault {
	if _, decided := errors.AsType[*recovery.Exhausted](err); decided {
		return nil
	}
	f, _ := errors.AsType[*recovery.Fault](err)
	return f
}

// empty reports whether a message says nothing to anyone: no text, no refusal,
// no call.
func empty(m message.Message) bool {
	for _, p := range m.Parts {
		if p.Kind == message.ToolCall || ((p.Kind == message.Text || p.Kind == message.Refusal) && p.Text != "") {
			return false
		}
	}
	return true
}

// recoveryOptions adds a notice to the waits between requests.
func (a *asking) recoveryOptions() recovery.Options {
	o := a.engine.Recovery
	base := o.Wait
	if base == nil {
		base = sleep
	}
	o.Wait = func(ctx context.Context, d time.Duration) error {
		if d >= noticeableWait {
			a.told = true
			a.engine.notify(Notice{Kind: NoticeWait, Text: a.why + "; waiting " + Seconds(d), Wait: d})
		}
		return base(ctx, d)
	}
	return o
}

// sleep waits for d and leaves at once when ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return context.Cause(ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// statsSince returns what was added to a shared budget's figures.
func statsSince(before, after recovery.Stats) recovery.Stats {
	after.Requests -= before.Requests
	after.Replays -= before.Replays
	after.Waited -= before.Waited
	after.Why = after.Why[len(before.Why):]
	return after
}

// size writes a number of bytes for people.
func size(n int) string {
	if n < 1000 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%.1f kB", float64(n)/1000)
}

// Seconds writes a duration for people: "0.8 s", "12 s", "7 min 20 s".
func Seconds(d time.Duration) string {
	d = d.Round(100 * time.Millisecond)
	switch {
	case d < 10*time.Second && d%time.Second != 0:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	d = d.Round(time.Second)
	return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
}
