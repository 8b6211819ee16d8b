package rehearsal

import (
	"net/http"
	"time"
)

// chatDialect speaks OpenAI Chat Completions.
type chatDialect struct{}

func (chatDialect) frames(s *script) []frame {
	chunk := func(p part, delta object, finish any) frame {
		return event(p, "", object{
			"id": "chatcmpl-" + s.id, "object": "chat.completion.chunk", "created": s.created.Unix(), "model": s.model,
			"choices": []object{{"index": 0, "delta": delta, "finish_reason": finish}},
		})
	}
	out := []frame{chunk(partStart, object{"role": "assistant", "content": ""}, nil)}
	for _, t := range pieces(s.reasoning, s.piece) {
		out = append(out, chunk(partReasoning, object{"reasoning_content": t}, nil))
	}
	for _, t := range pieces(s.text, s.piece) {
		out = append(out, chunk(partText, object{"content": t}, nil))
	}
	for _, t := range pieces(s.refusal, s.piece) {
		out = append(out, chunk(partText, object{"refusal": t}, nil))
	}
	for i, c := range s.calls {
		out = append(out, chunk(partTool, object{"tool_calls": []object{{
			"index": i, "id": c.id, "type": "function", "function": object{"name": c.name, "arguments": ""}}}}, nil))
		for _, t := range pieces(c.arguments, s.piece) {
			out = append(out, chunk(partArguments, object{"tool_calls": []object{{
				"index": i, "function": object{"arguments": t}}}}, nil))
		}
	}
	finish := map[string]string{"filtered": "content_filter", "paused": "stop", "overflown": "length"}[s.finish]
	if finish == "" {
		finish = s.finish
	}
	if s.raw != nil {
		finish = *s.raw
	}
	return append(out,
		chunk(partTerminal, object{}, finish),
		event(partUsage, "", object{
			"id": "chatcmpl-" + s.id, "object": "chat.completion.chunk", "created": s.created.Unix(), "model": s.model,
			"choices": []object{},
			"usage": object{
				"prompt_tokens": s.usage.Input, "completion_tokens": s.usage.Output,
				"total_tokens":              s.usage.Input + s.usage.Output,
				"prompt_tokens_details":     object{"cached_tokens": s.usage.Cached},
				"completion_tokens_details": object{"reasoning_tokens": s.usage.Reasoning},
			},
		}),
		frame{part: partDone, data: []byte("data: [DONE]\n\n")},
	)
}

func (chatDialect) fault(e *errorKind, text string) []byte {
	b, err := encode(openAIFault(e, text))
	if err != nil {
		return nil
	}
	return b
}

func (chatDialect) faultFrame(_ *script, e *errorKind, text string) frame {
	return event(partText, "", openAIFault(e, text))
}

func (chatDialect) resetHeaders(h http.Header, now time.Time, in time.Duration) {
	openAIResetHeaders(h, now, in)
}

// openAIFault is the error body of both OpenAI wires.
func openAIFault(e *errorKind, text string) object {
	var code any
	if e.openAICode != "" {
		code = e.openAICode
	}
	return object{"error": object{"message": text, "type": e.openAIType, "param": nil, "code": code}}
}

func openAIResetHeaders(h http.Header, _ time.Time, in time.Duration) {
	h.Set("Retry-After", seconds(in))
	h.Set("X-Ratelimit-Remaining-Requests", "0")
	h.Set("X-Ratelimit-Reset-Requests", in.String())
}
