package generation

import (
	"slices"
	"testing"
)

func TestTurnWithoutFaults(t *testing.T) {
	t.Parallel()
	for _, w := range wires {
		t.Run(string(w), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, w, good)
			res, err := r.turn("go")
			if err != nil {
				t.Fatal(err, r.server.Problems())
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
