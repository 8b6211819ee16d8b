package generation

import (
	"slices"
	"testing"

	"agentd/exitcodes"
	"agentd/provider"
	"agentd/provider/rehearsal"
)

// subscription is a turn whose streams end with [DONE] and no finish_reason, as
// some subscription endpoints send.
const subscription = `
[[reply]]
text = "I act."
tool_calls = [{ name = "act", arguments = { x = "once" } }]
omit = ["terminal"]
[[reply]]
text = "All done."
omit = ["terminal"]
repeat = true
`

// withDone makes the rig's endpoint one for which [DONE] counts.
func (r *rig) withDone() {
	r.client.Close()
	r.client = provider.NewClient(provider.Endpoint{
		Name: "subscription", Wire: provider.Chat, BaseURL: r.server.BaseURL(rehearsal.Chat), DoneIsTerminal: true,
	}, provider.Timeouts{})
	r.engine.Client = r.client
	r.t.Cleanup(r.client.Close)
}

func TestDoneCountsForMarkedProviders(t *testing.T) {
	t.Parallel()
	r := newRig(t, provider.Chat, subscription)
	r.withDone()
	if _, err := r.turn("go"); err != nil {
		t.Fatal(err)
	}
	if got := r.texts(); !slices.Equal(got, goodTexts) || len(r.bodies()) != 1 {
		t.Errorf("session %q", got)
	}
	r.accepted()
}

func TestDoneAloneIsATruncationElsewhere(t *testing.T) {
	t.Parallel()
	for _, w := range wires { // the other wires have no [DONE]: their stream just ends
		r := newRig(t, w, subscription)
		r.engine.Recovery.Requests = 3
		_, err := r.turn("go")
		if got := exitcodes.From(err); got != exitcodes.Unavailable {
			t.Errorf("%s: code %v (%v)", w, got, err)
		}
		if len(r.bodies()) != 0 || len(r.texts()) != 1 || len(r.server.Requests()) != 3 {
			t.Errorf("%s: ran %q, session %q, %d requests", w, r.bodies(), r.texts(), len(r.server.Requests()))
		}
	}
}

// Even where [DONE] counts, a stream without it, or with cut arguments, does not.
func TestMarkedProvidersStillNeedAnEnd(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]string{
		"end without [DONE]":  halfCall + "omit = ['terminal', 'done']\n",
		"cut arguments":       halfCall + "omit = ['terminal']\ncut_in = 'tool_arguments'\ncut = 'end'\n",
		"close before":        halfCall + "cut_in = 'before_terminal'\ncut = 'close'\n",
		"half a call, [DONE]": "[[reply]]\ntool_calls = [{ name = 'act', arguments = '{\"x\": \"half of' }]\nomit = ['terminal']\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, provider.Chat, fault+good)
			r.withDone()
			if _, err := r.turn("go"); err != nil {
				t.Fatal(err)
			}
			if got := r.texts(); !slices.Equal(got, goodTexts) || len(r.bodies()) != 1 {
				t.Errorf("session %q, ran %q", got, r.bodies())
			}
		})
	}
}
