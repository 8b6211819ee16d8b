package session

import (
	"errors"
	"fmt"
	"time"

	"agentd/exitcodes"
	"agentd/process"
)

// Holder is who writes a session. It is information for people; the kernel's
// lock is the truth.
type Holder struct {
	Process process.Identity `json:"process"`
	RunID   string           `json:"run_id,omitempty"`
	Since   time.Time        `json:"since"`
}

// Locked says that another writer has the session open.
type Locked struct {
	Agent, Name string
	Holder      *Holder // nil if it is not known
}

func (e *Locked) Error() string {
	s := fmt.Sprintf("session %s/%s is in use", e.Agent, e.Name)
	if h := e.Holder; h != nil {
		s += fmt.Sprintf(" by process %d", h.Process.PID)
		if h.RunID != "" {
			s += ", run " + h.RunID
		}
		s += " since " + h.Since.Local().Format("2006-01-02 15:04:05")
	}
	return s
}

// ExitCode returns exitcodes.LaneBusy: nothing was done, another time it works.
func (e *Locked) ExitCode() exitcodes.Code { return exitcodes.LaneBusy }

// Damage is a place in a session that cannot be what was written.
type Damage struct {
	Agent, Name string
	File        string // full path
	Line        int    // counts from 1; 0 if the whole file is meant
	Offset      int64  // of the line's first byte
	Reason      string
}

func (d *Damage) Error() string {
	if d.Line == 0 {
		return fmt.Sprintf("session %s/%s is damaged: %s: %s", d.Agent, d.Name, d.File, d.Reason)
	}
	return fmt.Sprintf("session %s/%s is damaged: %s, line %d (byte %d): %s", d.Agent, d.Name, d.File, d.Line, d.Offset, d.Reason)
}

// ExitCode returns exitcodes.Data.
func (d *Damage) ExitCode() exitcodes.Code { return exitcodes.Data }

// damaged gives d the hint that a person needs.
func damaged(d *Damage) error {
	return exitcodes.Errorf(exitcodes.Data, "%w", d).
		WithHint(fmt.Sprintf("See what is lost: agentd sessions verify %s/%s; cut it off: agentd sessions repair %s/%s", d.Agent, d.Name, d.Agent, d.Name))
}

// diskError gives a failed file operation its code: what the operating system
// says, or else an I/O error.
func diskError(err error, format string, args ...any) error {
	if e, ok := errors.AsType[*exitcodes.Error](err); ok {
		return e
	}
	code := exitcodes.From(err)
	if code == exitcodes.Failure {
		code = exitcodes.IO
	}
	e := exitcodes.Errorf(code, "cannot %s: %w", fmt.Sprintf(format, args...), err)
	if code == exitcodes.IO {
		return e.WithHint("free some disk space, or look at the disk's health (dmesg)")
	}
	return e
}

// firstError is the first that is not nil: the cause, before what failed while
// tidying up after it.
func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
