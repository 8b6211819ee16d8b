package history

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// A run that is to go on later has a marker, an empty file named by its id, so
// that finding such runs costs no look at every record. The record decides: a
// marker without a pending record means nothing.

func (s *Store) pendingDir() string { return filepath.Join(s.dir, "pending") }

// markPending makes the marker, before the record says so.
func (s *Store) markPending(id string) error {
	if err := os.MkdirAll(s.pendingDir(), 0o700); err != nil {
		return unwritable(err)
	}
	f, err := os.OpenFile(filepath.Join(s.pendingDir(), id), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return unwritable(err)
	}
	return f.Close()
}

// unmarkPending removes the marker, after the record has stopped saying so.
func (s *Store) unmarkPending(id string) error {
	err := os.Remove(filepath.Join(s.pendingDir(), id))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot remove the mark of a pending run: %w", err)
	}
	return nil
}

// PendingRuns returns the runs that are to go on later, the oldest first.
func (s *Store) PendingRuns() ([]*Run, error) {
	entries, err := os.ReadDir(s.pendingDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list the pending runs: %w", err)
	}
	var runs []*Run
	for _, e := range entries {
		if CheckRunID(e.Name()) != nil {
			continue
		}
		r, err := s.Read(e.Name())
		if err != nil || r.PendingResume == nil {
			continue
		}
		runs = append(runs, r)
	}
	return runs, nil
}
