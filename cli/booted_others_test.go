package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentd/internal/sandbox"
)

// Root does not make another's agent root, and who has no systemd of his own
// is told how to get one; both fixes do as they say.
func TestBootedForOthers(t *testing.T) {
	if !sandbox.Inside() {
		sandbox.Test(t, sandbox.Options{})
		return
	}
	const agentd, work = "/usr/local/bin/agentd", "/home/carol/agents"
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(agentd, self, 0o755); err != nil {
		t.Fatal(err)
	}
	must(t, "useradd", "--create-home", "carol")
	must(t, "runuser", "-u", "carol", "--", "mkdir", "-p", work)
	toml := filepath.Join(work, "agentd.toml")
	if err := os.WriteFile(toml, []byte("[agent]\nname = \"carol\"\n[jobs.who]\nbackend = \"command\"\ncommand = [\"id\", \"-un\"]\nschedule = \"@yearly\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}

	out, err := exec.Command(agentd, "-C", work, "install").CombinedOutput()
	if err == nil || !strings.Contains(string(out), work+" belongs to carol, and root's own systemd would run its jobs as root") {
		t.Errorf("root for carol: %v\n%s", err, out)
	}
	_, fix, ok := strings.Cut(string(out), "as carol: ")
	fix, _, ok2 := strings.Cut(fix, ";")
	if !ok || !ok2 {
		t.Fatalf("no fix in %s", out)
	}
	// As su and cron leave it: no session, no bus, and root's variables. The files
	// are written all the same, and it is said what is missing.
	bare := []string{
		"setpriv", "--reuid", "carol", "--regid", "carol", "--init-groups",
		"env", "-i", "HOME=/home/carol", "PATH=" + os.Getenv("PATH"), "XDG_RUNTIME_DIR=/run/user/0", agentd, "-C", work, "install",
	}
	out = must(t, bare...)
	if !strings.Contains(string(out), "No timer was started: cannot reach the user's systemd") || !strings.Contains(string(out), "loginctl enable-linger carol") {
		t.Errorf("without a bus:\n%s", out)
	}
	must(t, "loginctl", "enable-linger", "carol")
	p := &person{T: t}
	p.eventually("carol's systemd is there", func() bool {
		return !strings.Contains(string(must(t, bare...)), "No timer was started")
	})
	must(t, "runuser", "-l", "carol", "-c", "agentd uninstall -C "+work)
	must(t, "bash", "-c", fix)
	out = must(t, "runuser", "-l", "carol", "-c", "agentd status -C "+work)
	if !strings.Contains(string(out), "idle") {
		t.Errorf("carol's status:\n%s", out)
	}
	must(t, "runuser", "-l", "carol", "-c", "agentd uninstall -C "+work)

	must(t, agentd, "-C", work, "install", "--scope", "system", "--user", "carol")
	must(t, agentd, "-C", work, "start", "who", "--scope", "system")
	p.eventually("the job runs as carol", func() bool {
		out, err := exec.Command("runuser", "-l", "carol", "-c", "agentd logs who -C "+work).CombinedOutput()
		return err == nil && strings.Contains(string(out), "\ncarol\n")
	})
	must(t, agentd, "-C", work, "uninstall", "--scope", "system")
}

func must(t *testing.T, argv ...string) []byte {
	t.Helper()
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", argv, err, out)
	}
	return out
}
