package generation

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"agentd/exitcodes"
	"agentd/provider"
	"agentd/provider/message"
	"agentd/provider/rehearsal"
	"agentd/recovery"
	"agentd/session"
	"agentd/tools"
)

// permanentFaults are replies that end a turn at once, with their codes.
var permanentFaults = map[string]exitcodes.Code{
	"error = 'auth'":                         exitcodes.NoPermission,
	"error = 'quota'":                        exitcodes.Quota,
	"error = 'not_found'":                    exitcodes.Config,
	"error = 'invalid'":                      exitcodes.Failure,
	"status = 302":                           exitcodes.Protocol,
	"error = 'usage_limit'\nreset_in = '5h'": exitcodes.RateLimited,
	"body = '<html>'\nheaders = { Content-Type = 'text/html' }\nstatus = 200": exitcodes.Protocol,
	"refusal = 'no'\nfinish = 'filtered'":                                     exitcodes.Refused,
}

// beat is one reply of a drawn script.
type beat struct {
	text  string // TOML without the header
	retry bool   // asking again is right
	code  exitcodes.Code
	good  string // what is said by a reply that stands
	call  bool
}

func drawScript(t *rapid.T) (beats []beat, rounds int) {
	faults := slices.Sorted(maps.Keys(transient))
	endings := slices.Sorted(maps.Keys(permanentFaults))
	rounds = rapid.IntRange(0, 3).Draw(t, "rounds")
	for i := range rounds + 1 {
		for range rapid.IntRange(0, 4).Draw(t, "faults") {
			if rapid.IntRange(0, 9).Draw(t, "kind") == 0 {
				k := rapid.SampledFrom(endings).Draw(t, "ending")
				beats = append(beats, beat{text: k, code: permanentFaults[k]})
				continue
			}
			k := rapid.SampledFrom(faults).Draw(t, "fault")
			b := beat{text: strings.TrimPrefix(transient[k], "[[reply]]\n"), retry: true, code: exitcodes.Unavailable}
			if k == "rate limit" {
				b.code = exitcodes.RateLimited
			}
			beats = append(beats, b)
		}
		b := beat{good: fmt.Sprintf("Round %d, åäö.", i), call: i < rounds}
		b.text = fmt.Sprintf("text = %q\nreasoning = 'hm'\npiece = %d\n", b.good, rapid.IntRange(1, 9).Draw(t, "piece"))
		if b.call {
			b.text += fmt.Sprintf("tool_calls = [{ name = 'act', arguments = { x = '%d' } }]\n", i)
		}
		beats = append(beats, b)
	}
	return beats, rounds
}

// expect plays the script in the mind: the codes of the turns, in order.
func expect(beats []beat, limit int) (codes []exitcodes.Code) {
	used := 0
	for i, b := range beats {
		used++
		switch {
		case b.good != "":
			used = 0
			if i == len(beats)-1 {
				codes = append(codes, exitcodes.OK)
			}
		case !b.retry || used == limit:
			codes = append(codes, b.code)
			used = 0
		}
	}
	return codes
}

// Over any sequence of faults: each turn ends with the right code, and in the
// end the session, the reader of previews and the tools are as if there had
// been none. Every physical request is one reply of the script.
func TestFaultSequences(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := rapid.SampledFrom(wires).Draw(t, "wire")
		limit := rapid.IntRange(1, 5).Draw(t, "limit")
		beats, rounds := drawScript(t)
		var toml strings.Builder
		toml.WriteString("what = 'drawn'\n")
		for _, b := range beats {
			toml.WriteString("[[reply]]\n" + b.text + "\n")
		}
		sc, err := rehearsal.Parse("drawn", []byte(toml.String()))
		if err != nil {
			t.Fatal(err)
		}
		d := newDrawn(t, w, sc, limit)
		defer d.close()
		prompt := "go"
		for i, want := range expect(beats, limit) {
			res, err := d.engine.Turn(context.Background(), d.session, prompt)
			if got := exitcodes.From(err); got != want {
				t.Fatalf("turn %d ended with %v (%v), want %v\n%s", i+1, got, err, want, toml.String())
			}
			if res.Stats.Requests != res.Steps+res.Stats.Replays && err == nil {
				t.Fatalf("turn %d: stats %+v over %d steps", i+1, res.Stats, res.Steps)
			}
			prompt = ""
			d.reopen(t)
		}
		d.check(t, beats, rounds)
	})
}

// drawn is a rig for one drawn case.
type drawn struct {
	dir     string
	server  *rehearsal.Server
	client  *provider.Client
	engine  *Engine
	session *session.Session
	reader  reader
	ran     []string
}

func newDrawn(t *rapid.T, w provider.Wire, sc *rehearsal.Scenario, limit int) *drawn {
	dir, err := os.MkdirTemp("", "agentd-generation-*")
	if err != nil {
		t.Fatal(err)
	}
	d := &drawn{dir: dir}
	if d.server, err = rehearsal.Serve(sc); err != nil {
		t.Fatal(err)
	}
	d.client = provider.NewClient(provider.Endpoint{Name: "rehearsal", Wire: w, BaseURL: d.server.BaseURL(rehearsal.Wire(w))}, provider.Timeouts{})
	d.engine = &Engine{
		Client: d.client, Model: "m", System: "test", Preview: d.reader.event,
		Tools: tools.Set{fake{"act", session.Unknown, func(_ context.Context, c tools.Call) (tools.Result, error) {
			d.ran = append(d.ran, c.Arguments)
			return tools.Result{Text: "did " + c.Arguments}, nil
		}}},
		Recovery: recovery.Options{Requests: limit, Wait: func(context.Context, time.Duration) error { return nil }},
	}
	d.reopen(t)
	return d
}

func (d *drawn) reopen(t *rapid.T) {
	if d.session != nil {
		if err := d.session.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if d.session, err = (session.Store{Dir: d.dir}).Open("agent", "s", session.Options{}); err != nil {
		t.Fatal(err)
	}
}

func (d *drawn) close() {
	_ = d.session.Close()
	d.client.Close()
	_ = d.server.Close()
	_ = os.RemoveAll(d.dir)
}

func (d *drawn) check(t *rapid.T, beats []beat, rounds int) {
	want, said, acts := []string{"user: go"}, []string{}, []string{}
	for i, b := range slices.DeleteFunc(slices.Clone(beats), func(b beat) bool { return b.good == "" }) {
		said = append(said, b.good)
		if !b.call {
			want = append(want, "assistant: "+b.good)
			continue
		}
		args := fmt.Sprintf(`{"x":"%d"}`, i)
		acts = append(acts, args)
		want = append(want, "assistant: "+b.good+" act"+args, "tool: did "+args)
	}
	if got := (&rig{session: d.session}).texts(); !slices.Equal(got, want) {
		t.Fatalf("session %q, want %q", got, want)
	}
	if !slices.Equal(d.ran, acts) || len(acts) != rounds {
		t.Fatalf("ran %q, want %q", d.ran, acts)
	}
	if !slices.Equal(d.reader.committed, said) {
		t.Fatalf("the reader has %q, want %q", d.reader.committed, said)
	}
	if n := len(d.server.Requests()); n != len(beats) {
		t.Fatalf("%d requests for %d replies", n, len(beats))
	}
	if p := d.server.Problems(); len(p) > 0 {
		t.Fatal(p)
	}
}

// thinker answers by how many of its replies are in the conversation, as a
// model would that has nothing else to go by.
type thinker struct{ rounds int }

func (th thinker) Send(_ context.Context, r *provider.Request, _ func(provider.Event)) (*provider.Reply, error) {
	n := 0
	for _, m := range r.Messages {
		if m.Role == message.Assistant {
			n++
		}
	}
	m := message.NewText(message.Assistant, fmt.Sprint("Round ", n))
	finish := provider.Stop
	if n < th.rounds {
		finish = provider.ToolCalls
		for i := range 2 {
			m.Parts = append(m.Parts, message.Part{Kind: message.ToolCall, ID: fmt.Sprintf("call_%d_%d", n, i), Name: "act", Arguments: fmt.Sprintf(`{"x":"%d.%d"}`, n, i)})
		}
	}
	return &provider.Reply{Message: m, Finish: finish, RawFinish: string(finish)}, nil
}

// mortal is a journal whose process dies at a record: before it is written, or
// just after.
type mortal struct {
	Journal
	left  int
	after bool
}

var errDied = exitcodes.Errorf(exitcodes.Software, "died")

func (m *mortal) record(write func() error) error {
	m.left--
	if m.left < 0 || (m.left == 0 && !m.after) {
		m.left = -1
		return errDied
	}
	if err := write(); err != nil {
		return err
	}
	if m.left == 0 {
		m.left = -1
		return errDied
	}
	return nil
}

func (m *mortal) Message(msg message.Message, u message.Usage, f string) error {
	return m.record(func() error { return m.Journal.Message(msg, u, f) })
}

func (m *mortal) Intent(c message.Part, e session.Effect) error {
	return m.record(func() error { return m.Journal.Intent(c, e) })
}

func (m *mortal) Result(p message.Part, o session.Outcome) error {
	return m.record(func() error { return m.Journal.Result(p, o) })
}

// A process may die at any record, over and over: no tool body runs twice, no
// committed record is lost, and every call ends with a result, which says
// "unknown" only for a call during which the process died.
func TestDeathAtAnyRecord(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		sc, err := rehearsal.Parse("unused", []byte("what = 'unused'\n[[reply]]\n"))
		if err != nil {
			t.Fatal(err)
		}
		d := newDrawn(t, provider.Chat, sc, 1)
		defer d.close()
		rounds := rapid.IntRange(1, 3).Draw(t, "rounds")
		d.engine.Client = thinker{rounds}
		deaths := rapid.SliceOfN(rapid.IntRange(1, 6), 0, 6).Draw(t, "deaths")
		var before []string
		for i := 0; ; i++ {
			prompt := ""
			if len(d.session.Transcript().Messages) == 0 {
				prompt = "go"
			}
			var j Journal = d.session
			if i < len(deaths) {
				j = &mortal{Journal: d.session, left: deaths[i], after: rapid.Bool().Draw(t, "after")}
			}
			_, err := d.engine.Turn(context.Background(), j, prompt)
			d.reopen(t)
			now := (&rig{session: d.session}).texts()
			kept(t, before, now)
			before = now
			if err == nil {
				break
			}
			if i > len(deaths) {
				t.Fatalf("the turn does not end: %v", err)
			}
		}
		slices.Sort(d.ran)
		if once := slices.Compact(slices.Clone(d.ran)); len(once) != len(d.ran) {
			t.Fatalf("a body ran twice: %q", d.ran)
		}
		unknown := strings.Count(strings.Join(before, "\n"), "The outcome of this call is unknown")
		if unknown > len(deaths) || len(d.session.Transcript().Pending) > 0 {
			t.Fatalf("%d unknown outcomes for %d deaths, session %q", unknown, len(deaths), before)
		}
		if len(d.ran)+unknown < 2*rounds {
			t.Fatalf("calls were lost: ran %q, %d unknown", d.ran, unknown)
		}
	})
}

// kept fails unless all that was in the session before is still there; the
// results of the last round may have become more.
func kept(t *rapid.T, before, now []string) {
	for i, text := range before {
		if i >= len(now) || !strings.HasPrefix(now[i], text) {
			t.Fatalf("message %d was %q, the session now is %q", i, text, now)
		}
	}
}
