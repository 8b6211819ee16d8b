package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentd/internal/sandbox"
)

// demoDir holds the demo's script and a freshly built agentd, as in a clone
// after `make build`.
func demoDir(t *testing.T) string {
	t.Helper()
	// Not below /tmp, which a sandbox has for itself.
	dir, err := os.MkdirTemp("/var/tmp", "agentd-demo-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "agentd"), "agentd/cmd/agentd").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	script, err := os.ReadFile("../scripts/demo")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "scripts"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "scripts/demo"), script, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func checkDemo(t *testing.T, out string, want ...string) {
	t.Helper()
	want = append(want, "stream cut after", "rate limited; waiting 1 s", "This entry was written once", "[exit 75]", "All that the demo made is gone again.")
	for _, w := range want {
		if !strings.Contains(out, w) {
			t.Errorf("the demo does not say %q:\n%s", w, out)
		}
	}
}

func TestDemoWithoutSystemd(t *testing.T) {
	t.Parallel()
	c := exec.CommandContext(t.Context(), filepath.Join(demoDir(t), "scripts/demo"))
	c.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir())
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	checkDemo(t, string(out), "agentd install --dry-run")
}

func TestDemoUnderSystemd(t *testing.T) {
	t.Parallel()
	if err := sandbox.Available(); err != nil {
		t.Skipf("no systemd to show the demo with: %v", err)
	}
	dir := demoDir(t)
	out := sandbox.Run(t, sandbox.Options{User: "bob", Binds: []string{dir}}, filepath.Join(dir, "scripts/demo"))
	checkDemo(t, out, "idle")
	if strings.Contains(out, "--dry-run") {
		t.Errorf("the demo did not find the user's systemd:\n%s", out)
	}
}
