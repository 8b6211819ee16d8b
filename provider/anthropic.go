package provider

import (
	"bytes"
	"encoding/json"

	"agentd/provider/jsonscan"
	"agentd/provider/message"
	"agentd/provider/sse"
	"agentd/recovery"
)

// anthropicReply accumulates a Messages stream.
type anthropicReply struct {
	draft
	outcome
	opts    *StreamOptions
	cur     jsonscan.Cursor
	ev      anthropicEvent
	blocks  []*anthropicBlock
	stopped bool // message_stop was seen
}

// anthropicBlock is a content block and what its kind needs beside the text.
type anthropicBlock struct {
	*part
	index     int64
	typ       string
	signature []byte
	raw       []byte // the block as it began, of a kind that is only passed through
}

// anthropicEvent is one event, read in one pass whatever the order of its keys.
type anthropicEvent struct {
	typ     []byte
	index   int64
	payload []byte // the text, thinking, signature or JSON of a delta
	field   string // which of these it is
	id      []byte // of a message or a block
	name    []byte
	model   []byte
	block   string // the type of the block that starts
	raw     []byte // that block
	input   []byte // its input, if there is any
	stop    []byte // stop_reason
	failed  bool
}

func newAnthropicReply(o *StreamOptions) *anthropicReply {
	return &anthropicReply{draft: draft{preview: o.Preview}, opts: o}
}

func (r *anthropicReply) stage() stage {
	if r.stopped {
		return closed
	}
	return running
}

func (r *anthropicReply) event(e sse.Event) (bool, *recovery.Fault) {
	if f := errorEvent(e, r.opts.Now); f != nil {
		return false, f
	}
	data := bytes.TrimSpace(e.Data)
	if len(data) == 0 || string(data) == "[DONE]" {
		return false, nil
	}
	r.cur.Reset(data)
	if r.cur.Kind() != '{' {
		return false, malformed("an event is not a JSON object: %s", excerpt(data))
	}
	r.read(e.Type)
	if err := r.cur.End(); err != nil {
		return false, malformed("an event is broken: %v", err)
	}
	if r.ev.failed || string(r.ev.typ) == "error" {
		return false, classifyEvent(data, r.opts.Now())
	}
	return r.apply()
}

// read fills r.ev.
func (r *anthropicReply) read(name []byte) {
	c, ev := &r.cur, &r.ev
	*ev = anthropicEvent{typ: append(ev.typ[:0], name...), payload: ev.payload[:0], index: -1}
	for key := range c.Object() {
		switch string(key) {
		case "type":
			if c.Kind() == '"' {
				ev.typ = c.AppendString(ev.typ[:0])
			}
		case "index":
			ev.index = c.Int()
		case "delta":
			r.readDelta()
		case "content_block":
			r.readBlock()
		case "message":
			r.readMessage()
		case "usage":
			r.readUsage()
		case "error":
			ev.failed = c.Kind() != 'n'
		}
	}
}

func (r *anthropicReply) readDelta() {
	c, ev := &r.cur, &r.ev
	for key := range c.Object() {
		switch string(key) {
		case "text", "thinking", "partial_json", "signature":
			if c.Kind() == '"' {
				ev.field = deltaField(key)
				ev.payload = c.AppendString(ev.payload[:0])
			}
		case "stop_reason":
			ev.stop = bytes.Clone(c.String())
		}
	}
}

// deltaField returns the key as a string without allocating one.
func deltaField(key []byte) string {
	switch string(key) {
	case "text":
		return "text"
	case "thinking":
		return "thinking"
	case "signature":
		return "signature"
	}
	return "partial_json"
}

func (r *anthropicReply) readBlock() {
	c, ev := &r.cur, &r.ev
	ev.raw = bytes.Clone(c.Raw())
	var b jsonscan.Cursor
	b.Reset(ev.raw)
	for key := range b.Object() {
		switch string(key) {
		case "type":
			ev.block = string(b.String())
		case "id":
			ev.id = bytes.Clone(b.String())
		case "name":
			ev.name = bytes.Clone(b.String())
		case "text", "thinking":
			ev.payload = b.AppendString(ev.payload[:0])
		case "input":
			if b.Kind() == '{' {
				ev.input = b.Raw()
			}
		}
	}
}

func (r *anthropicReply) readMessage() {
	c, ev := &r.cur, &r.ev
	for key := range c.Object() {
		switch string(key) {
		case "id":
			ev.id = bytes.Clone(c.String())
		case "model":
			ev.model = bytes.Clone(c.String())
		case "usage":
			r.readUsage()
		}
	}
}

// readUsage takes the counts as they come: they are totals, and an event that
// leaves one out does not change it.
func (r *anthropicReply) readUsage() {
	c, u := &r.cur, &r.usage
	for key := range c.Object() {
		var to *int64
		switch string(key) {
		case "input_tokens":
			to = &u.InputTokens
		case "output_tokens":
			to = &u.OutputTokens
		case "cache_read_input_tokens":
			to = &u.CachedTokens
		case "cache_creation_input_tokens":
			to = &u.CacheWriteTokens
		default:
			continue
		}
		if n := c.Int(); n > 0 {
			*to = n
		}
	}
}

// apply does what r.ev says and reports whether it carried meaning.
func (r *anthropicReply) apply() (bool, *recovery.Fault) {
	ev := &r.ev
	switch string(ev.typ) {
	case "message_start":
		setOnce(&r.id, ev.id)
		setOnce(&r.model, ev.model)
	case "content_block_start":
		r.start()
	case "content_block_delta":
		b := r.block(ev.index)
		if b == nil {
			return false, malformed("a delta for block %d, which has not begun", ev.index)
		}
		r.delta(b)
	case "content_block_stop":
		if b := r.block(ev.index); b != nil {
			b.open = false
		}
	case "message_delta":
		if len(ev.stop) > 0 {
			r.raw = string(ev.stop)
		}
	case "message_stop":
		r.stopped = true
	default: // ping, and what may come in later versions
		return false, nil
	}
	return true, r.tooLarge()
}

// block returns the block with an index, the latest one if there are two.
func (r *anthropicReply) block(index int64) *anthropicBlock {
	for i := len(r.blocks) - 1; i >= 0; i-- {
		if r.blocks[i].index == index {
			return r.blocks[i]
		}
	}
	return nil
}

func (r *anthropicReply) start() {
	ev := &r.ev
	kind := message.Reasoning // also for what is only passed through
	switch ev.block {
	case "text":
		kind = message.Text
	case "tool_use":
		kind = message.ToolCall
	}
	b := &anthropicBlock{part: r.add(kind), index: ev.index, typ: ev.block}
	r.blocks = append(r.blocks, b)
	switch ev.block {
	case "text", "thinking":
		r.write(b.part, ev.payload)
	case "tool_use":
		b.open = true
		b.id, b.name = string(ev.id), string(ev.name)
		r.started(b.part)
		if string(bytes.TrimSpace(ev.input)) != "{}" {
			b.whole = len(ev.input) > 0
			r.write(b.part, ev.input)
		}
	default:
		b.raw = ev.raw
	}
}

func (r *anthropicReply) delta(b *anthropicBlock) {
	ev := &r.ev
	if ev.field == "signature" {
		b.signature = append(b.signature, ev.payload...)
		return
	}
	if b.raw != nil { // the input of a server tool: kept, not shown
		b.text = append(b.text, ev.payload...)
		r.size += len(ev.payload)
		return
	}
	if b.whole && len(ev.payload) > 0 { // the input at the start was provisional
		b.text, b.whole = b.text[:0], false
	}
	r.write(b.part, ev.payload)
}

func (r *anthropicReply) reply() (*Reply, *recovery.Fault) {
	r.finish = anthropicFinish(r.raw)
	if r.finish == Stop && r.draft.calls() {
		r.finish = ToolCalls
	}
	for _, b := range r.blocks {
		b.seal()
	}
	return r.seal(&r.draft, Anthropic)
}

// seal gives a block that goes back verbatim its own form.
func (b *anthropicBlock) seal() {
	switch {
	case b.typ == "thinking":
		b.opaque = marshal(thinkingBlock{"thinking", string(b.text), string(b.signature)})
	case b.raw == nil:
	case len(b.text) == 0:
		b.opaque = b.raw
	default:
		var m map[string]json.RawMessage
		if json.Unmarshal(b.raw, &m) == nil && validJSON(b.text) == nil {
			m["input"] = bytes.Clone(b.text)
			b.opaque = marshal(m)
		}
		b.text = nil
	}
}

type thinkingBlock struct {
	Type      string `json:"type"`
	Thinking  string `json:"thinking"`
	Signature string `json:"signature,omitempty"`
}

// marshal encodes what cannot fail to encode.
func marshal(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return nil
	}
	return bytes.TrimSpace(b.Bytes())
}

func anthropicFinish(raw string) Finish {
	switch raw {
	case "tool_use":
		return ToolCalls
	case "max_tokens":
		return Length
	case "refusal":
		return Filtered
	case "pause_turn":
		return Paused
	case "model_context_window_exceeded":
		return Overflown
	}
	return Stop
}
