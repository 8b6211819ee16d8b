package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"agentd/exitcodes"
)

func TestUnreadableFiles(t *testing.T) {
	t.Parallel()
	valid := "[agent]\nname = \"bob\"\n"
	tests := []struct {
		name string
		make func(t *testing.T, path string)
		code exitcodes.Code
		want string
	}{
		{"missing", func(*testing.T, string) {}, exitcodes.NoInput, "agentd.toml does not exist"},
		{"folder", func(t *testing.T, p string) { mkdir(t, p) }, exitcodes.Config, "agentd.toml is a folder, not a file"},
		{"fifo", func(t *testing.T, p string) {
			if err := syscall.Mkfifo(p, 0o600); err != nil {
				t.Fatal(err)
			}
		}, exitcodes.Config, "agentd.toml is not a regular file"},
		{"large", func(t *testing.T, p string) {
			write(t, p, valid)
			if err := os.Truncate(p, 100<<20); err != nil {
				t.Fatal(err)
			}
		}, exitcodes.Config, "agentd.toml is larger than 4 MiB"},
		{"BOM", func(t *testing.T, p string) { write(t, p, "\ufeff"+valid) }, exitcodes.Config, "agentd.toml:1:1 the file starts with a byte order mark: save it as UTF-8 without one"},
		{"UTF-16", func(t *testing.T, p string) { write(t, p, "\xff\xfe[\x00") }, exitcodes.Config, "agentd.toml:1:1 the file is UTF-16: save it as UTF-8"},
		{"Latin-1", func(t *testing.T, p string) { write(t, p, "[agent]\nname = \"bj\xf6rn\"") }, exitcodes.Config, "agentd.toml:2:11 the file is not UTF-8 from here on: save it as UTF-8"},
		{"link to nowhere", func(t *testing.T, p string) {
			if err := os.Symlink("nowhere", p); err != nil {
				t.Fatal(err)
			}
		}, exitcodes.NoInput, "agentd.toml does not exist"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			tt.make(t, filepath.Join(dir, FileName))
			_, err := Load(dir)
			if exitcodes.From(err) != tt.code || err == nil || !strings.HasSuffix(err.Error(), tt.want) {
				t.Errorf("Load: %v (code %d), want %q (code %d)", err, exitcodes.From(err), tt.want, tt.code)
			}
		})
	}
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
}

func TestNoPermission(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root reads everything")
	}
	dir := workspaceOf(t, "")
	if err := os.Chmod(filepath.Join(dir, FileName), 0); err != nil {
		t.Fatal(err)
	}
	_, err := Load(dir)
	if exitcodes.From(err) != exitcodes.NoInput || !strings.HasSuffix(err.Error(), "permission denied") {
		t.Errorf("Load: %v (code %d)", err, exitcodes.From(err))
	}
}

// The words of a missing permission, also where the tests run as root.
func TestUnreadableSaysWhy(t *testing.T) {
	t.Parallel()
	err := unreadable("/x/agentd.toml", &fs.PathError{Op: "open", Path: "/x/agentd.toml", Err: syscall.EACCES})
	if got := err.Error(); got != "cannot read /x/agentd.toml: permission denied" {
		t.Errorf("message: %s", got)
	}
	if !errors.Is(err, fs.ErrPermission) || exitcodes.From(err) != exitcodes.NoInput || exitcodes.HintOf(err) == "" {
		t.Errorf("cause, code or hint is lost: %#v", err)
	}
}
