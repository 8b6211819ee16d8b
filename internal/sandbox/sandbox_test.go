package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	shared := t.TempDir()
	if err := os.Chmod(shared, 0o777); err != nil {
		t.Fatal(err)
	}
	out := Run(t, Options{User: "bob", Binds: []string{shared}, Env: []string{"GREETING=a b"}}, "bash", "-euc", `
		id -un; pwd; echo "$GREETING"; cat /proc/1/comm
		systemctl --user is-system-running || true
		systemctl is-active dbus
		touch "$1/made inside"; touch /var/tmp/lost
		systemd-run --user --wait --pipe --quiet echo from a unit
	`, "bash", shared)
	want := "bob\n/home/bob\na b\nsystemd\nrunning\nactive\nfrom a unit\n"
	if out != want {
		t.Errorf("got %q, want %q", out, want)
	}
	if _, err := os.Stat(filepath.Join(shared, "made inside")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat("/var/tmp/lost"); err == nil {
		t.Error("what is written inside shows outside")
	}
}

func TestInside(t *testing.T) {
	if !Inside() {
		Test(t, Options{})
		return
	}
	comm, err := os.ReadFile("/proc/1/comm")
	if err != nil || strings.TrimSpace(string(comm)) != "systemd" {
		t.Errorf("process 1 is %q, %v", comm, err)
	}
}
