package provider

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	"agentd/provider/message"
)

// anthropicWire speaks Anthropic Messages.
type anthropicWire struct{}

// defaultMaxTokens is sent where the caller sets no limit: the wire demands one.
// A model that allows less says so, and is asked for that.
const defaultMaxTokens = 32000

func (anthropicWire) path() string { return "/v1/messages" }

func (anthropicWire) header(h http.Header, e *Endpoint) {
	h.Set("Anthropic-Version", "2023-06-01")
	if e.APIKey != "" {
		h.Set("X-Api-Key", e.APIKey)
	}
}

// block is a content block that agentd writes.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   string          `json:"content,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
	Cache     *cacheControl   `json:"cache_control,omitempty"`

	opaque json.RawMessage // goes out instead of all this
}

func (b block) MarshalJSON() ([]byte, error) {
	if b.opaque != nil {
		return b.opaque, nil
	}
	type plain block
	return marshal(plain(b)), nil
}

type cacheControl struct {
	Type string `json:"type"`
}

type anthropicMessage struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

type anthropicTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
}

func (anthropicWire) body(r *Request, e *Endpoint, s shape) (fields, error) {
	msgs := anthropicMessages(r, e, s)
	if len(msgs) == 0 {
		return nil, errEmpty
	}
	if !s.drops("cache_control") {
		mark(msgs)
	}
	most := r.MaxOutputTokens
	if most <= 0 {
		most = defaultMaxTokens
	}
	f := fields{"model": r.Model, "messages": msgs, "max_tokens": s.limit(most)}
	if r.System != "" {
		b := block{Type: "text", Text: r.System}
		if !s.drops("cache_control") {
			b.Cache = &cacheControl{"ephemeral"}
		}
		f.set("system", []block{b})
	}
	if len(r.Tools) > 0 {
		tools := make([]anthropicTool, len(r.Tools))
		for i, t := range r.Tools {
			tools[i] = anthropicTool{t.Name, t.Description, parameters(t)}
		}
		f.set("tools", tools)
	}
	if n := thinkingBudget(r.Effort, s.limit(most)); n > 0 && !s.drops("thinking") {
		f.set("thinking", map[string]any{"type": "enabled", "budget_tokens": n})
	}
	return f, nil
}

// thinkingBudget returns how many tokens an effort may think, which has to be
// less than the output limit and at least 1024; 0 is not at all.
func thinkingBudget(effort string, most int) int {
	n := 0
	switch effort {
	case "low":
		n = 4096
	case "medium":
		n = 10240
	case "high":
		n = 24000
	}
	if n = min(n, most-1024); n < 1024 {
		return 0
	}
	return n
}

// anthropicMessages maps the conversation: roles alternate, results of tools are
// user blocks and come first in their message, and no text is empty.
func anthropicMessages(r *Request, e *Endpoint, s shape) []anthropicMessage {
	var out []anthropicMessage
	add := func(role string, blocks []block) {
		if len(blocks) == 0 {
			return
		}
		if n := len(out); n > 0 && out[n-1].Role == role {
			out[n-1].Content = append(out[n-1].Content, blocks...)
			return
		}
		out = append(out, anthropicMessage{role, blocks})
	}
	for _, m := range r.Messages {
		if m.Role == message.Assistant {
			add("assistant", anthropicAssistant(m, e, s))
			continue
		}
		add("user", anthropicUser(m))
	}
	for i := range out {
		resultsFirst(out[i].Content)
	}
	if len(out) > 0 && out[0].Role == "assistant" {
		out = append([]anthropicMessage{{"user", []block{{Type: "text", Text: "Continue."}}}}, out...)
	}
	if n := len(out); n > 0 && out[n-1].Role == "assistant" {
		trimLast(out[n-1].Content)
	}
	return out
}

func anthropicUser(m message.Message) []block {
	var out []block
	for _, p := range m.Parts {
		switch {
		case p.Kind == message.ToolResult:
			out = append(out, block{Type: "tool_result", ToolUseID: callID(p.ID, 64), Content: p.Text, IsError: p.IsError})
		case strings.TrimSpace(p.Text) != "":
			out = append(out, block{Type: "text", Text: p.Text})
		}
	}
	return out
}

func anthropicAssistant(m message.Message, e *Endpoint, s shape) []block {
	var out []block
	for _, p := range m.Parts {
		switch p.Kind {
		case message.Text, message.Refusal:
			if strings.TrimSpace(p.Text) != "" {
				out = append(out, block{Type: "text", Text: p.Text})
			}
		case message.ToolCall:
			out = append(out, block{Type: "tool_use", ID: callID(p.ID, 64), Name: p.Name, Input: arguments(p)})
		case message.Reasoning:
			if p.Wire == string(Anthropic) && len(p.Opaque) > 0 && goesBack(p.Opaque, e, s) {
				out = append(out, block{opaque: p.Opaque})
			}
		}
	}
	return out
}

// goesBack reports whether an opaque block may be sent: Anthropic itself refuses
// thinking without a signature, which other servers send.
func goesBack(opaque json.RawMessage, e *Endpoint, s shape) bool {
	if !bytes.Contains(opaque, []byte("thinking")) {
		return true
	}
	signed := !bytes.Contains(opaque, []byte(`"type":"thinking"`)) || bytes.Contains(opaque, []byte(`"signature":"`))
	return !s.drops("thinking") && (signed || !strings.Contains(e.BaseURL, "anthropic.com"))
}

// resultsFirst moves tool results before everything else, keeping their order.
func resultsFirst(blocks []block) {
	at := 0
	for i, b := range blocks {
		if b.Type == "tool_result" {
			copy(blocks[at+1:i+1], blocks[at:i])
			blocks[at] = b
			at++
		}
	}
}

// trimLast cuts the space at the end of a reply that is to be continued, which
// the wire refuses.
func trimLast(blocks []block) {
	if b := &blocks[len(blocks)-1]; b.Type == "text" {
		b.Text = strings.TrimRight(b.Text, " \t\r\n")
	}
}

// mark sets cache breakpoints on the last two user messages: the newest one
// writes the prefix that the next request reads, and the one before is what this
// request reads.
func mark(msgs []anthropicMessage) {
	left := 2
	for i := len(msgs) - 1; i >= 0 && left > 0; i-- {
		m := msgs[i]
		if m.Role != "user" {
			continue
		}
		if b := &m.Content[len(m.Content)-1]; b.opaque == nil {
			b.Cache = &cacheControl{"ephemeral"}
			left--
		}
	}
}
