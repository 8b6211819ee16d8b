package history

import (
	"fmt"
	"os"

	"github.com/gofrs/flock"

	"agentd/exitcodes"
)

// Hold is the right to work on one run. The kernel's lock on the run's folder
// is what counts: it goes with the process, however that ends, so an open
// record that nobody holds is that of a run whose agentd died.
type Hold struct {
	lock *flock.Flock
}

// Hold takes the run if nobody has it; ok is false if somebody does.
func (s *Store) Hold(id string) (hold *Hold, ok bool, err error) {
	lock := flock.New(s.RunDir(id), flock.SetFlag(os.O_RDONLY))
	ok, err = lock.TryLock()
	if err != nil {
		return nil, false, exitcodes.Errorf(exitcodes.From(err), "cannot lock run %s: %w", id, err)
	}
	if !ok {
		return nil, false, lock.Close()
	}
	return &Hold{lock}, true, nil
}

// Reserve makes the folder of a new run, unless a script has made it already,
// and takes the run. Who does that before Begin is never seen with an open
// record that nobody holds.
func (s *Store) Reserve(id string) (hold *Hold, ok bool, err error) {
	if err := CheckRunID(id); err != nil {
		return nil, false, err
	}
	if err := os.MkdirAll(s.RunDir(id), 0o700); err != nil {
		return nil, false, unwritable(err)
	}
	return s.Hold(id)
}

// Release gives the run back.
func (h *Hold) Release() error {
	if err := h.lock.Close(); err != nil {
		return fmt.Errorf("cannot release the run: %w", err)
	}
	return nil
}
