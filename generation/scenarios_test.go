package generation

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"agentd/exitcodes"
	"agentd/provider"
	"agentd/provider/rehearsal"
	"agentd/tools"
)

// drills says which code each embedded scenario comes to.
var drills = map[string]exitcodes.Code{
	"always-cut": exitcodes.Unavailable, "always-overflow": exitcodes.Overflow, "auth": exitcodes.NoPermission,
	"bad-gateway": exitcodes.OK, "close-before-header": exitcodes.OK, "close-in-arguments": exitcodes.OK,
	"cut-in-arguments": exitcodes.OK, "demo": exitcodes.OK, "done-only": exitcodes.OK, "empty-finish": exitcodes.OK,
	"empty-replies": exitcodes.Failure, "empty-stream": exitcodes.OK, "endless-tools": exitcodes.Limit,
	"error-under-200": exitcodes.OK, "hello": exitcodes.OK, "html-under-200": exitcodes.Protocol,
	"invalid-request": exitcodes.Failure, "keepalive-only": exitcodes.OK, "length-cut-call": exitcodes.OK,
	"malformed-chunk": exitcodes.Protocol, "no-terminal": exitcodes.OK, "overflow": exitcodes.OK,
	"overloaded": exitcodes.OK, "overloaded-in-stream": exitcodes.OK, "parallel-tools": exitcodes.OK,
	"paused": exitcodes.OK, "permission": exitcodes.NoPermission, "quota": exitcodes.Quota, "rate-limit": exitcodes.OK,
	"rate-limit-silent": exitcodes.OK, "redirect": exitcodes.Protocol, "refused": exitcodes.Refused,
	"request-timeout": exitcodes.OK, "reset-after-terminal": exitcodes.OK, "reset-in-text": exitcodes.OK,
	"server-error": exitcodes.OK, "silent-overflow": exitcodes.OK, "stall": exitcodes.OK,
	"unknown-model": exitcodes.Config, "unknown-tool": exitcodes.OK, "usage-limit": exitcodes.RateLimited,
}

// Every scenario of the library, on every wire, comes to its code; where it
// comes to 0, the work is done as if nothing had happened.
func TestEveryScenarioOnEveryWire(t *testing.T) {
	t.Parallel()
	for _, name := range rehearsal.Names() {
		want, known := drills[name]
		if !known {
			t.Errorf("scenario %s is not in the table", name)
		}
		for _, w := range wires {
			sc, err := rehearsal.Load(name)
			if err != nil {
				t.Fatal(err)
			}
			if sc.Wire != "" && sc.Wire != rehearsal.Wire(w) {
				continue
			}
			t.Run(name+"/"+string(w), func(t *testing.T) {
				t.Parallel()
				r, dir := rigFor(t, w, sc), t.TempDir()
				r.timeouts(w, provider.Timeouts{BytesIdle: time.Second, EventIdle: time.Second})
				r.engine.Tools = tools.Builtin(tools.Options{Dir: dir, Env: []string{"PATH=" + os.Getenv("PATH")}, RunID: "test", Grace: time.Second})
				r.engine.Limits.Steps = 8
				_, err = r.turn("go")
				if got := exitcodes.From(err); got != want {
					t.Errorf("code %v (%v), want %v", got, err, want)
				}
				if err == nil {
					written(t, dir)
				}
				r.accepted()
			})
		}
	}
}

// written fails unless exactly one journal entry was written, and whole.
func written(t *testing.T, dir string) {
	t.Helper()
	entries, err := filepath.Glob(filepath.Join(dir, "journal", "*.md"))
	if err != nil || len(entries) != 1 {
		t.Fatalf("journal entries %q, %v", entries, err)
	}
	text, err := os.ReadFile(entries[0])
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Base(entries[0]) == "rehearsal.md" && !slices.Equal(text, []byte("Written once.\n")) {
		t.Errorf("the entry is %q", text)
	}
}
