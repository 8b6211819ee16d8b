package generation

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"agentd/provider"
	"agentd/provider/message"
	"agentd/recovery"
)

// Without its terminal, no stream is a reply: neither complete JSON arguments
// nor the natural end of the body proves anything.
func TestStreamsWithoutTerminalAreTyped(t *testing.T) {
	t.Parallel()
	cuts := map[string]string{
		"omitted":        "omit = ['terminal', 'done']",
		"ends before":    "cut_in = 'before_terminal'\ncut = 'end'",
		"closes before":  "cut_in = 'before_terminal'\ncut = 'close'",
		"reset before":   "cut_in = 'before_terminal'\ncut = 'reset'",
		"ends in args":   "cut_in = 'tool_arguments'\ncut = 'end'",
		"ends in text":   "cut_in = 'text'\ncut = 'end'",
		"resets after":   "cut_in = 'after_terminal'\ncut = 'reset'",
		"closes after":   "cut_in = 'after_terminal'\ncut = 'close'",
		"nothing at all": "cut_in = 'start'\ncut = 'end'",
	}
	for name, cut := range cuts {
		for _, w := range wires {
			t.Run(name+"/"+string(w), func(t *testing.T) {
				t.Parallel()
				r := newRig(t, w, halfCall+cut+"\nrepeat = true\n")
				r.engine.Recovery.Requests = 1
				_, err := r.turn("go")
				ex, ok := errors.AsType[*recovery.Exhausted](err)
				if !ok || ex.Fault == nil || ex.Fault.Kind != recovery.Truncated {
					t.Errorf("error %v, want a typed truncation", err)
				}
				if len(r.bodies()) != 0 || len(r.texts()) != 1 {
					t.Errorf("ran %q, session %q", r.bodies(), r.texts())
				}
			})
		}
	}
}

// Wherever a stream is cut, half a call never runs and the end is the same.
func TestCutAtEveryTenthByte(t *testing.T) {
	t.Parallel()
	for _, w := range wires {
		t.Run(string(w), func(t *testing.T) {
			t.Parallel()
			for at := 0; at < 2500; at += 97 {
				script := fmt.Sprintf("%scut_at = %d\ncut = 'close'\n", strings.ReplaceAll(halfCall, "a long enough argument to be cut in its middle", "once"), at)
				r := newRig(t, w, script+good)
				if _, err := r.turn("go"); err != nil {
					t.Fatalf("cut at %d: %v", at, err)
				}
				if got := r.texts(); !slices.Equal(got, goodTexts) {
					t.Fatalf("cut at %d: session %q", at, got)
				}
				if len(r.bodies()) != 1 {
					t.Fatalf("cut at %d: ran %q", at, r.bodies())
				}
			}
		})
	}
}

// An incomplete reply that the provider itself ends is complete as a reply; its
// incomplete call is not.
func TestOutputLimitInACall(t *testing.T) {
	t.Parallel()
	for _, w := range wires {
		t.Run(string(w), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, w, `
[[reply]]
text = "I will act."
tool_calls = [{ name = "act", arguments = '{"x": "half of it' }]
finish = "length"
`+good)
			if _, err := r.turn("go"); err != nil {
				t.Fatal(err)
			}
			want := []string{"user: go", "assistant: I will act.", "user: " + sayCut}
			if got := r.texts(); !slices.Equal(got, append(want, goodTexts[1:]...)) {
				t.Errorf("session %q", got)
			}
			if got := r.bodies(); !slices.Equal(got, []string{`{"x":"once"}`}) {
				t.Errorf("ran %q", got)
			}
			r.accepted()
		})
	}
}

// A finish of "stop" with calls that are complete runs them.
func TestCallsUnderStop(t *testing.T) {
	t.Parallel()
	for _, w := range wires {
		r := newRig(t, w, strings.Replace(good, `{ x = "once" } }]`, `{ x = "once" } }]`+"\nfinish = 'stop'", 1))
		if _, err := r.turn("go"); err != nil {
			t.Fatal(err)
		}
		if got := r.texts(); !slices.Equal(got, goodTexts) {
			t.Errorf("%s: session %q", w, got)
		}
	}
}

// Thinking goes back as the wire demands while a tool round lasts.
func TestReasoningIsSentBack(t *testing.T) {
	t.Parallel()
	for _, w := range []provider.Wire{provider.Anthropic, provider.Responses} {
		r := newRig(t, w, strings.Replace(good, `text = "I act."`, `reasoning = "First I act, then I stop."`, 1))
		if _, err := r.turn("go"); err != nil {
			t.Fatal(err)
		}
		second := r.server.Requests()[1]
		if p := second.Messages[1].Parts[0]; p.Kind != message.Reasoning || p.Text != "First I act, then I stop." {
			t.Errorf("%s: the second request has %+v", w, second.Messages[1])
		}
		r.accepted()
	}
}
