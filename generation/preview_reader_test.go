package generation

import (
	"slices"
	"strings"
	"testing"

	"agentd/provider"
)

// reader is what a well-behaved reader of previews does: it keeps what is
// committed and forgets what is void.
type reader struct {
	committed []string
	draft     string
	tools     map[string]string // arguments so far, by id
	resets    int
}

func (r *reader) event(ev provider.Event) {
	switch ev.Kind {
	case provider.TextDelta:
		r.draft += ev.Text
	case provider.ToolDelta:
		if r.tools == nil {
			r.tools = map[string]string{}
		}
		r.tools[ev.ID] += ev.Text
	case provider.Reset:
		r.draft, r.tools = "", nil
		r.resets++
	case Commit:
		r.committed = append(r.committed, r.draft)
		r.draft, r.tools = "", nil
	}
}

// Whatever faults come between, a reader ends with exactly what was committed:
// nothing is shown twice, nothing of a failed attempt stays.
func TestReaderEndsWithWhatIsCommitted(t *testing.T) {
	t.Parallel()
	for name, fault := range transient {
		for _, w := range wires {
			t.Run(name+"/"+string(w), func(t *testing.T) {
				t.Parallel()
				r := newRig(t, w, fault+strings.Replace(good, "[[reply]]\ntext = \"All", fault+"[[reply]]\ntext = \"All", 1))
				var rd reader
				r.engine.Preview = rd.event
				if _, err := r.turn("go"); err != nil {
					t.Fatal(err)
				}
				if want := []string{"I act.", "All done."}; !slices.Equal(rd.committed, want) {
					t.Errorf("the reader has %q, want %q", rd.committed, want)
				}
				if rd.draft != "" || rd.tools != nil || rd.resets != 2 {
					t.Errorf("the reader is left with %+v", rd)
				}
			})
		}
	}
}

// The reset comes before the first event of the next attempt.
func TestResetComesBeforeTheReplay(t *testing.T) {
	t.Parallel()
	r := newRig(t, provider.Chat, "[[reply]]\ntext = 'first attempt is cut'\ncut_in = 'text'\ncut = 'close'\n[[reply]]\ntext = 'second'\n")
	var kinds []provider.EventKind
	r.engine.Preview = func(ev provider.Event) {
		if len(kinds) == 0 || kinds[len(kinds)-1] != ev.Kind {
			kinds = append(kinds, ev.Kind)
		}
	}
	if _, err := r.turn("go"); err != nil {
		t.Fatal(err)
	}
	want := []provider.EventKind{provider.TextDelta, provider.Reset, provider.TextDelta, Commit}
	if !slices.Equal(kinds, want) {
		t.Errorf("events %q, want %q", kinds, want)
	}
}

// Overflow recovery resets its readers too.
func TestOverflowResetsTheReader(t *testing.T) {
	t.Parallel()
	r := newRig(t, provider.Anthropic, "[[reply]]\ntext = 'I was about to'\nfinish = 'overflown'\n[[reply]]\ntext = 'All done.'\n")
	r.fill(10, 20_000)
	var rd reader
	r.engine.Preview = rd.event
	if _, err := r.turn("go"); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(rd.committed, []string{"All done."}) || rd.resets != 1 {
		t.Errorf("the reader has %+v", rd)
	}
}

// A reply that is complete but not kept is void too.
func TestRefusedReplyIsVoid(t *testing.T) {
	t.Parallel()
	r := newRig(t, provider.Anthropic, "[[reply]]\ntext = 'I started, but'\nfinish = 'filtered'\n")
	var rd reader
	r.engine.Preview = rd.event
	if _, err := r.turn("go"); err == nil {
		t.Fatal("no error")
	}
	if len(rd.committed) != 0 || rd.draft != "" {
		t.Errorf("the reader has %+v", rd)
	}
}

func TestPlainReaderNamesWhatItThrewAway(t *testing.T) {
	t.Parallel()
	r := newRig(t, provider.Chat, "[[reply]]\ntext = 'first attempt is cut'\npiece = 5\ncut_in = 'text'\ncut = 'close'\n[[reply]]\ntext = 'second'\n")
	var out strings.Builder
	r.engine.Preview = Plain(&out)
	if _, err := r.turn("go"); err != nil {
		t.Fatal(err)
	}
	got := out.String()
	if !strings.HasPrefix(got, "first atte\n[threw away the 10 bytes above: truncated") || !strings.HasSuffix(got, "]\nsecond\n") {
		t.Errorf("output %q", got)
	}
}
