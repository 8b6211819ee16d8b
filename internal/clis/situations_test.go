package clis

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentd/provider/rehearsal"
)

// situation is something that a provider does, and what has to come of it.
type situation struct {
	name  string
	reply rehearsal.Reply
	code  int
	// hidden lists the programs that may repeat the request without a word for
	// longer than any patience: the job's timeout is right for them, too.
	hidden []string
	other  map[string]int // the code for a program, where it is another one
}

// What opencode and qwen print says nothing of a request that they repeat, and
// codex waits for as long as a provider says.
func situations() []situation {
	after := func(seconds string) map[string]string { return map[string]string{"Retry-After": seconds} }
	return []situation{
		{name: "401", reply: rehearsal.Reply{Error: "auth"}, code: 77},
		{name: "401 that speaks of limits", reply: rehearsal.Reply{Error: "auth", Message: "Rate limit reached: 429 Too Many Requests"}, code: 77, hidden: []string{"opencode"}},
		{name: "403", reply: rehearsal.Reply{Error: "permission"}, code: 77},
		{name: "404", reply: rehearsal.Reply{Error: "not_found"}, code: 78},
		{name: "429", reply: rehearsal.Reply{Error: "rate_limit"}, code: 75, hidden: []string{"qwen", "opencode"}},
		{name: "429 for 2 s", reply: rehearsal.Reply{Error: "rate_limit", Headers: after("2")}, code: 75, hidden: []string{"qwen"}},
		{name: "429 for an hour", reply: rehearsal.Reply{Error: "rate_limit", Headers: after("3600")}, code: 75, hidden: []string{"qwen", "opencode", "codex"}},
		{name: "500", reply: rehearsal.Reply{Error: "server"}, code: 69, hidden: []string{"qwen", "opencode"}},
		{name: "529", reply: rehearsal.Reply{Error: "overloaded"}, code: 69, hidden: []string{"qwen", "opencode"}},
		{name: "quota", reply: rehearsal.Reply{Error: "quota"}, code: 79, hidden: []string{"qwen", "opencode"}, other: map[string]int{"gemini": 75}}, // a day's quota
		{name: "overflow", reply: rehearsal.Reply{Error: "overflow"}, code: 81},
		{name: "cut", reply: rehearsal.Reply{Text: "Hello, this is cut", Cut: "close", CutIn: "text"}, code: 69, hidden: []string{"opencode"}},
		{name: "stall", reply: rehearsal.Reply{Text: "Hello, this stalls", Cut: "stall", CutIn: "text"}, code: 124},
	}
}

func each(t *testing.T, f func(t *testing.T, p program)) {
	for _, p := range programs() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			f(t, p)
		})
	}
}

// patience is a timeout that a program reaches only where it does not end by
// itself, on this machine and its load now: several times what a whole run takes.
func patience(t *testing.T, p program) string {
	t.Helper()
	server := serve(t, rehearsal.Reply{Text: "Hello from the provider."})
	begun := time.Now()
	if r := newPlace(t, p, server.BaseURL(p.wire), `timeout = "5m"`).run(); r.Code != 0 {
		t.Fatalf("%s does not work at all: %+v", p.name, r)
	}
	return max(15*time.Second, 4*time.Since(begun)).Round(time.Second).String()
}

func TestFailures(t *testing.T) {
	folder(t)
	for _, s := range situations() {
		t.Run(s.name, func(t *testing.T) {
			each(t, func(t *testing.T, p program) {
				server := serve(t, s.reply)
				want, timeout := s.code, "2m"
				if code, ok := s.other[p.name]; ok {
					want = code
				}
				hidden := slices.Contains(s.hidden, p.name)
				if want == 124 || hidden {
					timeout = patience(t, p)
				}
				l := newPlace(t, p, server.BaseURL(p.wire), fmt.Sprintf("timeout = %q", timeout))
				begun := time.Now()
				r := l.run()
				if r.Code != want && !(hidden && r.Code == 124) {
					t.Errorf("code %d, want %d", r.Code, want)
				}
				if limit, err := time.ParseDuration(timeout); err != nil || time.Since(begun) > limit+30*time.Second {
					t.Errorf("it took %s, with a timeout of %s", time.Since(begun), timeout)
				}
				if len(server.Requests()) == 0 {
					t.Error("the provider was not asked")
				}
			})
		})
	}
}

func TestSuccessAndResume(t *testing.T) {
	each(t, func(t *testing.T, p program) {
		server := serve(t, rehearsal.Reply{Text: "Hello from the provider."})
		l := newPlace(t, p, server.BaseURL(p.wire), "timeout = \"90s\"\nsession = \"talk\"")
		l.prompt("Remember the word marzipan.")
		first := l.run()
		if first.Code != 0 || first.Usage.Input == 0 || first.Usage.Output == 0 {
			t.Fatalf("the first run: %+v", first)
		}
		l.prompt("Which word was it?")
		before := len(server.Requests())
		second := l.run()
		if second.Code != 0 || len(second.Notes) > 0 {
			t.Fatalf("the second run: %+v", second)
		}
		if second.Session != first.Session {
			t.Errorf("sessions %q and %q", first.Session, second.Session)
		}
		seen := slices.ContainsFunc(server.Requests()[before:], func(r rehearsal.Request) bool {
			body := string(r.Body)
			return strings.Contains(body, "Remember the word marzipan") && strings.Contains(body, "Hello from the provider.") && strings.Contains(body, "Which word was it?")
		})
		if !seen {
			t.Error("the provider did not see the earlier turn")
		}
	})
}

func TestLongPrompt(t *testing.T) {
	each(t, func(t *testing.T, p program) {
		server := serve(t, rehearsal.Reply{Text: "Hello from the provider."})
		l := newPlace(t, p, server.BaseURL(p.wire), `timeout = "2m"`)
		l.prompt("BEGIN " + strings.Repeat("All work and no play. ", 200<<10/22) + " END-OF-IT")
		if r := l.run(); r.Code != 0 {
			t.Fatalf("%+v", r)
		}
		whole := slices.ContainsFunc(server.Requests(), func(r rehearsal.Request) bool {
			return strings.Count(string(r.Body), "All work and no play.") >= 200<<10/22 && strings.Contains(string(r.Body), "END-OF-IT")
		})
		if !whole {
			t.Error("the provider did not see the whole prompt")
		}
	})
}

func TestConnectionRefused(t *testing.T) {
	each(t, func(t *testing.T, p program) {
		server := serve(t, rehearsal.Reply{Text: "unused"})
		url := server.BaseURL(p.wire)
		if err := server.Close(); err != nil {
			t.Fatal(err)
		}
		timeout := "2m"
		hidden := p.name == "opencode" || p.name == "qwen"
		if hidden {
			timeout = patience(t, p)
		}
		l := newPlace(t, p, url, fmt.Sprintf("timeout = %q", timeout))
		if r := l.run(); r.Code != 69 && !(hidden && r.Code == 124) {
			t.Errorf("code %d, want 69", r.Code)
		}
	})
}

func TestSIGTERM(t *testing.T) {
	each(t, func(t *testing.T, p program) {
		server := serve(t, rehearsal.Reply{Text: "Hello, this stalls", Cut: "stall", CutIn: "text"})
		l := newPlace(t, p, server.BaseURL(p.wire), `timeout = "2m"`)
		s := l.start()
		for deadline := time.Now().Add(30 * time.Second); len(server.Requests()) == 0; {
			if time.Now().After(deadline) {
				t.Fatal("the provider was not asked")
			}
			time.Sleep(20 * time.Millisecond)
		}
		if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if r := l.finish(s); r.Code != 143 {
			t.Errorf("code %d, want 143", r.Code)
		}
	})
}

// TestUsageLimits wants the time at which a subscription is good again.
func TestUsageLimits(t *testing.T) {
	reset := time.Now().Add(3 * time.Hour).Truncate(time.Minute)
	bodies := map[string]rehearsal.Reply{
		"claude": {Error: "rate_limit", Headers: map[string]string{
			"Anthropic-Ratelimit-Unified-Status":               "rejected",
			"Anthropic-Ratelimit-Unified-Reset":                fmt.Sprint(reset.Unix()),
			"Anthropic-Ratelimit-Unified-Representative-Claim": "five_hour",
		}},
		"codex": {Status: 429, Body: new(fmt.Sprintf(`{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","plan_type":"plus","resets_at":%d,"resets_in_seconds":10800}}`, reset.Unix()))},
		"gemini": {Status: 429, Body: new(`{"error":{"code":429,"message":"You have exhausted your capacity on this model. Your quota will reset after 3h0m0s.","status":"RESOURCE_EXHAUSTED","details":[
			{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"QUOTA_EXHAUSTED","domain":"cloudcode-pa.googleapis.com"},
			{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"10800s"}]}}`)},
	}
	each(t, func(t *testing.T, p program) {
		reply, ok := bodies[p.name]
		if !ok {
			t.Skipf("%s prints no times of limits", p.name)
		}
		server := serve(t, reply)
		if p.name == "claude" { // only a subscription has such limits
			p.env = func(url string) map[string]string {
				return map[string]string{"ANTHROPIC_BASE_URL": url, "CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-test"}
			}
		}
		r := newPlace(t, p, server.BaseURL(p.wire), `timeout = "2m"`).run()
		if r.Code != 75 || r.ResetAt == nil || r.ResetAt.Sub(reset).Abs() > 2*time.Minute {
			t.Errorf("code %d, reset at %v, want 75 at %v", r.Code, r.ResetAt, reset)
		}
	})
}
