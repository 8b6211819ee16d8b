package provider

import (
	"bytes"
	"strings"

	"agentd/provider/jsonscan"
	"agentd/provider/message"
	"agentd/provider/sse"
	"agentd/recovery"
)

// responsesReply accumulates a Responses stream. What an item's done event, or
// the final response, says of an item replaces what its deltas said.
type responsesReply struct {
	draft
	outcome
	opts   *StreamOptions
	cur    jsonscan.Cursor
	ev     responsesEvent
	items  []*responsesItem
	ended  bool   // a terminal event was seen
	status string // of the response
	reason string // why it is incomplete
}

// responsesItem is an output item. Messages have content parts; reasoning and
// function calls are one part.
type responsesItem struct {
	index   int64
	typ     string
	part    *part
	content []*part
	summary int64 // the summary part that is being written
}

// responsesEvent is one event, read in one pass whatever the order of its keys.
type responsesEvent struct {
	typ      []byte
	output   int64 // output_index
	content  int64 // content_index
	summary  int64 // summary_index
	delta    []byte
	hasFinal bool
	final    []byte // arguments, text or refusal of a done event
	item     []byte
	response []byte
	failed   bool
}

func newResponsesReply(o *StreamOptions) *responsesReply {
	return &responsesReply{draft: draft{preview: o.Preview}, opts: o}
}

func (r *responsesReply) stage() stage {
	if r.ended {
		return closed
	}
	return running
}

func (r *responsesReply) event(e sse.Event) (bool, *recovery.Fault) {
	if f := errorEvent(e, r.opts.Now); f != nil {
		return false, f
	}
	data := bytes.TrimSpace(e.Data)
	if len(data) == 0 {
		return false, nil
	}
	if string(data) == "[DONE]" {
		r.ended = r.opts.DoneIsTerminal
		return true, nil
	}
	r.cur.Reset(data)
	if r.cur.Kind() != '{' {
		return false, malformed("an event is not a JSON object: %s", excerpt(data))
	}
	r.read(e.Type)
	if err := r.cur.End(); err != nil {
		return false, malformed("an event is broken: %v", err)
	}
	typ := string(r.ev.typ)
	if typ == "error" || typ == "response.failed" || typ == "response.error" || r.ev.failed && r.ev.response == nil {
		return false, classifyEvent(data, r.opts.Now())
	}
	meant := r.apply()
	if f := r.statusFault(data); f != nil {
		return false, f
	}
	return meant, r.tooLarge()
}

// read fills r.ev.
func (r *responsesReply) read(name []byte) {
	c, ev := &r.cur, &r.ev
	*ev = responsesEvent{typ: append(ev.typ[:0], name...), delta: ev.delta[:0], final: ev.final[:0], output: -1}
	for key := range c.Object() {
		switch string(key) {
		case "type":
			if c.Kind() == '"' {
				ev.typ = c.AppendString(ev.typ[:0])
			}
		case "output_index":
			ev.output = c.Int()
		case "content_index":
			ev.content = c.Int()
		case "summary_index":
			ev.summary = c.Int()
		case "delta":
			ev.delta = c.AppendString(ev.delta[:0])
		case "arguments", "text", "refusal":
			if c.Kind() == '"' {
				ev.hasFinal = true
				ev.final = c.AppendString(ev.final[:0])
			}
		case "item":
			ev.item = c.Raw()
		case "response":
			ev.response = c.Raw()
		case "error":
			ev.failed = c.Kind() != 'n'
		}
	}
}

// apply does what r.ev says and reports whether it carried meaning.
func (r *responsesReply) apply() bool {
	ev := &r.ev
	if ev.response != nil {
		r.response(ev.response)
	}
	switch string(ev.typ) {
	case "response.created", "response.in_progress", "response.queued":
	case "response.output_item.added":
		r.added()
	case "response.output_item.done":
		r.done(ev.output, ev.item)
	case "response.output_text.delta":
		r.write(r.content(ev.output, ev.content, message.Text), ev.delta)
	case "response.refusal.delta":
		r.write(r.content(ev.output, ev.content, message.Refusal), ev.delta)
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		r.reasoning()
	case "response.function_call_arguments.delta":
		if it := r.item(ev.output, "function_call"); it != nil {
			r.write(it.part, ev.delta)
		}
	case "response.function_call_arguments.done":
		if it := r.item(ev.output, "function_call"); it != nil && ev.hasFinal {
			r.replace(it.part, ev.final)
		}
	case "response.completed", "response.done", "response.incomplete":
		r.ended = true
		if r.status == "" {
			r.status = strings.TrimPrefix(string(ev.typ), "response.")
		}
	case "response.content_part.added", "response.content_part.done", "response.output_text.done", "response.refusal.done",
		"response.reasoning_summary_part.added", "response.reasoning_summary_part.done", "response.reasoning_summary_text.done", "response.reasoning_text.done":
	default:
		return false
	}
	return true
}
