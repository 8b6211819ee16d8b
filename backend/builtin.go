package backend

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"agentd/exitcodes"
	"agentd/generation"
	"agentd/provider"
	"agentd/provider/message"
	"agentd/recovery"
	"agentd/redact"
	"agentd/session"
	"agentd/tools"
	"agentd/workspace"
)

// BuiltinOptions are what the built-in backend needs beyond an Attempt.
type BuiltinOptions struct {
	Providers map[string]workspace.Provider // from agentd.toml
	Getenv    func(string) string           // the run's environment, where keys and base URLs are; nil: nothing is set
	Version   string                        // of agentd, told to the model
	Now       func() time.Time              // nil: time.Now
}

// NewBuiltin returns the backend that works with agentd's own generation
// engine. It keeps, for the attempts of one run, how far a rehearsal's script
// has come.
func NewBuiltin(o BuiltinOptions) Backend {
	if o.Getenv == nil {
		o.Getenv = func(string) string { return "" }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &builtin{BuiltinOptions: o}
}

type builtin struct {
	BuiltinOptions

	mu   sync.Mutex
	used int // replies of the rehearsal's script
}

// Run makes one turn: the prompt, then replies and tools until the agent stops.
func (b *builtin) Run(ctx context.Context, a Attempt) (out Outcome) {
	defer func() {
		if p := recover(); p != nil {
			err := exitcodes.Errorf(exitcodes.Software, "the built-in backend panicked: %v", p)
			_, _ = a.Output.Write(debug.Stack()) // for the report; the error says what happened
			out = Outcome{Code: exitcodes.Software, Err: err}
		}
	}()
	res, err := b.turn(ctx, a)
	return Outcome{
		Code:     exitcodes.From(err),
		Err:      err,
		ResetAt:  exitcodes.ResetOf(err),
		Requests: res.Stats.Requests,
		Replays:  res.Stats.Replays,
		Waited:   res.Stats.Waited,
		Why:      res.Stats.Why,
		Steps:    res.Steps,
		Text:     res.Text,
		Usage:    res.Usage,
	}
}

func (b *builtin) turn(ctx context.Context, a Attempt) (generation.Result, error) {
	budget, err := b.budget(a.Job)
	if err != nil {
		return generation.Result{}, err
	}
	system, err := b.systemPrompt(a)
	if err != nil {
		return generation.Result{}, err
	}
	to, err := b.reach(a)
	if err != nil {
		return generation.Result{}, err
	}
	defer to.close()
	client := provider.NewClient(to.endpoint, provider.Timeouts{
		Request:   a.Job.Recovery.RequestTimeout,
		BytesIdle: a.Job.Recovery.BytesIdle,
		EventIdle: a.Job.Recovery.EventIdle,
	})
	defer client.Close()
	p := &progress{attempt: a, now: b.Now}
	e := &generation.Engine{
		Client:   client,
		Model:    to.model,
		System:   system,
		Tools:    tools.Builtin(b.toolOptions(a, to.endpoint)),
		Recovery: budget,
		Limits:   generation.Limits{Steps: a.Job.MaxSteps, Tokens: a.Job.MaxTokens, CostUSD: a.Job.MaxCostUSD},
		Notice:   p.notice,
		Price:    priceOf(to.endpoint.Wire, a.Job.Model),
		Now:      b.Now,
	}
	if _, known := e.Price(message.Usage{}); !known && a.Job.MaxCostUSD > 0 && to.endpoint.Name != workspace.Rehearsal {
		p.say("limit", "max_cost_usd cannot be kept unless the provider tells the cost: the price of "+a.Job.Model+" is not known", nil)
	}
	now := a.Session.Transcript()
	e.Spent = now.Spent[a.RunID]
	if prompted(a, now) {
		return e.Turn(ctx, a.Session, "")
	}
	return e.Turn(ctx, a.Session, a.Prompt)
}

// prompted reports whether the session holds the prompt of this run already,
// because an earlier attempt of the run has said it.
func prompted(a Attempt, now *session.Transcript) bool {
	if !a.Resumed || len(now.Messages) == 0 {
		return false
	}
	if now.Spent[a.RunID].Steps > 0 {
		return true
	}
	last := now.Messages[len(now.Messages)-1]
	return last.Role == message.User && last.Text() == a.Prompt
}

// budget is that of the job; AGENTD_LLM_MAX_REQUESTS goes over it.
func (b *builtin) budget(job *workspace.Job) (recovery.Options, error) {
	o, err := recovery.OptionsFromEnv(b.Getenv)
	if err != nil {
		return o, err
	}
	if o.Requests == 0 {
		o.Requests = job.Recovery.Requests
	}
	o.Deadline, o.Now = job.Recovery.Deadline, b.Now
	return o, nil
}

// toolOptions let no secret of the job into what the model is told.
func (b *builtin) toolOptions(a Attempt, e provider.Endpoint) tools.Options {
	_, secrets, _ := a.Job.Variables() // the runner has reported what is wrong with them
	return tools.Options{
		Dir: a.Dir, RunDir: a.RunDir, Env: a.Env, RunID: a.RunID, Grace: a.Job.Grace,
		Redact: redact.New(append(secrets, e.APIKey)),
	}
}

// progress turns the engine's notices into lines and events.
type progress struct {
	attempt Attempt
	now     func() time.Time
}

func (p *progress) say(kind, text string, data map[string]any) {
	p.attempt.Events(Event{At: p.now(), Kind: kind, Text: text, Data: data})
}

func (p *progress) notice(n generation.Notice) {
	switch n.Kind {
	case generation.NoticeReply:
		p.text(n.Text)
	case generation.NoticeToolStart:
		// The end tells it all; a log does not need both.
		p.attempt.Events(Event{At: p.now(), Kind: string(n.Kind), Data: map[string]any{"tool": n.Tool}})
	case generation.NoticeToolEnd:
		p.say("tool", fmt.Sprintf("%s  %-42s %7s  %s", n.Tool, summary(n.Tool, n.Args), generation.Seconds(n.Took), n.Text),
			map[string]any{"tool": n.Tool, "seconds": n.Took.Seconds(), "ok": n.OK})
	case generation.NoticeResumed:
		p.say("session", n.Text+": "+n.Tool+"  "+summary(n.Tool, n.Args), map[string]any{"tool": n.Tool})
	case generation.NoticeReplay, generation.NoticeOverflow:
		data := map[string]any{"kind": n.Fault.Kind}
		if n.Fault.Status != 0 {
			data["status"] = n.Fault.Status
		}
		p.say(string(n.Kind), n.Text, data)
	case generation.NoticeWait:
		p.say("wait", n.Text, map[string]any{"seconds": n.Wait.Seconds()})
	default:
		p.say(string(n.Kind), n.Text, nil)
	}
}

// text writes what the agent said as plain lines.
func (p *progress) text(s string) {
	s = strings.TrimRight(s, "\n") + "\n"
	_, _ = io.WriteString(p.attempt.Output, s) // the log's own trouble is its owner's
}
