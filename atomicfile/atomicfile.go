// Package atomicfile writes files whole: a reader sees the old content or the
// new, never a part, also after a crash or a full disk.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Write replaces path with data: it writes a temporary file in the same
// folder, syncs it, renames it over path and syncs the folder. On failure path
// is as it was and the temporary file is gone.
func Write(path string, data []byte, perm fs.FileMode) error {
	return write(path, data, perm, true, os.Rename)
}

// WriteVolatile is like Write for what need not outlive a crash of the machine:
// a reader still sees the old content or the new, but nothing is synced.
func WriteVolatile(path string, data []byte, perm fs.FileMode) error {
	return write(path, data, perm, false, os.Rename)
}

// Create is like Write, but fails with an error that is fs.ErrExist if path
// exists already.
func Create(path string, data []byte, perm fs.FileMode) error {
	return write(path, data, perm, true, func(from, to string) error {
		if err := os.Link(from, to); err != nil {
			return err
		}
		return os.Remove(from)
	})
}

func write(path string, data []byte, perm fs.FileMode, durable bool, place func(from, to string) error) (err error) {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".agentd-*.tmp")
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			// The cause is what the user needs; a second failure while tidying adds nothing.
			_ = f.Close()
			_ = os.Remove(f.Name())
			err = fmt.Errorf("cannot write %s: %w", path, err)
		}
	}()
	if _, err = f.Write(data); err != nil {
		return err
	}
	if err = f.Chmod(perm); err != nil {
		return err
	}
	if durable {
		if err = f.Sync(); err != nil {
			return err
		}
	}
	if err = place(f.Name(), path); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	if !durable {
		return nil
	}
	return SyncDir(dir)
}

// SyncDir makes renames and removals in dir durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
