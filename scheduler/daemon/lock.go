package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"agentd/exitcodes"
)

// Lock is what makes a daemon the only one on a state folder.
type Lock struct{ file *flock.Flock }

// standbyEvery is how often a daemon on standby tries.
const standbyEvery = time.Second

// TakeLock takes the lock of the state folder. If another daemon has it, the
// error has the code exitcodes.LaneBusy and says which; with standby, waiting is
// called with that, and TakeLock waits until it has the lock or ctx ends.
func TakeLock(ctx context.Context, state string, now time.Time, standby bool, waiting func(holder string)) (*Lock, error) {
	if err := os.MkdirAll(state, 0o700); err != nil {
		return nil, exitcodes.Errorf(exitcodes.CannotCreate, "cannot make the state folder: %w", err)
	}
	path := filepath.Join(state, "daemon.lock")
	l := &Lock{flock.New(path, flock.SetPermissions(0o600))}
	ok, err := l.file.TryLock()
	if err == nil && !ok {
		holder := holderOf(path)
		if !standby {
			return nil, exitcodes.Errorf(exitcodes.LaneBusy, "another agentd daemon runs on %s: %s", state, holder).
				WithHint("To take over when it ends: agentd daemon --standby")
		}
		waiting(holder)
		ok, err = l.file.TryLockContext(ctx, standbyEvery)
		if errors.Is(err, context.Canceled) {
			return nil, context.Cause(ctx)
		}
	}
	if err != nil || !ok {
		return nil, exitcodes.Errorf(exitcodes.CannotCreate, "cannot lock %s: %w", path, err)
	}
	host, _ := os.Hostname() // only for people
	text := fmt.Sprintf("pid %d on %s since %s\n", os.Getpid(), host, now.Local().Format(time.DateTime))
	// In place: the lock is on this very file. Whoever reads half of it reads a
	// word less.
	_ = os.WriteFile(path, []byte(text), 0o600)
	return l, nil
}

// Held reports whether a daemon runs on the state folder.
func Held(state string) bool {
	path := filepath.Join(state, "daemon.lock")
	if _, err := os.Stat(path); err != nil {
		return false
	}
	l := flock.New(path, flock.SetFlag(os.O_RDONLY))
	defer l.Close() // with it goes the lock
	free, err := l.TryRLock()
	return err == nil && !free
}

// Release lets the lock go.
func (l *Lock) Release() error { return l.file.Unlock() }

func holderOf(path string) string {
	data, err := os.ReadFile(path)
	if text := strings.TrimSpace(string(data)); err == nil && text != "" {
		return text
	}
	return "it has not said its pid"
}
