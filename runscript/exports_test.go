package runscript

import (
	"slices"
	"testing"
)

// What Render exports, Exports reads.
func TestExports(t *testing.T) {
	env := []string{"PATH=/a b:/c'd:/$HOME", "XDG_STATE_HOME=/plain", "EMPTY="}
	text, err := Render(Spec{Agent: "bob", Job: "triage", Path: "/run.sh", Agentd: "/agentd", Workspace: "/w", StateDir: "/s", Env: env})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Exports(text); err != nil || !slices.Equal(got, env) {
		t.Errorf("Exports = %q, %v, want %q", got, err, env)
	}
	if _, err := Exports([]byte("if then")); err == nil {
		t.Error("no error for what is no script")
	}
}
