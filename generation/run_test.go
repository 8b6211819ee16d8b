package generation

import (
	"encoding/json"
	"strings"
	"testing"

	"agentd/exitcodes"
	"agentd/provider"
	"agentd/provider/message"
	"agentd/provider/rehearsal"
)

func (r *rig) options(w provider.Wire) Options {
	return Options{
		Endpoint: provider.Endpoint{Name: "rehearsal", Wire: w, BaseURL: r.base(w)},
		Model:    "m", System: "be brief", Prompt: "go", Recovery: r.engine.Recovery,
		Offered: []message.Definition{{Name: "act", Schema: json.RawMessage(`{"type":"object"}`)}},
	}
}

// finishes holds each wire's own words for "stop" and "tool_calls".
var finishes = map[provider.Wire][2]string{
	provider.Chat:      {"stop", "tool_calls"},
	provider.Responses: {"completed", "completed"},
	provider.Anthropic: {"end_turn", "tool_use"},
}

func TestRunOnce(t *testing.T) {
	t.Parallel()
	for _, w := range wires {
		r := newRig(t, w, transient["close in arguments"]+strings.Replace(good, `x = "once" } }]`, `x = "once" }, id = "call_1" }]`+"\nusage = { input = 90, output = 10 }", 1))
		o := r.options(w)
		o.Once = true
		a, err := Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		want := `{"text":"I act.","tool_calls":[{"id":"call_1","name":"act","arguments":"{\"x\":\"once\"}"}],"finish":"` + finishes[w][1] + `",` +
			`"usage":{"input_tokens":90,"output_tokens":10,"cost_usd":0},"requests":2,"replays":1,"code":0,"name":"ok","error":"","reset_at":null}`
		if string(got) != want {
			t.Errorf("%s: %s\nwant %s", w, got, want)
		}
		q := r.server.Requests()[0]
		if q.System != "be brief" || len(q.Tools) != 1 || q.Tools[0] != "act" {
			t.Errorf("%s: request %+v", w, q)
		}
		r.accepted()
	}
}

func TestRunATurn(t *testing.T) {
	t.Parallel()
	for _, w := range wires {
		r := newRig(t, w, "[[reply]]\ntext = 'a long'\nfinish = 'length'\n[[reply]]\ntext = 'story'\n")
		o := r.options(w)
		var out strings.Builder
		o.Preview = Plain(&out)
		a, err := Run(t.Context(), o)
		if err != nil || a.Text != "story" || a.Requests != 2 || a.Finish != finishes[w][0] {
			t.Errorf("%s: %+v, %v", w, a, err)
		}
		if out.String() != "a long\nstory\n" {
			t.Errorf("%s: output %q", w, out.String())
		}
		r.accepted()
	}
}

func TestRunEndsAtACall(t *testing.T) {
	t.Parallel()
	r := newRig(t, provider.Chat, good)
	a, err := Run(t.Context(), r.options(provider.Chat))
	if err != nil || len(a.ToolCalls) != 1 || a.Requests != 1 {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestRunErrors(t *testing.T) {
	t.Parallel()
	tests := map[string]exitcodes.Code{
		"auth": exitcodes.NoPermission, "quota": exitcodes.Quota, "usage-limit": exitcodes.RateLimited, "refused": exitcodes.Refused,
		"always-cut": exitcodes.Unavailable, "always-overflow": exitcodes.Overflow, "html-under-200": exitcodes.Protocol,
	}
	for name, code := range tests {
		for _, once := range []bool{true, false} {
			sc, err := rehearsal.Load(name)
			if err != nil {
				t.Fatal(err)
			}
			r := rigFor(t, provider.Anthropic, sc)
			o := r.options(provider.Anthropic)
			o.Once = once
			a, err := Run(t.Context(), o)
			if exitcodes.From(err) != code || a.Code != code || a.Name != code.String() || a.Error == "" || a.Requests == 0 {
				t.Errorf("%s: %+v, %v", name, a, err)
			}
			if (a.ResetAt != nil) != (code == exitcodes.RateLimited) {
				t.Errorf("%s: reset at %v", name, a.ResetAt)
			}
		}
	}
	a, err := Run(t.Context(), Options{})
	if exitcodes.From(err) != exitcodes.Usage || a.Code != exitcodes.Usage {
		t.Errorf("no prompt: %+v, %v", a, err)
	}
}
