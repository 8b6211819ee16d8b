package provider

import (
	"strings"
	"testing"

	"agentd/exitcodes"
	"agentd/provider/message"
	"agentd/recovery"
)

func TestErrorsThatAreEventsByName(t *testing.T) {
	for _, w := range []Wire{Chat, Anthropic, Responses} {
		for in, kind := range map[string]recovery.Kind{
			"error: {\"code\":500,\"message\":\"boom\",\"type\":\"server_error\"}\n\n":                             recovery.Server,
			"error: {\"error\":{\"code\":400,\"message\":\"the request exceeds the available context size\"}}\n\n": recovery.Overflow,
			"event: error\ndata: upstream connect error\n\n":                                                       recovery.Server,
			"event: error\ndata: {\"error\":{\"type\":\"rate_limit_error\",\"message\":\"boom\"}}\n\n":             recovery.RateLimited,
			"event: error\ndata: {\"message\":\"boom\",\"code\":401}\n\n":                                          recovery.Auth,
		} {
			_, err := ReadStream(w, strings.NewReader(in), StreamOptions{})
			if f := faultIn(t, err); f.Kind != kind {
				t.Errorf("%s, %q: fault is %v, want %s", w, in, f, kind)
			}
		}
	}
}

func TestEventsThatAreNotObjectsBreakTheProtocol(t *testing.T) {
	for _, w := range []Wire{Chat, Anthropic, Responses} {
		for _, data := range []string{"1", "null", `"text"`, "[]", "{", `{"a":}`, `{"type":"x"} {}`, "<html>"} {
			_, err := ReadStream(w, strings.NewReader("data: "+data+"\n\n"), StreamOptions{})
			f := faultIn(t, err)
			if f.Kind != recovery.Malformed || exitcodes.From(f) != exitcodes.Protocol {
				t.Errorf("%s, %q: fault is %v, want malformed", w, data, f)
			}
		}
	}
}

func TestAReplyIsBounded(t *testing.T) {
	piece := strings.Repeat("x", 1<<20)
	events := map[Wire]string{
		Chat:      `{"choices":[{"delta":{"content":"` + piece + `"}}]}`,
		Anthropic: `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"` + piece + `"}}`,
		Responses: `{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"` + piece + `"}`,
	}
	for w, e := range events {
		in := "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n" + strings.Repeat("data: "+e+"\n\n", 70)
		_, err := ReadStream(w, strings.NewReader(in), StreamOptions{})
		if f := faultIn(t, err); f.Kind != recovery.TooLarge {
			t.Errorf("%s: fault is %s, want too large", w, f.Kind)
		}
	}
}

func TestWhatAnthropicRefusesIsNotSent(t *testing.T) {
	c := NewClient(Endpoint{Name: "anthropic", Wire: Anthropic, BaseURL: "https://api.anthropic.com"}, Timeouts{})
	r := &Request{Model: "m", Effort: "high", MaxOutputTokens: 1500, Messages: []message.Message{
		{Role: message.Assistant, Parts: []message.Part{
			{Kind: message.Reasoning, Opaque: []byte(`{"type":"thinking","thinking":"unsigned"}`), Wire: "anthropic"},
			{Kind: message.Reasoning, Opaque: []byte(`{"type":"thinking","thinking":"of another wire"}`), Wire: "chat"},
			{Kind: message.Text, Text: " \n"}, {Kind: message.Text, Text: "to be continued \n"},
		}},
	}}
	body, err := c.encode(r, shape{})
	if err != nil {
		t.Fatal(err)
	}
	text, _ := body.encode()
	for _, not := range []string{"unsigned", "another wire", `"budget_tokens"`, `continued \n`, `" \n"`} {
		if strings.Contains(string(text), not) {
			t.Errorf("the body holds %q: %s", not, text)
		}
	}
	if !strings.Contains(string(text), `"messages":[{"role":"user"`) {
		t.Errorf("the conversation does not begin with the user: %s", text)
	}
}

func TestAnswersOfOddShapes(t *testing.T) {
	for body, says := range map[string]string{
		`"plain string"`:                           "plain string",
		`{"error":"text","message":"more"}`:        "text",
		`{"message":{"error":{"message":"deep"}}}`: "deep",
		`{"error":{"message":""}}`:                 "service unavailable",
		`[]`:                                       "service unavailable",
		`{}`:                                       "service unavailable",
		"<html><style>x{}</style><body>A <b>page</b></body>":       "A page",
		strings.Repeat(`{"error":{"message":"`, 3):                 "error",
		`{"error":{"message":"{\"error\":{\"message\":\"in\"}}`:    "in",
		`{"error":{"message":"{\"error\":{\"message\":\"in\"}}"}}`: "in",
		"line\r\nline\x00\u2028line":                               "line line line",
	} {
		f := classifyResponse(503, nil, []byte(body), clock())
		if f.Kind != recovery.Server || !strings.Contains(f.Message, says) {
			t.Errorf("%q gives %s %q, want the words %q", body, f.Kind, f.Message, says)
		}
	}
}
