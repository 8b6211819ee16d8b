package provider

import (
	"testing"

	"agentd/provider/message"
	"agentd/recovery"
)

func TestQuirksOfAnthropicStreams(t *testing.T) {
	const (
		start    = `{"type":"message_start","message":{"id":"m","model":"c","usage":{"input_tokens":9,"cache_read_input_tokens":4,"cache_creation_input_tokens":2,"output_tokens":1}}}`
		textOpen = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
		hi       = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}}`
		shut     = `{"type":"content_block_stop","index":0}`
		tool     = `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"add","input":{}}}`
		half     = `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"x\""}}`
		rest     = `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":":1}"}}`
		end      = `{"type":"message_stop"}`
	)
	stop := func(reason string) string {
		return `{"type":"message_delta","delta":{"stop_reason":"` + reason + `"},"usage":{"output_tokens":5}}`
	}
	usage := message.Usage{InputTokens: 9, CachedTokens: 4, CacheWriteTokens: 2, OutputTokens: 5}
	said := []message.Part{text("hi")}
	add := []message.Part{toolCall("a", "add", `{"x":1}`)}
	for _, q := range []quirk{
		{name: "plain", events: []string{start, textOpen, `{"type":"ping"}`, hi, shut, stop("end_turn"), end}, finish: Stop, parts: said, usage: usage},
		{name: "no message_stop", events: []string{start, textOpen, hi, shut, stop("end_turn")}, fault: recovery.Truncated},
		{name: "DONE is not a terminal", events: []string{start, textOpen, hi, shut, stop("end_turn"), "[DONE]"}, done: true, fault: recovery.Truncated},
		{name: "tool", events: []string{start, tool, half, rest, shut, stop("tool_use"), end}, finish: ToolCalls, parts: add, usage: usage},
		{name: "tool with end_turn", events: []string{start, tool, half, rest, shut, stop("end_turn"), end}, finish: ToolCalls, parts: add, usage: usage},
		{name: "tool input at the start", events: []string{start, `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"add","input":{"x":1}}}`, shut, stop("tool_use"), end}, finish: ToolCalls, parts: add, usage: usage},
		{name: "tool input at the start and in deltas", events: []string{start, `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"add","input":{"x":9}}}`, half, rest, shut, stop("tool_use"), end}, finish: ToolCalls, parts: add, usage: usage},
		{name: "tool cut", events: []string{start, tool, half, shut, stop("tool_use"), end}, fault: recovery.Truncated},
		{name: "tool not stopped", events: []string{start, tool, half, rest, stop("tool_use"), end}, fault: recovery.Truncated},
		{name: "tool cut by the output limit", events: []string{start, tool, half, shut, stop("max_tokens"), end}, finish: Length, usage: usage},
		{name: "tool without input at the output limit", events: []string{start, tool, stop("max_tokens"), end}, finish: Length, usage: usage},
		{name: "refusal", events: []string{start, textOpen, hi, shut, stop("refusal"), end}, finish: Filtered, parts: said, usage: usage},
		{name: "pause", events: []string{start, textOpen, hi, shut, stop("pause_turn"), end}, finish: Paused, parts: said, usage: usage},
		{name: "context window", events: []string{start, textOpen, hi, shut, stop("model_context_window_exceeded"), end}, finish: Overflown, parts: said, usage: usage},
		{name: "stop sequence", events: []string{start, textOpen, hi, shut, stop("stop_sequence"), end}, finish: Stop, parts: said, usage: usage},
		{name: "announced tools are missing", events: []string{start, textOpen, hi, shut, stop("tool_use"), end}, fault: recovery.Truncated},
		{name: "thinking and its signature", events: []string{
			start, `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"h<m"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"Sg=="}}`, shut,
			`{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"xx"}}`, `{"type":"content_block_stop","index":1}`,
			`{"type":"content_block_start","index":2,"content_block":{"type":"text","text":"h"}}`, `{"index":2,"delta":{"text":"i","type":"text_delta"},"type":"content_block_delta"}`, stop("end_turn"), end},
			finish: Stop, usage: usage, parts: []message.Part{
				{Kind: message.Reasoning, Text: "h<m", Opaque: []byte(`{"type":"thinking","thinking":"h<m","signature":"Sg=="}`), Wire: "anthropic"},
				{Kind: message.Reasoning, Opaque: []byte(`{"type":"redacted_thinking","data":"xx"}`), Wire: "anthropic"}, text("hi")}},
		{name: "a server tool goes through", events: []string{
			start, `{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"s","name":"web_search","input":{}}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"q\":1}"}}`, shut, stop("pause_turn"), end},
			finish: Paused, usage: usage, parts: []message.Part{{Kind: message.Reasoning, Opaque: []byte(`{"id":"s","input":{"q":1},"name":"web_search","type":"server_tool_use"}`), Wire: "anthropic"}}},
		{name: "delta for a block that is not there", events: []string{start, hi, end}, fault: recovery.Malformed},
		{name: "overloaded in the stream", events: []string{start, textOpen, hi, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`}, fault: recovery.Server},
		{name: "one lone error", events: []string{`{"error":{"type":"rate_limit_error","message":"limit"}}`}, fault: recovery.RateLimited},
		{name: "events to come", events: []string{start, `{"type":"new_event","x":[1]}`, textOpen, hi, shut, stop("end_turn"), end}, finish: Stop, parts: said, usage: usage},
	} {
		t.Run(q.name, func(t *testing.T) { q.check(t, Anthropic) })
	}
}

func TestQuirksOfResponsesStreams(t *testing.T) {
	const (
		created = `{"type":"response.created","response":{"id":"r","model":"g","status":"in_progress","output":[]}}`
		msg     = `{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"i","content":[]}}`
		hi      = `{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"hi"}`
		fn      = `{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"f","call_id":"a","name":"add","arguments":""}}`
		half    = `{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"x\""}`
		rest    = `{"type":"response.function_call_arguments.delta","output_index":0,"delta":":1}"}`
		fnDone  = `{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"a","name":"add","arguments":"{\"x\":1}","status":"completed"}}`
		done    = `{"type":"response.completed","response":{"id":"r","status":"completed","usage":{"input_tokens":3,"output_tokens":2,"input_tokens_details":{"cached_tokens":1},"output_tokens_details":{"reasoning_tokens":1}}}}`
	)
	usage := message.Usage{InputTokens: 3, OutputTokens: 2, CachedTokens: 1, ReasoningTokens: 1}
	said := []message.Part{text("hi")}
	add := []message.Part{toolCall("a", "add", `{"x":1}`)}
	for _, q := range []quirk{
		{name: "plain", events: []string{created, msg, hi, done}, finish: Stop, parts: said, usage: usage},
		{name: "no terminal", events: []string{created, msg, hi}, fault: recovery.Truncated},
		{name: "DONE without a terminal", events: []string{created, msg, hi, "[DONE]"}, fault: recovery.Truncated},
		{name: "DONE where it counts", events: []string{created, msg, hi, "[DONE]"}, done: true, finish: Stop, parts: said},
		{name: "DONE where it counts, a call not finished", events: []string{created, fn, half, rest, "[DONE]"}, done: true, fault: recovery.Truncated},
		{name: "response.done", events: []string{created, msg, hi, `{"type":"response.done","response":{"status":"completed"}}`}, finish: Stop, parts: said},
		{name: "response.done that failed", events: []string{created, msg, hi, `{"type":"response.done","response":{"status":"failed","error":{"code":"server_error","message":"x"}}}`}, fault: recovery.Server},
		{name: "failed", events: []string{created, `{"type":"response.failed","response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"x"}}}`}, fault: recovery.RateLimited},
		{name: "cancelled", events: []string{created, `{"type":"response.done","response":{"status":"cancelled"}}`}, fault: recovery.Server},
		{name: "flat error", events: []string{created, `{"type":"error","code":"insufficient_quota","message":"x","param":null}`}, fault: recovery.Quota},
		{name: "nested error", events: []string{`{"type":"error","error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"x"}}`}, fault: recovery.Overflow},
		{name: "call", events: []string{created, fn, half, rest, fnDone, done}, finish: ToolCalls, parts: add, usage: usage},
		{name: "call, deltas without a done event", events: []string{created, fn, half, rest, done}, fault: recovery.Truncated},
		{name: "call, only in the response", events: []string{created, `{"type":"response.completed","response":{"status":"completed","output":[{"type":"function_call","call_id":"a","name":"add","arguments":"{\"x\":1}"}]}}`}, finish: ToolCalls, parts: add},
		{name: "call, the done event replaces lost deltas", events: []string{created, fn, rest, fnDone, done}, finish: ToolCalls, parts: add, usage: usage},
		{name: "call, only the done event", events: []string{created, fnDone, done}, finish: ToolCalls, parts: add, usage: usage},
		{name: "call cut by the output limit", events: []string{created, fn, half, `{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"a","name":"add","arguments":"{\"x\"","status":"incomplete"}}`,
			`{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}`}, finish: Length},
		{name: "whole call marked incomplete", events: []string{created, `{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"a","name":"add","arguments":"{\"x\":1}","status":"incomplete"}}`,
			`{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}`}, finish: Length},
		{name: "filter", events: []string{created, msg, hi, `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"content_filter"}}}`}, finish: Filtered, parts: said},
		{name: "refusal", events: []string{created, msg, `{"type":"response.refusal.delta","output_index":0,"content_index":0,"delta":"no"}`, done}, finish: Filtered, parts: []message.Part{{Kind: message.Refusal, Text: "no"}}, usage: usage},
		{name: "text only in the done event", events: []string{created, `{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"output_text","text":"h"},{"type":"output_text","text":"i"}]}}`, done},
			finish: Stop, parts: []message.Part{text("h"), text("i")}, usage: usage},
		{name: "text is not doubled by the response", events: []string{created, msg, hi, `{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"hi"}]}]}}`}, finish: Stop, parts: said},
		{name: "reasoning", events: []string{
			created, `{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs","summary":[]}}`,
			`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"a"}`, `{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":1,"delta":"b"}`,
			`{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs","encrypted_content":"E","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}]}}`,
			`{"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"hi"}`, done}, finish: Stop, usage: usage,
			parts: []message.Part{{Kind: message.Reasoning, Text: "a\n\nb", Opaque: []byte(`{"type":"reasoning","id":"rs","encrypted_content":"E","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}]}`), Wire: "responses"}, text("hi")}},
		{name: "reasoning without content is nothing", events: []string{created, `{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs","summary":[]}}`, done}, finish: Stop, usage: usage},
	} {
		t.Run(q.name, func(t *testing.T) { q.check(t, Responses) })
	}
}

func TestPreviewsTellTheReplyAsItGrows(t *testing.T) {
	for _, rec := range corpus(t) {
		var said string
		args := map[int]string{}
		var names []string
		reply := replyOf(t, rec, func(e Event) {
			switch e.Kind {
			case TextDelta:
				said += e.Text
			case ToolStarted:
				names = append(names, e.ID+" "+e.Name)
			case ToolDelta:
				if len(names) == 0 {
					t.Errorf("%s: arguments before the start of their call", rec.File)
				}
				args[e.Index] += e.Text
			case ReasoningDelta:
			default:
				t.Errorf("%s: an event of kind %s", rec.File, e.Kind)
			}
		})
		if said != reply.Message.Text() {
			t.Errorf("%s: previewed text is %q, want %q", rec.File, said, reply.Message.Text())
		}
		for i, c := range reply.Message.ToolCalls() {
			if names[i] != c.ID+" "+c.Name {
				t.Errorf("%s: call %d was previewed as %s", rec.File, i, names[i])
			}
			found := false
			for _, a := range args {
				found = found || a == c.Arguments
			}
			if !found {
				t.Errorf("%s: the arguments %s were not previewed", rec.File, c.Arguments)
			}
		}
	}
}
