package provider

import (
	"encoding/json"
	"net/http"

	"agentd/provider/message"
)

// responsesWire speaks OpenAI Responses, without state at the provider: nothing
// is stored, and reasoning comes and goes encrypted.
type responsesWire struct{}

func (responsesWire) path() string { return "/responses" }

func (responsesWire) header(h http.Header, e *Endpoint) { bearer(h, e) }

// item is an input item that agentd writes.
type item struct {
	Type      string        `json:"type"`
	Role      string        `json:"role,omitempty"`
	Content   []itemContent `json:"content,omitempty"`
	CallID    string        `json:"call_id,omitempty"`
	Name      string        `json:"name,omitempty"`
	Arguments string        `json:"arguments,omitempty"`
	Output    *string       `json:"output,omitempty"`

	opaque json.RawMessage // goes out instead of all this
}

type itemContent struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func (i item) MarshalJSON() ([]byte, error) {
	if i.opaque != nil {
		return i.opaque, nil
	}
	type plain item
	return marshal(plain(i)), nil
}

type responsesTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
}

func (responsesWire) body(r *Request, _ *Endpoint, s shape) (fields, error) {
	input := responsesInput(r, s)
	if len(input) == 0 {
		return nil, errEmpty
	}
	f := fields{
		"model":   r.Model,
		"input":   input,
		"store":   false,
		"include": []string{"reasoning.encrypted_content"},
	}
	if r.System != "" {
		f.set("instructions", r.System)
	}
	if len(r.Tools) > 0 {
		tools := make([]responsesTool, len(r.Tools))
		for i, t := range r.Tools {
			tools[i] = responsesTool{"function", t.Name, t.Description, parameters(t), false}
		}
		f.set("tools", tools)
	}
	if r.MaxOutputTokens > 0 {
		f.set("max_output_tokens", s.limit(r.MaxOutputTokens))
	}
	if r.Effort != "" {
		reasoning := map[string]string{"effort": r.Effort}
		if !s.drops("summary") {
			reasoning["summary"] = "auto"
		}
		f.set("reasoning", reasoning)
	}
	return s.apply(f), nil
}

func responsesInput(r *Request, s shape) []item {
	var out []item
	for _, m := range r.Messages {
		if m.Role == message.Assistant {
			out = append(out, responsesAssistant(m, s)...)
			continue
		}
		var content []itemContent
		for _, p := range m.Parts {
			switch {
			case p.Kind == message.ToolResult:
				out = append(out, item{Type: "function_call_output", CallID: callID(p.ID, 64), Output: &p.Text})
			case p.Text != "":
				content = append(content, itemContent{"input_text", p.Text})
			}
		}
		if len(content) > 0 {
			role := string(m.Role)
			if m.Role != message.System {
				role = string(message.User)
			}
			out = append(out, item{Type: "message", Role: role, Content: content})
		}
	}
	return out
}

func responsesAssistant(m message.Message, s shape) []item {
	var out []item
	for _, p := range m.Parts {
		switch p.Kind {
		case message.Text, message.Refusal:
			if p.Text != "" {
				out = append(out, item{Type: "message", Role: "assistant", Content: []itemContent{{"output_text", p.Text}}})
			}
		case message.ToolCall:
			out = append(out, item{Type: "function_call", CallID: callID(p.ID, 64), Name: p.Name, Arguments: string(arguments(p))})
		case message.Reasoning:
			// Without include the provider has no use for what it encrypted.
			if p.Wire == string(Responses) && len(p.Opaque) > 0 && !s.drops("include") {
				out = append(out, item{opaque: p.Opaque})
			}
		}
	}
	return out
}
