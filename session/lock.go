package session

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"agentd/process"
)

const (
	lockFile = "lock"

	// A look whether a session is locked takes the lock for an instant; whoever
	// opens the session at that instant tries again.
	lockTries = 20
	lockPause = 5 * time.Millisecond
)

// lock is the right to write a session: the kernel's lock on a file in its
// folder.
type lock struct{ f *os.File }

// takeLock takes the lock of the session in dir, which exists. The error is
// errHeld if another writer has it.
func takeLock(dir string) (*lock, error) {
	path := filepath.Join(dir, lockFile)
	for try := 0; ; try++ {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		err = flock(f, unix.LOCK_EX|unix.LOCK_NB)
		if err == nil && samePlace(f, path) {
			return &lock{f}, nil
		}
		_ = f.Close() // nothing was written
		switch {
		case err == nil: // renamed or removed meanwhile: not this session's lock any more
			err = errHeld
		case !errors.Is(err, unix.EWOULDBLOCK):
			return nil, err
		default:
			err = errHeld
		}
		if try == lockTries {
			return nil, err
		}
		time.Sleep(lockPause)
	}
}

var errHeld = errors.New("held by another writer")

func flock(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func samePlace(f *os.File, path string) bool {
	a, errA := f.Stat()
	b, errB := os.Stat(path)
	return errA == nil && errB == nil && os.SameFile(a, b)
}

// sign says who holds the lock. It is only information: that it cannot be
// written is no reason to stop.
func (l *lock) sign(runID string, now time.Time) {
	data, err := json.Marshal(Holder{Process: process.Self(), RunID: runID, Since: now.UTC()})
	if err == nil && l.f.Truncate(0) == nil {
		_, _ = l.f.WriteAt(append(data, '\n'), 0)
	}
}

// release gives the lock up.
func (l *lock) release() error {
	_ = l.f.Truncate(0) // see sign
	return l.f.Close()
}

// locked reports whether a writer has the session in dir open, and who.
func locked(dir string) (bool, *Holder) {
	f, err := os.Open(filepath.Join(dir, lockFile))
	if err != nil {
		return false, nil
	}
	defer f.Close() // only read
	if err := flock(f, unix.LOCK_SH|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return true, holder(dir)
}

// holder reads what the writer signed with; nil if that is not known.
func holder(dir string) *Holder {
	data, err := fs.ReadFile(os.DirFS(dir), lockFile)
	var h Holder
	if err != nil || json.Unmarshal(data, &h) != nil || h.Process.PID == 0 {
		return nil
	}
	return &h
}
