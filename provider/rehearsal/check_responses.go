package rehearsal

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"agentd/provider/message"
)

type responsesRequest struct {
	Model        string            `json:"model"`
	Stream       bool              `json:"stream"`
	Instructions string            `json:"instructions"`
	Input        []json.RawMessage `json:"input"`
	Tools        []struct {
		Type       string          `json:"type"`
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	} `json:"tools"`
}

type responsesItem struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	ID        string          `json:"id"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Output    json.RawMessage `json:"output"`
	Summary   json.RawMessage `json:"summary"`
	Encrypted string          `json:"encrypted_content"`
}

func (responsesDialect) parse(body []byte, _ http.Header, r *Request) error {
	var q responsesRequest
	if err := json.Unmarshal(body, &q); err != nil {
		return fmt.Errorf("the body is not a responses request: %w", err)
	}
	r.Model, r.System = q.Model, q.Instructions
	if !q.Stream {
		return errors.New("stream is not true")
	}
	var schemas []json.RawMessage
	for _, t := range q.Tools {
		if t.Type != "function" {
			return fmt.Errorf("tool of type %q", t.Type)
		}
		r.Tools = append(r.Tools, t.Name)
		schemas = append(schemas, t.Parameters)
	}
	if err := checkTools(r.Tools, schemas); err != nil {
		return err
	}
	reasoning := false
	for i, raw := range q.Input {
		var it responsesItem
		if err := json.Unmarshal(raw, &it); err != nil {
			return fmt.Errorf("input[%d]: %w", i, err)
		}
		if reasoning && it.Type != "function_call" && it.Type != "reasoning" && it.Role != "assistant" {
			return fmt.Errorf("input[%d]: the reasoning item before it lacks the item that followed it", i)
		}
		reasoning = it.Type == "reasoning"
		if err := it.read(r); err != nil {
			return fmt.Errorf("input[%d]: %w", i, err)
		}
	}
	if reasoning {
		return errors.New("the last item is a reasoning item without the item that followed it")
	}
	return nil
}

// read appends the item to what the request says.
func (it responsesItem) read(r *Request) error {
	switch {
	case it.Type == "function_call":
		r.assistant(message.Part{Kind: message.ToolCall, ID: it.CallID, Name: it.Name, Arguments: it.Arguments})
	case it.Type == "reasoning":
		if len(it.Summary) == 0 {
			return errors.New("a reasoning item without summary")
		}
		text, err := textOf(it.Summary, "summary_text")
		if err != nil {
			return err
		}
		r.assistant(message.Part{Kind: message.Reasoning, ID: it.ID, Text: text})
	case it.Type == "function_call_output":
		text, err := textOf(it.Output, "input_text", "output_text")
		if err != nil {
			return err
		}
		r.result(message.Part{Kind: message.ToolResult, ID: it.CallID, Text: text})
	case it.Type == "message" || it.Type == "":
		return it.readMessage(r)
	default:
		return fmt.Errorf("item of type %q", it.Type)
	}
	return nil
}

func (it responsesItem) readMessage(r *Request) error {
	switch it.Role {
	case "system", "developer":
		text, err := textOf(it.Content, "input_text")
		if err != nil {
			return err
		}
		r.System += text
	case "user":
		text, err := textOf(it.Content, "input_text")
		if err != nil {
			return err
		}
		r.Messages = append(r.Messages, message.NewText(message.User, text))
	case "assistant":
		var parts []struct{ Type, Text, Refusal string }
		var text string
		if json.Unmarshal(it.Content, &text) == nil {
			r.assistant(message.Part{Kind: message.Text, Text: text})
			return nil
		}
		if err := json.Unmarshal(it.Content, &parts); err != nil {
			return fmt.Errorf("content is neither a string nor an array of parts: %w", err)
		}
		for _, p := range parts {
			switch p.Type {
			case "output_text":
				r.assistant(message.Part{Kind: message.Text, Text: p.Text})
			case "refusal":
				r.assistant(message.Part{Kind: message.Refusal, Text: p.Refusal})
			default:
				return fmt.Errorf("an assistant message with a part of type %q", p.Type)
			}
		}
	default:
		return fmt.Errorf("role %q is unknown", it.Role)
	}
	return nil
}

// assistant adds a part to the assistant's message at the end.
func (r *Request) assistant(p message.Part) { r.appendTo(message.Assistant, p) }

// result adds a tool result to the tool message at the end.
func (r *Request) result(p message.Part) { r.appendTo(message.Tool, p) }

func (r *Request) appendTo(role message.Role, p message.Part) {
	if n := len(r.Messages); n > 0 && r.Messages[n-1].Role == role {
		r.Messages[n-1].Parts = append(r.Messages[n-1].Parts, p)
		return
	}
	r.Messages = append(r.Messages, message.Message{Role: role, Parts: []message.Part{p}})
}
