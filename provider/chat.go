package provider

import (
	"bytes"
	"slices"
	"strings"

	"agentd/provider/jsonscan"
	"agentd/provider/message"
	"agentd/provider/sse"
	"agentd/recovery"
)

// chatReply accumulates a Chat Completions stream.
type chatReply struct {
	draft
	outcome
	opts *StreamOptions
	cur  jsonscan.Cursor
	done bool // [DONE] was seen

	text, refusal, reasoning *part
	toolCalls                []*chatCall
	args                     []byte   // decoded arguments of the current delta
	details                  [][]byte // reasoning_details, as they came
	failed                   bool     // the current event reports an error
	choiceError              []byte   // the error of its choice, if it is there
	meant                    bool     // the current event carried meaning
}

// chatCall is a tool call and the index that the wire gave it.
type chatCall struct {
	*part
	slot int // -1: none was given
}

func newChatReply(o *StreamOptions) *chatReply {
	return &chatReply{draft: draft{preview: o.Preview}, opts: o}
}

func (r *chatReply) stage() stage {
	switch {
	case r.done && (r.finish != "" || r.opts.DoneIsTerminal):
		return closed
	case r.finish != "":
		return finished
	}
	return running
}

func (r *chatReply) event(e sse.Event) (bool, *recovery.Fault) {
	if f := errorEvent(e, r.opts.Now); f != nil {
		return false, f
	}
	data := bytes.TrimSpace(e.Data)
	switch {
	case len(data) == 0:
		return false, nil
	case string(data) == "[DONE]":
		r.done = true
		if r.stage() == running {
			return false, truncated("the stream says [DONE] without a finish_reason (if this provider never sends one, set done_is_terminal)")
		}
		return true, nil
	}
	r.failed, r.choiceError, r.meant = false, nil, false
	r.cur.Reset(data)
	if r.cur.Kind() != '{' {
		return false, malformed("an event is not a JSON object: %s", excerpt(data))
	}
	r.chunk()
	if err := r.cur.End(); err != nil {
		return false, malformed("an event is broken: %v", err)
	}
	if r.choiceError != nil {
		return false, classifyEvent(slices.Concat([]byte(`{"error":`), r.choiceError, []byte("}")), r.opts.Now())
	}
	if r.failed {
		return false, classifyEvent(data, r.opts.Now())
	}
	if f := finishFault(r.raw); f != nil {
		return false, f
	}
	return r.meant, r.tooLarge()
}

func (r *chatReply) chunk() {
	c := &r.cur
	plainError := false
	for key := range c.Object() {
		switch string(key) {
		case "choices":
			for range c.Array() {
				r.meant = true
				r.choice()
			}
		case "usage":
			if c.Kind() == '{' {
				r.meant = true
				r.readUsage()
			}
		case "id":
			setOnce(&r.id, c.String())
		case "model":
			setOnce(&r.model, c.String())
		case "error":
			r.failed = r.failed || c.Kind() != 'n'
		case "object":
			plainError = string(c.String()) == "error"
		case "detail":
			plainError = true
		}
	}
	r.failed = r.failed || plainError && !r.meant
}

// choice reads one choice; only the first one counts.
func (r *chatReply) choice() {
	c := &r.cur
	// A choice is the first one unless its index, which comes first where there
	// are more, says otherwise.
	other := false
	for key := range c.Object() {
		switch string(key) {
		case "index":
			other = c.Int() > 0
		case "delta":
			if !other {
				r.delta()
			}
		case "finish_reason":
			if raw := c.String(); len(raw) > 0 && !other {
				r.raw = string(raw)
				r.finish = chatFinish(r.raw)
			}
		case "error":
			if c.Kind() != 'n' {
				r.choiceError = c.Raw()
			}
		}
	}
}

func (r *chatReply) delta() {
	c := &r.cur
	var reasoned bool
	for key := range c.Object() {
		switch string(key) {
		case "content":
			r.content()
		case "refusal":
			if s := c.String(); len(s) > 0 {
				r.write(r.one(&r.refusal, message.Refusal), s)
			}
		case "reasoning_content", "reasoning":
			name := string(key)
			s := c.String()
			if len(s) == 0 || reasoned {
				continue // some servers send both fields with the same text
			}
			reasoned = true
			p := r.one(&r.reasoning, message.Reasoning)
			if name == "reasoning_content" && p.opaque == nil {
				p.opaque = []byte(`"reasoning_content"`)
			}
			r.write(p, s)
		case "reasoning_details":
			for range c.Array() {
				r.details = append(r.details, bytes.Clone(c.Raw()))
			}
		case "tool_calls":
			for range c.Array() {
				r.toolCall()
			}
		case "function_call":
			r.functionCall()
		}
	}
}

// one returns the part that *p names, made on first use.
func (r *chatReply) one(p **part, kind message.Kind) *part {
	if *p == nil {
		*p = r.add(kind)
	}
	return *p
}

// content reads a string or a list of content parts.
func (r *chatReply) content() {
	c := &r.cur
	switch c.Kind() {
	case '"':
		if s := c.String(); len(s) > 0 {
			r.write(r.one(&r.text, message.Text), s)
		}
	case '[':
		for range c.Array() {
			r.contentPart()
		}
	}
}

func (r *chatReply) contentPart() {
	c := &r.cur
	if c.Kind() == '"' {
		r.write(r.one(&r.text, message.Text), c.String())
		return
	}
	for key := range c.Object() {
		switch string(key) {
		case "text":
			if s := c.String(); len(s) > 0 {
				r.write(r.one(&r.text, message.Text), s)
			}
		case "refusal":
			if s := c.String(); len(s) > 0 {
				r.write(r.one(&r.refusal, message.Refusal), s)
			}
		case "thinking": // Mistral: a list of text parts
			for range c.Array() {
				for key := range c.Object() {
					if string(key) == "text" {
						r.write(r.one(&r.reasoning, message.Reasoning), c.String())
					}
				}
			}
		}
	}
}

func (r *chatReply) readUsage() {
	c := &r.cur
	u := message.Usage{}
	for key := range c.Object() {
		switch string(key) {
		case "prompt_tokens":
			u.InputTokens = c.Int()
		case "completion_tokens":
			u.OutputTokens = c.Int()
		case "cost":
			u.CostUSD = c.Float()
		case "prompt_cache_hit_tokens": // DeepSeek
			u.CachedTokens = c.Int()
		case "prompt_tokens_details":
			for key := range c.Object() {
				switch string(key) {
				case "cached_tokens":
					u.CachedTokens = c.Int()
				case "cache_write_tokens":
					u.CacheWriteTokens = c.Int()
				}
			}
		case "completion_tokens_details":
			for key := range c.Object() {
				if string(key) == "reasoning_tokens" {
					u.ReasoningTokens = c.Int()
				}
			}
		}
	}
	r.usage = u // the latest one wins
}

func (r *chatReply) reply() (*Reply, *recovery.Fault) {
	if r.finish == "" { // [DONE] alone, where that counts
		r.finish, r.raw = Stop, "[DONE]"
	}
	if len(r.details) > 0 {
		r.one(&r.reasoning, message.Reasoning).opaque = mergeDetails(r.details)
	}
	if r.finish == Stop && r.draft.calls() {
		r.finish = ToolCalls
	}
	if r.finish == Stop && r.refusal != nil {
		r.finish = Filtered
	}
	return r.seal(&r.draft, Chat)
}

// chatFinish says what a finish_reason means; one that is not known is a stop.
func chatFinish(raw string) Finish {
	switch strings.ToLower(raw) {
	case "tool_calls", "function_call", "tool_use":
		return ToolCalls
	case "length", "max_tokens", "model_length", "max_output_tokens", "repetition_truncation":
		return Length
	case "content_filter", "safety", "refusal", "recitation", "prohibited_content", "blocklist", "spii", "sensitive":
		return Filtered
	case "model_context_window_exceeded", "context_length_exceeded", "context_window_exceeded":
		return Overflown
	}
	return Stop
}

// finishFault returns the fault that a finish_reason reports, if it does.
func finishFault(raw string) *recovery.Fault {
	switch strings.ToLower(raw) {
	case "error", "insufficient_system_resource", "abort", "network_error", "malformed_function_call":
		return &recovery.Fault{Kind: recovery.Server, Type: raw, Message: "the provider gave up in the middle of the reply"}
	}
	return nil
}

// setOnce keeps the first value that is not empty.
func setOnce(s *string, v []byte) {
	if *s == "" && len(v) > 0 {
		*s = string(v)
	}
}
