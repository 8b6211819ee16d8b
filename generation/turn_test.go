package generation

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"agentd/exitcodes"
	"agentd/provider"
	"agentd/provider/message"
	"agentd/session"
	"agentd/tools"
)

func TestTurnWithoutFaults(t *testing.T) {
	t.Parallel()
	for _, w := range wires {
		t.Run(string(w), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, w, good)
			res, err := r.turn("go")
			if err != nil {
				t.Fatal(err)
			}
			if got := r.texts(); !slices.Equal(got, goodTexts) {
				t.Errorf("session %q, want %q", got, goodTexts)
			}
			if res.Text != "All done." || res.Steps != 2 || res.Stats.Requests != 2 || res.Stats.Replays != 0 {
				t.Errorf("result %+v", res)
			}
			if res.Usage.InputTokens == 0 || res.Usage.OutputTokens == 0 {
				t.Errorf("usage %+v", res.Usage)
			}
			r.accepted()
		})
	}
}

func TestParallelCallsRunInOrder(t *testing.T) {
	t.Parallel()
	for _, w := range wires {
		r := newRig(t, w, `
[[reply]]
tool_calls = [{ name = "act", arguments = { x = "1" } }, { name = "look", arguments = { x = "2" } }, { name = "act", arguments = { x = "3" } }]
[[reply]]
text = "All done."
`)
		if _, err := r.turn("go"); err != nil {
			t.Fatal(err)
		}
		if got := r.bodies(); !slices.Equal(got, []string{`{"x":"1"}`, `{"x":"2"}`, `{"x":"3"}`}) {
			t.Errorf("%s: ran %q", w, got)
		}
		r.accepted()
	}
}

func TestLimitsEndBetweenSteps(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		limits Limits
		price  float64
		want   string
		steps  int
	}{
		"steps":  {Limits{Steps: 3}, 0, "3 steps", 3},
		"tokens": {Limits{Tokens: 250}, 0, "250 tokens", 3},
		"cost":   {Limits{CostUSD: 0.35}, 0.1, "$0.35", 4},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, provider.Chat, "[[reply]]\ntool_calls = [{ name = 'act' }]\nusage = { input = 90, output = 10 }\nrepeat = true\n")
			r.engine.Limits = tt.limits
			r.engine.Price = func(message.Usage) (float64, bool) { return tt.price, tt.price > 0 }
			res, err := r.turn("go")
			if got := exitcodes.From(err); got != exitcodes.Limit || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("code %v (%v)", got, err)
			}
			if res.Steps != tt.steps || len(r.bodies()) != tt.steps || len(r.session.Transcript().Pending) != 0 {
				t.Errorf("%d steps, %d runs, pending %v", res.Steps, len(r.bodies()), r.session.Transcript().Pending)
			}
		})
	}
}

func TestUnknownToolIsToldToTheModel(t *testing.T) {
	t.Parallel()
	for _, w := range wires {
		r := newRig(t, w, "[[reply]]\ntool_calls = [{ name = 'teleport', arguments = { to = 'moon' } }]\n"+good)
		if _, err := r.turn("go"); err != nil {
			t.Fatal(err)
		}
		if got := r.texts()[2]; got != `tool: There is no tool "teleport". There are: act look big.` {
			t.Errorf("%s: result %q", w, got)
		}
		r.accepted()
	}
}

func TestRefusal(t *testing.T) {
	t.Parallel()
	for _, w := range wires {
		r := newRig(t, w, "[[reply]]\nrefusal = 'I will not.'\nfinish = 'filtered'\n")
		res, err := r.turn("go")
		if got := exitcodes.From(err); got != exitcodes.Refused || !strings.Contains(err.Error(), "I will not.") {
			t.Errorf("%s: code %v (%v)", w, got, err)
		}
		if res.Text != "I will not." || len(r.texts()) != 1 || res.Stats.Requests != 1 {
			t.Errorf("%s: result %+v, session %q", w, res, r.texts())
		}
	}
}

func TestEmptyReplies(t *testing.T) {
	t.Parallel()
	for _, w := range wires {
		r := newRig(t, w, "[[reply]]\n"+good)
		if _, err := r.turn("go"); err != nil {
			t.Fatal(w, err)
		}
		if got := r.texts(); !slices.Equal(got, append([]string{"user: go", "user: " + sayEmpty}, goodTexts[1:]...)) {
			t.Errorf("%s: session %q", w, got)
		}
		r.accepted()

		r = newRig(t, w, "[[reply]]\nrepeat = true\n")
		res, err := r.turn("go")
		if exitcodes.From(err) != exitcodes.Failure || res.Stats.Requests != 2 {
			t.Errorf("%s: %v, stats %+v", w, err, res.Stats)
		}
	}
}

func TestRepliesAtTheOutputLimit(t *testing.T) {
	t.Parallel()
	for _, w := range wires {
		r := newRig(t, w, "[[reply]]\ntext = 'a long'\nfinish = 'length'\ntimes = 2\n[[reply]]\ntext = 'story'\n")
		if _, err := r.turn("go"); err != nil {
			t.Fatal(w, err)
		}
		want := []string{"user: go", "assistant: a long", "user: " + sayCut, "assistant: a long", "user: " + sayCut, "assistant: story"}
		if got := r.texts(); !slices.Equal(got, want) {
			t.Errorf("%s: session %q", w, got)
		}
		r.accepted()

		r = newRig(t, w, "[[reply]]\ntext = 'a long'\nfinish = 'length'\nrepeat = true\n")
		res, err := r.turn("go")
		if exitcodes.From(err) != exitcodes.Limit || res.Steps != maxCut+1 {
			t.Errorf("%s: %v, %d steps", w, err, res.Steps)
		}
	}
}

func TestPausedTurnIsCalledAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, provider.Anthropic, "[[reply]]\ntext = 'still thinking'\nfinish = 'paused'\n[[reply]]\ntext = 'All done.'\n")
	if _, err := r.turn("go"); err != nil {
		t.Fatal(err)
	}
	if got := r.texts(); !slices.Equal(got, []string{"user: go", "assistant: still thinking", "assistant: All done."}) {
		t.Errorf("session %q", got)
	}
	r.accepted()

	r = newRig(t, provider.Anthropic, "[[reply]]\ntext = 'still thinking'\nfinish = 'paused'\nrepeat = true\n")
	if _, err := r.turn("go"); exitcodes.From(err) != exitcodes.Limit {
		t.Errorf("pauses without end: %v", err)
	}
}

func TestNothingToContinue(t *testing.T) {
	t.Parallel()
	r := newRig(t, provider.Chat, good)
	if _, err := r.turn(""); exitcodes.From(err) != exitcodes.NoInput {
		t.Errorf("error %v", err)
	}
	if _, err := r.turn("go"); err != nil {
		t.Fatal(err)
	}
	// A turn that was over is asked for a last word, not taken for one.
	if _, err := r.turn(""); err != nil {
		t.Fatal(err)
	}
	want := append(slices.Clone(goodTexts), "user: "+sayGoOn, "assistant: All done.")
	if got := r.texts(); !slices.Equal(got, want) {
		t.Errorf("session %q", got)
	}
	r.accepted()
}

// open calls of an attempt that died, by how far they had come.
func TestResumeSettlesOpenCalls(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		tool    string
		started bool
		runs    int
		result  string
	}{
		{"not started, unknown effect", "act", false, 1, "acted 1"},
		{"not started, read", "look", false, 1, "looked"},
		{"started, read", "look", true, 1, "looked"},
		{"started, unknown effect", "act", true, 0, "The outcome of this call is unknown"},
	}
	for _, tt := range tests {
		for _, w := range wires {
			t.Run(tt.name+"/"+string(w), func(t *testing.T) {
				t.Parallel()
				r := newRig(t, w, "[[reply]]\ntext = 'All done.'\n")
				call := message.Part{Kind: message.ToolCall, ID: "call_1", Name: tt.tool, Arguments: `{"x":"1"}`}
				err := errors.Join(
					r.session.Message(message.NewText(message.User, "go"), message.Usage{}, ""),
					r.session.Message(message.Message{Role: message.Assistant, Parts: []message.Part{call}}, message.Usage{}, "tool_calls"))
				if tt.started {
					err = errors.Join(err, r.session.Intent(call, r.engine.Tools.Lookup(tt.tool).Effect()))
				}
				if err != nil {
					t.Fatal(err)
				}
				r.open()
				if _, err := r.turn(""); err != nil {
					t.Fatal(err)
				}
				if got := r.bodies(); len(got) != tt.runs {
					t.Errorf("ran %q, want %d runs", got, tt.runs)
				}
				if got := r.texts(); len(got) != 4 || !strings.HasPrefix(got[2], "tool: "+tt.result) {
					t.Errorf("session %q", got)
				}
				r.accepted()
			})
		}
	}
}

// Under a new prompt, old calls are not run.
func TestNewPromptRunsNoOldCalls(t *testing.T) {
	t.Parallel()
	for _, w := range wires {
		r := newRig(t, w, "[[reply]]\ntext = 'All done.'\n")
		calls := []message.Part{
			{Kind: message.ToolCall, ID: "call_1", Name: "look", Arguments: "{}"},
			{Kind: message.ToolCall, ID: "call_2", Name: "act", Arguments: "{}"},
		}
		if err := errors.Join(
			r.session.Message(message.NewText(message.User, "yesterday"), message.Usage{}, ""),
			r.session.Message(message.Message{Role: message.Assistant, Parts: calls}, message.Usage{}, "tool_calls"),
			r.session.Intent(calls[0], session.Read)); err != nil {
			t.Fatal(err)
		}
		if _, err := r.turn("today"); err != nil {
			t.Fatal(err)
		}
		got := r.texts()
		if len(r.bodies()) != 0 || !strings.Contains(got[2], "unknown") || !strings.Contains(got[2], "was not run") || got[3] != "user: today" {
			t.Errorf("%s: ran %q, session %q", w, r.bodies(), got)
		}
		r.accepted()
	}
}

// A stop while a tool runs is recorded as such; the calls after it are not
// started and are run when the session goes on.
func TestStopInATool(t *testing.T) {
	t.Parallel()
	r := newRig(t, provider.Chat, `
[[reply]]
tool_calls = [{ name = "slow" }, { name = "act", arguments = { x = "after" } }]
[[reply]]
text = "All done."
`)
	stop := exitcodes.Errorf(exitcodes.Terminated, "stopped by SIGTERM")
	ctx, cancel := context.WithCancelCause(t.Context())
	r.engine.Tools = append(r.engine.Tools, fake{"slow", session.Unknown, func(ctx context.Context, _ tools.Call) (tools.Result, error) {
		cancel(stop)
		<-ctx.Done()
		return tools.Result{Text: "half of the output", IsError: true, Interrupted: true}, nil
	}})
	_, err := r.engine.Turn(ctx, r.session, "go")
	if !errors.Is(err, stop) || exitcodes.From(err) != exitcodes.Terminated {
		t.Errorf("error %v", err)
	}
	pending := r.session.Transcript().Pending
	if len(pending) != 1 || pending[0].Call.Name != "act" || pending[0].Started {
		t.Errorf("pending %+v", pending)
	}
	r.open()
	if _, err := r.turn(""); err != nil {
		t.Fatal(err)
	}
	if got := r.texts(); got[2] != "tool: half of the output acted 1" {
		t.Errorf("session %q", got)
	}
	r.accepted()
}

func TestToolErrorEndsTheTurnAfterItsResult(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		err  error
		code exitcodes.Code
	}{
		"untyped": {errors.New("the disk went away"), exitcodes.Tool},
		"typed":   {exitcodes.Errorf(exitcodes.Software, "panicked"), exitcodes.Software},
	}
	for name, tt := range tests {
		r := newRig(t, provider.Chat, "[[reply]]\ntool_calls = [{ name = 'bad' }]\n[[reply]]\ntext = 'All done.'\n")
		r.engine.Tools = append(r.engine.Tools, fake{"bad", session.Unknown, func(context.Context, tools.Call) (tools.Result, error) {
			return tools.Result{}, tt.err
		}})
		if _, err := r.turn("go"); exitcodes.From(err) != tt.code {
			t.Errorf("%s: %v", name, err)
		}
		tr := r.session.Transcript()
		if len(tr.Pending) != 0 || len(tr.Messages) != 3 || !tr.Messages[2].Parts[0].IsError {
			t.Errorf("%s: pending %v, session %q", name, tr.Pending, r.texts())
		}
	}
}

// refusing is a journal that fails at the nth record of a kind.
type refusing struct {
	Journal
	kind string
	left int
}

func (j *refusing) fails(kind string) error {
	if kind == j.kind {
		if j.left--; j.left < 0 {
			return exitcodes.Errorf(exitcodes.IO, "no space left")
		}
	}
	return nil
}

func (j *refusing) Message(m message.Message, u message.Usage, f string) error {
	if err := j.fails("message"); err != nil {
		return err
	}
	return j.Journal.Message(m, u, f)
}

func (j *refusing) Intent(c message.Part, e session.Effect) error {
	if err := j.fails("intent"); err != nil {
		return err
	}
	return j.Journal.Intent(c, e)
}

func (j *refusing) Result(p message.Part, o session.Outcome) error {
	if err := j.fails("result"); err != nil {
		return err
	}
	return j.Journal.Result(p, o)
}

// What cannot be recorded does not happen.
func TestJournalErrorsEndTheTurn(t *testing.T) {
	t.Parallel()
	tests := []struct {
		kind           string
		left           int
		runs, requests int
	}{
		{"message", 0, 0, 0}, // the prompt
		{"message", 1, 0, 1}, // the reply with the call
		{"intent", 0, 0, 1},
		{"result", 0, 1, 1},
		{"message", 2, 1, 2}, // the last word
	}
	for _, tt := range tests {
		r := newRig(t, provider.Chat, good)
		_, err := r.engine.Turn(t.Context(), &refusing{Journal: r.session, kind: tt.kind, left: tt.left}, "go")
		if exitcodes.From(err) != exitcodes.IO || len(r.bodies()) != tt.runs || len(r.server.Requests()) != tt.requests {
			t.Errorf("%s %d: %v, %d runs, %d requests", tt.kind, tt.left, err, len(r.bodies()), len(r.server.Requests()))
		}
	}
}

// A turn that is stopped before it begins starts nothing.
func TestStoppedTurnStartsNoOpenCall(t *testing.T) {
	t.Parallel()
	r := newRig(t, provider.Chat, good)
	call := message.Part{Kind: message.ToolCall, ID: "call_1", Name: "act", Arguments: `{"x":"1"}`}
	if err := errors.Join(
		r.session.Message(message.NewText(message.User, "go"), message.Usage{}, ""),
		r.session.Message(message.Message{Role: message.Assistant, Parts: []message.Part{call}}, message.Usage{}, "tool_calls")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.engine.Turn(ctx, r.session, ""); exitcodes.From(err) != exitcodes.Cancelled {
		t.Errorf("error %v", err)
	}
	if p := r.session.Transcript().Pending; len(r.bodies()) != 0 || len(p) != 1 || p[0].Started {
		t.Errorf("ran %q, pending %+v", r.bodies(), p)
	}
}

// Only replies in a row count as a model that is stuck.
func TestMendedRepliesAreForgotten(t *testing.T) {
	t.Parallel()
	act := "[[reply]]\ntext = 'I act.'\ntool_calls = [{ name = 'act' }]\n"
	for name, odd := range map[string]string{"empty": "[[reply]]\n", "cut": "[[reply]]\ntext = 'a long'\nfinish = 'length'\n"} {
		r := newRig(t, provider.Chat, strings.Repeat(odd+act, 6)+good)
		if _, err := r.turn("go"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		r.accepted()
	}
}
