package rehearsal

import (
	"net/http"
	"time"
)

// anthropicDialect speaks Anthropic Messages.
type anthropicDialect struct{}

// anthropicStream numbers the content blocks.
type anthropicStream struct {
	out   []frame
	index int
}

func (st *anthropicStream) add(p part, kind string, v object) {
	v["type"] = kind
	st.out = append(st.out, event(p, kind, v))
}

func (st *anthropicStream) delta(p part, d object) {
	st.add(p, "content_block_delta", object{"index": st.index, "delta": d})
}

// block adds a content block: start, what fill says, stop.
func (st *anthropicStream) block(start object, fill func()) {
	st.add(partTool, "content_block_start", object{"index": st.index, "content_block": start})
	fill()
	st.add(partTool, "content_block_stop", object{"index": st.index})
	st.index++
}

func (anthropicDialect) frames(s *script) []frame {
	st := &anthropicStream{}
	usage := object{"input_tokens": s.usage.Input - s.usage.Cached, "cache_creation_input_tokens": 0,
		"cache_read_input_tokens": s.usage.Cached, "output_tokens": 1}
	st.add(partStart, "message_start", object{"message": object{
		"id": "msg_" + s.id, "type": "message", "role": "assistant", "model": s.model, "content": []object{},
		"stop_reason": nil, "stop_sequence": nil, "usage": usage,
	}})
	st.add(partStart, "ping", object{})
	if s.reasoning != "" {
		st.block(object{"type": "thinking", "thinking": "", "signature": ""}, func() {
			for _, t := range pieces(s.reasoning, s.piece) {
				st.delta(partReasoning, object{"type": "thinking_delta", "thinking": t})
			}
			st.delta(partReasoning, object{"type": "signature_delta", "signature": s.signature})
		})
	}
	if text := s.text + s.refusal; text != "" {
		st.block(object{"type": "text", "text": ""}, func() {
			for _, t := range pieces(text, s.piece) {
				st.delta(partText, object{"type": "text_delta", "text": t})
			}
		})
	}
	for _, c := range s.calls {
		st.block(object{"type": "tool_use", "id": c.id, "name": c.name, "input": object{}}, func() {
			st.delta(partArguments, object{"type": "input_json_delta", "partial_json": ""})
			for _, t := range pieces(c.arguments, s.piece) {
				st.delta(partArguments, object{"type": "input_json_delta", "partial_json": t})
			}
		})
	}
	st.add(partFinish, "message_delta", object{
		"delta": object{"stop_reason": anthropicFinish(s), "stop_sequence": nil},
		"usage": with(usage, "output_tokens", s.usage.Output),
	})
	st.add(partTerminal, "message_stop", object{})
	return st.out
}

func anthropicFinish(s *script) string {
	if s.raw != nil {
		return *s.raw
	}
	return map[string]string{
		"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "filtered": "refusal",
		"paused": "pause_turn", "overflown": "model_context_window_exceeded",
	}[s.finish]
}

func anthropicFault(e *errorKind, text string) object {
	return object{"type": "error", "error": object{"type": e.anthropicType, "message": text}, "request_id": "req_rehearsal"}
}

func (anthropicDialect) fault(e *errorKind, text string) []byte {
	b, err := encode(anthropicFault(e, text))
	if err != nil {
		return nil
	}
	return b
}

func (anthropicDialect) faultFrame(_ *script, e *errorKind, text string) frame {
	return event(partText, "error", anthropicFault(e, text))
}

func (anthropicDialect) resetHeaders(h http.Header, now time.Time, in time.Duration) {
	h.Set("Retry-After", seconds(in))
	h.Set("Anthropic-Ratelimit-Requests-Remaining", "0")
	h.Set("Anthropic-Ratelimit-Requests-Reset", now.Add(in).UTC().Format(time.RFC3339))
}
