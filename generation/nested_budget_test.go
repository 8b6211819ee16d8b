package generation

import (
	"errors"
	"strings"
	"testing"
	"time"

	"agentd/exitcodes"
	"agentd/provider"
	"agentd/provider/message"
	"agentd/recovery"
)

// fill puts rounds of large results into the session, so that there is
// something to leave out.
func (r *rig) fill(rounds, resultBytes int) {
	r.t.Helper()
	for _, m := range conversation(rounds, resultBytes) {
		if m.Role != message.Tool {
			if err := r.session.Message(m, message.Usage{}, ""); err != nil {
				r.t.Fatal(err)
			}
			continue
		}
		for _, p := range m.Parts {
			if err := errors.Join(r.session.Intent(p, "read"), r.session.Result(p, "ok")); err != nil {
				r.t.Fatal(err)
			}
		}
	}
}

// Overflow recovery sends smaller and smaller views, and all of them count.
func TestOverflowViewsShareTheBudget(t *testing.T) {
	t.Parallel()
	for _, w := range wires {
		for _, limit := range []int{1, 2, 3, 5} {
			r := newRig(t, w, "[[reply]]\nerror = 'overflow'\nrepeat = true\n")
			r.fill(30, 20_000)
			r.engine.Recovery.Requests = limit
			res, err := r.turn("go")
			if n := len(r.server.Requests()); n != limit || res.Stats.Requests != limit {
				t.Errorf("%s, limit %d: %d requests at the server, stats %+v", w, limit, n, res.Stats)
			}
			if err == nil {
				t.Errorf("%s: no error", w)
			}
			r.accepted()
		}
	}
}

func TestOverflowEndsWhenNothingIsLeftToLeaveOut(t *testing.T) {
	t.Parallel()
	r := newRig(t, provider.Chat, "[[reply]]\nerror = 'overflow'\nrepeat = true\n")
	r.fill(30, 20_000)
	_, err := r.turn("go")
	if got := exitcodes.From(err); got != exitcodes.Overflow {
		t.Errorf("code %v (%v)", got, err)
	}
	sizes := []int{}
	for _, q := range r.server.Requests() {
		sizes = append(sizes, len(q.Body))
	}
	if len(sizes) != len(steps())+1 {
		t.Errorf("request sizes %v, want one for the whole and one a step", sizes)
	}
	for i := 1; i < len(sizes); i++ {
		if sizes[i] >= sizes[i-1] {
			t.Errorf("request sizes %v do not fall", sizes)
		}
	}
}

// Transport faults between the overflows draw on the same allowance, and the
// smaller view is kept over them.
func TestOverflowAndFaultsMixed(t *testing.T) {
	t.Parallel()
	for _, w := range wires {
		r := newRig(t, w, "[[reply]]\nerror = 'overflow'\n"+transient["overloaded"]+"[[reply]]\nerror = 'overflow'\n"+
			transient["close in arguments"]+"[[reply]]\ntext = 'All done.'\n")
		r.fill(30, 20_000)
		res, err := r.turn("go")
		if err != nil {
			t.Fatal(w, err)
		}
		if res.Stats.Requests != 5 || res.Stats.Replays != 2 {
			t.Errorf("%s: stats %+v", w, res.Stats)
		}
		q := r.server.Requests()
		if len(q[2].Body) != len(q[1].Body) || len(q[4].Body) != len(q[3].Body) || len(q[3].Body) >= len(q[2].Body) {
			t.Errorf("%s: request sizes %d %d %d %d %d", w, len(q[0].Body), len(q[1].Body), len(q[2].Body), len(q[3].Body), len(q[4].Body))
		}
		r.accepted()
	}
}

// A caller's budget is used by everything below it and never made new.
func TestNestedGenerationsShareTheCallersBudget(t *testing.T) {
	t.Parallel()
	r := newRig(t, provider.Chat, "[[reply]]\ntext = 'fine'\nrepeat = true\n")
	b := recovery.New(recovery.Options{Requests: 3})
	ctx := recovery.With(t.Context(), b)
	ask := []message.Message{message.NewText(message.User, "go")}
	for i := range 3 {
		g, err := r.engine.Generate(ctx, ask)
		if err != nil || g.Stats.Requests != 1 {
			t.Fatalf("generation %d: %v, stats %+v", i+1, err, g.Stats)
		}
	}
	_, err := r.engine.Generate(ctx, ask)
	if _, ok := errors.AsType[*recovery.Exhausted](err); !ok {
		t.Errorf("error %v, want an exhausted budget", err)
	}
	if n := len(r.server.Requests()); n != 3 {
		t.Errorf("%d requests", n)
	}
}

// The deadline bounds replays over all views together.
func TestDeadlineIsNotResetByASmallerView(t *testing.T) {
	t.Parallel()
	r := newRig(t, provider.Chat, "[[reply]]\nerror = 'overflow'\n[[reply]]\nerror = 'overloaded'\nrepeat = true\n")
	r.fill(30, 20_000)
	now := time.Now()
	r.engine.Recovery.Now = func() time.Time { now = now.Add(100 * time.Second); return now }
	_, err := r.turn("go")
	if err == nil || !strings.Contains(err.Error(), "deadline") && !strings.Contains(err.Error(), "left") {
		t.Errorf("error %v, want the deadline", err)
	}
	if n := len(r.server.Requests()); n > 5 {
		t.Errorf("%d requests in 600 s at 100 s a look at the clock", n)
	}
}

// What was left out is recorded, and later requests do not begin with an
// overflow again.
func TestOverflowIsRecordedInTheSession(t *testing.T) {
	t.Parallel()
	for _, w := range wires {
		r := newRig(t, w, "[[reply]]\nerror = 'overflow'\ntimes = 3\n"+good)
		r.fill(30, 20_000)
		if _, err := r.turn("go"); err != nil {
			t.Fatal(err)
		}
		tr := r.session.Transcript()
		if tr.Compactions != 1 {
			t.Errorf("%s: %d compactions", w, tr.Compactions)
		}
		if first := tr.Messages[0].Text(); !strings.Contains(first, "the task") || !strings.Contains(first, "left out") {
			t.Errorf("%s: the session begins with %q", w, first)
		}
		if n := len(r.server.Requests()); n != 5 {
			t.Errorf("%s: %d requests, want 3 refused and 2 answered", w, n)
		}
		before := r.texts()
		r.open()
		if got := strings.Join(r.texts(), "\n"); got != strings.Join(before, "\n") {
			t.Errorf("%s: the session is another one after it was opened again", w)
		}
		r.accepted()
	}
}

func TestShortenedResultsStayShortened(t *testing.T) {
	t.Parallel()
	r := newRig(t, provider.Chat, "[[reply]]\nerror = 'overflow'\n"+good)
	r.fill(10, 20_000)
	if _, err := r.turn("go"); err != nil {
		t.Fatal(err)
	}
	q := r.server.Requests()
	if len(q) != 3 || len(q[2].Body) > len(q[0].Body)/2 {
		t.Errorf("%d requests, the first of %d bytes, the last of %d", len(q), len(q[0].Body), len(q[len(q)-1].Body))
	}
	tr := r.session.Transcript()
	if tr.Compactions != 0 || len(tr.Notes) != 1 || !strings.Contains(tr.Notes[0].Text, "shortened") {
		t.Errorf("%d compactions, notes %+v", tr.Compactions, tr.Notes)
	}
	if len(tr.Messages[2].Parts[0].Text) < 19_000 {
		t.Error("the session itself lost a result")
	}
}

func TestSilentOverflow(t *testing.T) {
	t.Parallel()
	silent := map[string]string{
		"empty reply at the limit": "text = ''\nfinish = 'length'",
		"window full, cut text":    "text = 'I was about to'\nfinish = 'overflown'",
	}
	for name, reply := range silent {
		for _, w := range []provider.Wire{provider.Chat, provider.Anthropic} {
			if name == "window full, cut text" && w == provider.Chat {
				reply += "\nraw_finish = 'model_context_window_exceeded'"
			}
			r := newRig(t, w, "[[reply]]\n"+reply+"\n"+"[[reply]]\ntext = 'All done.'\n")
			r.fill(10, 20_000)
			if _, err := r.turn("go"); err != nil {
				t.Fatal(name, w, err)
			}
			q := r.server.Requests()
			if len(q) != 2 || len(q[1].Body) >= len(q[0].Body) {
				t.Errorf("%s, %s: %d requests, no smaller view", name, w, len(q))
			}
			if got := strings.Join(r.texts(), "\n"); strings.Contains(got, "about to") {
				t.Errorf("%s, %s: the cut reply was committed", name, w)
			}
		}
	}
}
