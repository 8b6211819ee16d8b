package session

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"agentd/exitcodes"
	"agentd/provider/message"
)

// model is a session that was never on a disk: the plain reading of what the
// package promises.
type model struct {
	messages []modelMessage
	steps    int
}

type modelMessage struct {
	seq     uint64
	text    string
	summary bool
	calls   []modelCall
}

type modelCall struct {
	id, result string
	started    bool
	done       bool
}

func (m *model) pending() []int {
	var open []int
	if last := m.last(); last != nil {
		for i, c := range last.calls {
			if !c.done {
				open = append(open, i)
			}
		}
	}
	return open
}

func (m *model) last() *modelMessage {
	for i := len(m.messages) - 1; i >= 0; i-- {
		if len(m.messages[i].calls) > 0 || strings.HasPrefix(m.messages[i].text, "assistant") {
			return &m.messages[i]
		}
	}
	return nil
}

func (m *model) draw() string {
	var out []string
	for i, x := range m.messages {
		out = append(out, x.text)
		results := "tool"
		for _, c := range x.calls {
			switch {
			case c.done:
				results += " " + c.id + "=" + c.result
			case i < len(m.messages)-1 && c.started:
				results += " " + c.id + "=?"
			case i < len(m.messages)-1:
				results += " " + c.id + "=!"
			}
		}
		if results != "tool" {
			out = append(out, results)
		}
	}
	return strings.Join(out, "; ")
}

// drawTranscript is draw for the real thing.
func drawTranscript(t *Transcript) string {
	s := roles(t)
	s = strings.ReplaceAll(s, PendingCall{Started: true}.Result().Text, "?")
	return strings.ReplaceAll(s, PendingCall{}.Result().Text, "!")
}

func TestTranscriptIsWhatWasSaid(t *testing.T) {
	base := fastDir(t)
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		st := Store{Dir: filepath.Join(base, fmt.Sprint(n))}
		defer os.RemoveAll(st.Dir)
		o := Options{segment: rapid.Int64Range(200, 5000).Draw(rt, "segment")}
		s, err := st.Open("bob", "p", o)
		if err != nil {
			rt.Fatal(err)
		}
		defer func() { s.Close() }()
		m := &model{}
		if err := s.AttemptStarted("r", 1, "builtin", "m"); err != nil {
			rt.Fatal(err)
		}
		ok := func(err error) {
			if err != nil {
				rt.Fatal(err)
			}
		}
		ids := 0
		rt.Repeat(map[string]func(*rapid.T){
			"user": func(rt *rapid.T) {
				text := rapid.StringN(1, 5, -1).Draw(rt, "text")
				ok(s.Message(message.NewText(message.User, text), message.Usage{}, ""))
				m.messages = append(m.messages, modelMessage{seq: s.Transcript().Seq, text: "user " + text})
			},
			"assistant": func(rt *rapid.T) {
				k := rapid.IntRange(0, 3).Draw(rt, "calls")
				same := rapid.Bool().Draw(rt, "old ids") // some providers count from 0 each time
				x := modelMessage{text: "assistant"}
				msg := message.Message{Role: message.Assistant}
				for i := range k {
					id := fmt.Sprint("c", i)
					if !same {
						ids++
						id = fmt.Sprint("n", ids)
					}
					msg.Parts = append(msg.Parts, toolCall(id, "x", "{}"))
					x.text += " call:" + id
					x.calls = append(x.calls, modelCall{id: id})
				}
				ok(s.Message(msg, message.Usage{OutputTokens: 2}, "stop"))
				x.seq = s.Transcript().Seq
				m.messages = append(m.messages, x)
				m.steps++
			},
			"tool": func(rt *rapid.T) {
				open := m.pending()
				if len(open) == 0 {
					rt.Skip()
				}
				c := &m.last().calls[rapid.SampledFrom(open).Draw(rt, "call")]
				ok(s.Intent(toolCall(c.id, "x", "{}"), Unknown))
				c.started = true
				if rapid.Bool().Draw(rt, "ends") {
					c.result = strings.Repeat("r", rapid.SampledFrom([]int{0, 1, 2, 3, 4, 5, maxInline, maxInline + 1}).Draw(rt, "size"))
					c.done = true
					ok(s.Result(result(c.id, c.result), OutcomeOK))
				}
			},
			"compaction": func(rt *rapid.T) {
				keep := uint64(0)
				tr := s.Transcript()
				if len(tr.Seqs) > 0 && rapid.Bool().Draw(rt, "keep some") {
					keep = rapid.SampledFrom(tr.Seqs).Draw(rt, "keep from")
				}
				last := m.last()
				hides := len(m.pending()) > 0 && (keep == 0 || keep > last.seq)
				err := s.Compaction(keep, message.NewText(message.User, "sum"))
				if hides {
					if exitcodes.From(err) != exitcodes.Software {
						rt.Fatalf("a compaction that hides an open call = %v", err)
					}
					return
				}
				ok(err)
				kept := []modelMessage{{seq: s.Transcript().Seq, text: "user sum", summary: true}}
				for _, x := range m.messages {
					if !x.summary && keep > 0 && x.seq >= keep {
						kept = append(kept, x)
					}
				}
				m.messages = kept
			},
			"reopen": func(rt *rapid.T) {
				before := s.Transcript()
				ok(s.Close())
				s, err = st.Open("bob", "p", o)
				ok(err)
				if d := cmp.Diff(before, s.Transcript(), cmpopts.EquateEmpty()); d != "" {
					rt.Fatalf("after reopening (-before +after):\n%s", d)
				}
			},
			"read": func(rt *rapid.T) {
				read, err := st.Read("bob", "p")
				ok(err)
				if d := cmp.Diff(s.Transcript(), read, cmpopts.EquateEmpty()); d != "" {
					rt.Fatalf("a reader sees another session (-writer +reader):\n%s", d)
				}
			},
			"": func(rt *rapid.T) {
				live := s.Transcript()
				if got, want := drawTranscript(live), m.draw(); got != want {
					rt.Fatalf("transcript = %s\nwant         %s", got, want)
				}
				if spent := live.Spent["r"]; spent.Steps != m.steps || spent.Requests != m.steps || spent.Usage.OutputTokens != int64(2*m.steps) {
					rt.Fatalf("spent = %+v after %d steps", spent, m.steps)
				}
				var open []string
				for _, i := range m.pending() {
					open = append(open, fmt.Sprint(m.last().calls[i].id, m.last().calls[i].started))
				}
				var got []string
				for _, p := range live.Pending {
					got = append(got, fmt.Sprint(p.Call.ID, p.Started))
				}
				if d := cmp.Diff(open, got, cmpopts.EquateEmpty()); d != "" {
					rt.Fatalf("pending (-want +got):\n%s", d)
				}
			},
		})
	})
}

// TestReaderSeesAPrefix reads while a writer writes, goes from file to file,
// and takes half-written lines back.
func TestReaderSeesAPrefix(t *testing.T) {
	st := Store{Dir: fastDir(t)}
	const messages = 300
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			var last uint64
			for {
				tr, err := st.Read("bob", "triage")
				if err == nil && tr.Seq < last {
					err = fmt.Errorf("record %d was seen, now the journal ends at %d", last, tr.Seq)
				}
				if err != nil && exitcodes.From(err) != exitcodes.NoInput {
					t.Errorf("reader: %v", err)
					return
				}
				if err == nil {
					last = tr.Seq
					for i, m := range tr.Messages {
						if want := fmt.Sprint("message ", i, " "); !strings.HasPrefix(m.Text(), want) {
							t.Errorf("message %d is %.20q", i, m.Text())
							return
						}
					}
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	d := &faultDisk{err: errors.New("full"), half: true}
	s, err := Store{Dir: st.Dir, disk: d}.Open("bob", "triage", Options{segment: 20_000})
	must(t, err)
	for i, failed := 0, -1; i < messages; {
		if i%10 == 9 && failed != i {
			failed = i
			d.at = d.ops + 1 // the write of half a line, which is then taken back
		}
		if s.Message(message.NewText(message.User, fmt.Sprint("message ", i, " ", strings.Repeat("x", i))), message.Usage{}, "") == nil {
			i++
			continue
		}
		must(t, s.Close())
		s, err = Store{Dir: st.Dir, disk: d}.Open("bob", "triage", Options{segment: 20_000})
		must(t, err)
	}
	must(t, s.Close())
	close(stop)
	readers.Wait()
	if tr, err := st.Read("bob", "triage"); err != nil || len(tr.Messages) != messages || lastSegment(st.dir("bob", "triage")) < 3 {
		t.Errorf("at the end: %v", err)
	}
}
