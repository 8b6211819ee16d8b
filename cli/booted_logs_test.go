package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentd/internal/sandbox"
)

// The journal has what a job's runs printed, each by its id, with what systemd
// said around it.
func TestBootedLogs(t *testing.T) {
	if !sandbox.Inside() {
		sandbox.Test(t, sandbox.Options{User: "bob"})
		return
	}
	p := newPerson(t)
	p.write("agentd.toml", `[agent]
name = "bob"
[defaults]
backend = "command"
[jobs.say]
command = ["sh", "-c", "echo hello $AGENTD_RUN_ID"]
`)
	p.mustSay("added", "install")
	service := "agentd-bob-say.service"
	for range 3 {
		p.systemctl("start", service)
	}
	var runs []struct {
		RunID string `json:"run_id"`
	}
	p.decode(&runs, "history", "say", "--json")
	if len(runs) != 3 {
		t.Fatalf("%d runs", len(runs))
	}
	for _, r := range runs {
		out, err := p.output("logs", "--run", r.RunID, "--journal")
		if err != nil || !strings.Contains(out, "hello "+r.RunID) || strings.Count(out, "hello ") != 1 || !strings.Contains(out, "Starting ") {
			t.Errorf("the journal of run %s: %v\n%s", r.RunID, err, out)
		}
	}
	out, err := p.output("logs", "say", "--journal", "--since", "1h")
	if err != nil || strings.Count(out, "hello ") != 3 {
		t.Errorf("the journal of the job: %v\n%s", err, out)
	}
	out, err = p.output("logs", "say", "--since", "1h")
	if err != nil || strings.Count(out, "hello ") != 3 || strings.Index(out, runs[2].RunID) > strings.Index(out, runs[0].RunID) {
		t.Errorf("the logs since an hour: %v\n%s", err, out)
	}
	// The file of a run may be gone.
	if err := os.Remove(filepath.Join(os.Getenv("HOME"), ".local/state/agentd/runs", runs[0].RunID, "output.log")); err != nil {
		t.Fatal(err)
	}
	p.mustSay("hello "+runs[0].RunID, "logs", "say")
}
