// Package firings remembers which firings of jobs have been taken, so that one
// firing is one run: when both a timer and a daemon are on, when systemd starts
// a job again right after a run that took longer than its period, and when it
// fires because a timer was edited.
package firings

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"agentd/atomicfile"
	"agentd/exitcodes"
	"agentd/process"
	"agentd/scheduler/expr"
)

// Mark is how far a job's schedule has been worked off.
type Mark struct {
	Taken time.Time `json:"taken"`            // nothing that was due until then is due any more
	Ended time.Time `json:"ended,omitzero"`   // when the last scheduled run ended: what fell due while it ran is gone
	Boot  string    `json:"boot_id,omitzero"` // the boot in which the last firing was taken
}

// Book keeps the marks of all jobs below a state folder. Its methods may be
// called by many processes at once.
type Book struct {
	Dir string // the state folder
}

// distrust is how far in the future a mark must lie to be taken for the work
// of a clock that was wrong, rather than of one that was set back.
const distrust = 24 * time.Hour

// Last returns the job's mark; ok is false if it has none, or none that can be
// read: a damaged one must not cost a run.
func (b Book) Last(agent, job string) (mark Mark, ok bool, err error) {
	data, err := os.ReadFile(b.path(agent, job))
	if errors.Is(err, fs.ErrNotExist) {
		return Mark{}, false, nil
	}
	if err != nil {
		return Mark{}, false, fmt.Errorf("cannot read when %s/%s was last due: %w", agent, job, err)
	}
	if json.Unmarshal(data, &mark) != nil || mark.Taken.IsZero() {
		return Mark{}, false, nil
	}
	return mark, true, nil
}

// Begin gives a job that is scheduled for the first time its mark: nothing
// before now is due, the start of this machine included.
func (b Book) Begin(agent, job string, now time.Time) error {
	return b.change(agent, job, func(mark *Mark, known bool) bool {
		mark.Taken, mark.Boot = now, process.Self().BootID
		return !known
	})
}

// Skip forgets what was due before now, as after a change of the schedule.
func (b Book) Skip(agent, job string, now time.Time) error {
	return b.change(agent, job, func(mark *Mark, _ bool) bool {
		mark.Taken, mark.Boot = now, process.Self().BootID
		return true
	})
}

// Restore gives a job back the mark that Last returned, or takes it away if it
// had none: what has set it since came to nothing.
func (b Book) Restore(agent, job string, mark Mark, known bool) error {
	if !known {
		if err := os.Remove(b.path(agent, job)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return unwritable(err)
		}
		return nil
	}
	return b.change(agent, job, func(now *Mark, _ bool) bool {
		*now = mark
		return true
	})
}

// Ended says that a scheduled run has ended at now: what fell due while it ran
// is not to be made up for.
func (b Book) Ended(agent, job string, now time.Time) error {
	return b.change(agent, job, func(mark *Mark, known bool) bool {
		mark.Ended = now
		return known
	})
}

// Claim takes what is due now of the job's schedules; of many that try, one
// gets it. ok is false if nothing is due: somebody else has it, or it was no
// firing of these schedules. The error has the code exitcodes.IO or
// exitcodes.CannotCreate.
func (b Book) Claim(agent, job string, schedules []*expr.Schedule, now time.Time) (ok bool, err error) {
	boot := process.Self().BootID
	err = b.change(agent, job, func(mark *Mark, known bool) bool {
		ok = !known || mark.Due(schedules, now, boot)
		mark.Taken, mark.Boot = now, boot
		return ok
	})
	return ok && err == nil, err
}

// Due reports whether one of the schedules has fired since the mark, in the
// boot with the given id.
func (m Mark) Due(schedules []*expr.Schedule, now time.Time, boot string) bool {
	if m.Taken.Sub(now) > distrust {
		return true
	}
	for _, s := range schedules {
		if m.dueOf(s, now, boot) {
			return true
		}
	}
	return false
}

func (m Mark) dueOf(s *expr.Schedule, now time.Time, boot string) bool {
	switch s.Kind() {
	case expr.Boot:
		return m.Boot != boot
	case expr.Every:
		// A timer counts from when the unit was started, which is a little before
		// its firing was taken, now more and now less.
		period := s.Next(m.Taken).Sub(m.Taken)
		return now.Sub(m.Taken).Abs() >= period-period/10 // the clock may have been set back
	}
	since := m.Taken
	if m.Ended.After(since) && !m.Ended.After(now) {
		since = m.Ended
	}
	next := s.Next(since)
	return !next.IsZero() && !next.After(now)
}

func (b Book) path(agent, job string) string {
	return filepath.Join(b.Dir, "firings", agent, job+".json")
}

// change lets f change the job's mark under its lock and saves the mark if f
// says so.
func (b Book) change(agent, job string, f func(mark *Mark, known bool) (save bool)) (err error) {
	path := b.path(agent, job)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return unwritable(err)
	}
	lock := flock.New(filepath.Join(filepath.Dir(path), job+".lock"), flock.SetPermissions(0o600))
	if err := lock.Lock(); err != nil {
		return unwritable(err)
	}
	defer func() {
		if unlockErr := lock.Unlock(); err == nil && unlockErr != nil {
			err = unwritable(unlockErr)
		}
	}()
	mark, known, err := b.Last(agent, job)
	if err != nil {
		return err
	}
	if !f(&mark, known) {
		return nil
	}
	data, err := json.Marshal(mark)
	if err != nil {
		return err
	}
	if err := atomicfile.Write(path, append(data, '\n'), 0o600); err != nil {
		return unwritable(err)
	}
	return nil
}

func unwritable(err error) error {
	code := exitcodes.From(err)
	if code != exitcodes.IO {
		code = exitcodes.CannotCreate
	}
	return exitcodes.Errorf(code, "cannot note that a firing is taken: %w", err)
}
