package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestWriteReplacesWholeWithMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for _, tt := range []struct {
		data string
		perm fs.FileMode
	}{{"one", 0o600}, {"two, longer", 0o644}, {"", 0o400}} {
		if err := WriteVolatile(path, []byte("something else"), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := Write(path, []byte(tt.data), tt.perm); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != tt.data {
			t.Errorf("content = %q, %v, want %q", got, err, tt.data)
		}
		if fi, _ := os.Stat(path); fi.Mode().Perm() != tt.perm {
			t.Errorf("mode = %v, want %v", fi.Mode().Perm(), tt.perm)
		}
	}
	onlyEntry(t, path)
}

func TestCreateRefusesToOverwrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := Create(path, []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Create(path, []byte("two"), 0o600); !errors.Is(err, fs.ErrExist) {
		t.Errorf("second Create = %v, want fs.ErrExist", err)
	}
	if got, _ := os.ReadFile(path); string(got) != "one" {
		t.Errorf("content = %q, want the first", got)
	}
	onlyEntry(t, path)
}

func TestFailureLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "taken")
	if err := os.MkdirAll(filepath.Join(path, "child"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, []byte("x"), 0o600); err == nil {
		t.Error("Write over a folder succeeded")
	}
	onlyEntry(t, path)
	if err := Write(filepath.Join(dir, "absent", "f"), []byte("x"), 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Write into a missing folder = %v, want fs.ErrNotExist", err)
	}
}

func onlyEntry(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].Name() != filepath.Base(path) {
		t.Errorf("folder holds %v, want only %s", entries, filepath.Base(path))
	}
}
