// Package message holds the wire-neutral form of a conversation. It imports
// nothing of agentd, so that the journal and every wire can speak of the same
// messages.
package message

import (
	"encoding/json"
	"strings"
)

// Role says who a message is from.
type Role string

const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool" // results of the tool calls of the assistant message before
)

// Kind says what a Part is.
type Kind string

const (
	Text       Kind = "text"
	Reasoning  Kind = "reasoning"
	Refusal    Kind = "refusal"
	ToolCall   Kind = "tool_call"
	ToolResult Kind = "tool_result"
)

// Part is one piece of a message, in the order in which it was produced.
type Part struct {
	Kind Kind   `json:"kind"`
	Text string `json:"text,omitempty"` // text, reasoning, refusal; the output of a tool_result

	// ID names the call in tool_call and tool_result; Name is the tool.
	ID   string `json:"id,omitempty"`
	Name string `json:"name,omitempty"`
	// Arguments of a tool_call: the JSON text exactly as it was received.
	Arguments string `json:"arguments,omitempty"`
	// IsError marks a tool_result whose tool failed.
	IsError bool `json:"is_error,omitempty"`

	// Opaque is the wire's own form of this part (a signed thinking block, an
	// encrypted reasoning item); it goes back verbatim, to the same Wire only.
	Opaque json.RawMessage `json:"opaque,omitempty"`
	Wire   string          `json:"wire,omitempty"`
}

// Message is one entry of a conversation.
type Message struct {
	Role  Role   `json:"role"`
	Parts []Part `json:"parts"`
}

// NewText returns a message of one text part.
func NewText(role Role, text string) Message {
	return Message{Role: role, Parts: []Part{{Kind: Text, Text: text}}}
}

// Text returns the text parts of m joined without a separator.
func (m Message) Text() string {
	var b strings.Builder
	for _, p := range m.Parts {
		if p.Kind == Text {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// ToolCalls returns the tool_call parts of m in order.
func (m Message) ToolCalls() []Part {
	var calls []Part
	for _, p := range m.Parts {
		if p.Kind == ToolCall {
			calls = append(calls, p)
		}
	}
	return calls
}

// Definition describes a tool to the model. Schema is a JSON Schema object.
type Definition struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
}

// Usage counts tokens. InputTokens is as the wire reports it; CachedTokens and
// CacheWriteTokens are parts of the input, ReasoningTokens of the output,
// where the wire tells them apart. CostUSD is 0 when unknown.
type Usage struct {
	InputTokens      int64   `json:"input_tokens"`
	OutputTokens     int64   `json:"output_tokens"`
	CachedTokens     int64   `json:"cached_tokens,omitempty"`
	CacheWriteTokens int64   `json:"cache_write_tokens,omitempty"`
	ReasoningTokens  int64   `json:"reasoning_tokens,omitempty"`
	CostUSD          float64 `json:"cost_usd"`
}

// Add returns the sum of u and v.
func (u Usage) Add(v Usage) Usage {
	u.InputTokens += v.InputTokens
	u.OutputTokens += v.OutputTokens
	u.CachedTokens += v.CachedTokens
	u.CacheWriteTokens += v.CacheWriteTokens
	u.ReasoningTokens += v.ReasoningTokens
	u.CostUSD += v.CostUSD
	return u
}
