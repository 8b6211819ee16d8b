package generation

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"agentd/exitcodes"
	"agentd/provider"
	"agentd/recovery"
)

// halfCall is a reply that would do harm if half of it ran.
const halfCall = `[[reply]]
text = "I act."
tool_calls = [{ name = "act", arguments = { x = "a long enough argument to be cut in its middle" } }]
`

// transient are replies after which asking again is right.
var transient = map[string]string{
	"clean end in arguments": halfCall + "cut_in = 'tool_arguments'\ncut = 'end'\n",
	"close in arguments":     halfCall + "cut_in = 'tool_arguments'\ncut = 'close'\n",
	"reset in text":          halfCall + "cut_in = 'text'\ncut = 'reset'\n",
	"no terminal":            halfCall + "omit = ['terminal', 'done']\n",
	"reset after terminal":   halfCall + "cut_in = 'after_terminal'\ncut = 'reset'\n",
	"empty stream":           "[[reply]]\ncut_in = 'start'\ncut = 'end'\n",
	"no header":              "[[reply]]\ncut_in = 'headers'\ncut = 'close'\n",
	"reset before header":    "[[reply]]\ncut_in = 'headers'\ncut = 'reset'\n",
	"rate limit":             "[[reply]]\nerror = 'rate_limit'\n",
	"overloaded":             "[[reply]]\nerror = 'overloaded'\n",
	"overloaded in stream":   "[[reply]]\ntext = 'So far'\nerror = 'overloaded'\nin_stream = true\n",
	"overloaded under 200":   "[[reply]]\nerror = 'overloaded'\nstatus = 200\n",
	"server error":           "[[reply]]\nerror = 'server'\n",
	"gateway page":           "[[reply]]\nstatus = 502\nbody = '<html>bad gateway</html>'\nheaders = { Content-Type = 'text/html' }\n",
	"request timeout":        "[[reply]]\nerror = 'timeout'\n",
}

func TestTransientFaultsLeaveNoTrace(t *testing.T) {
	t.Parallel()
	for name, fault := range transient {
		for _, w := range wires {
			t.Run(name+"/"+string(w), func(t *testing.T) {
				t.Parallel()
				r := newRig(t, w, fault+good)
				res, err := r.turn("go")
				if err != nil {
					t.Fatal(err)
				}
				if got := r.texts(); !slices.Equal(got, goodTexts) {
					t.Errorf("session %q, want %q", got, goodTexts)
				}
				if n := len(r.server.Requests()); n != 3 || res.Stats.Requests != 3 || res.Stats.Replays != 1 || len(res.Stats.Why) != 1 {
					t.Errorf("%d requests, stats %+v", n, res.Stats)
				}
				if got := r.bodies(); len(got) != 1 {
					t.Errorf("the tool ran with %q", got)
				}
				r.accepted()
			})
		}
	}
}

func TestPermanentErrorsAreNotRepeated(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reply string
		code  exitcodes.Code
	}{
		"auth":          {"error = 'auth'\nmessage = 'Rate limit exceeded for this key: 429'", exitcodes.NoPermission},
		"permission":    {"error = 'permission'", exitcodes.NoPermission},
		"quota":         {"error = 'quota'", exitcodes.Quota},
		"not found":     {"error = 'not_found'", exitcodes.Config},
		"invalid":       {"error = 'invalid'", exitcodes.Failure},
		"unprocessable": {"error = 'unprocessable'", exitcodes.Failure},
		"HTML":          {"status = 200\nbody = '<html>hi</html>'\nheaders = { Content-Type = 'text/html' }", exitcodes.Protocol},
		"redirect":      {"status = 307\nheaders = { Location = '/v1/messages' }", exitcodes.Protocol},
		"far reset":     {"error = 'usage_limit'\nreset_in = '5h'", exitcodes.RateLimited},
	}
	for name, tt := range tests {
		for _, w := range wires {
			t.Run(name+"/"+string(w), func(t *testing.T) {
				t.Parallel()
				r := newRig(t, w, "[[reply]]\n"+tt.reply+"\nrepeat = true\n")
				res, err := r.turn("go")
				if got := exitcodes.From(err); got != tt.code {
					t.Errorf("code %v (%v), want %v", got, err, tt.code)
				}
				if n := len(r.server.Requests()); n != 1 || res.Stats.Requests != 1 || res.Stats.Replays != 0 {
					t.Errorf("%d requests, stats %+v", n, res.Stats)
				}
				if tt.code == exitcodes.RateLimited && exitcodes.ResetOf(err).IsZero() {
					t.Error("the reset time is lost")
				}
				if got := r.texts(); !slices.Equal(got, []string{"user: go"}) {
					t.Errorf("session %q", got)
				}
			})
		}
	}
}

// Results that are committed stay, whatever comes after; the next attempt asks
// only for what is missing.
func TestCommittedResultsSurviveExhaustion(t *testing.T) {
	t.Parallel()
	for _, w := range wires {
		r := newRig(t, w, `
[[reply]]
text = "I act."
tool_calls = [{ name = "act", arguments = { x = "once" } }]
[[reply]]
text = "never finished, time after time"
cut_in = "text"
cut = "close"
times = 4
[[reply]]
text = "All done."
`)
		r.engine.Recovery.Requests = 4
		res, err := r.turn("go")
		if got := exitcodes.From(err); got != exitcodes.Unavailable {
			t.Fatalf("%s: code %v (%v)", w, got, err)
		}
		if res.Stats.Requests != 5 || res.Stats.Replays != 3 {
			t.Errorf("%s: stats %+v", w, res.Stats)
		}
		if got := r.texts(); !slices.Equal(got, goodTexts[:3]) {
			t.Errorf("%s: session %q", w, got)
		}
		r.open()
		if _, err := r.turn(""); err != nil {
			t.Fatal(err)
		}
		if got := r.texts(); !slices.Equal(got, goodTexts) || len(r.bodies()) != 1 {
			t.Errorf("%s: session %q, %d runs", w, got, len(r.bodies()))
		}
		r.accepted()
	}
}

func TestCancellationInAWaitCommitsNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, provider.Chat, "[[reply]]\nerror = 'overloaded'\nrepeat = true\n")
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := exitcodes.Errorf(exitcodes.Terminated, "stopped")
	r.engine.Recovery.Wait = nil // the real one
	r.engine.Recovery.Rand = func() float64 { cancel(stop); return 0.999 }
	_, err := r.engine.Turn(ctx, r.session, "go")
	if !errors.Is(err, stop) {
		t.Errorf("error %v, want the cause", err)
	}
	if n := len(r.server.Requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
	if got := r.texts(); !slices.Equal(got, []string{"user: go"}) {
		t.Errorf("session %q", got)
	}
}

func TestCancellationInAStreamCommitsNothing(t *testing.T) {
	t.Parallel()
	for _, w := range wires {
		r := newRig(t, w, "[[reply]]\ntext = 'a text that stops to flow in the middle'\ncut_in = 'text'\ncut = 'stall'\n"+good)
		ctx, cancel := context.WithCancel(t.Context())
		r.engine.Preview = func(ev provider.Event) {
			if ev.Kind == provider.TextDelta {
				cancel()
			}
		}
		_, err := r.engine.Turn(ctx, r.session, "go")
		if got := exitcodes.From(err); got != exitcodes.Cancelled {
			t.Errorf("%s: code %v (%v)", w, got, err)
		}
		if got := r.texts(); len(got) != 1 || len(r.server.Requests()) != 1 {
			t.Errorf("%s: session %q, %d requests", w, got, len(r.server.Requests()))
		}
	}
}

// Once something outside has acted on a preview, the generation is not repeated.
func TestChunkHookSwitchesReplayOff(t *testing.T) {
	t.Parallel()
	r := newRig(t, provider.Chat, "[[reply]]\ntext = 'spoken aloud by somebody else'\ncut_in = 'text'\ncut = 'close'\n"+good)
	var heard string
	r.engine.ChunkHook = func(ev provider.Event) error { heard += ev.Text; return nil }
	_, err := r.turn("go")
	if got := exitcodes.From(err); got != exitcodes.Unavailable {
		t.Errorf("code %v (%v)", got, err)
	}
	if !strings.Contains(err.Error(), "chunk hook") || heard == "" || len(r.server.Requests()) != 1 {
		t.Errorf("error %v, heard %q, %d requests", err, heard, len(r.server.Requests()))
	}
	if got := r.texts(); len(got) != 1 {
		t.Errorf("session %q", got)
	}
}

// A fault before the first chunk is repeated even with a hook.
func TestChunkHookAllowsReplayBeforeItRan(t *testing.T) {
	t.Parallel()
	r := newRig(t, provider.Chat, "[[reply]]\nerror = 'overloaded'\n"+good)
	r.engine.ChunkHook = func(provider.Event) error { return nil }
	if _, err := r.turn("go"); err != nil {
		t.Fatal(err)
	}
	if got := r.texts(); !slices.Equal(got, goodTexts) {
		t.Errorf("session %q", got)
	}
}

func TestChunkHookErrorEndsTheTurn(t *testing.T) {
	t.Parallel()
	for _, w := range wires {
		r := newRig(t, w, good)
		r.engine.ChunkHook = func(provider.Event) error { return errors.New("no sound") }
		_, err := r.turn("go")
		if got := exitcodes.From(err); got != exitcodes.Tool || !strings.Contains(err.Error(), "no sound") {
			t.Errorf("%s: code %v (%v)", w, got, err)
		}
		if got := r.texts(); len(got) != 1 || len(r.bodies()) != 0 {
			t.Errorf("%s: session %q", w, got)
		}
	}
}

func TestReplayIsToldWithItsReason(t *testing.T) {
	t.Parallel()
	r := newRig(t, provider.Anthropic, transient["close in arguments"]+"[[reply]]\nerror = 'rate_limit'\nheaders = { Retry-After = '7' }\n"+good)
	if _, err := r.turn("go"); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range r.notices {
		if n.Kind == NoticeReplay || n.Kind == NoticeWait {
			got = append(got, n.Text)
		}
	}
	all := strings.Join(got, "\n")
	for _, want := range []string{"stream cut after ", "; threw away the partial reply, asking again (request 2 of 11)", "rate limited; waiting 7 s", "asking again (request 3 of 11)"} {
		if !strings.Contains(all, want) {
			t.Errorf("the notices lack %q:\n%s", want, all)
		}
	}
}

// A fault that is hidden in an exhausted budget is not decided on twice.
func TestFaultOfExhaustedIsDecided(t *testing.T) {
	t.Parallel()
	f := &recovery.Fault{Kind: recovery.Overflow}
	if faultOf(&recovery.Exhausted{Fault: f}) != nil {
		t.Error("an exhausted budget was taken for a fresh fault")
	}
	if faultOf(f) != f {
		t.Error("a fault was not found")
	}
}

// An overflow that shows after a chunk hook ran cannot be mended either.
func TestChunkHookSwitchesOverflowRecoveryOff(t *testing.T) {
	t.Parallel()
	r := newRig(t, provider.Anthropic, "[[reply]]\ntext = 'I was about to'\nfinish = 'overflown'\n"+good)
	r.fill(10, 20_000)
	r.engine.ChunkHook = func(provider.Event) error { return nil }
	_, err := r.turn("go")
	if exitcodes.From(err) != exitcodes.Overflow || len(r.server.Requests()) != 1 {
		t.Errorf("error %v, %d requests", err, len(r.server.Requests()))
	}
}
