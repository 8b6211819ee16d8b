package backend

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentd/exitcodes"
	"agentd/provider"
	"agentd/provider/message"
	"agentd/session"
	"agentd/workspace"
)

// desk is a workspace with a job for the built-in backend.
type desk struct {
	t       *testing.T
	dir     string
	job     *workspace.Job
	store   session.Store
	options BuiltinOptions
	backend Backend
	n       int

	out    bytes.Buffer
	events []Event
}

func newDesk(t *testing.T, model string) *desk {
	t.Helper()
	dir := t.TempDir()
	d := &desk{t: t, dir: dir, store: session.Store{Dir: t.TempDir()}}
	d.job = &workspace.Job{
		Agent: "bob", Name: "hello", Dir: dir, Model: model, Grace: time.Second, MaxSteps: 10,
		Recovery: workspace.Recovery{Requests: 11, Deadline: 10 * time.Minute, RequestTimeout: time.Minute},
	}
	if err := os.WriteFile(filepath.Join(dir, "AGENTS.md"), []byte("You are Bob.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.backend = NewBuiltin(d.options)
	return d
}

// run makes an attempt in the session "s".
func (d *desk) run(ctx context.Context, prompt string) Outcome {
	d.t.Helper()
	s, err := d.store.Open("bob", "s", session.Options{})
	if err != nil {
		d.t.Fatal(err)
	}
	defer s.Close()
	d.n++
	if err := s.AttemptStarted("run", d.n, "builtin", d.job.Model); err != nil {
		d.t.Fatal(err)
	}
	return d.backend.Run(ctx, Attempt{
		RunID: "run", N: d.n, Job: d.job, Dir: d.dir, RunDir: d.t.TempDir(), Prompt: prompt,
		Env: []string{"PATH=" + os.Getenv("PATH")}, Session: s, Output: &d.out,
		Events: func(e Event) { d.events = append(d.events, e) },
	})
}

func (d *desk) journal() string {
	d.t.Helper()
	names, err := filepath.Glob(filepath.Join(d.dir, "journal", "*.md"))
	if err != nil || len(names) != 1 {
		d.t.Fatalf("journal entries: %q, %v", names, err)
	}
	text, err := os.ReadFile(names[0])
	if err != nil {
		d.t.Fatal(err)
	}
	return string(text)
}

func (d *desk) eventText() string {
	var all []string
	for _, e := range d.events {
		all = append(all, e.Kind+": "+e.Text)
	}
	return strings.Join(all, "\n")
}

func TestBuiltinSaysHello(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "rehearsal/hello")
	out := d.run(t.Context(), "Write today's entry.")
	if out.Code != exitcodes.OK || out.Err != nil || out.Requests != 2 || out.Steps != 2 || out.Replays != 0 {
		t.Fatalf("outcome %+v", out)
	}
	if !strings.Contains(d.journal(), "First run") {
		t.Errorf("the journal says %q", d.journal())
	}
	if got := d.out.String(); !strings.Contains(got, "Done: journal/") || !strings.HasPrefix(got, "Hello. I will write") {
		t.Errorf("output %q", got)
	}
	if got := d.eventText(); !strings.Contains(got, "write_file  journal/") || !strings.Contains(got, "ok") {
		t.Errorf("events:\n%s", got)
	}
	if !strings.HasPrefix(out.Text, "Done: journal/") || out.Usage.InputTokens == 0 {
		t.Errorf("outcome %+v", out)
	}
}

func TestBuiltinGetsThroughTheDemo(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "rehearsal/demo")
	out := d.run(t.Context(), "Write today's entry.")
	if out.Code != exitcodes.OK || out.Requests != 4 || out.Replays != 2 || len(out.Why) != 2 {
		t.Fatalf("outcome %+v\n%s", out, d.eventText())
	}
	if out.Waited < time.Second {
		t.Errorf("waited %s, but Retry-After was 1", out.Waited)
	}
	if strings.Count(d.journal(), "This entry was written once") != 1 {
		t.Errorf("the journal says %q", d.journal())
	}
	for _, want := range []string{"stream cut after", "threw away the partial reply", "asking again (request 2 of 11)", "rate limited; waiting 1 s", "asking again (request 3 of 11)"} {
		if !strings.Contains(d.eventText(), want) {
			t.Errorf("the events lack %q:\n%s", want, d.eventText())
		}
	}
}

func TestBuiltinCodes(t *testing.T) {
	t.Parallel()
	tests := map[string]exitcodes.Code{
		"usage-limit":         exitcodes.RateLimited,
		"quota":               exitcodes.Quota,
		"auth":                exitcodes.NoPermission,
		"permission":          exitcodes.NoPermission,
		"unknown-model":       exitcodes.Config,
		"refused":             exitcodes.Refused,
		"html-under-200":      exitcodes.Protocol,
		"redirect":            exitcodes.Protocol,
		"always-overflow":     exitcodes.Overflow,
		"endless-tools":       exitcodes.Limit,
		"empty-replies":       exitcodes.Failure,
		"invalid-request":     exitcodes.Failure,
		"no-such-scenario":    exitcodes.NoInput,
		"missing/file.toml":   exitcodes.NoInput,
		"unknown-tool":        exitcodes.OK,
		"parallel-tools":      exitcodes.OK,
		"paused":              exitcodes.OK,
		"length-cut-call":     exitcodes.OK,
		"reset-in-text":       exitcodes.OK,
		"cut-in-arguments":    exitcodes.OK,
		"overloaded":          exitcodes.OK,
		"error-under-200":     exitcodes.OK,
		"rate-limit-silent":   exitcodes.OK,
		"close-before-header": exitcodes.OK,
	}
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, "rehearsal/"+name)
			out := d.run(t.Context(), "Go.")
			if out.Code != want {
				t.Errorf("code %v (%v), want %v\n%s", out.Code, out.Err, want, d.eventText())
			}
			if (out.Err == nil) != (want == exitcodes.OK) || (out.Err != nil && strings.Contains(out.Err.Error(), "\n")) {
				t.Errorf("error %q", out.Err)
			}
			if want == exitcodes.RateLimited && time.Until(out.ResetAt) < 4*time.Hour {
				t.Errorf("resets at %v", out.ResetAt)
			}
		})
	}
}

// The attempts of one run go through one script, and the session goes on.
func TestBuiltinSecondAttemptContinues(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "rehearsal/script.toml")
	script := "what = 'a limit, then work'\n[[reply]]\nerror = 'usage_limit'\nreset_in = '5h'\n[[reply]]\ntext = 'I go on.'\n"
	if err := os.WriteFile(filepath.Join(d.dir, "script.toml"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := d.run(t.Context(), "Go."); out.Code != exitcodes.RateLimited {
		t.Fatalf("first attempt %+v", out)
	}
	out := d.run(t.Context(), "")
	if out.Code != exitcodes.OK || out.Text != "I go on." || out.Requests != 1 {
		t.Fatalf("second attempt %+v", out)
	}
}

func TestBuiltinCancelledInAWait(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "rehearsal/script.toml")
	script := "what = 'a wait'\n[[reply]]\nerror = 'rate_limit'\nheaders = { Retry-After = '300' }\n"
	if err := os.WriteFile(filepath.Join(d.dir, "script.toml"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	d.backend = NewBuiltin(d.options)
	stop := exitcodes.Errorf(exitcodes.Terminated, "stopped by SIGTERM")
	timer := time.AfterFunc(300*time.Millisecond, func() { cancel(stop) })
	defer timer.Stop()
	begun := time.Now()
	out := d.run(ctx, "Go.")
	if out.Code != exitcodes.Terminated || time.Since(begun) > 30*time.Second {
		t.Errorf("outcome %+v after %s", out, time.Since(begun))
	}
}

func TestBuiltinKeyFileOfOthers(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "own/model")
	path := filepath.Join(d.dir, "key")
	if err := os.WriteFile(path, []byte("sk-1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	d.backend = NewBuiltin(BuiltinOptions{Providers: map[string]workspace.Provider{
		"own": {Name: "own", Wire: "chat", BaseURL: "http://127.0.0.1:1/v1", APIKeyFile: path},
	}})
	out := d.run(t.Context(), "Go.")
	if out.Code != exitcodes.NoPermission || !strings.Contains(exitcodes.HintOf(out.Err), "chmod 600") {
		t.Errorf("outcome %+v", out)
	}
}

func TestSystemPrompt(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "rehearsal/hello")
	s, err := d.store.Open("bob", "s", session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	b := &builtin{BuiltinOptions: BuiltinOptions{Version: "1.2", Now: func() time.Time { return time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC) }}}
	a := Attempt{Job: d.job, Dir: d.dir, Session: s}
	text, err := b.systemPrompt(a)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"autonomous agent", "# AGENTS.md\n\nYou are Bob.", "job: bob/hello", "session: s", "Tuesday 2026-12-01", "agentd 1.2"} {
		if !strings.Contains(text, want) {
			t.Errorf("the prompt lacks %q:\n%s", want, text)
		}
	}
	if err := os.WriteFile(filepath.Join(d.dir, "AGENTS.md"), []byte(strings.Repeat("å", 50_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err = b.systemPrompt(a); err != nil || !strings.Contains(text, "left out") || len(text) > 70_000 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

func TestPrices(t *testing.T) {
	t.Parallel()
	u := message.Usage{InputTokens: 1_000_000, OutputTokens: 100_000, CachedTokens: 500_000}
	tests := []struct {
		wire  provider.Wire
		model string
		want  float64
		known bool
	}{
		{provider.Anthropic, "anthropic/claude-sonnet-4-5", 3 + 1.5 + 0.15, true},
		{provider.Anthropic, "anthropic/claude-sonnet-4-5-20250929", 3 + 1.5 + 0.15, true},
		{provider.Responses, "openai/gpt-5", 0.625 + 1 + 0.0625, true},
		{provider.Responses, "openai/gpt-5-pro", 0, false},
		{provider.Chat, "own/model", 0, false},
	}
	for _, tt := range tests {
		got, known := priceOf(tt.wire, tt.model)(u)
		if diff := got - tt.want; known != tt.known || diff > 1e-9 || diff < -1e-9 {
			t.Errorf("%s: $%v %v, want $%v %v", tt.model, got, known, tt.want, tt.known)
		}
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	tests := []struct{ args, want string }{
		{`{"command":"gh issue list\n --limit 20"}`, "gh issue list --limit 20"},
		{`{"path":"a/b","content":"x"}`, "a/b"},
		{`{"x":1}`, `{"x":1}`},
		{`{"command":"` + strings.Repeat("å", 60) + `"}`, strings.Repeat("å", 39) + "..."},
	}
	for _, tt := range tests {
		if got := summary("t", tt.args); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.args, got, tt.want)
		}
	}
}
