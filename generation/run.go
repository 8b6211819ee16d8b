package generation

import (
	"context"
	"time"

	"agentd/exitcodes"
	"agentd/provider"
	"agentd/provider/message"
	"agentd/recovery"
	"agentd/session"
)

// Options ask for one turn outside of any workspace.
type Options struct {
	Endpoint        provider.Endpoint
	Timeouts        provider.Timeouts
	Model           string
	System          string
	Prompt          string
	Offered         []message.Definition // tools described to the model and not run
	MaxOutputTokens int
	Effort          string
	Once            bool // one reply, whatever it is
	Recovery        recovery.Options
	Preview         func(provider.Event) // see Engine
	Notice          func(Notice)         // see Engine
}

// Answer is what `agentd generate --json` prints.
type Answer struct {
	Text      string         `json:"text"`
	ToolCalls []AnswerCall   `json:"tool_calls"`
	Finish    string         `json:"finish"` // the provider's own word
	Usage     message.Usage  `json:"usage"`
	Requests  int            `json:"requests"`
	Replays   int            `json:"replays"`
	Code      exitcodes.Code `json:"code"`
	Name      string         `json:"name"`
	Error     string         `json:"error"`
	ResetAt   *time.Time     `json:"reset_at"`
}

// AnswerCall is a tool call; Arguments is the text as it was received.
type AnswerCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Run makes one noninteractive turn that nothing outside of this call keeps. A
// reply that calls tools ends it: they are described, not run. The Answer is
// complete also when there is an error.
func Run(ctx context.Context, o Options) (Answer, error) {
	if o.Prompt == "" {
		err := exitcodes.Errorf(exitcodes.Usage, "there is no prompt")
		return answer(Result{}, err), err
	}
	client := provider.NewClient(o.Endpoint, o.Timeouts)
	defer client.Close()
	e := &Engine{
		Client: described{client, o.Offered}, Model: o.Model, System: o.System,
		MaxOutputTokens: o.MaxOutputTokens, Effort: o.Effort,
		Recovery: o.Recovery, Preview: o.Preview, Notice: o.Notice,
	}
	// Nobody asked for long work here, and nobody set limits.
	e.Limits.Steps = 25
	var res Result
	var err error
	if o.Once {
		res, err = e.single(ctx, o.Prompt)
	} else {
		res, err = e.Turn(ctx, &memory{}, o.Prompt)
	}
	return answer(res, err), err
}

// single asks for one reply.
func (e *Engine) single(ctx context.Context, prompt string) (Result, error) {
	g, err := e.Generate(ctx, []message.Message{message.NewText(message.User, prompt)})
	res := Result{Stats: g.Stats}
	if err != nil {
		return res, err
	}
	t := &turn{engine: e}
	t.count(g.Reply)
	res.Steps, res.Usage = t.result.Steps, t.result.Usage
	res.Finish, res.RawFinish = g.Reply.Finish, g.Reply.RawFinish
	res.Text, res.Calls = g.Reply.Message.Text(), g.Reply.Message.ToolCalls()
	if g.Reply.Finish == provider.Filtered {
		err = t.refused(g.Reply)
		res.Text, res.Calls = t.result.Text, nil
	}
	e.preview(provider.Event{Kind: Commit})
	return res, err
}

func answer(r Result, err error) Answer {
	a := Answer{
		Text: r.Text, ToolCalls: []AnswerCall{}, Finish: r.RawFinish, Usage: r.Usage,
		Requests: r.Stats.Requests, Replays: r.Stats.Replays, Code: exitcodes.From(err),
	}
	a.Name = a.Code.String()
	for _, c := range r.Calls {
		a.ToolCalls = append(a.ToolCalls, AnswerCall{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
	}
	if err != nil {
		a.Error = err.Error()
	}
	if at := exitcodes.ResetOf(err); !at.IsZero() {
		a.ResetAt = &at
	}
	return a
}

// described offers tools that the engine does not have.
type described struct {
	Client
	tools []message.Definition
}

func (d described) Send(ctx context.Context, r *provider.Request, preview func(provider.Event)) (*provider.Reply, error) {
	r.Tools = d.tools
	return d.Client.Send(ctx, r, preview)
}

// memory is a journal that is forgotten with the turn. Without tools no call is
// ever intended.
type memory struct{ all []message.Message }

func (m *memory) Transcript() *session.Transcript {
	t := &session.Transcript{Messages: append([]message.Message(nil), m.all...)}
	for i := range m.all {
		t.Seqs = append(t.Seqs, uint64(i+1))
	}
	return t
}

func (m *memory) Message(msg message.Message, _ message.Usage, _ string) error {
	m.all = append(m.all, msg)
	return nil
}

func (m *memory) Intent(c message.Part, _ session.Effect) error {
	return exitcodes.Errorf(exitcodes.Software, "tool call %q outside of a session", c.ID)
}

func (m *memory) Result(p message.Part, _ session.Outcome) error {
	return exitcodes.Errorf(exitcodes.Software, "result of tool call %q outside of a session", p.ID)
}

func (m *memory) Compaction(keepFrom uint64, summary message.Message) error {
	m.all = append([]message.Message{summary}, m.all[keepFrom-1:]...)
	return nil
}

func (m *memory) Note(string, string) error { return nil }
