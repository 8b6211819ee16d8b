package generation

import (
	"fmt"
	"unicode/utf8"

	"agentd/provider/message"
)

// view is a smaller form of a conversation.
type view struct {
	step     int // which of the steps made it
	messages []message.Message
	dropped  int    // messages left out behind the first one
	note     string // what was left out, for people and for the journal
}

// A step makes the conversation smaller than the one before it does.
type step struct {
	recent, old int // bytes that a tool result may keep, among the latest rounds and before
	rounds      int // latest rounds that are kept; 0: all
}

// noteSlack is how much longer than its limit a text may be before it is worth
// cutting, in bytes: the note about the cut has a length too.
const noteSlack = 200

// recentRounds is how many of the latest rounds count as recent.
const recentRounds = 2

func steps() []step {
	return []step{
		{recent: 1 << 30, old: 2000},
		{recent: 8000, old: 500},
		{recent: 8000, old: 500, rounds: 16},
		{recent: 4000, old: 500, rounds: 6},
		{recent: 2000, old: 500, rounds: 2},
		{recent: 500, old: 500, rounds: 1},
	}
}

// keepDropping is the first step that leaves messages out. The steps before it
// can be applied to a conversation over and over while it grows.
const keepDropping = 2

// viewAt returns the view that a step makes, which may be the whole.
func viewAt(messages []message.Message, step int) *view {
	v := steps()[step].apply(messages)
	v.step = step
	return v
}

// smallerView returns the first view of the messages that is smaller than the
// last one (nil: than the messages), or nil if there is none. The first message
// and the latest round always stay: they are the task and what it stands at.
func smallerView(messages []message.Message, last *view) *view {
	size, from := weight(messages), 0
	if last != nil {
		size, from = weight(last.messages), last.step+1
	}
	for i := from; i < len(steps()); i++ {
		if v := viewAt(messages, i); weight(v.messages) < size {
			return v
		}
	}
	return nil
}

func (s step) apply(messages []message.Message) *view {
	starts := rounds(messages)
	recentFrom := len(messages)
	if n := len(starts); n > 0 {
		recentFrom = starts[max(0, n-recentRounds)]
	}
	v := &view{}
	shortened := 0
	out := make([]message.Message, len(messages))
	for i, m := range messages {
		limit := s.old
		if i >= recentFrom {
			limit = s.recent
		}
		var n int
		out[i], n = shortenResults(m, limit)
		shortened += n
	}
	dropped := 0
	if s.rounds > 0 && len(starts) > s.rounds && len(out) > 0 {
		from := starts[len(starts)-s.rounds]
		dropped = from - 1
		out = append([]message.Message{out[0]}, out[from:]...)
	}
	v.dropped = dropped
	v.note = noteFor(dropped, shortened)
	if dropped > 0 {
		out[0] = opening(messages, dropped)
	}
	v.messages = out
	return v
}

// opening is the first message with a note about the dropped ones that followed
// it, and with the latest prompt if that is among them.
func opening(messages []message.Message, dropped int) message.Message {
	first := message.Message{Role: messages[0].Role, Parts: append([]message.Part(nil), messages[0].Parts...)}
	first.Parts = append(first.Parts, message.Part{Kind: message.Text, Text: fmt.Sprintf(
		"\n\n[%d messages that followed were left out, because the context was full. Look things up again where you need them.]", dropped)})
	for i := len(messages) - 1; i > 0; i-- {
		if messages[i].Role != message.User {
			continue
		}
		if i <= dropped {
			first.Parts = append(first.Parts, message.Part{Kind: message.Text, Text: "\n\n" + messages[i].Text()})
		}
		break
	}
	return first
}

func noteFor(dropped, shortened int) string {
	switch {
	case dropped > 0 && shortened > 0:
		return fmt.Sprintf("left out %d old messages and shortened %d tool results", dropped, shortened)
	case dropped > 0:
		return fmt.Sprintf("left out %d old messages", dropped)
	}
	return fmt.Sprintf("shortened %d tool results", shortened)
}

// rounds returns where each round begins: at an assistant message, with what
// answers it. A view that starts at a round never splits a call from its result.
func rounds(messages []message.Message) []int {
	var starts []int
	for i, m := range messages {
		if i > 0 && m.Role == message.Assistant {
			starts = append(starts, i)
		}
	}
	return starts
}

// shortenResults cuts the middle out of tool results over limit bytes.
func shortenResults(m message.Message, limit int) (message.Message, int) {
	n := 0
	for i, p := range m.Parts {
		if p.Kind != message.ToolResult || len(p.Text) <= limit+noteSlack {
			continue
		}
		if n == 0 {
			m.Parts = append([]message.Part(nil), m.Parts...)
		}
		n++
		m.Parts[i].Text = middleOut(p.Text, limit)
	}
	return m, n
}

// middleOut keeps the head and the tail of text, together about limit bytes.
func middleOut(text string, limit int) string {
	head, tail := limit*2/3, len(text)-limit/3
	for head > 0 && !utf8.RuneStart(text[head]) {
		head--
	}
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	return fmt.Sprintf("%s\n[... %d bytes left out, because the context was full ...]\n%s", text[:head], tail-head, text[tail:])
}

// weight is the size of a conversation in bytes, as far as it can be shortened.
func weight(messages []message.Message) int {
	n := 0
	for _, m := range messages {
		for _, p := range m.Parts {
			n += len(p.Text) + len(p.Arguments) + len(p.Opaque)
		}
	}
	return n
}
