package provider

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentd/provider/message"
	"agentd/recovery"
)

// quirk is a stream that some server sends, and what it has to become.
type quirk struct {
	name   string
	events []string // data of each event
	done   bool     // DoneIsTerminal
	fault  recovery.Kind
	finish Finish
	parts  []message.Part
	usage  message.Usage
}

func (q quirk) check(t *testing.T, w Wire) {
	var b strings.Builder
	for _, e := range q.events {
		b.WriteString("data: " + e + "\n\n")
	}
	reply, err := ReadStream(w, strings.NewReader(b.String()), StreamOptions{DoneIsTerminal: q.done})
	if q.fault != "" {
		if f := faultIn(t, err); f.Kind != q.fault || reply != nil {
			t.Errorf("got %+v and %v, want %s", reply, f, q.fault)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if reply.Finish != q.finish {
		t.Errorf("finish is %s, want %s", reply.Finish, q.finish)
	}
	for i, p := range reply.Message.Parts { // an id of our own is random
		if p.Kind == message.ToolCall && strings.HasPrefix(p.ID, "call_") && len(p.ID) == 31 {
			reply.Message.Parts[i].ID = "made"
		}
	}
	if diff := cmp.Diff(q.parts, reply.Message.Parts); diff != "" {
		t.Errorf("parts differ (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(q.usage, reply.Usage); diff != "" {
		t.Errorf("usage differs (-want +got):\n%s", diff)
	}
}

func text(s string) message.Part { return message.Part{Kind: message.Text, Text: s} }

func toolCall(id, name, args string) message.Part {
	return message.Part{Kind: message.ToolCall, ID: id, Name: name, Arguments: args}
}

// delta is a chat chunk with one delta.
func delta(d string) string { return `{"choices":[{"index":0,"delta":` + d + `}]}` }

// calls is a chat chunk with tool calls.
func calls(list string) string { return delta(`{"tool_calls":[` + list + `]}`) }

func finish(reason string) string {
	return `{"choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`
}

func TestQuirksOfChatStreams(t *testing.T) {
	for _, q := range append(chatQuirks(), chatCallQuirks()...) {
		t.Run(q.name, func(t *testing.T) { q.check(t, Chat) })
	}
}

func chatQuirks() []quirk {
	hi := []message.Part{text("hi")}
	return []quirk{
		{name: "plain", events: []string{delta(`{"content":"hi"}`), finish("stop"), "[DONE]"}, finish: Stop, parts: hi},
		{name: "no DONE", events: []string{delta(`{"content":"hi"}`), finish("stop")}, finish: Stop, parts: hi},
		{name: "empty finish_reason is not terminal", events: []string{delta(`{"content":"hi"}`), finish("")}, fault: recovery.Truncated},
		{name: "empty finish_reason, then a real one", events: []string{`{"choices":[{"delta":{"content":"hi"},"finish_reason":""}]}`, finish("stop")}, finish: Stop, parts: hi},
		{name: "DONE alone does not count", events: []string{delta(`{"content":"hi"}`), "[DONE]"}, fault: recovery.Truncated},
		{name: "DONE alone counts where it is said to", events: []string{delta(`{"content":"hi"}`), "[DONE]"}, done: true, finish: Stop, parts: hi},
		{name: "no DONE where it counts", events: []string{delta(`{"content":"hi"}`)}, done: true, fault: recovery.Truncated},
		{name: "nothing after DONE", events: []string{delta(`{"content":"hi"}`), finish("stop"), "[DONE]", delta(`{"content":"noise"}`), "{broken"}, finish: Stop, parts: hi},
		{name: "delta is null on the finish", events: []string{delta(`{"content":"hi"}`), `{"choices":[{"index":0,"delta":null,"finish_reason":"stop"}]}`}, finish: Stop, parts: hi},
		{name: "usage after the finish", events: []string{delta(`{"content":"hi"}`), finish("stop"), `{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":3},"completion_tokens_details":{"reasoning_tokens":1}}}`},
			finish: Stop, parts: hi, usage: message.Usage{InputTokens: 7, OutputTokens: 2, CachedTokens: 3, ReasoningTokens: 1}},
		{name: "usage on every chunk, the latest counts", events: []string{`{"choices":[{"delta":{"content":"h"}}],"usage":{"prompt_tokens":7,"completion_tokens":1}}`, `{"choices":[{"delta":{"content":"i"}}],"usage":{"prompt_tokens":7,"completion_tokens":2}}`, finish("stop"), `{"choices":[],"usage":null}`},
			finish: Stop, parts: hi, usage: message.Usage{InputTokens: 7, OutputTokens: 2}},
		{name: "empty data frames", events: []string{"", delta(`{"content":"hi"}`), "", finish("stop"), ""}, finish: Stop, parts: hi},
		{name: "content as parts", events: []string{delta(`{"content":[{"type":"text","text":"h"},{"type":"text","text":"i"}]}`), finish("stop")}, finish: Stop, parts: hi},
		{name: "Mistral thinking", events: []string{delta(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}`), delta(`{"content":"hi"}`), finish("stop")}, finish: Stop,
			parts: []message.Part{{Kind: message.Reasoning, Text: "hm"}, text("hi")}},
		{name: "reasoning_content", events: []string{delta(`{"reasoning_content":"h"}`), delta(`{"reasoning_content":"m"}`), delta(`{"content":"hi"}`), finish("stop")}, finish: Stop,
			parts: []message.Part{{Kind: message.Reasoning, Text: "hm", Opaque: []byte(`"reasoning_content"`), Wire: "chat"}, text("hi")}},
		{name: "reasoning twice in a chunk", events: []string{delta(`{"reasoning":"hm","reasoning_content":"hm"}`), delta(`{"content":"hi"}`), finish("stop")}, finish: Stop,
			parts: []message.Part{{Kind: message.Reasoning, Text: "hm"}, text("hi")}},
		{name: "reasoning_details are joined", events: []string{
			delta(`{"reasoning":"a","reasoning_details":[{"type":"reasoning.text","text":"a","index":0}]}`),
			delta(`{"reasoning":"b","reasoning_details":[{"type":"reasoning.text","text":"b","index":0,"signature":"s"}]}`),
			delta(`{"reasoning_details":[{"type":"reasoning.encrypted","data":"x","index":1}]}`), delta(`{"content":"hi"}`), finish("stop")}, finish: Stop,
			parts: []message.Part{{Kind: message.Reasoning, Text: "ab", Opaque: []byte(`[{"index":0,"signature":"s","text":"ab","type":"reasoning.text"},{"data":"x","index":1,"type":"reasoning.encrypted"}]`), Wire: "chat"}, text("hi")}},
		{name: "refusal", events: []string{delta(`{"refusal":"I cannot"}`), finish("stop")}, finish: Filtered, parts: []message.Part{{Kind: message.Refusal, Text: "I cannot"}}},
		{name: "filter", events: []string{delta(`{"content":"hi"}`), finish("content_filter")}, finish: Filtered, parts: hi},
		{name: "length", events: []string{delta(`{"content":"hi"}`), finish("length")}, finish: Length, parts: hi},
		{name: "context window", events: []string{delta(`{"content":"hi"}`), finish("model_context_window_exceeded")}, finish: Overflown, parts: hi},
		{name: "an unknown reason is a stop", events: []string{delta(`{"content":"hi"}`), finish("eos")}, finish: Stop, parts: hi},
		{name: "another choice", events: []string{delta(`{"content":"hi"}`), `{"choices":[{"index":1,"delta":{"content":"no"},"finish_reason":"length"}]}`, finish("stop")}, finish: Stop, parts: hi},
		{name: "another choice alone is no terminal", events: []string{delta(`{"content":"hi"}`), `{"choices":[{"index":1,"delta":{},"finish_reason":"stop"}]}`}, fault: recovery.Truncated},
		{name: "nothing said", events: []string{finish("stop")}, finish: Stop},
		{name: "no UTF-8", events: []string{delta("{\"content\":\"h\xffi\"}"), finish("stop")}, finish: Stop, parts: []message.Part{text("h\uFFFDi")}},
		{name: "error chunk without choices", events: []string{delta(`{"content":"hi"}`), `{"error":{"message":"boom","type":"server_error"}}`}, fault: recovery.Server},
		{name: "error after the finish", events: []string{delta(`{"content":"hi"}`), finish("stop"), `{"error":{"message":"boom","type":"server_error"}}`}, fault: recovery.Server},
		{name: "error beside a finish", events: []string{`{"error":{"code":502,"message":"gone"},"choices":[{"delta":{"content":""},"finish_reason":"error"}]}`}, fault: recovery.Server},
		{name: "finish error alone", events: []string{delta(`{"content":"hi"}`), finish("error")}, fault: recovery.Server},
		{name: "error in a choice", events: []string{`{"choices":[{"index":0,"delta":{},"error":{"code":429,"message":"limit"}}]}`}, fault: recovery.RateLimited},
		{name: "error is null", events: []string{`{"error":null,"choices":[{"delta":{"content":"hi"}}]}`, finish("stop")}, finish: Stop, parts: hi},
		{name: "error object", events: []string{`{"object":"error","message":"boom","type":"InternalServerError","code":500}`}, fault: recovery.Server},
		{name: "detail", events: []string{`{"detail":"Internal Server Error"}`}, fault: recovery.Server},
		{name: "DeepSeek gives up", events: []string{delta(`{"content":"hi"}`), finish("insufficient_system_resource")}, fault: recovery.Server},
	}
}

func chatCallQuirks() []quirk {
	add, mul := toolCall("a", "add", `{"x":1}`), toolCall("b", "mul", `{"y":2}`)
	both := []message.Part{add, mul}
	return []quirk{
		{name: "calls by index", events: []string{calls(`{"index":0,"id":"a","function":{"name":"add","arguments":""}}`), calls(`{"index":0,"function":{"arguments":"{\"x\""}},{"index":1,"id":"b","function":{"name":"mul","arguments":"{\"y\""}}`), calls(`{"index":1,"function":{"arguments":":2}"}},{"index":0,"function":{"arguments":":1}"}}`), finish("tool_calls")},
			finish: ToolCalls, parts: both},
		{name: "no index, a new id is a new call", events: []string{calls(`{"id":"a","function":{"name":"add","arguments":"{\"x\""}}`), calls(`{"function":{"arguments":":1}"}}`), calls(`{"id":"b","function":{"name":"mul","arguments":"{\"y\":2}"}}`), finish("tool_calls")},
			finish: ToolCalls, parts: both},
		{name: "two ids on one index", events: []string{calls(`{"index":0,"id":"a","function":{"name":"add","arguments":"{\"x\":1}"}}`), calls(`{"index":0,"id":"b","function":{"name":"mul","arguments":"{\"y\""}}`), calls(`{"index":0,"function":{"arguments":":2}"}}`), finish("tool_calls")},
			finish: ToolCalls, parts: both},
		{name: "the id on every piece", events: []string{calls(`{"index":0,"id":"a","function":{"name":"add","arguments":"{\"x\""}}`), calls(`{"index":0,"id":"a","function":{"name":"add","arguments":":1}"}}`), finish("tool_calls")},
			finish: ToolCalls, parts: []message.Part{add}},
		{name: "arguments as an object", events: []string{calls(`{"index":0,"id":"a","function":{"name":"add","arguments":{"x":1}}}`), finish("tool_calls")},
			finish: ToolCalls, parts: []message.Part{add}},
		{name: "no ids at all", events: []string{calls(`{"index":0,"function":{"name":"add","arguments":"{\"x\":1}"}}`), calls(`{"index":0,"function":{"name":"add","arguments":"{\"x\":2}"}}`), finish("stop")},
			finish: ToolCalls, parts: []message.Part{toolCall("made", "add", `{"x":1}`), toolCall("made", "add", `{"x":2}`)}},
		{name: "empty id, whole calls on one index", events: []string{calls(`{"index":0,"id":"","function":{"name":"add","arguments":"{\"x\":1}"}},{"index":0,"id":"","function":{"name":"mul","arguments":"{\"y\":2}"}}`), finish("stop")},
			finish: ToolCalls, parts: []message.Part{toolCall("made", "add", `{"x":1}`), toolCall("made", "mul", `{"y":2}`)}},
		{name: "the id comes later", events: []string{calls(`{"index":0,"function":{"name":"add","arguments":""}}`), calls(`{"index":0,"id":"a","function":{"arguments":"{\"x\":1}"}}`), finish("tool_calls")},
			finish: ToolCalls, parts: []message.Part{add}},
		{name: "finish stop with calls", events: []string{calls(`{"index":0,"id":"a","function":{"name":"add","arguments":"{\"x\":1}"}}`), finish("stop")},
			finish: ToolCalls, parts: []message.Part{add}},
		{name: "function_call", events: []string{delta(`{"function_call":{"name":"add","arguments":"{\"x\""}}`), delta(`{"function_call":{"arguments":":1}"}}`), finish("function_call")},
			finish: ToolCalls, parts: []message.Part{toolCall("made", "add", `{"x":1}`)}},
		{name: "no arguments", events: []string{calls(`{"index":0,"id":"a","function":{"name":"add","arguments":""}}`), finish("tool_calls")},
			finish: ToolCalls, parts: []message.Part{toolCall("a", "add", "")}},
		{name: "arguments null", events: []string{calls(`{"index":0,"id":"a","function":{"name":"add","arguments":null}}`), finish("tool_calls")},
			finish: ToolCalls, parts: []message.Part{toolCall("a", "add", "")}},
		{name: "arguments byte for byte", events: []string{calls(`{"index":0,"id":"a","function":{"name":"add","arguments":" {\"x\" : \"\\u00e9\\/\" }\n"}}`), finish("tool_calls")},
			finish: ToolCalls, parts: []message.Part{toolCall("a", "add", " {\"x\" : \"\\u00e9\\/\" }\n")}},
		{name: "arguments cut, a terminal made up", events: []string{calls(`{"index":0,"id":"a","function":{"name":"add","arguments":"{\"x\":"}}`), finish("tool_calls")}, fault: recovery.Truncated},
		{name: "arguments cut and finish stop", events: []string{calls(`{"index":0,"id":"a","function":{"name":"add","arguments":"{\"x\":"}}`), finish("stop")}, fault: recovery.Truncated},
		{name: "arguments cut by the output limit", events: []string{delta(`{"content":"hi"}`), calls(`{"index":0,"id":"a","function":{"name":"add","arguments":"{\"x\":1}"}},{"index":1,"id":"b","function":{"name":"mul","arguments":"{\"y\":"}}`), finish("length")},
			finish: Length, parts: []message.Part{text("hi"), add}},
		{name: "no arguments at the output limit", events: []string{calls(`{"index":0,"id":"a","function":{"name":"add","arguments":""}}`), finish("length")}, finish: Length},
		{name: "arguments are not JSON", events: []string{calls(`{"index":0,"id":"a","function":{"name":"add","arguments":"x=1"}}`), finish("tool_calls")}, fault: recovery.Malformed},
		{name: "arguments are a list", events: []string{calls(`{"index":0,"id":"a","function":{"name":"add","arguments":"[1]"}}`), finish("tool_calls")}, fault: recovery.Malformed},
		{name: "two objects", events: []string{calls(`{"index":0,"id":"a","function":{"name":"add","arguments":"{\"x\":1}{\"x\":1}"}}`), finish("tool_calls")}, fault: recovery.Malformed},
		{name: "a signed call of Gemini", events: []string{calls(`{"index":0,"id":"a","extra_content":{"google":{"thought_signature":"S"}},"function":{"name":"add","arguments":"{\"x\":1}"}}`), finish("stop")},
			finish: ToolCalls, parts: []message.Part{{Kind: message.ToolCall, ID: "a", Name: "add", Arguments: `{"x":1}`, Opaque: []byte(`{"google":{"thought_signature":"S"}}`), Wire: "chat"}}},
		{name: "no name", events: []string{calls(`{"index":0,"id":"a","function":{"arguments":"{}"}}`), finish("tool_calls")}, fault: recovery.Malformed},
		{name: "complete JSON is no terminal", events: []string{calls(`{"index":0,"id":"a","function":{"name":"add","arguments":"{\"x\":1}"}}`)}, fault: recovery.Truncated},
		{name: "tool calls are announced and none is there", events: []string{delta(`{"content":"hi"}`), finish("tool_calls")}, fault: recovery.Truncated},
	}
}
