package rehearsal

import (
	"maps"
	"net/http"
	"time"
)

// responsesDialect speaks OpenAI Responses.
type responsesDialect struct{}

// responsesStream numbers the events and keeps the output items.
type responsesStream struct {
	s      *script
	out    []frame
	seq    int
	output []object
}

func (st *responsesStream) add(p part, kind string, v object) {
	v["type"], v["sequence_number"] = kind, st.seq
	st.seq++
	st.out = append(st.out, event(p, kind, v))
}

// response is the response object in the given state.
func (st *responsesStream) response(status string) object {
	return object{
		"id": "resp_" + st.s.id, "object": "response", "created_at": st.s.created.Unix(), "status": status,
		"error": nil, "incomplete_details": nil, "model": st.s.model, "output": append([]object{}, st.output...), "usage": nil,
	}
}

// item adds an output item: added, what fill says, done.
func (st *responsesStream) item(p part, begun, done object, fill func(index int)) {
	i := len(st.output)
	st.add(p, "response.output_item.added", object{"output_index": i, "item": begun})
	fill(i)
	st.output = append(st.output, done)
	st.add(p, "response.output_item.done", object{"output_index": i, "item": done})
}

func (responsesDialect) frames(s *script) []frame {
	st := &responsesStream{s: s}
	st.add(partStart, "response.created", object{"response": st.response("in_progress")})
	st.add(partStart, "response.in_progress", object{"response": st.response("in_progress")})
	if s.reasoning != "" {
		st.reasoning()
	}
	if s.text != "" {
		st.text("output_text", "response.output_text", "text", s.text)
	}
	if s.refusal != "" {
		st.text("refusal", "response.refusal", "refusal", s.refusal)
	}
	for _, c := range s.calls {
		st.call(c)
	}
	st.finish()
	return st.out
}

func (st *responsesStream) reasoning() {
	item := func(status string, summary []object) object {
		return object{"id": "rs_" + st.s.id, "type": "reasoning", "status": status, "summary": summary,
			"encrypted_content": st.s.signature}
	}
	done := []object{{"type": "summary_text", "text": st.s.reasoning}}
	st.item(partStart, item("in_progress", []object{}), item("completed", done), func(i int) {
		at := object{"item_id": "rs_" + st.s.id, "output_index": i, "summary_index": 0}
		st.add(partReasoning, "response.reasoning_summary_part.added", with(at, "part", object{"type": "summary_text", "text": ""}))
		for _, t := range pieces(st.s.reasoning, st.s.piece) {
			st.add(partReasoning, "response.reasoning_summary_text.delta", with(at, "delta", t))
		}
		st.add(partReasoning, "response.reasoning_summary_text.done", with(at, "text", st.s.reasoning))
		st.add(partReasoning, "response.reasoning_summary_part.done", with(at, "part", done[0]))
	})
}

// text adds a message item with one part of text or refusal.
func (st *responsesStream) text(kind, prefix, field, text string) {
	id := "msg_" + st.s.id + "_" + kind
	content := func(t string) object {
		c := object{"type": kind, field: t}
		if kind == "output_text" {
			c["annotations"] = []object{}
		}
		return c
	}
	item := func(status string, parts []object) object {
		return object{"id": id, "type": "message", "status": status, "role": "assistant", "content": parts}
	}
	st.item(partStart, item("in_progress", []object{}), item("completed", []object{content(text)}), func(i int) {
		at := object{"item_id": id, "output_index": i, "content_index": 0}
		st.add(partStart, "response.content_part.added", with(at, "part", content("")))
		for _, t := range pieces(text, st.s.piece) {
			st.add(partText, prefix+".delta", with(at, "delta", t))
		}
		st.add(partText, prefix+".done", with(at, field, text))
		st.add(partText, "response.content_part.done", with(at, "part", content(text)))
	})
}

func (st *responsesStream) call(c call) {
	id := "fc_" + c.id
	item := func(status, args string) object {
		return object{"id": id, "type": "function_call", "status": status, "arguments": args, "call_id": c.id, "name": c.name}
	}
	st.item(partTool, item("in_progress", ""), item("completed", c.arguments), func(i int) {
		at := object{"item_id": id, "output_index": i}
		for _, t := range pieces(c.arguments, st.s.piece) {
			st.add(partArguments, "response.function_call_arguments.delta", with(at, "delta", t))
		}
		st.add(partArguments, "response.function_call_arguments.done", with(at, "arguments", c.arguments))
	})
}

func (st *responsesStream) finish() {
	kind, r := "response.completed", st.response("completed")
	reason := map[string]string{"length": "max_output_tokens", "filtered": "content_filter"}[st.s.finish]
	if st.s.raw != nil {
		reason = *st.s.raw
	}
	if reason != "" {
		kind, r = "response.incomplete", st.response("incomplete")
		r["incomplete_details"] = object{"reason": reason}
	}
	r["usage"] = object{
		"input_tokens": st.s.usage.Input, "input_tokens_details": object{"cached_tokens": st.s.usage.Cached},
		"output_tokens": st.s.usage.Output, "output_tokens_details": object{"reasoning_tokens": st.s.usage.Reasoning},
		"total_tokens": st.s.usage.Input + st.s.usage.Output,
	}
	st.add(partTerminal, kind, object{"response": r})
}

func (responsesDialect) fault(e *errorKind, text string) []byte { return chatDialect{}.fault(e, text) }

func (responsesDialect) faultFrame(s *script, e *errorKind, text string) frame {
	st := &responsesStream{s: s}
	r := st.response("failed")
	r["error"] = object{"code": e.responsesInner, "message": text}
	return event(partText, "response.failed", object{"type": "response.failed", "sequence_number": 999, "response": r})
}

func (responsesDialect) resetHeaders(h http.Header, now time.Time, in time.Duration) {
	openAIResetHeaders(h, now, in)
}

// with returns a copy of o with key set to v.
func with(o object, key string, v any) object {
	out := maps.Clone(o)
	out[key] = v
	return out
}
