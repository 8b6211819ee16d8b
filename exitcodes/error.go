package exitcodes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"syscall"
	"time"
)

// Error is an error that knows which code the process should end with. Hint,
// if set, tells the user what to do next; ResetAt, if set, is when a limit is
// lifted.
type Error struct {
	Code    Code
	Err     error
	Hint    string
	ResetAt time.Time
}

// Errorf returns an *Error with the code and a formatted cause; %w wraps.
func Errorf(c Code, format string, args ...any) *Error {
	return &Error{Code: c, Err: fmt.Errorf(format, args...)}
}

// WithHint sets what the user can do next and returns e.
func (e *Error) WithHint(hint string) *Error {
	e.Hint = hint
	return e
}

func (e *Error) Error() string {
	if e.Err == nil {
		return e.Code.String()
	}
	return e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// ExitCode returns e.Code; it is how From recognises typed errors.
func (e *Error) ExitCode() Code { return e.Code }

// coder is an error of another package that carries its own code.
type coder interface {
	error
	ExitCode() Code
}

// From returns the code for err: the outermost typed one in its chain, else
// what the operating system's error means, else Failure. From(nil) is OK.
func From(err error) Code {
	if err == nil {
		return OK
	}
	if c, ok := errors.AsType[coder](err); ok {
		return c.ExitCode()
	}
	switch {
	case errors.Is(err, context.Canceled):
		return Cancelled
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EIO):
		return IO
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return CannotCreate
	case errors.Is(err, exec.ErrNotFound):
		return NotFound
	case errors.Is(err, fs.ErrNotExist):
		return NoInput
	}
	return Failure
}

// HintOf returns the outermost hint in err's chain, or "".
func HintOf(err error) string {
	for err != nil {
		e, ok := errors.AsType[*Error](err)
		if !ok {
			return ""
		}
		if e.Hint != "" {
			return e.Hint
		}
		err = e.Err
	}
	return ""
}

// ResetOf returns when the limit that err reports is lifted, or the zero time.
func ResetOf(err error) time.Time {
	if r, ok := errors.AsType[interface {
		error
		Reset() time.Time
	}](err); ok {
		return r.Reset()
	}
	return time.Time{}
}

// Reset returns e.ResetAt.
func (e *Error) Reset() time.Time { return e.ResetAt }
