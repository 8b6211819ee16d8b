package lanes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"agentd/exitcodes"
)

// gateLimit is how long the gate may be shut. It is held for milliseconds; a
// longer time means a process that was stopped or a file system that hangs.
const gateLimit = 10 * time.Second

// lock is a file lock that is held. Its descriptor is closed on exec, so no
// child inherits it.
type lock struct{ f *flock.Flock }

var errNoExclusion = errors.New("the file system takes a lock twice: its locks do not work")

// tryLock returns nil without an error if somebody else has the lock.
func tryLock(path string) (*lock, error) {
	for range 10 {
		f := flock.New(path, flock.SetPermissions(0o600))
		ok, err := f.TryLock()
		if err != nil || !ok {
			return nil, err
		}
		mine, err1 := f.Stat()
		there, err2 := os.Stat(path)
		if err1 == nil && err2 == nil && os.SameFile(mine, there) {
			return &lock{f}, nil
		}
		_ = f.Unlock() // somebody replaced the file: the lock would keep nobody out
	}
	return nil, fmt.Errorf("%s keeps being replaced", path)
}

// check proves that the lock excludes: a second one must not succeed.
func (l *lock) check() error {
	second := flock.New(l.f.Path(), flock.SetPermissions(0o600))
	ok, err := second.TryLock()
	if err != nil {
		return err
	}
	if ok {
		_ = second.Unlock()
		return errNoExclusion
	}
	return nil
}

// id names the file that is locked, to notice one that was replaced.
func (l *lock) id() string {
	info, err := l.f.Stat()
	if err != nil {
		return ""
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}

func (l *lock) unlock() error { return l.f.Unlock() }

// gate lets one process at a time look at the slots of a lane: a look tries the
// locks, and must not be taken for a holder.
func (d Dir) gate(ctx context.Context, name string) (*lock, error) {
	path := filepath.Join(string(d), name+".gate")
	begin, pause := time.Now(), time.Millisecond
	for {
		l, err := tryLock(path)
		if err != nil {
			return nil, d.refuse(name, err)
		}
		if l != nil {
			return l, nil
		}
		if time.Since(begin) > gateLimit {
			return nil, exitcodes.Errorf(exitcodes.IO, "cannot take lane %s: another process has held %s for %v", name, path, gateLimit).
				WithHint("fuser -v " + path + " names the process")
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("cannot take lane %s: %w", name, context.Cause(ctx))
		case <-time.After(pause):
		}
		pause = min(pause*2, 10*time.Millisecond)
	}
}

// refuse gives the reason why a lane cannot be locked its code.
func (d Dir) refuse(name string, err error) error {
	code, hint := exitcodes.IO, ""
	switch {
	case errors.Is(err, errNoExclusion), errors.Is(err, syscall.ENOLCK), errors.Is(err, syscall.EOPNOTSUPP),
		errors.Is(err, syscall.ENOSYS), errors.Is(err, syscall.EINVAL):
		hint = "keep the state folder on a local file system: set XDG_STATE_HOME"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrNotExist):
		code = exitcodes.CannotCreate
		hint = "make " + string(d) + " writable for this user, or set XDG_STATE_HOME"
	}
	return exitcodes.Errorf(code, "cannot lock lane %s: %w", name, err).WithHint(hint)
}
