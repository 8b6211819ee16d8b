package recovery

import (
	"strings"
	"time"

	"agentd/exitcodes"
)

// Exhausted says that a generation may not be asked again.
type Exhausted struct {
	Code    exitcodes.Code // 69, or 75 when waiting for ResetAt would help
	Reason  string         // which bound was met
	Fault   *Fault         // what went wrong last; nil if nothing did
	ResetAt time.Time      // when the provider takes requests again, if known
}

// exhausted makes the error for the fault f, which may be nil.
func (b *Budget) exhausted(f *Fault, reason string) *Exhausted {
	e := &Exhausted{Code: exitcodes.Unavailable, Reason: reason, Fault: f}
	if f == nil {
		return e
	}
	e.Code = f.ExitCode()
	switch {
	case !f.ResetAt.IsZero():
		e.ResetAt = f.ResetAt
	case f.RetryAfter > 0:
		e.ResetAt = b.opts.Now().Add(f.RetryAfter)
	}
	return e
}

func (e *Exhausted) Error() string {
	if e.Fault == nil {
		return "cannot send again: " + e.Reason
	}
	return strings.TrimSuffix(e.Fault.Error(), ".") + "; not asked again: " + e.Reason
}

func (e *Exhausted) Unwrap() error {
	if e.Fault == nil {
		return nil
	}
	return e.Fault
}

// ExitCode returns e.Code.
func (e *Exhausted) ExitCode() exitcodes.Code { return e.Code }

// Reset returns e.ResetAt.
func (e *Exhausted) Reset() time.Time { return e.ResetAt }
