package generation

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"agentd/provider"
	"agentd/provider/message"
	"agentd/provider/rehearsal"
	"agentd/recovery"
	"agentd/session"
	"agentd/tools"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("rapid.checks"); f != nil && f.Value.String() == f.DefValue {
		_ = f.Value.Set("25") // each case is a server, a session and real fsyncs
	}
	goleak.VerifyTestMain(m)
}

var wires = []provider.Wire{provider.Chat, provider.Responses, provider.Anthropic}

// rig is an engine against a scripted provider, with a real session.
type rig struct {
	t       *testing.T
	server  *rehearsal.Server
	client  *provider.Client
	engine  *Engine
	session *session.Session
	store   session.Store

	mu      sync.Mutex
	ran     []string // arguments of each run of a tool body
	notices []Notice
	waits   []time.Duration
}

// newRig makes one. Waits between requests take no time.
func newRig(t *testing.T, wire provider.Wire, script string) *rig {
	t.Helper()
	sc, err := rehearsal.Parse("test", []byte("what = 'test'\n"+script))
	if err != nil {
		t.Fatal(err)
	}
	return rigFor(t, wire, sc)
}

func rigFor(t *testing.T, wire provider.Wire, sc *rehearsal.Scenario) *rig {
	t.Helper()
	s, err := rehearsal.Serve(sc)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, server: s, store: session.Store{Dir: t.TempDir()}}
	r.client = provider.NewClient(provider.Endpoint{
		Name: "rehearsal", Wire: wire, BaseURL: s.BaseURL(rehearsal.Wire(wire)), APIKey: "test-key-1234",
	}, provider.Timeouts{Request: 20 * time.Second})
	t.Cleanup(func() {
		r.client.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	r.open()
	r.engine = &Engine{
		Client: r.client, Model: "test", System: "You are a test.", Tools: r.tools(),
		Recovery: recovery.Options{Rand: func() float64 { return 0.5 }, Wait: func(ctx context.Context, d time.Duration) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.waits = append(r.waits, d)
			return context.Cause(ctx)
		}},
		Notice: func(n Notice) { r.notices = append(r.notices, n) },
	}
	return r
}

// open opens the session, again if it was open.
func (r *rig) open() {
	r.t.Helper()
	if r.session != nil {
		if err := r.session.Close(); err != nil {
			r.t.Fatal(err)
		}
	}
	s, err := r.store.Open("agent", "session", session.Options{})
	if err != nil {
		r.t.Fatal(err)
	}
	r.session = s
	r.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			r.t.Error(err)
		}
	})
}

func (r *rig) turn(prompt string) (Result, error) {
	return r.engine.Turn(r.t.Context(), r.session, prompt)
}

// accepted fails the test if the server refused a request of ours.
func (r *rig) accepted() {
	r.t.Helper()
	for _, p := range r.server.Problems() {
		r.t.Error(p)
	}
}

// bodies returns the arguments with which tool bodies ran.
func (r *rig) bodies() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.ran...)
}

// fake is a tool whose body is a function.
type fake struct {
	name   string
	effect session.Effect
	run    func(ctx context.Context, c tools.Call) (tools.Result, error)
}

func (f fake) Definition() message.Definition {
	return message.Definition{Name: f.name, Description: "for tests", Schema: []byte(`{"type":"object","properties":{"x":{"type":"string"}}}`)}
}

func (f fake) Effect() session.Effect { return f.effect }

func (f fake) Run(ctx context.Context, c tools.Call) (tools.Result, error) { return f.run(ctx, c) }

// tools are "act" (unknown effect), "look" (read) and "big" (a large result).
func (r *rig) tools() tools.Set {
	body := func(text func() string) func(context.Context, tools.Call) (tools.Result, error) {
		return func(_ context.Context, c tools.Call) (tools.Result, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.ran = append(r.ran, c.Arguments)
			return tools.Result{Text: text()}, nil
		}
	}
	return tools.Set{
		fake{"act", session.Unknown, body(func() string { return fmt.Sprint("acted ", len(r.ran)) })},
		fake{"look", session.Read, body(func() string { return "looked" })},
		fake{"big", session.Read, body(func() string { return strings.Repeat("0123456789", 3000) })},
	}
}

// texts returns what was said in the session, one string a message.
func (r *rig) texts() []string {
	var out []string
	for _, m := range r.session.Transcript().Messages {
		s := string(m.Role) + ":"
		for _, p := range m.Parts {
			switch p.Kind {
			case message.Text:
				s += " " + p.Text
			case message.ToolCall:
				s += " " + p.Name + p.Arguments
			case message.ToolResult:
				s += " " + p.Text
			}
		}
		out = append(out, s)
	}
	return out
}

// good is a script of one call and a closing word.
const good = `
[[reply]]
text = "I act."
tool_calls = [{ name = "act", arguments = { x = "once" } }]
[[reply]]
text = "All done."
repeat = true
`

// goodTexts is the session after good.
var goodTexts = []string{"user: go", `assistant: I act. act{"x":"once"}`, "tool: acted 1", "assistant: All done."}

func (r *rig) base(w provider.Wire) string { return r.server.BaseURL(rehearsal.Wire(w)) }
