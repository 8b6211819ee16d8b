package rehearsal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"

	"agentd/provider/message"
)

var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)

// check parses the request and says what a real provider would refuse, or "".
func (s *Server) check(d dialect, h http.Header, seen *Request) string {
	if err := d.parse(seen.Body, h, seen); err != nil {
		return err.Error()
	}
	if seen.Model == "" {
		return "model is missing"
	}
	if err := checkConversation(seen.Messages, s.pausedBefore()); err != nil {
		return err.Error()
	}
	if err := s.checkIssued(seen.Messages); err != nil {
		return err.Error()
	}
	return ""
}

// pausedBefore reports whether the reply before asked to be called again, which
// is when a conversation may end with the assistant.
func (s *Server) pausedBefore() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.requests) - 1; i >= 0; i-- {
		if n := s.requests[i].Reply; n > 0 {
			return s.scenario.Replies[n-1].Finish == "paused"
		}
	}
	return false
}

// checkConversation holds every wire to the strictest one: the first message is
// from the user, every call has its result before anything else is said, and
// nothing is empty.
func checkConversation(all []message.Message, paused bool) error {
	if len(all) == 0 {
		return errors.New("messages is empty")
	}
	if all[0].Role != message.User {
		return fmt.Errorf("the first message is from the %s, not the user", all[0].Role)
	}
	open := map[string]bool{}
	for i, m := range all {
		if len(m.Parts) == 0 {
			return fmt.Errorf("message %d has no content", i+1)
		}
		if m.Role != message.Tool && len(open) > 0 {
			return fmt.Errorf("message %d comes before the results of %d tool calls", i+1, len(open))
		}
		for _, p := range m.Parts {
			switch p.Kind {
			case message.ToolCall:
				if open[p.ID] {
					return fmt.Errorf("message %d has two calls with the id %q", i+1, p.ID)
				}
				if err := checkCall(p); err != nil {
					return fmt.Errorf("message %d: %w", i+1, err)
				}
				open[p.ID] = true
			case message.ToolResult:
				if !open[p.ID] {
					return fmt.Errorf("message %d has a result for the call %q, which is not open", i+1, p.ID)
				}
				delete(open, p.ID)
			}
		}
	}
	last := all[len(all)-1]
	switch {
	case len(open) > 0:
		return fmt.Errorf("%d tool calls have no result", len(open))
	case last.Role == message.Assistant && !paused:
		return errors.New("the conversation ends with the assistant")
	}
	return nil
}

func checkCall(p message.Part) error {
	if p.ID == "" {
		return fmt.Errorf("a call of %q has no id", p.Name)
	}
	if !toolName.MatchString(p.Name) {
		return fmt.Errorf("tool name %q is not allowed", p.Name)
	}
	var args map[string]json.RawMessage
	if err := json.Unmarshal([]byte(p.Arguments), &args); err != nil {
		return fmt.Errorf("arguments of the call %s are not a JSON object: %w", p.ID, err)
	}
	return nil
}

// checkIssued holds the calls in the conversation against those that this
// server sent: a client must send back what it got, unchanged.
func (s *Server) checkIssued(all []message.Message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range all {
		for _, p := range m.Parts {
			sent, ok := s.issued[p.ID]
			if p.Kind == message.Reasoning && ok && sent.text != p.Text {
				return fmt.Errorf("the thinking block %s came back changed", p.ID)
			}
			if p.Kind != message.ToolCall {
				continue
			}
			if ok && (sent.name != p.Name || !sameJSON(sent.text, p.Arguments)) {
				return fmt.Errorf("the call %s came back changed: %s(%s)", p.ID, p.Name, p.Arguments)
			}
		}
	}
	return nil
}

// remember keeps the calls of a reply for checkIssued.
func (s *Server) remember(sc *script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range sc.calls {
		if !json.Valid([]byte(c.arguments)) {
			continue // cannot come back unchanged to a wire that demands JSON
		}
		s.issued[c.id] = issue{name: c.name, text: c.arguments}
	}
	if sc.signature != "" {
		s.issued[sc.signature] = issue{text: sc.reasoning}
	}
}

// sameJSON compares two JSON texts without regard to space.
func sameJSON(a, b string) bool {
	var x, y bytes.Buffer
	if json.Compact(&x, []byte(a)) != nil || json.Compact(&y, []byte(b)) != nil {
		return a == b
	}
	return bytes.Equal(x.Bytes(), y.Bytes())
}

// checkTools checks the definitions that all wires have in common.
func checkTools(names []string, schemas []json.RawMessage) error {
	seen := map[string]bool{}
	for i, n := range names {
		if !toolName.MatchString(n) {
			return fmt.Errorf("tool name %q is not allowed", n)
		}
		if seen[n] {
			return fmt.Errorf("tool %q is offered twice", n)
		}
		seen[n] = true
		var schema struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal(schemas[i], &schema); err != nil || schema.Type != "object" {
			return fmt.Errorf("the schema of tool %q is not of type object", n)
		}
	}
	return nil
}
