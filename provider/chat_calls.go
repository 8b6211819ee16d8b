package provider

import (
	"bytes"
	"encoding/json"

	"agentd/provider/message"
)

// toolCallDelta is one element of delta.tool_calls.
type toolCallDelta struct {
	slot int // -1: none
	id   []byte
	name []byte
	args []byte
	full bool // args came as an object instead of a string
	// extra is extra_content, in which Gemini signs a call. It has to go back.
	extra []byte
}

func (r *chatReply) toolCall() {
	c := &r.cur
	d := toolCallDelta{slot: -1}
	for key := range c.Object() {
		switch string(key) {
		case "index":
			if c.Kind() == '0' {
				d.slot = int(c.Int())
			}
		case "id":
			d.id = bytes.Clone(c.String())
		case "function":
			r.function(&d)
		case "extra_content":
			if c.Kind() == '{' {
				d.extra = bytes.Clone(c.Raw())
			}
		}
	}
	r.apply(d)
}

// functionCall reads the form before tools: one call, without an id.
func (r *chatReply) functionCall() {
	d := toolCallDelta{slot: -1}
	if r.cur.Kind() == '{' {
		r.function(&d)
		r.apply(d)
	}
}

func (r *chatReply) function(d *toolCallDelta) {
	c := &r.cur
	for key := range c.Object() {
		switch string(key) {
		case "name":
			d.name = bytes.Clone(c.String())
		case "arguments":
			switch c.Kind() {
			case '"':
				r.args = c.AppendString(r.args[:0])
				d.args = r.args
			case '{':
				d.args, d.full = c.Raw(), true
			}
		}
	}
}

// apply adds a delta to the call it belongs to.
func (r *chatReply) apply(d toolCallDelta) {
	call := r.find(d)
	if call == nil {
		call = &chatCall{part: r.add(message.ToolCall), slot: d.slot}
		r.toolCalls = append(r.toolCalls, call)
	}
	setOnce(&call.id, d.id)
	setOnce(&call.name, d.name)
	if d.extra != nil {
		call.opaque = d.extra
	}
	r.started(call.part)
	if d.full {
		if call.whole || len(call.text) > 0 {
			call.text = call.text[:0]
		}
		call.whole = true
	}
	r.write(call.part, d.args)
}

// find returns the call that a delta continues, or nil if it begins a new one.
// The id decides where there is one: a new id is a new call even on a known
// index, and without any index. Without an id the index decides, and without
// that the delta continues the latest call. A call that has another name, or a
// complete set of arguments and is named again, is over.
func (r *chatReply) find(d toolCallDelta) *chatCall {
	if len(d.id) > 0 {
		for _, c := range r.toolCalls {
			if c.id == string(d.id) && (d.slot < 0 || c.slot < 0 || c.slot == d.slot) {
				return c
			}
		}
		if c := r.at(d.slot); d.slot >= 0 && c != nil && c.id == "" && !renamed(c, d) {
			return c
		}
		return nil
	}
	c := r.at(d.slot)
	if c == nil || renamed(c, d) {
		return nil
	}
	return c
}

// at returns the latest call on a slot; any slot if it is -1.
func (r *chatReply) at(slot int) *chatCall {
	for i := len(r.toolCalls) - 1; i >= 0; i-- {
		if c := r.toolCalls[i]; slot < 0 || c.slot == slot || c.slot < 0 {
			return c
		}
	}
	return nil
}

func renamed(c *chatCall, d toolCallDelta) bool {
	if len(d.name) == 0 || c.name == "" {
		return false
	}
	if string(d.name) != c.name {
		return true
	}
	return len(d.args) > 0 && c.complete()
}

// detail is one block of reasoning_details. The texts are apart while they grow.
type detail struct {
	fields map[string]json.RawMessage
	texts  map[string][]byte
}

// mergeDetails joins the pieces of reasoning_details that stream one block, so
// that the blocks go back as the provider keeps them.
func mergeDetails(pieces [][]byte) []byte {
	var blocks []detail
	for _, p := range pieces {
		var m map[string]json.RawMessage
		if json.Unmarshal(p, &m) != nil {
			continue // not an object: not a block
		}
		if n := len(blocks); n == 0 || !sameBlock(blocks[n-1].fields, m) {
			blocks = append(blocks, detail{map[string]json.RawMessage{}, map[string][]byte{}})
		}
		blocks[len(blocks)-1].join(m)
	}
	out := make([]map[string]json.RawMessage, len(blocks))
	for i, b := range blocks {
		out[i] = b.fields
		for k, text := range b.texts {
			out[i][k] = marshal(string(text))
		}
	}
	return marshal(out)
}

func sameBlock(a, b map[string]json.RawMessage) bool {
	kind := string(b["type"])
	if kind != `"reasoning.text"` && kind != `"reasoning.summary"` {
		return false
	}
	return kind == string(a["type"]) && string(a["index"]) == string(b["index"])
}

// join adds a piece: its texts are appended, its other fields fill what lacks.
func (d *detail) join(piece map[string]json.RawMessage) {
	for k, v := range piece {
		var text string
		if (k == "text" || k == "summary") && json.Unmarshal(v, &text) == nil {
			d.texts[k] = append(d.texts[k], text...)
			continue
		}
		if have := string(d.fields[k]); have == "" || have == "null" {
			d.fields[k] = v
		}
	}
}
