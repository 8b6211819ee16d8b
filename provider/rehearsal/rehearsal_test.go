package rehearsal

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"agentd/exitcodes"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var wires = []Wire{Chat, Responses, Anthropic}

// paths and least requests of each wire.
var paths = map[Wire]string{Chat: "/v1/chat/completions", Responses: "/v1/responses", Anthropic: "/v1/messages"}

var least = map[Wire]string{
	Chat:      `{"model":"m","stream":true,"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hi"}]}`,
	Responses: `{"model":"m","stream":true,"instructions":"be brief","input":[{"role":"user","content":"hi"}]}`,
	Anthropic: `{"model":"m","stream":true,"max_tokens":100,"system":"be brief","messages":[{"role":"user","content":"hi"}]}`,
}

func serve(t *testing.T, script string) *Server {
	t.Helper()
	sc, err := Parse("test", []byte("what = 'test'\n"+script))
	if err != nil {
		t.Fatal(err)
	}
	sc.Now = func() time.Time { return time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC) }
	s, err := Serve(sc)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// post sends a request on a connection of its own.
func post(t *testing.T, s *Server, w Wire, body string) (*http.Response, string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+paths[w], bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	req.GetBody = nil
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer sk-secret")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	tr := &http.Transport{DisableKeepAlives: true}
	defer tr.CloseIdleConnections()
	c := &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := c.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	all, err := io.ReadAll(resp.Body)
	return resp, string(all), err
}

func TestStreamsAreWholeOnEveryWire(t *testing.T) {
	t.Parallel()
	const script = `
[[reply]]
reasoning = "thinking about it"
text = "Hällo, {last_user}! It is {date}."
tool_calls = [{ id = "call_1", name = "shell", arguments = { command = "echo '{last_user}' {request}" } }, { name = "raw", arguments = '{"x": 1}' }]
usage = { input = 100, output = 20, cached = 60, reasoning = 5 }
`
	wants := map[Wire][]string{
		Chat:      {`"finish_reason":"tool_calls"`, "data: [DONE]\n\n", `"prompt_tokens":100`, `"id":"call_1"`},
		Responses: {"event: response.completed\n", `"input_tokens":100`, `"call_id":"call_1"`, `"text":"Hällo, hi! It is 2026-12-01."`, `"arguments":"{\"command\":\"echo 'hi' 1\"}"`},
		Anthropic: {"event: message_stop\n", `"stop_reason":"tool_use"`, `"input_tokens":40`, `"cache_read_input_tokens":60`, `"signature":"sig_`},
	}
	for _, w := range wires {
		t.Run(string(w), func(t *testing.T) {
			t.Parallel()
			s := serve(t, script)
			resp, body, err := post(t, s, w, least[w])
			if err != nil {
				t.Fatal(err)
			}
			if ct := resp.Header.Get("Content-Type"); !strings.HasPrefix(ct, "text/event-stream") {
				t.Errorf("Content-Type %q", ct)
			}
			for _, want := range wants[w] {
				if !strings.Contains(body, want) {
					t.Errorf("the stream lacks %q:\n%s", want, body)
				}
			}
			got := s.Requests()
			if len(got) != 1 || got[0].Reply != 1 || got[0].System != "be brief" || got[0].Messages[0].Text() != "hi" {
				t.Errorf("requests: %+v", got)
			}
			if h := got[0].Header.Get("Authorization"); h != "(hidden)" {
				t.Errorf("the key is recorded: %q", h)
			}
		})
	}
}

func TestScriptEndsWithAPermanentError(t *testing.T) {
	t.Parallel()
	for _, w := range wires {
		s := serve(t, "[[reply]]\ntext = 'one'\n")
		if _, _, err := post(t, s, w, least[w]); err != nil {
			t.Fatal(err)
		}
		resp, body, err := post(t, s, w, least[w])
		if err != nil || resp.StatusCode != http.StatusBadRequest || !strings.Contains(body, "scenario exhausted") {
			t.Errorf("%s: %v %v %s", w, resp.StatusCode, err, body)
		}
	}
}

func TestCuts(t *testing.T) {
	t.Parallel()
	const reply = `
[[reply]]
text = "a text of some length, so that there are several events"
tool_calls = [{ name = "shell", arguments = { command = "echo a command of some length too" } }]
`
	tests := []struct {
		name, keys string
		wantErr    bool // the body ends with a transport error
		wantEnd    bool // the terminal event is there
	}{
		{"clean end in arguments", `cut_in = "tool_arguments"` + "\n" + `cut = "end"`, false, false},
		{"close in arguments", `cut_in = "tool_arguments"` + "\n" + `cut = "close"`, true, false},
		{"reset in text", `cut_in = "text"` + "\n" + `cut = "reset"`, true, false},
		{"close at a byte", `cut_at = 70` + "\n" + `cut = "close"`, true, false},
		{"clean end before the terminal", `cut_in = "before_terminal"` + "\n" + `cut = "end"`, false, false},
		{"close after the terminal", `cut_in = "after_terminal"` + "\n" + `cut = "close"`, true, true},
		{"nothing", `cut_in = "start"` + "\n" + `cut = "end"`, false, false},
		{"no answer", `cut_in = "headers"` + "\n" + `cut = "close"`, true, false},
		{"no terminal", `omit = ["terminal", "done"]`, false, false},
		{"small writes", `write_bytes = 3`, false, true},
	}
	ends := map[Wire]string{Chat: `"finish_reason":"tool_calls"`, Responses: "event: response.completed", Anthropic: "event: message_stop"}
	for _, tt := range tests {
		for _, w := range wires {
			t.Run(tt.name+"/"+string(w), func(t *testing.T) {
				t.Parallel()
				s := serve(t, reply+tt.keys)
				_, body, err := post(t, s, w, least[w])
				if (err != nil) != tt.wantErr {
					t.Errorf("error %v, want one: %v", err, tt.wantErr)
				}
				if got := strings.Contains(body, ends[w]); got != tt.wantEnd {
					t.Errorf("terminal seen %v, want %v:\n%s", got, tt.wantEnd, body)
				}
				if strings.Contains(tt.name, "byte") && len(body) != 70 {
					t.Errorf("%d bytes, want 70", len(body))
				}
			})
		}
	}
}

func TestErrorsInEveryForm(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, reply string
		status      map[Wire]int
		want        map[Wire]string
	}{
		{"rate limit with headers", "error = 'rate_limit'\nheaders = { Retry-After = '1' }",
			map[Wire]int{Chat: 429, Responses: 429, Anthropic: 429},
			map[Wire]string{Chat: "rate_limit_exceeded", Responses: "rate_limit_exceeded", Anthropic: "rate_limit_error"}},
		{"overloaded", "error = 'overloaded'",
			map[Wire]int{Chat: 503, Responses: 503, Anthropic: 529},
			map[Wire]string{Chat: "overloaded", Responses: "overloaded", Anthropic: "overloaded_error"}},
		{"JSON under 200", "error = 'overloaded'\nstatus = 200",
			map[Wire]int{Chat: 200, Responses: 200, Anthropic: 200},
			map[Wire]string{Chat: `{"error":`, Responses: `{"error":`, Anthropic: `{"error":`}},
		{"in the stream", "error = 'overloaded'\nin_stream = true\ntext = 'so far'\nmessage = 'own words'",
			map[Wire]int{Chat: 200, Responses: 200, Anthropic: 200},
			map[Wire]string{Chat: `data: {"error":`, Responses: "event: response.failed", Anthropic: "event: error"}},
		{"HTML", "status = 502\nbody = '<html>bad gateway</html>'\nheaders = { Content-Type = 'text/html' }",
			map[Wire]int{Chat: 502, Responses: 502, Anthropic: 502},
			map[Wire]string{Chat: "<html>", Responses: "<html>", Anthropic: "<html>"}},
		{"redirect", "status = 307\nheaders = { Location = '/elsewhere' }",
			map[Wire]int{Chat: 307, Responses: 307, Anthropic: 307},
			map[Wire]string{}},
	}
	for _, tt := range tests {
		for _, w := range wires {
			t.Run(tt.name+"/"+string(w), func(t *testing.T) {
				t.Parallel()
				resp, body, err := post(t, serve(t, "[[reply]]\n"+tt.reply), w, least[w])
				if err != nil {
					t.Fatal(err)
				}
				if resp.StatusCode != tt.status[w] || !strings.Contains(body, tt.want[w]) {
					t.Errorf("status %d, want %d; body lacks %q:\n%s", resp.StatusCode, tt.status[w], tt.want[w], body)
				}
			})
		}
	}
}

func TestResetIn(t *testing.T) {
	t.Parallel()
	for _, w := range wires {
		resp, _, err := post(t, serve(t, "[[reply]]\nerror = 'usage_limit'\nreset_in = '5h'"), w, least[w])
		if err != nil {
			t.Fatal(err)
		}
		if got := resp.Header.Get("Retry-After"); got != "18000" {
			t.Errorf("%s: Retry-After %q", w, got)
		}
	}
}

// A stalled reply ends when the client gives up, and Close does not wait longer.
func TestStallsEndWithTheClient(t *testing.T) {
	t.Parallel()
	for _, keys := range []string{`cut = "stall"`, `cut = "keepalive"`, "cut = 'stall'\ncut_in = 'headers'", "delay = '1h'"} {
		s := serve(t, "[[reply]]\ntext = 'some text'\n"+keys)
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+paths[Chat], strings.NewReader(least[Chat]))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		done := make(chan struct{})
		tr := &http.Transport{}
		go func() {
			defer close(done)
			resp, err := (&http.Client{Transport: tr}).Do(req)
			if err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		}()
		for len(s.Requests()) == 0 {
			time.Sleep(time.Millisecond) // until the server has the request
		}
		cancel()
		<-done
		tr.CloseIdleConnections()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestRequestsARealProviderRefuses(t *testing.T) {
	t.Parallel()
	call := func(args string) string {
		return `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"` + args + `"}}]}`
	}
	chat := func(messages string) string { return `{"model":"m","stream":true,"messages":[` + messages + `]}` }
	user, result := `{"role":"user","content":"hi"}`, `{"role":"tool","tool_call_id":"c1","content":"ok"}`
	messages := func(m string) string { return `{"model":"m","stream":true,"max_tokens":9,"messages":[` + m + `]}` }
	input := func(m string) string { return `{"model":"m","stream":true,"input":[` + m + `]}` }
	tests := []struct {
		name string
		wire Wire
		body string
		want string // "": accepted
	}{
		{"whole tool round", Chat, chat(user + "," + call("{}") + "," + result), ""},
		{"call without result", Chat, chat(user + "," + call("{}") + "," + user), "before the results"},
		{"result missing at the end", Chat, chat(user + "," + call("{}")), "have no result"},
		{"result without call", Chat, chat(user + "," + result), "not open"},
		{"cut arguments", Chat, chat(user + "," + call(`{\"a\":`) + "," + result), "not a JSON object"},
		{"assistant first", Chat, chat(`{"role":"assistant","content":"x"}`), "first message"},
		{"assistant last", Chat, chat(user + `,{"role":"assistant","content":"x"}`), "ends with the assistant"},
		{"empty assistant", Chat, chat(user + `,{"role":"assistant","content":""},` + user), "no content"},
		{"no stream", Chat, `{"model":"m","messages":[` + user + `]}`, "stream is not true"},
		{"no model", Chat, `{"stream":true,"messages":[` + user + `]}`, "model is missing"},
		{"not JSON", Chat, `{"model":`, "not a chat request"},
		{"no schema", Chat, `{"model":"m","stream":true,"messages":[` + user + `],"tools":[{"type":"function","function":{"name":"f"}}]}`, "schema of tool"},
		{"roles repeat", Anthropic, messages(user + "," + user), "in a row"},
		{"blank text", Anthropic, messages(`{"role":"user","content":" "}`), "without text"},
		{"no max_tokens", Anthropic, `{"model":"m","stream":true,"messages":[` + user + `]}`, "max_tokens"},
		{"thinking without signature", Anthropic, messages(user + `,{"role":"assistant","content":[{"type":"thinking","thinking":"x"}]},` + user), "signature"},
		{"whole tool round", Anthropic, messages(user + `,{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"ok"},{"type":"text","text":"go on"}]}`), ""},
		{"result after text", Anthropic, messages(user + `,{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"f","input":{}}]},{"role":"user","content":[{"type":"text","text":"go on"},{"type":"tool_result","tool_use_id":"c1","content":"ok"}]}`), "after other content"},
		{"whole tool round", Responses, input(user + `,{"type":"reasoning","id":"r","summary":[]},{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":"ok"}`), ""},
		{"orphan reasoning", Responses, input(user + `,{"type":"reasoning","id":"r","summary":[]},` + user), "lacks the item"},
	}
	for _, tt := range tests {
		t.Run(string(tt.wire)+"/"+tt.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, "[[reply]]\ntext = 'fine'\n")
			resp, body, err := post(t, s, tt.wire, tt.body)
			if err != nil {
				t.Fatal(err)
			}
			if tt.want == "" {
				if resp.StatusCode != http.StatusOK || len(s.Problems()) > 0 {
					t.Errorf("refused: %d %s", resp.StatusCode, body)
				}
				return
			}
			if resp.StatusCode != http.StatusBadRequest || !strings.Contains(fmt.Sprint(s.Problems()), tt.want) {
				t.Errorf("status %d, problems %q, want %q", resp.StatusCode, s.Problems(), tt.want)
			}
		})
	}
}

func TestEveryEmbeddedScenarioLoads(t *testing.T) {
	t.Parallel()
	names := Names()
	if len(names) < 3 {
		t.Fatalf("only %q", names)
	}
	for _, n := range names {
		if sc, err := Load(n); err != nil {
			t.Error(err)
		} else if strings.Contains(sc.What, "\n") {
			t.Errorf("%s: what has more than one line", n)
		}
	}
}

func TestWrongScenarios(t *testing.T) {
	t.Parallel()
	tests := []struct{ text, want string }{
		{"what = 'x'\n[[reply]]\ntxt = 'y'", `line 3: unknown key "reply.txt"`},
		{"what = 'x'\n[[reply]]\ntimes = 'y'", "line 3"},
		{"[[reply]]\ntext = 'y'", `"what" is missing`},
		{"what = 'x'", "no [[reply]]"},
		{"what = 'x'\nwire = 'morse'\n[[reply]]\ntext = 'y'", "morse"},
		{"what = 'x'\n[[reply]]\ncut = 'saw'", "reply 1: cut"},
		{"what = 'x'\n[[reply]]\nerror = 'odd'", "rate_limit"},
		{"what = 'x'\n[[reply]]\nstatus = 500\ntext = 'y'", "no place beside"},
		{"what = 'x'\n[[reply]]\nrepeat = true\n[[reply]]\ntext = 'y'", "last reply only"},
		{"what = 'x'\n[[reply]]\ndelay = 'soon'", "line 3"},
		{"what = 'x'\n[[reply]]\ncut_in = 'headers'", "needs cut"},
		{"what = 'x'\n[[reply]]\ntool_calls = [{ name = 'f', arguments = 3 }]", "neither a table nor a string"},
	}
	for _, tt := range tests {
		_, err := Parse("test", []byte(tt.text))
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: error %v, want %q on one line", tt.text, err, tt.want)
		}
		if exitcodes.From(err) != exitcodes.Config {
			t.Errorf("%q: code %d", tt.text, exitcodes.From(err))
		}
	}
	if _, err := Load("no-such"); exitcodes.From(err) != exitcodes.NoInput {
		t.Errorf("unknown name: %v", err)
	}
	if _, err := Load("./no-such.toml"); exitcodes.From(err) != exitcodes.NoInput {
		t.Errorf("unknown file: %v", err)
	}
}
