package rehearsal

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"agentd/provider/message"
)

// maxCacheMarks is how many cache_control marks the Messages API allows.
const maxCacheMarks = 4

type anthropicRequest struct {
	Model     string          `json:"model"`
	MaxTokens int             `json:"max_tokens"`
	Stream    bool            `json:"stream"`
	System    json.RawMessage `json:"system"`
	Messages  []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Name        string          `json:"name"`
		InputSchema json.RawMessage `json:"input_schema"`
	} `json:"tools"`
	Thinking *struct {
		Type         string `json:"type"`
		BudgetTokens int    `json:"budget_tokens"`
	} `json:"thinking"`
}

type anthropicBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
}

func (anthropicDialect) parse(body []byte, h http.Header, r *Request) error {
	var q anthropicRequest
	if err := json.Unmarshal(body, &q); err != nil {
		return fmt.Errorf("the body is not a messages request: %w", err)
	}
	r.Model = q.Model
	switch {
	case h.Get("Anthropic-Version") == "":
		return errors.New("the anthropic-version header is missing")
	case !q.Stream:
		return errors.New("stream is not true")
	case q.MaxTokens <= 0:
		return errors.New("max_tokens is missing")
	case q.Thinking != nil && q.Thinking.Type == "enabled" && (q.Thinking.BudgetTokens < 1024 || q.Thinking.BudgetTokens >= q.MaxTokens):
		return errors.New("thinking.budget_tokens is not between 1024 and max_tokens")
	case strings.Count(string(body), `"cache_control":`) > maxCacheMarks:
		return fmt.Errorf("more than %d cache_control marks", maxCacheMarks)
	}
	var err error
	if r.System, err = textOf(q.System, "text"); err != nil {
		return fmt.Errorf("system: %w", err)
	}
	var schemas []json.RawMessage
	for _, t := range q.Tools {
		r.Tools = append(r.Tools, t.Name)
		schemas = append(schemas, t.InputSchema)
	}
	if err := checkTools(r.Tools, schemas); err != nil {
		return err
	}
	for i, m := range q.Messages {
		if i > 0 && m.Role == q.Messages[i-1].Role {
			return fmt.Errorf("messages[%d]: two messages of the %s in a row", i, m.Role)
		}
		if err := readAnthropic(r, m.Role, m.Content); err != nil {
			return fmt.Errorf("messages[%d]: %w", i, err)
		}
	}
	return nil
}

// readAnthropic appends the message to what the request says; the results of
// tools, which travel in a user message, become a message of their own.
func readAnthropic(r *Request, role string, content json.RawMessage) error {
	if role != "user" && role != "assistant" {
		return fmt.Errorf("role %q is unknown", role)
	}
	var text string
	blocks := []anthropicBlock{}
	if json.Unmarshal(content, &text) == nil {
		blocks = append(blocks, anthropicBlock{Type: "text", Text: text})
	} else if err := json.Unmarshal(content, &blocks); err != nil {
		return fmt.Errorf("content is neither a string nor an array of blocks: %w", err)
	}
	if len(blocks) == 0 {
		return errors.New("content is empty")
	}
	said := false
	for i, b := range blocks {
		if b.Type == "tool_result" && said {
			return fmt.Errorf("content[%d]: a tool_result after other content", i)
		}
		said = said || b.Type != "tool_result"
		if err := b.read(r, message.Role(role)); err != nil {
			return fmt.Errorf("content[%d]: %w", i, err)
		}
	}
	return nil
}

func (b anthropicBlock) read(r *Request, role message.Role) error {
	assistant := role == message.Assistant
	switch {
	case b.Type == "text":
		if strings.TrimSpace(b.Text) == "" {
			return errors.New("a text block without text")
		}
		r.appendTo(role, message.Part{Kind: message.Text, Text: b.Text})
	case b.Type == "thinking" && assistant:
		if b.Signature == "" {
			return errors.New("a thinking block without its signature")
		}
		r.appendTo(role, message.Part{Kind: message.Reasoning, ID: b.Signature, Text: b.Thinking})
	case b.Type == "redacted_thinking" && assistant:
		if b.Data == "" {
			return errors.New("a redacted_thinking block without data")
		}
		r.appendTo(role, message.Part{Kind: message.Reasoning})
	case b.Type == "tool_use" && assistant:
		if len(b.Input) == 0 {
			return errors.New("a tool_use block without input")
		}
		r.appendTo(role, message.Part{Kind: message.ToolCall, ID: b.ID, Name: b.Name, Arguments: string(b.Input)})
	case b.Type == "tool_result" && !assistant:
		text, err := textOf(b.Content, "text")
		if err != nil {
			return err
		}
		r.appendTo(message.Tool, message.Part{Kind: message.ToolResult, ID: b.ToolUseID, Text: text, IsError: b.IsError})
	default:
		return fmt.Errorf("a block of type %q in a message of the %s", b.Type, role)
	}
	return nil
}
