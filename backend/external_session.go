package backend

import (
	"fmt"
	"strings"

	"github.com/google/uuid"

	"agentd/provider/message"
	"agentd/session"
	"agentd/workspace"
)

const (
	maxSummaryAll = 16 << 10 // bytes of a summary
	maxSummaryOne = 2 << 10  // bytes of one message in it
)

// conversation is how an attempt goes on with its session.
type conversation struct {
	id      string // the CLI's
	resumed bool
	prompt  string
}

// converse decides whether the CLI continues a session of its own, and what is
// said to it. lost is the id of a session that the CLI turned out not to have.
func converse(b workspace.Backend, a Attempt, lost string) conversation {
	t := a.Session.Transcript()
	id := t.External[b.Name]
	if id != "" && id != lost && b.Session != "none" && len(b.Resume) > 0 {
		prompt := a.Prompt
		if a.Resumed {
			prompt = "The work on the task below was interrupted. Go on from where you stand; do not do again what is done already.\n\n" + a.Prompt
		}
		return conversation{id: id, resumed: true, prompt: prompt}
	}
	c := conversation{prompt: a.Prompt}
	if b.Session == "preset" {
		c.id = uuid.NewString()
	}
	before := t.Messages
	if n := len(before); n > 0 && before[n-1].Role == message.User && before[n-1].Text() == a.Prompt {
		before = before[:n-1] // it is what will be said now
	}
	if s := summarise(before); s != "" {
		c.prompt = "This conversation began elsewhere, and its record is not available here. What was said last:\n\n" + s +
			"\nThat is the end of the record. Check the present state of things before you rely on it. The task now:\n\n" + a.Prompt
	}
	return c
}

// summarise repeats the end of a conversation, shortened.
func summarise(messages []message.Message) string {
	var parts []string
	size := 0
	for i := len(messages) - 1; i >= 0; i-- {
		text := strings.TrimSpace(string(plainText(messages[i].Text())))
		if text == "" {
			continue
		}
		who := "Task"
		if messages[i].Role == message.Assistant {
			who = "Reply"
		}
		part := fmt.Sprintf("%s: %s\n", who, shorten(text, maxSummaryOne))
		if size += len(part); size > maxSummaryAll {
			break
		}
		parts = append([]string{part}, parts...)
	}
	return strings.Join(parts, "")
}

// sayPrompt records the prompt in our journal, unless an attempt before has.
func sayPrompt(a Attempt) error {
	if prompted(a, a.Session.Transcript()) {
		return nil
	}
	return a.Session.Message(message.NewText(message.User, a.Prompt), message.Usage{}, "")
}

// sayReply records what the agent said last.
func sayReply(a Attempt, o Outcome) error {
	if o.Text == "" {
		return nil
	}
	return a.Session.Message(message.NewText(message.Assistant, o.Text), o.Usage, "stop")
}

// keepSession records the CLI's id of the session, if it is news.
func keepSession(s *session.Session, backend, id string) error {
	if id == "" || s.Transcript().External[backend] == id {
		return nil
	}
	return s.ExternalSession(backend, id)
}
