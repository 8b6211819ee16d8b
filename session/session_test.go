package session

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"agentd/exitcodes"
	"agentd/provider/message"
)

func open(t *testing.T, st Store) *Session {
	t.Helper()
	s, err := st.Open("bob", "triage", Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// fastDir is a folder in memory where there is one: for tests that make
// thousands of sessions, and have no use for a slow disk.
func fastDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "agentd-session-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func toolCall(id, name, args string) message.Part {
	return message.Part{Kind: message.ToolCall, ID: id, Name: name, Arguments: args}
}

func calls(parts ...message.Part) message.Message {
	return message.Message{Role: message.Assistant, Parts: parts}
}

func result(id, text string) message.Part {
	return message.Part{Kind: message.ToolResult, ID: id, Text: text}
}

// roles draws a conversation in one line.
func roles(t *Transcript) string {
	var out []string
	for _, m := range t.Messages {
		s := string(m.Role)
		for _, p := range m.Parts {
			switch p.Kind {
			case message.ToolCall:
				s += " call:" + p.ID
			case message.ToolResult:
				s += " " + p.ID + "=" + p.Text
			default:
				s += " " + p.Text
			}
		}
		out = append(out, s)
	}
	return strings.Join(out, "; ")
}

func TestTranscriptIsTheSameAfterReopening(t *testing.T) {
	st := Store{Dir: t.TempDir()}
	s := open(t, st)
	must(t, s.AttemptStarted("r1", 1, "builtin", "m"))
	must(t, s.Message(message.NewText(message.User, "do it <now> & \u2028"), message.Usage{}, ""))
	must(t, s.Message(calls(toolCall("a", "shell", `{"x":1}`), toolCall("b", "read", `{}`), toolCall("c", "read", "")),
		message.Usage{InputTokens: 10, OutputTokens: 5}, "tool_calls"))
	must(t, s.Intent(toolCall("b", "read", `{}`), Read))
	must(t, s.Result(result("b", strings.Repeat("long ", 10000)), OutcomeOK))
	must(t, s.Intent(toolCall("a", "shell", `{"x":1}`), Unknown))
	must(t, s.ExternalSession("claude", "uuid-1"))
	must(t, s.Note("lost", "it is gone \xff"))

	before := s.Transcript()
	wantPending := []PendingCall{{Call: toolCall("a", "shell", `{"x":1}`), Started: true, Effect: Unknown}, {Call: toolCall("c", "read", "")}}
	if d := cmp.Diff(wantPending, before.Pending); d != "" {
		t.Errorf("pending (-want +got):\n%s", d)
	}
	must(t, s.Close())
	after, err := st.Read("bob", "triage")
	must(t, err)
	if d := cmp.Diff(before, after, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(Note{}, "Text")); d != "" {
		t.Errorf("transcript before and after (-before +after):\n%s", d)
	}
	if got := after.Spent["r1"]; got != (Spent{Usage: message.Usage{InputTokens: 10, OutputTokens: 5}, Steps: 1, Requests: 1, Attempts: 1}) {
		t.Errorf("spent by an attempt that died = %+v", got)
	}
}

func TestResultsStandInOrderOfCalls(t *testing.T) {
	s := open(t, Store{Dir: t.TempDir()})
	must(t, s.Message(calls(toolCall("a", "x", ""), toolCall("b", "x", "")), message.Usage{}, "tool_calls"))
	for _, id := range []string{"b", "a"} {
		must(t, s.Intent(toolCall(id, "x", ""), Read))
		must(t, s.Result(result(id, "out-"+id), OutcomeOK))
	}
	must(t, s.Message(message.NewText(message.User, "next"), message.Usage{}, ""))
	want := "assistant call:a call:b; tool a=out-a b=out-b; user next"
	if got := roles(s.Transcript()); got != want {
		t.Errorf("transcript = %s\nwant         %s", got, want)
	}
}

func TestSecondWriterIsRefused(t *testing.T) {
	st := Store{Dir: t.TempDir()}
	s, err := st.Open("bob", "triage", Options{RunID: "run-7"})
	must(t, err)
	defer s.Close()
	_, err = st.Open("bob", "triage", Options{})
	held, ok := errors.AsType[*Locked](err)
	if !ok || held.Holder == nil || held.Holder.RunID != "run-7" || exitcodes.From(err) != exitcodes.LaneBusy {
		t.Fatalf("second Open = %v, want a *Locked that names run-7", err)
	}
	must(t, s.Close())
	s2, err := st.Open("bob", "triage", Options{})
	must(t, err)
	must(t, s2.Close())
}
