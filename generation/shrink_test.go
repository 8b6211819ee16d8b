package generation

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"agentd/provider/message"
)

// conversation makes a task and n rounds of one call and one result each.
func conversation(n, resultBytes int) []message.Message {
	out := []message.Message{message.NewText(message.User, "the task")}
	for i := range n {
		id := fmt.Sprint("call", i)
		out = append(out,
			message.Message{Role: message.Assistant, Parts: []message.Part{{Kind: message.ToolCall, ID: id, Name: "f", Arguments: "{}"}}},
			message.Message{Role: message.Tool, Parts: []message.Part{{Kind: message.ToolResult, ID: id, Text: strings.Repeat("å", resultBytes/2)}}})
	}
	return out
}

func TestSmallerViewsShortenOldResultsFirst(t *testing.T) {
	t.Parallel()
	v := smallerView(conversation(6, 100_000), nil)
	if v == nil || len(v.messages) != 13 {
		t.Fatalf("the first view drops messages: %+v", v)
	}
	if got := len(v.messages[2].Parts[0].Text); got > 2200 {
		t.Errorf("an old result keeps %d bytes", got)
	}
	if got := len(v.messages[12].Parts[0].Text); got != 100_000 {
		t.Errorf("the latest result keeps %d bytes, want all", got)
	}
	if v.note != "shortened 4 tool results" {
		t.Errorf("note %q", v.note)
	}
}

func TestSmallerViewsKeepTheLatestPrompt(t *testing.T) {
	t.Parallel()
	all := append(conversation(20, 10), message.NewText(message.Assistant, "done"))
	all = append(all, message.NewText(message.User, "and now this"))
	all = append(all, conversation(3, 10)[1:]...)
	var last *view
	for v := smallerView(all, nil); v != nil; v = smallerView(all, v) {
		last = v
	}
	if last == nil {
		t.Fatal("there is no smaller view")
	}
	first := last.messages[0].Text()
	for _, want := range []string{"the task", "left out", "and now this"} {
		if !strings.Contains(first, want) {
			t.Errorf("the opening lacks %q: %q", want, first)
		}
	}
}

func TestNothingIsSmallerThanAPrompt(t *testing.T) {
	t.Parallel()
	if v := smallerView([]message.Message{message.NewText(message.User, strings.Repeat("x", 1_000_000))}, nil); v != nil {
		t.Errorf("a view of a prompt: %+v", v)
	}
}

// Each view is smaller than the one before, keeps the task and the latest
// round, and never splits a call from its result.
func TestViewsAreWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := conversation(rapid.IntRange(0, 30).Draw(t, "rounds"), rapid.IntRange(0, 20_000).Draw(t, "bytes"))
		before := weight(all)
		text := fmt.Sprint(all)
		for v := smallerView(all, nil); v != nil; v = smallerView(all, v) {
			if w := weight(v.messages); w >= before {
				t.Fatalf("step %d: %d bytes, before %d", v.step, w, before)
			} else {
				before = w
			}
			open := map[string]bool{}
			for _, m := range v.messages {
				for _, p := range m.Parts {
					switch p.Kind {
					case message.ToolCall:
						open[p.ID] = true
					case message.ToolResult:
						if !open[p.ID] {
							t.Fatalf("step %d: a result without its call", v.step)
						}
						delete(open, p.ID)
					}
				}
			}
			if len(open) > 0 {
				t.Fatalf("step %d: a call without its result", v.step)
			}
			if !strings.HasPrefix(v.messages[0].Text(), "the task") {
				t.Fatalf("step %d: the task is gone", v.step)
			}
			if n := len(all); n > 1 && v.messages[len(v.messages)-1].Parts[0].ID != all[n-1].Parts[0].ID {
				t.Fatalf("step %d: the latest round is gone", v.step)
			}
		}
		if fmt.Sprint(all) != text {
			t.Fatal("the conversation itself was changed")
		}
	})
}
