package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"

	"agentd/provider/message"
)

// chatWire speaks OpenAI Chat Completions.
type chatWire struct{}

func (chatWire) path() string { return "/chat/completions" }

func (chatWire) header(h http.Header, e *Endpoint) { bearer(h, e) }

// bearer sets the key as OpenAI and Azure want it.
func bearer(h http.Header, e *Endpoint) {
	switch {
	case e.APIKey == "":
	case e.azure():
		h.Set("Api-Key", e.APIKey)
	default:
		h.Set("Authorization", "Bearer "+e.APIKey)
	}
}

func (e *Endpoint) azure() bool {
	for _, domain := range []string{".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com"} {
		if strings.Contains(e.BaseURL, domain) {
			return true
		}
	}
	return e.Name == "azure"
}

type chatMessage struct {
	Role       string          `json:"role"`
	Content    *string         `json:"content"`
	ToolCalls  []chatToolCall  `json:"tool_calls,omitempty"`
	ToolCallID string          `json:"tool_call_id,omitempty"`
	Details    json.RawMessage `json:"reasoning_details,omitempty"`
	Reasoning  string          `json:"reasoning_content,omitempty"`
}

type chatToolCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function chatFunction `json:"function"`

	Extra json.RawMessage `json:"extra_content,omitempty"`
}

type chatFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type chatTool struct {
	Type     string       `json:"type"`
	Function chatToolSpec `json:"function"`
}

type chatToolSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}

func (chatWire) body(r *Request, e *Endpoint, s shape) (fields, error) {
	msgs := chatMessages(r, e, s)
	if len(msgs) == 0 {
		return nil, errEmpty
	}
	f := fields{
		"model":          r.Model,
		"messages":       msgs,
		"stream_options": map[string]bool{"include_usage": true},
	}
	if len(r.Tools) > 0 {
		tools := make([]chatTool, len(r.Tools))
		for i, t := range r.Tools {
			tools[i] = chatTool{"function", chatToolSpec{t.Name, t.Description, parameters(t)}}
		}
		f.set("tools", tools)
	}
	if r.MaxOutputTokens > 0 {
		f.set(chatLimit(e, s), s.limit(r.MaxOutputTokens))
	}
	if r.Effort != "" {
		f.set("reasoning_effort", r.Effort)
	}
	return s.apply(f), nil
}

// chatLimit returns the name of the output limit: OpenAI has renamed it, and the
// others have not followed. Where one is refused the other one is tried.
func chatLimit(e *Endpoint, s shape) string {
	const old, renamed = "max_tokens", "max_completion_tokens"
	first, second := old, renamed
	if e.Name == "openai" || e.azure() || strings.Contains(e.BaseURL, "//api.openai.com") {
		first, second = renamed, old
	}
	if s.drops(first) {
		return second
	}
	return first
}

func chatMessages(r *Request, e *Endpoint, s shape) []chatMessage {
	var out []chatMessage
	if r.System != "" {
		out = append(out, chatMessage{Role: "system", Content: &r.System})
	}
	// A server that streams reasoning_content wants it back within the turn that
	// still runs, and in no other.
	turn := 0
	for i, m := range r.Messages {
		if m.Role == message.User {
			turn = i
		}
	}
	for i, m := range r.Messages {
		switch m.Role {
		case message.Assistant:
			out = append(out, chatAssistant(m, e, s, i > turn))
		case message.Tool:
			out = append(out, chatResults(m, e)...)
		default:
			// Results may stand in a user message too.
			out = append(out, chatResults(m, e)...)
			if text := m.Text(); text != "" {
				out = append(out, chatMessage{Role: string(m.Role), Content: &text})
			}
		}
	}
	return out
}

func chatResults(m message.Message, e *Endpoint) []chatMessage {
	var out []chatMessage
	for _, p := range m.Parts {
		if p.Kind == message.ToolResult {
			out = append(out, chatMessage{Role: "tool", ToolCallID: chatID(p.ID, e), Content: &p.Text})
		}
	}
	return out
}

func chatAssistant(m message.Message, e *Endpoint, s shape, current bool) chatMessage {
	out := chatMessage{Role: "assistant"}
	var text strings.Builder
	for _, p := range m.Parts {
		switch p.Kind {
		case message.Text, message.Refusal:
			text.WriteString(p.Text)
		case message.ToolCall:
			c := chatToolCall{ID: chatID(p.ID, e), Type: "function", Function: chatFunction{p.Name, string(arguments(p))}}
			if p.Wire == string(Chat) && !s.drops("extra_content") {
				c.Extra = p.Opaque
			}
			out.ToolCalls = append(out.ToolCalls, c)
		case message.Reasoning:
			switch {
			case p.Wire != string(Chat) || len(p.Opaque) == 0:
			case p.Opaque[0] == '[' && !s.drops("reasoning_details"):
				out.Details = p.Opaque
			case p.Opaque[0] == '"' && current && !s.drops("reasoning_content"):
				out.Reasoning = p.Text
			}
		}
	}
	if t := text.String(); t != "" || len(out.ToolCalls) == 0 {
		out.Content = &t
	}
	if len(out.ToolCalls) == 0 {
		out.Reasoning = ""
	}
	return out
}

// chatID makes an id fit: Mistral wants nine letters and digits, OpenAI at most
// 40 characters of any kind.
func chatID(id string, e *Endpoint) string {
	if e.Name == "mistral" || strings.Contains(e.BaseURL, ".mistral.ai") {
		if len(id) == 9 && strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == "" {
			return id
		}
		sum := sha256.Sum256([]byte(id))
		return hex.EncodeToString(sum[:])[:9]
	}
	if len(id) > 40 {
		return callID(id, 40)
	}
	return id
}
