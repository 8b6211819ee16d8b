package provider

import (
	"bytes"

	"agentd/provider/jsonscan"
	"agentd/provider/message"
	"agentd/recovery"
)

// itemFields are the fields of an output item that count here.
type itemFields struct {
	typ, callID, name, status string
	args                      []byte
	content                   []byte // the list, as it came
	summary                   []byte
	encrypted                 bool
}

func readItem(raw []byte) itemFields {
	var f itemFields
	var c jsonscan.Cursor
	c.Reset(raw)
	for key := range c.Object() {
		switch string(key) {
		case "type":
			f.typ = string(c.String())
		case "call_id":
			f.callID = string(c.String())
		case "name":
			f.name = string(c.String())
		case "status":
			f.status = string(c.String())
		case "arguments":
			if c.Kind() == '{' {
				f.args = c.Raw()
			} else {
				f.args = bytes.Clone(c.String())
			}
		case "content":
			f.content = c.Raw()
		case "summary":
			f.summary = c.Raw()
		case "encrypted_content":
			f.encrypted = len(c.String()) > 0
		}
	}
	return f
}

// item returns the item at an output index if it is of a type; it begins one
// where the added event is missing. An index of -1 means the latest item.
func (r *responsesReply) item(index int64, typ string) *responsesItem {
	for i := len(r.items) - 1; i >= 0; i-- {
		if it := r.items[i]; index < 0 || it.index == index {
			if it.typ != typ {
				return nil
			}
			return it
		}
	}
	it := &responsesItem{index: index, typ: typ}
	switch typ {
	case "function_call":
		it.part = r.add(message.ToolCall)
		it.part.open = true
	case "reasoning":
		it.part = r.add(message.Reasoning)
	}
	r.items = append(r.items, it)
	return it
}

// added begins an item.
func (r *responsesReply) added() {
	f := readItem(r.ev.item)
	it := r.item(r.ev.output, f.typ)
	if it == nil || f.typ != "function_call" {
		return
	}
	it.part.id, it.part.name = f.callID, f.name
	r.started(it.part)
}

// content returns a content part of a message item.
func (r *responsesReply) content(output, index int64, kind message.Kind) *part {
	it := r.item(output, "message")
	if it == nil { // an index that another type has: keep the text all the same
		it = &responsesItem{index: output, typ: "message"}
		r.items = append(r.items, it)
	}
	return r.contentOf(it, index, kind)
}

func (r *responsesReply) contentOf(it *responsesItem, index int64, kind message.Kind) *part {
	if index < 0 || index > 1000 {
		index = 0
	}
	for int64(len(it.content)) <= index {
		it.content = append(it.content, nil)
	}
	if it.content[index] == nil {
		it.content[index] = r.add(kind)
	}
	return it.content[index]
}

// reasoning shows a piece of reasoning; summary parts are paragraphs.
func (r *responsesReply) reasoning() {
	it := r.item(r.ev.output, "reasoning")
	if it == nil {
		return
	}
	if r.ev.summary != it.summary && len(it.part.text) > 0 {
		r.write(it.part, []byte("\n\n"))
	}
	it.summary = r.ev.summary
	r.write(it.part, r.ev.delta)
}

// replace sets the text of p to what is authoritative. What was not shown yet is
// shown, if it only adds to what was.
func (r *responsesReply) replace(p *part, text []byte) {
	if rest, ok := bytes.CutPrefix(text, p.text); ok {
		r.write(p, rest)
		return
	}
	r.size += len(text)
	p.text = bytes.Clone(text)
}

// done takes the final form of an item.
func (r *responsesReply) done(index int64, raw []byte) {
	f := readItem(raw)
	it := r.item(index, f.typ)
	if it == nil {
		return
	}
	switch f.typ {
	case "message":
		r.doneMessage(it, f.content)
	case "function_call":
		p := it.part
		setOnce(&p.id, []byte(f.callID))
		setOnce(&p.name, []byte(f.name))
		r.started(p)
		r.replace(p, f.args)
		p.open = f.status == "incomplete" || f.status == "in_progress"
	case "reasoning":
		if len(it.part.text) == 0 {
			r.write(it.part, joinTexts(f.summary))
		}
		if len(it.part.text) == 0 {
			r.write(it.part, joinTexts(f.content))
		}
		if f.encrypted {
			it.part.opaque = bytes.Clone(raw)
		}
	}
}

func (r *responsesReply) doneMessage(it *responsesItem, content []byte) {
	var c jsonscan.Cursor
	c.Reset(content)
	for i := range c.Array() {
		kind, text := message.Text, []byte(nil)
		for key := range c.Object() {
			switch string(key) {
			case "type":
				if string(c.String()) == "refusal" {
					kind = message.Refusal
				}
			case "text", "refusal":
				text = bytes.Clone(c.String())
			}
		}
		if len(text) > 0 {
			r.replace(r.contentOf(it, int64(i), kind), text)
		}
	}
}

// joinTexts joins the texts of a list of parts as paragraphs.
func joinTexts(list []byte) []byte {
	var c jsonscan.Cursor
	var out []byte
	c.Reset(list)
	for range c.Array() {
		for key := range c.Object() {
			if string(key) == "text" {
				if len(out) > 0 {
					out = append(out, "\n\n"...)
				}
				out = c.AppendString(out)
			}
		}
	}
	return out
}

// response reads the response object that created and terminal events carry.
func (r *responsesReply) response(raw []byte) {
	var c jsonscan.Cursor
	var output []byte
	c.Reset(raw)
	for key := range c.Object() {
		switch string(key) {
		case "id":
			setOnce(&r.id, c.String())
		case "model":
			setOnce(&r.model, c.String())
		case "status":
			r.status = string(c.String())
		case "incomplete_details":
			for key := range c.Object() {
				if string(key) == "reason" {
					r.reason = string(c.String())
				}
			}
		case "usage":
			r.readUsage(&c)
		case "output":
			output = c.Raw()
		}
	}
	if len(output) == 0 || r.status == "in_progress" || r.status == "queued" {
		return
	}
	c.Reset(output)
	for i := range c.Array() {
		r.done(int64(i), c.Raw())
	}
}

func (r *responsesReply) readUsage(c *jsonscan.Cursor) {
	if c.Kind() != '{' {
		return
	}
	var u message.Usage
	for key := range c.Object() {
		switch string(key) {
		case "input_tokens":
			u.InputTokens = c.Int()
		case "output_tokens":
			u.OutputTokens = c.Int()
		case "input_tokens_details":
			for key := range c.Object() {
				if string(key) == "cached_tokens" {
					u.CachedTokens = c.Int()
				}
			}
		case "output_tokens_details":
			for key := range c.Object() {
				if string(key) == "reasoning_tokens" {
					u.ReasoningTokens = c.Int()
				}
			}
		}
	}
	r.usage = u
}

// statusFault returns the fault of a terminal event whose status is not a
// success.
func (r *responsesReply) statusFault(data []byte) *recovery.Fault {
	if !r.ended {
		return nil
	}
	switch r.status {
	case "failed":
		return classifyEvent(data, r.opts.Now())
	case "cancelled":
		return &recovery.Fault{Kind: recovery.Server, Type: "cancelled", Message: "the provider cancelled the response"}
	}
	return nil
}

func (r *responsesReply) reply() (*Reply, *recovery.Fault) {
	r.finish, r.raw = Stop, r.status
	switch {
	case r.status == "incomplete" && r.reason == "content_filter":
		r.finish, r.raw = Filtered, r.reason
	case r.status == "incomplete":
		r.finish = Length
		if r.reason != "" {
			r.raw = r.reason
		}
	case r.draft.calls():
		r.finish = ToolCalls
	case r.refused():
		r.finish = Filtered
	}
	return r.seal(&r.draft, Responses)
}

func (r *responsesReply) refused() bool {
	for _, p := range r.parts {
		if p.kind == message.Refusal {
			return true
		}
	}
	return false
}
