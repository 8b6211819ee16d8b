package systemd

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"agentd/exitcodes"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func env(pairs map[string]string) func(string) string {
	return func(name string) string { return pairs[name] }
}

func TestConnectWithoutManager(t *testing.T) {
	dir := t.TempDir()
	_, err := Connect(t.Context(), User, env(map[string]string{"XDG_RUNTIME_DIR": dir}))
	none, ok := errors.AsType[*NoManager](err)
	if !ok || none.Scope != User {
		t.Fatalf("err = %v, want a *NoManager", err)
	}
	if code := exitcodes.From(err); code != exitcodes.Unavailable {
		t.Errorf("code %v", code)
	}
	if hint := exitcodes.HintOf(err); !strings.Contains(hint, "agentd daemon") {
		t.Errorf("hint %q does not say what to do", hint)
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("%q is not one line", err)
	}
}

// Where systemd runs the machine but not for the user, that is mended; where it
// does not, there is the daemon.
func TestUnbooted(t *testing.T) {
	_, user := runtimeDir(env(nil), 4242)
	if user == nil {
		t.Fatal("user 4242 has a runtime folder")
	}
	if got := user.unbooted(t.TempDir()); !strings.Contains(got.Fix, "loginctl enable-linger") || !strings.Contains(got.Reason, "/run/user/4242") {
		t.Errorf("with systemd: %q, fix %q", got.Reason, got.Fix)
	}
	if got := user.unbooted(filepath.Join(t.TempDir(), "none")); got.Fix != "without systemd, use cron or: agentd daemon" || got.Reason != "systemd does not run this machine" {
		t.Errorf("without: %q, fix %q", got.Reason, got.Fix)
	}
	stuck := &NoManager{Scope: User, Reason: "it does not answer", Fix: "-", Err: errors.New("stuck")}
	if got := stuck.unbooted(filepath.Join(t.TempDir(), "none")); got.Fix != "-" {
		t.Errorf("one that is there but stuck: fix %q", got.Fix)
	}
}

// A socket that accepts and never answers must not hold agentd.
func TestConnectToAStuckManager(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "systemd"), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "systemd/private"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = Connect(ctx, User, env(map[string]string{"XDG_RUNTIME_DIR": dir}))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("err = %v, want the deadline", err)
	}
}

func TestRuntimeDir(t *testing.T) {
	uid := os.Geteuid()
	mine := t.TempDir()
	if dir, err := runtimeDir(env(map[string]string{"XDG_RUNTIME_DIR": mine}), uid); err != nil || dir != mine {
		t.Errorf("runtimeDir = %q, %v, want %q", dir, err, mine)
	}
	// As after su: the variable names a folder of another user, and there is no own one.
	const nobody = 4000000
	_, err := runtimeDir(env(map[string]string{"XDG_RUNTIME_DIR": mine}), nobody)
	if err == nil || !strings.Contains(err.Fix, "enable-linger") {
		t.Errorf("err = %+v", err)
	}
	if _, err := os.Stat("/run/user/0"); err == nil {
		return // root has a session here: sudo is no trouble
	}
	_, err = runtimeDir(env(map[string]string{"SUDO_USER": "bob"}), 0)
	if err == nil || !strings.Contains(err.Fix, "without sudo") {
		t.Errorf("under sudo: %+v", err)
	}
}

func TestParseVersion(t *testing.T) {
	for text, want := range map[string]int{"252.39-1~deb12u2": 252, "257": 257, "v257~rc1": 257, "249.11-0ubuntu3": 249} {
		if got, err := parseVersion(text); err != nil || got != want {
			t.Errorf("parseVersion(%q) = %d, %v", text, got, err)
		}
	}
	if n, err := parseVersion("unknown"); err == nil {
		t.Errorf("parseVersion = %d", n)
	}
}
