package provider

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentd/provider/message"
)

var update = flag.Bool("update", false, "write the golden files anew")

// conversation has everything that a wire has to map.
func conversation() *Request {
	return &Request{
		Model:  "model-1",
		System: "be <brief>",
		Tools: []message.Definition{
			{Name: "shell", Description: "runs a command", Schema: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}}}`)},
			{Name: "now", Description: "tells the time"},
		},
		Messages: []message.Message{
			message.NewText(message.User, "first"),
			{Role: message.Assistant, Parts: []message.Part{
				{Kind: message.Reasoning, Text: "old", Opaque: json.RawMessage(`"reasoning_content"`), Wire: "chat"},
				{Kind: message.Text, Text: "answer"},
			}},
			message.NewText(message.User, "second"),
			message.NewText(message.User, "third"),
			{Role: message.Assistant, Parts: []message.Part{
				{Kind: message.Reasoning, Text: "hm", Opaque: json.RawMessage(`{"type":"thinking","thinking":"hm","signature":"Sg=="}`), Wire: "anthropic"},
				{Kind: message.Reasoning, Text: "hm", Opaque: json.RawMessage(`{"type":"reasoning","id":"rs","encrypted_content":"E","summary":[]}`), Wire: "responses"},
				{Kind: message.Reasoning, Text: "hm", Opaque: json.RawMessage(`"reasoning_content"`), Wire: "chat"},
				{Kind: message.Text, Text: "I will look."},
				{Kind: message.ToolCall, ID: "functions.shell:0", Name: "shell", Arguments: `{"command": "ls"}`},
				{Kind: message.ToolCall, ID: "call_2", Name: "now", Arguments: "", Opaque: json.RawMessage(`{"google":{"thought_signature":"S"}}`), Wire: "chat"},
				{Kind: message.ToolCall, ID: strings.Repeat("x", 70), Name: "shell", Arguments: "{broken"},
			}},
			{Role: message.Tool, Parts: []message.Part{
				{Kind: message.ToolResult, ID: "functions.shell:0", Text: "a & b"},
				{Kind: message.ToolResult, ID: "call_2", Text: "", IsError: true},
				{Kind: message.ToolResult, ID: strings.Repeat("x", 70), Text: "no"},
			}},
			message.NewText(message.System, "the budget is low"),
			message.NewText(message.User, "go on"),
		},
	}
}

func TestRequestsAreAsTheWireWantsThem(t *testing.T) {
	tests := []struct {
		name   string
		e      Endpoint
		change func(*Request)
	}{
		{"chat", Endpoint{Name: "openrouter", Wire: Chat}, nil},
		{"chat-mistral", Endpoint{Name: "mistral", Wire: Chat}, nil},
		{"chat-openai", Endpoint{Name: "openai", Wire: Chat}, func(r *Request) { r.MaxOutputTokens, r.Effort = 100, "low" }},
		{"anthropic", Endpoint{Name: "anthropic", Wire: Anthropic, BaseURL: "https://api.anthropic.com"}, nil},
		{"anthropic-effort", Endpoint{Name: "anthropic", Wire: Anthropic}, func(r *Request) { r.Effort = "high" }},
		{"responses", Endpoint{Name: "openai", Wire: Responses}, func(r *Request) { r.MaxOutputTokens, r.Effort = 100, "low" }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := conversation()
			if tt.change != nil {
				tt.change(r)
			}
			c := NewClient(tt.e, Timeouts{})
			body, err := c.encode(r, shape{})
			if err != nil {
				t.Fatal(err)
			}
			text, err := body.encode()
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if err := json.Indent(&out, text, "", "  "); err != nil {
				t.Fatal(err)
			}
			golden(t, tt.name+".json", append(out.Bytes(), '\n'))
		})
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", "requests", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", name, diff)
	}
}

func TestEncodingIsTheSameEachTime(t *testing.T) {
	// A prompt cache works only for a request that begins with the same bytes.
	for _, w := range []Wire{Chat, Anthropic, Responses} {
		c := NewClient(Endpoint{Name: "x", Wire: w}, Timeouts{})
		var first []byte
		for range 20 {
			body, err := c.encode(conversation(), shape{})
			if err != nil {
				t.Fatal(err)
			}
			text, _ := body.encode()
			if first == nil {
				first = text
			}
			if !bytes.Equal(first, text) {
				t.Fatalf("%s: two encodings differ", w)
			}
		}
	}
}

func TestAnEmptyConversationIsNotSent(t *testing.T) {
	for _, w := range []Wire{Chat, Anthropic, Responses} {
		c := NewClient(Endpoint{Name: "x", Wire: w, BaseURL: "http://127.0.0.1:1"}, Timeouts{})
		if _, err := c.Send(t.Context(), &Request{Model: "m"}, nil); err == nil || !strings.Contains(err.Error(), "empty") {
			t.Errorf("%s: error is %v, want one that says the conversation is empty", w, err)
		}
	}
}

func TestRequestHeadersOfEachWire(t *testing.T) {
	tests := []struct {
		e    Endpoint
		want http.Header
	}{
		{Endpoint{Name: "x", Wire: Chat, APIKey: "k"}, http.Header{"Authorization": {"Bearer k"}}},
		{Endpoint{Name: "x", Wire: Chat}, http.Header{}},
		{Endpoint{Name: "x", Wire: Responses, APIKey: "k"}, http.Header{"Authorization": {"Bearer k"}}},
		{Endpoint{Name: "azure", Wire: Chat, APIKey: "k"}, http.Header{"Api-Key": {"k"}}},
		{Endpoint{Name: "x", Wire: Responses, APIKey: "k", BaseURL: "https://r.openai.azure.com/openai/v1"}, http.Header{"Api-Key": {"k"}}},
		{Endpoint{Name: "x", Wire: Anthropic, APIKey: "k"}, http.Header{"X-Api-Key": {"k"}, "Anthropic-Version": {"2023-06-01"}}},
		{Endpoint{Name: "x", Wire: Anthropic, APIKey: "k", Header: http.Header{"anthropic-version": {"2024"}, "X-Mine": {"1"}, "Idempotency-Key": {"i"}}},
			http.Header{"X-Api-Key": {"k"}, "Anthropic-Version": {"2024"}, "X-Mine": {"1"}}},
	}
	for _, tt := range tests {
		if tt.e.BaseURL == "" {
			tt.e.BaseURL = "http://host"
		}
		c := NewClient(tt.e, Timeouts{})
		req, err := c.request(t.Context(), []byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		for k, want := range map[string]string{"Content-Type": "application/json", "Accept": "text/event-stream", "Accept-Encoding": "identity"} {
			if got := req.Header.Get(k); got != want {
				t.Errorf("%s is %q, want %q", k, got, want)
			}
			req.Header.Del(k)
		}
		if ua := req.Header.Get("User-Agent"); !strings.HasPrefix(ua, "agentd/") {
			t.Errorf("User-Agent is %q", ua)
		}
		req.Header.Del("User-Agent")
		if diff := cmp.Diff(tt.want, req.Header); diff != "" {
			t.Errorf("headers of %+v differ (-want +got):\n%s", tt.e, diff)
		}
		if req.GetBody != nil {
			t.Error("the body can be sent again")
		}
	}
}

func TestAddressOfEachWire(t *testing.T) {
	for _, tt := range []struct {
		w          Wire
		base, want string
	}{
		{Chat, "https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions"},
		{Chat, "https://api.openai.com/v1/", "https://api.openai.com/v1/chat/completions"},
		{Chat, "http://localhost:8080", "http://localhost:8080/chat/completions"},
		{Chat, "https://host/v1/chat/completions", "https://host/v1/chat/completions"},
		{Chat, "https://r.openai.azure.com/openai/deployments/d?api-version=2024-10-21", "https://r.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21"},
		{Responses, "https://api.openai.com/v1", "https://api.openai.com/v1/responses"},
		{Responses, "http://127.0.0.1:1", "http://127.0.0.1:1/responses"},
		{Anthropic, "https://api.anthropic.com", "https://api.anthropic.com/v1/messages"},
		{Anthropic, "https://api.anthropic.com/v1", "https://api.anthropic.com/v1/messages"},
		{Anthropic, "https://api.anthropic.com/v1/messages", "https://api.anthropic.com/v1/messages"},
		{Anthropic, "https://host/anthropic/", "https://host/anthropic/v1/messages"},
	} {
		e := Endpoint{Name: "x", BaseURL: tt.base}
		got, err := e.url(wireOf(tt.w).path())
		if err != nil || got != tt.want {
			t.Errorf("%s at %s is %s (%v), want %s", tt.w, tt.base, got, err, tt.want)
		}
	}
}
