package rehearsal

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"agentd/provider/message"
)

type chatRequest struct {
	Model    string        `json:"model"`
	Stream   bool          `json:"stream"`
	Messages []chatMessage `json:"messages"`
	Tools    []struct {
		Type     string `json:"type"`
		Function struct {
			Name       string          `json:"name"`
			Parameters json.RawMessage `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
}

type chatMessage struct {
	Role             string          `json:"role"`
	Content          json.RawMessage `json:"content"`
	Refusal          string          `json:"refusal"`
	ReasoningContent string          `json:"reasoning_content"`
	ToolCallID       string          `json:"tool_call_id"`
	ToolCalls        []struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

func (chatDialect) parse(body []byte, _ http.Header, r *Request) error {
	var q chatRequest
	if err := json.Unmarshal(body, &q); err != nil {
		return fmt.Errorf("the body is not a chat request: %w", err)
	}
	r.Model = q.Model
	if !q.Stream {
		return errors.New("stream is not true")
	}
	var schemas []json.RawMessage
	for _, t := range q.Tools {
		if t.Type != "function" {
			return fmt.Errorf("tool of type %q", t.Type)
		}
		r.Tools = append(r.Tools, t.Function.Name)
		schemas = append(schemas, t.Function.Parameters)
	}
	if q.Tools != nil && len(q.Tools) == 0 {
		return errors.New("tools is an empty array")
	}
	if err := checkTools(r.Tools, schemas); err != nil {
		return err
	}
	for i, m := range q.Messages {
		if err := m.read(r); err != nil {
			return fmt.Errorf("messages[%d]: %w", i, err)
		}
	}
	return nil
}

// read appends the message to what the request says.
func (m chatMessage) read(r *Request) error {
	text, err := textOf(m.Content, "text")
	if err != nil {
		return err
	}
	out := message.Message{Role: message.Role(m.Role)}
	switch m.Role {
	case "system", "developer":
		if len(r.Messages) > 0 {
			return fmt.Errorf("a %s message after the conversation began", m.Role)
		}
		r.System += text
		return nil
	case "tool":
		if m.ToolCallID == "" {
			return errors.New("a tool message without tool_call_id")
		}
		out.Parts = []message.Part{{Kind: message.ToolResult, ID: m.ToolCallID, Text: text}}
		// Results of one assistant message belong together.
		if n := len(r.Messages); n > 0 && r.Messages[n-1].Role == message.Tool {
			r.Messages[n-1].Parts = append(r.Messages[n-1].Parts, out.Parts...)
			return nil
		}
	case "user", "assistant":
		if m.ReasoningContent != "" {
			out.Parts = append(out.Parts, message.Part{Kind: message.Reasoning, Text: m.ReasoningContent})
		}
		if text != "" {
			out.Parts = append(out.Parts, message.Part{Kind: message.Text, Text: text})
		}
		if m.Refusal != "" {
			out.Parts = append(out.Parts, message.Part{Kind: message.Refusal, Text: m.Refusal})
		}
		if len(m.ToolCalls) > 0 && m.Role == "user" {
			return errors.New("a user message with tool_calls")
		}
		for _, c := range m.ToolCalls {
			if c.Type != "function" {
				return fmt.Errorf("a tool call of type %q", c.Type)
			}
			out.Parts = append(out.Parts, message.Part{
				Kind: message.ToolCall, ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
		}
	default:
		return fmt.Errorf("role %q is unknown", m.Role)
	}
	r.Messages = append(r.Messages, out)
	return nil
}

// textOf reads content that is a string, null or an array of parts of the given
// types with a text.
func textOf(raw json.RawMessage, types ...string) (string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s, nil
	}
	var parts []struct {
		Type string  `json:"type"`
		Text *string `json:"text"`
	}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return "", fmt.Errorf("content is neither a string nor an array of parts: %w", err)
	}
	var b strings.Builder
	for _, p := range parts {
		if p.Text == nil || !slices.Contains(types, p.Type) {
			return "", fmt.Errorf("content has a part of type %q", p.Type)
		}
		b.WriteString(*p.Text)
	}
	return b.String(), nil
}
