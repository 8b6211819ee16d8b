package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestFullDisk runs jobs whose state folder is a tiny tmpfs, in a mount
// namespace of its own, with ever more room: at each size the run ends well or
// says in a line (and a hint) that the disk is full, with code 74.
func TestFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a tmpfs needs root")
	}
	dir := t.TempDir()
	agentd := filepath.Join(dir, "agentd")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, agentd); err != nil { // under this name it is agentd: see TestMain
		t.Fatal(err)
	}
	config := "[agent]\nname = \"bob\"\n[defaults]\nresume.attempts = 1\n" +
		"[jobs.command]\nbackend = \"command\"\ncommand = [\"echo\", \"said\"]\n" +
		"[jobs.builtin]\nmodel = \"rehearsal/hello\"\nprompt = \"Hello.\"\n"
	if err := os.WriteFile(filepath.Join(dir, "agentd.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	const script = `mount -t tmpfs -o "size=$1" tmpfs "$2" && shift 2 && exec "$@"`
	for _, job := range []string{"command", "builtin"} {
		seen := map[int]bool{}
		for _, kib := range []string{"4k", "8k", "12k", "16k", "24k", "32k", "64k", "128k", "1m"} {
			state := filepath.Join(dir, "state")
			if err := os.MkdirAll(state, 0o700); err != nil {
				t.Fatal(err)
			}
			c := exec.CommandContext(t.Context(), "unshare", "--mount", "--propagation", "private",
				"sh", "-c", script, "sh", kib, state, agentd, "run", job)
			c.Dir = dir
			c.Env = append(os.Environ(), "XDG_STATE_HOME="+state, "HOME="+dir)
			var stderr strings.Builder
			c.Stderr = &stderr
			_ = c.Run() // the status is checked below
			code := c.ProcessState.ExitCode()
			seen[code] = true
			switch {
			case code == 0 && stderr.Len() == 0:
			case code == 74 && strings.Count(stderr.String(), "\n") <= 2 && strings.Contains(stderr.String(), "no space left on device"):
			default:
				t.Errorf("%s with %s: exit %d\n%s", job, kib, code, stderr.String())
			}
		}
		if !seen[0] || !seen[74] {
			t.Errorf("%s: the sizes gave only %v, so the test does not see both ends", job, seen)
		}
	}
}
