package scheduler

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentd/internal/sandbox"
	"agentd/systemd"
	"agentd/workspace"
)

// A system unit runs a user's job as that user, with the sandbox on, and
// writes into the user's folders.
func TestBootedSystemForUser(t *testing.T) {
	if !sandbox.Inside() {
		sandbox.Test(t, sandbox.Options{})
		return
	}
	if out, err := exec.Command("useradd", "--create-home", "bob").CombinedOutput(); err != nil {
		t.Fatalf("useradd: %v: %s", err, out)
	}
	conn, err := systemd.Connect(t.Context(), systemd.System, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const program = "/usr/local/bin/agentd"
	const fake = "#!/bin/bash\nid -un\ntouch \"$3/made\" /tmp/hidden && touch /etc/forbidden\nkill -0 1 && echo not alone\nexit 75\n"
	if err := os.WriteFile(program, []byte(fake), 0o755); err != nil {
		t.Fatal(err)
	}
	work := "/home/bob/agents/bob"
	if out, err := exec.Command("runuser", "-u", "bob", "--", "mkdir", "-p", work).CombinedOutput(); err != nil {
		t.Fatalf("mkdir: %v: %s", err, out)
	}
	ws := loadIn(t, work, strings.Replace(twoJobs, "[jobs.by-hand]", "[jobs.by-hand]\nschedule = \"@yearly\"", 1)+"[jobs.by-hand.unit]\nmemory_max = \"500M\"\nnice = 5\n")
	folders, err := workspace.FoldersFromEnv(os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	target, err := NewTarget(systemd.System, folders, program, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	target.User, target.Version = "bob", 252
	apply(t, plan(t, ws, target, Options{}), conn)

	b := &booted{T: t, conn: conn, target: target}
	if err := conn.Trigger(t.Context(), (systemd.JobName{Agent: "my-bot", Job: "by-hand"}).Service()); err != nil {
		t.Fatal(err)
	}
	s := b.await("by-hand", "done", func(s systemd.JobStatus) bool { return s.Result != "" && !s.Running })
	logs, err := filepath.Glob("/home/bob/.local/state/agentd/runs/*/output.log")
	if err != nil || len(logs) != 1 {
		journal, _ := exec.Command("journalctl", "--no-pager", "-n", "30").CombinedOutput()
		t.Fatalf("logs %v, %v, status %+v\n%s", logs, err, s, journal)
	}
	text, err := os.ReadFile(logs[0])
	if err != nil || !strings.HasPrefix(string(text), "bob\n") || strings.Contains(string(text), "not alone") {
		t.Errorf("log %q, %v", text, err)
	}
	if s.Status != 75 {
		t.Errorf("status %+v", s)
	}
	for path, want := range map[string]bool{work + "/made": true, "/tmp/hidden": false, "/etc/forbidden": false} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", path, err == nil, want)
		}
	}
	// The running systemd's judgement of the unit that has just done its work.
	out, err := exec.Command("systemd-analyze", "security", "--no-pager", "--threshold=30", "agentd-my--bot-by-hand.service").CombinedOutput()
	if err != nil {
		t.Errorf("systemd-analyze security: %v\n%s", err, out)
	}
	t.Logf("%s", out[max(0, len(out)-120):])
	removal, err := NewRemoval("my-bot", target)
	if err != nil {
		t.Fatal(err)
	}
	apply(t, removal, conn)
	if _, err := os.Stat(target.Data); err == nil {
		t.Errorf("%s is left", target.Data)
	}
}
