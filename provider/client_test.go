package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"agentd/exitcodes"
	"agentd/provider/message"
	"agentd/recovery"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is a loopback provider that counts what arrives.
type server struct {
	*httptest.Server
	posts atomic.Int32
}

func serve(t *testing.T, h http.HandlerFunc) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.posts.Add(1)
		// A server notices that the client has gone only once it has read the body.
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		h(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// client returns a client of s with short timers.
func (s *server) client(t *testing.T, w Wire) *Client {
	t.Helper()
	c := NewClient(Endpoint{Name: "test", Wire: w, BaseURL: s.URL, APIKey: "sk-secret-key"}, Timeouts{})
	t.Cleanup(c.Close)
	return c
}

// ask is the request of these tests.
func ask() *Request {
	return &Request{Model: "m", System: "be brief", Messages: []message.Message{message.NewText(message.User, "hi")}}
}

// stream answers with an event stream that ends cleanly.
func stream(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		_, _ = io.WriteString(w, text)
	}
}

// flushed is a stream that is sent before the handler goes on.
func flushed(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		stream(text)(w, r)
		w.(http.Flusher).Flush()
	}
}

const okChat = "data: {\"id\":\"c1\",\"model\":\"m-1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hello\"}}]}\n\n" +
	"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}\n\n" +
	"data: [DONE]\n\n"

// faultIn returns the fault in err.
func faultIn(t *testing.T, err error) *recovery.Fault {
	t.Helper()
	f, ok := errors.AsType[*recovery.Fault](err)
	if !ok {
		t.Fatalf("error is %v, want a fault", err)
	}
	return f
}

func TestSendIsOneRequestWhateverHappens(t *testing.T) {
	tests := []struct {
		name   string
		answer http.HandlerFunc
		kind   recovery.Kind // "" for a reply
	}{
		{"reply", stream(okChat), ""},
		{"empty stream", stream(""), recovery.Truncated},
		{"no content", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, recovery.Truncated},
		{"empty body without a type", func(http.ResponseWriter, *http.Request) {}, recovery.Truncated},
		{"only comments", stream(": hi\n\n: ho\n\n"), recovery.Truncated},
		{"cut in the middle", stream(okChat[:60]), recovery.Truncated},
		{"DONE without a finish", stream("data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\ndata: [DONE]\n\n"), recovery.Truncated},
		{"aborted", func(w http.ResponseWriter, r *http.Request) { flushed(okChat)(w, r); panic(http.ErrAbortHandler) }, recovery.Truncated},
		{"aborted before the header", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, recovery.Transport},
		{"301", http.RedirectHandler("/other", http.StatusMovedPermanently).ServeHTTP, recovery.Malformed},
		{"302", http.RedirectHandler("/other", http.StatusFound).ServeHTTP, recovery.Malformed},
		{"303", http.RedirectHandler("/other", http.StatusSeeOther).ServeHTTP, recovery.Malformed},
		{"307", http.RedirectHandler("/other", http.StatusTemporaryRedirect).ServeHTTP, recovery.Malformed},
		{"308", http.RedirectHandler("/other", http.StatusPermanentRedirect).ServeHTTP, recovery.Malformed},
		{"401", answer(401, "application/json", `{"error":{"message":"no"}}`), recovery.Auth},
		{"429", answer(429, "application/json", `{"error":{"message":"no"}}`), recovery.RateLimited},
		{"500", answer(500, "text/html", `<title>oops</title>`), recovery.Server},
		{"201", answer(201, "application/json", `{}`), recovery.Malformed},
		{"HTML under 200", answer(200, "text/html", `<html><title>Login</title>`), recovery.Malformed},
		{"HTML that begins like a stream", answer(200, "text/html", "data: x\n\n"), recovery.Malformed},
		{"JSON error under 200", answer(200, "application/json", `{"error":{"type":"overloaded_error","message":"Overloaded"}}`), recovery.Server},
		{"JSON error of another type under 200", answer(200, "application/json", `{"error":{"type":"authentication_error","message":"no"}}`), recovery.Auth},
		{"JSON under 200", answer(200, "application/json", `{"choices":[]}`), recovery.Malformed},
		{"text under 200", answer(200, "text/plain", "hello"), recovery.Malformed},
		{"stream without its type", answer(200, "text/plain", okChat), ""},
		{"stream of JSON by name", answer(200, "application/json", okChat), ""},
		{"compressed", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			stream(okChat)(w, r)
		}, recovery.Malformed},
		{"not JSON in an event", stream("data: nope\n\n"), recovery.Malformed},
		{"broken JSON in an event", stream("data: {\"choices\":[}\n\n"), recovery.Malformed},
		{"half JSON in an event", stream("data: {\"choices\":[{\"delta\":{\"content\":\"x\n\n"), recovery.Malformed},
		{"JSON that is no object in an event", stream("data: [1]\n\n"), recovery.Malformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, tt.answer)
			b := recovery.New(recovery.Options{})
			reply, err := s.client(t, Chat).Send(recovery.With(t.Context(), b), ask(), nil)
			if tt.kind == "" {
				if err != nil || reply.Message.Text() != "Hello" || reply.ID != "c1" || reply.Model != "m-1" {
					t.Errorf("got %+v and %v, want a reply", reply, err)
				}
			} else if f := faultIn(t, err); f.Kind != tt.kind || reply != nil {
				t.Errorf("got %v and %v, want %s", reply, f, tt.kind)
			}
			if n := s.posts.Load(); n != 1 || b.Stats().Requests != 1 {
				t.Errorf("%d requests arrived and %d were debited, want 1", n, b.Stats().Requests)
			}
		})
	}
}

func answer(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestSendSendsNothingWithoutAllowance(t *testing.T) {
	s := serve(t, stream(okChat))
	b := recovery.New(recovery.Options{Requests: 1})
	ctx := recovery.With(t.Context(), b)
	c := s.client(t, Chat)
	if _, err := c.Send(ctx, ask(), nil); err != nil {
		t.Fatal(err)
	}
	_, err := c.Send(ctx, ask(), nil)
	if _, ok := errors.AsType[*recovery.Exhausted](err); !ok || s.posts.Load() != 1 {
		t.Errorf("error is %v after %d requests, want exhausted after 1", err, s.posts.Load())
	}
}

func TestSendLeavesOutWhatTheServerRefusesByName(t *testing.T) {
	tests := []struct {
		name    string
		wire    Wire
		refuses string
		says    string
		change  func(*Request)
	}{
		{"stream_options", Chat, `"stream_options"`, `{"error":{"message":"Unrecognized request argument supplied: stream_options","type":"invalid_request_error"}}`, nil},
		{"max_tokens", Chat, `"max_tokens"`, `{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","param":"max_tokens","code":"unsupported_parameter"}}`, func(r *Request) { r.MaxOutputTokens = 5 }},
		{"reasoning_effort", Chat, `"reasoning_effort"`, `{"detail":[{"loc":["body","reasoning_effort"],"msg":"Extra inputs are not permitted"}]}`, func(r *Request) { r.Effort = "low" }},
		{"output limit", Chat, `32000`, "{\"error\":{\"message\":\"`max_tokens` must be less than or equal to `8192`; you sent 32000\",\"type\":\"invalid_request_error\"}}", func(r *Request) { r.MaxOutputTokens = 32000 }},
		{"output limit of Anthropic", Anthropic, `32000`, `{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens for claude-3-5-haiku-20241022"}}`, nil},
		{"cache_control", Anthropic, `"cache_control"`, `{"error":{"type":"invalid_request_error","message":"cache_control: Extra inputs are not permitted"}}`, nil},
		{"thinking", Anthropic, `"thinking"`, `{"error":{"type":"invalid_request_error","message":"this model does not support thinking"}}`, func(r *Request) { r.Effort = "high" }},
		{"include", Responses, `"include"`, `{"error":{"message":"Encrypted content is not supported with this model.","type":"invalid_request_error","param":"include","code":null}}`, nil},
		{"summary", Responses, `"summary"`, `{"error":{"message":"Your organization must be verified to generate reasoning summaries.","type":"invalid_request_error","param":"reasoning.summary","code":"unsupported_value"}}`, func(r *Request) { r.Effort = "low" }},
	}
	streams := map[Wire]string{Chat: okChat, Anthropic: okAnthropic, Responses: okResponses}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var refused atomic.Int32
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if strings.Contains(string(body), tt.refuses) {
					refused.Add(1)
					answer(400, "application/json", tt.says)(w, r)
					return
				}
				stream(streams[tt.wire])(w, r)
			})
			r := ask()
			if tt.change != nil {
				tt.change(r)
			}
			b := recovery.New(recovery.Options{})
			c := s.client(t, tt.wire)
			for range 2 { // the second time it is known
				if _, err := c.Send(recovery.With(t.Context(), b), r, nil); err != nil {
					t.Fatal(err)
				}
			}
			if refused.Load() != 1 || s.posts.Load() != 3 || b.Stats().Requests != 3 {
				t.Errorf("%d refused, %d sent, %d debited; want 1, 3, 3", refused.Load(), s.posts.Load(), b.Stats().Requests)
			}
		})
	}
}

const (
	okAnthropic = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m1\",\"usage\":{\"input_tokens\":3}}}\n\n" +
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":1}}\n\n" +
		"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	okResponses = "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"r1\",\"status\":\"completed\",\"output\":[]}}\n\n"
)

func TestSendDoesNotDropWhatTheServerMerelyMentions(t *testing.T) {
	s := serve(t, answer(400, "application/json", `{"error":{"message":"tools: the schema of shell is wrong","type":"invalid_request_error"}}`))
	r := ask()
	r.Tools = []message.Definition{{Name: "shell"}}
	f := faultIn(t, second(s.client(t, Chat).Send(t.Context(), r, nil)))
	if f.Kind != recovery.Invalid || s.posts.Load() != 1 {
		t.Errorf("got %v after %d requests, want invalid after 1", f, s.posts.Load())
	}
}

func second[A, B any](_ A, b B) B { return b }

func TestFallbacksAreBounded(t *testing.T) {
	all := `{"error":{"message":"unknown: stream_options, max_tokens, max_completion_tokens, reasoning_effort, store, include","type":"invalid_request_error"}}`
	s := serve(t, answer(400, "application/json", all))
	r := ask()
	r.Effort = "low"
	f := faultIn(t, second(s.client(t, Chat).Send(t.Context(), r, nil)))
	if f.Kind != recovery.Invalid || s.posts.Load() > 1+maxFallbacks {
		t.Errorf("got %v after %d requests", f, s.posts.Load())
	}
	b := recovery.New(recovery.Options{Requests: 1})
	before := s.posts.Load()
	_, err := s.client(t, Chat).Send(recovery.With(t.Context(), b), r, nil)
	if _, ok := errors.AsType[*recovery.Exhausted](err); !ok || s.posts.Load() != before+1 {
		t.Errorf("error is %v after %d more requests, want exhausted after 1", err, s.posts.Load()-before)
	}
}

func TestTheKeyIsInNoError(t *testing.T) {
	for _, status := range []int{400, 401, 500} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			key := r.Header.Get("Authorization")
			answer(status, "application/json", `{"error":{"message":"bad key `+key+`","type":"`+key+`"}}`)(w, r)
		})
		_, err := s.client(t, Chat).Send(t.Context(), ask(), nil)
		if err == nil || strings.Contains(err.Error(), "sk-secret-key") || !strings.Contains(err.Error(), "[key]") {
			t.Errorf("error is %v, want one without the key", err)
		}
	}
	for _, e := range []Endpoint{
		{Name: "test", Wire: Chat, BaseURL: "http://user:sk-secret-key@127.0.0.1:1/v1?key=sk-secret-key", APIKey: "sk-secret-key"},
		{Name: "test", Wire: Chat, BaseURL: "ftp://user:sk-secret-key@host", APIKey: "sk-secret-key"},
		{Name: "test", Wire: Chat, BaseURL: "http://127.0.0.1:1", APIKey: "sk-secret-key\nx"},
	} {
		c := NewClient(e, Timeouts{})
		_, err := c.Send(t.Context(), ask(), nil)
		if err == nil || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "\n") {
			t.Errorf("error is %v, want one without the key", err)
		}
		c.Close()
	}
}

func TestAddressesThatCannotBeUsedAreConfigErrors(t *testing.T) {
	for _, base := range []string{"", "ftp://host", "://", "host/path", "http://"} {
		c := NewClient(Endpoint{Name: "test", Wire: Chat, BaseURL: base}, Timeouts{})
		if _, err := c.Send(t.Context(), ask(), nil); exitcodes.From(err) != exitcodes.Config {
			t.Errorf("%q gives %v, want a config error", base, err)
		}
	}
}

func TestExtraFieldsReachTheBody(t *testing.T) {
	bodies := make(chan map[string]any, 1)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var m map[string]any
		_ = json.NewDecoder(r.Body).Decode(&m)
		bodies <- m
		stream(okChat)(w, r)
	})
	r := ask()
	r.Extra = json.RawMessage(`{"temperature":0.5,"stream_options":null,"stream":false}`)
	if _, err := s.client(t, Chat).Send(t.Context(), r, nil); err != nil {
		t.Fatal(err)
	}
	m := <-bodies
	if _, has := m["stream_options"]; has || m["temperature"] != 0.5 || m["stream"] != true {
		t.Errorf("body is %v", m)
	}
	r.Extra = json.RawMessage(`[1]`)
	if _, err := s.client(t, Chat).Send(t.Context(), r, nil); exitcodes.From(err) != exitcodes.Config {
		t.Errorf("error is %v, want a config error", err)
	}
}

func TestCancellationCommitsNothing(t *testing.T) {
	for name, text := range map[string]string{"before the header": "", "in the stream": okChat[:40], "after the terminal": okChat[:strings.Index(okChat, "data: [DONE]")]} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			why := errors.New("stopped")
			arrived := make(chan struct{})
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if text != "" {
					flushed(text)(w, r)
				}
				close(arrived)
				<-r.Context().Done()
			})
			var at time.Time
			go func() {
				<-arrived
				at = time.Now()
				cancel(why)
			}()
			reply, err := s.client(t, Chat).Send(ctx, ask(), nil)
			if reply != nil || !errors.Is(err, why) {
				t.Errorf("got %v and %v, want the cause", reply, err)
			}
			if d := time.Since(at); d > 2*time.Second {
				t.Errorf("it took %s", d)
			}
			if _, err := s.client(t, Chat).Send(ctx, ask(), nil); !errors.Is(err, why) || s.posts.Load() != 1 {
				t.Errorf("error is %v after %d requests, want the cause after 1", err, s.posts.Load())
			}
		})
	}
}

func TestTheEndOfTheCallersTimeIsATimeout(t *testing.T) {
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	_, err := s.client(t, Chat).Send(ctx, ask(), nil)
	if exitcodes.From(err) != exitcodes.Timeout {
		t.Errorf("error is %v, want a timeout", err)
	}
}
