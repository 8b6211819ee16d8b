package rehearsal

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"agentd/provider/message"
)

// ask sends a request to the gemini wire, and returns the status and the body.
func ask(t *testing.T, s *Server, path, body string) (int, string) {
	t.Helper()
	res, err := http.Post(s.URL+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

const geminiPath = "/v1beta/models/gemini-x:streamGenerateContent"

func TestGemini(t *testing.T) {
	s := serve(t, `
[[reply]]
reasoning = "hm"
text = "hello from {model}"
tool_calls = [{ name = "shell", arguments = { command = "ls" } }]
[[reply]]
error = "quota"
[[reply]]
error = "overflow"
`)
	status, body := ask(t, s, geminiPath+"?alt=sse", `{"systemInstruction":{"parts":[{"text":"be brief"}]},
		"tools":[{"functionDeclarations":[{"name":"shell"}]}],"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`)
	var text, finish, call string
	for line := range strings.Lines(body) {
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		var e struct {
			Candidates []struct {
				FinishReason string
				Content      struct {
					Parts []struct {
						Text         string
						Thought      bool
						FunctionCall *struct{ Name string }
					}
				}
			}
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatalf("%v in %q", err, data)
		}
		for _, p := range e.Candidates[0].Content.Parts {
			if !p.Thought {
				text += p.Text
			}
			if p.FunctionCall != nil {
				call = p.FunctionCall.Name
			}
		}
		finish += e.Candidates[0].FinishReason
	}
	if status != 200 || text != "hello from gemini-x" || call != "shell" || finish != "STOP" {
		t.Errorf("%d: text %q, call %q, finish %q", status, text, call, finish)
	}
	r := s.Requests()[0]
	if r.Problem != "" || r.System != "be brief" || r.Model != "gemini-x" || len(r.Tools) != 1 || len(r.Messages) != 1 || r.Messages[0].Role != message.User {
		t.Errorf("request %+v", r)
	}
	const least = `{"contents":[{"parts":[{"text":"hi"}]}]}`
	for _, want := range []struct {
		status int
		text   string
	}{{429, "RESOURCE_EXHAUSTED"}, {400, "exceeds the maximum number of tokens"}} {
		if status, body := ask(t, s, geminiPath, least); status != want.status || !strings.Contains(body, want.text) {
			t.Errorf("%d %s, want %+v", status, body, want)
		}
	}
}

// A lenient server answers what a strict one refuses, and nothing that is no
// request to a model.
func TestLenient(t *testing.T) {
	const odd = `{"model":"m","stream":false,"messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}]}`
	strict := serve(t, "[[reply]]\ntext = 'hi'\n")
	if status, _ := ask(t, strict, "/v1/messages", odd); status != 400 {
		t.Errorf("strict: %d", status)
	}
	s := serve(t, "lenient = true\n[[reply]]\ntext = 'hi'\n")
	for _, path := range []string{"/v1/models", "/v1/messages/count_tokens", "/"} {
		if status, _ := ask(t, s, path, odd); status != 404 {
			t.Errorf("%s: %d", path, status)
		}
	}
	if status, body := ask(t, s, "/v1/messages", odd); status != 200 || !strings.Contains(body, "hi") || s.Used() != 1 {
		t.Errorf("%d %s, %d replies used", status, body, s.Used())
	}
	if p := s.Problems(); len(p) == 0 {
		t.Error("what is odd is not on record")
	}
}
