package recovery

import (
	"fmt"
	"time"

	"agentd/exitcodes"
)

// Kind classifies what went wrong with a request.
type Kind string

const (
	Transport   Kind = "transport"  // no answer: refused, reset, DNS, TLS, a timer of ours
	Truncated   Kind = "truncated"  // the stream ended without its terminal event
	Server      Kind = "server"     // 408, 5xx, overloaded_error, transient stream errors
	RateLimited Kind = "rate_limit" // 429 or its like: passes with time
	Quota       Kind = "quota"      // a hard limit: does not pass by itself
	Auth        Kind = "auth"       // 401, 403, billing
	Invalid     Kind = "invalid"    // 400, 422: the request is wrong
	NotFound    Kind = "not_found"  // the model or endpoint is unknown
	Overflow    Kind = "overflow"   // the context does not fit
	Refused     Kind = "refused"    // a content filter
	Malformed   Kind = "malformed"  // the provider broke its protocol
	TooLarge    Kind = "too_large"  // a resource limit of ours was passed
)

// Fault is an error of provider origin. It keeps the provider's own words.
type Fault struct {
	Kind    Kind
	Status  int    // HTTP status, 0 if none was seen
	Type    string // the provider's own error type or code
	Message string // the provider's own words, or ours where it said nothing
	// RetryAfter is how long the provider asks to wait (0: it did not say);
	// ResetAt the same as a time.
	RetryAfter time.Duration
	ResetAt    time.Time
	Err        error // cause, if local code saw one
}

func (f *Fault) Error() string {
	s := string(f.Kind)
	if f.Status != 0 {
		s = fmt.Sprintf("%s (HTTP %d)", s, f.Status)
	}
	if f.Type != "" {
		s += " " + f.Type
	}
	switch {
	case f.Message != "":
		s += ": " + f.Message
	case f.Err != nil:
		s += ": " + f.Err.Error()
	}
	return s
}

func (f *Fault) Unwrap() error { return f.Err }

// Reset returns when the limit is lifted, or the zero time.
func (f *Fault) Reset() time.Time { return f.ResetAt }

// Transient reports whether the same request may be sent again.
func (f *Fault) Transient() bool {
	switch f.Kind {
	case Transport, Truncated, Server, RateLimited:
		return true
	}
	return false
}

// ExitCode returns the code for the fault when nothing more can be done.
func (f *Fault) ExitCode() exitcodes.Code {
	switch f.Kind {
	case Transport, Truncated, Server:
		return exitcodes.Unavailable
	case RateLimited:
		return exitcodes.RateLimited
	case Quota:
		return exitcodes.Quota
	case Auth:
		return exitcodes.NoPermission
	case NotFound:
		return exitcodes.Config
	case Overflow:
		return exitcodes.Overflow
	case Refused:
		return exitcodes.Refused
	case Malformed, TooLarge:
		return exitcodes.Protocol
	}
	return exitcodes.Failure
}
