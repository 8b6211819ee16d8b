package provider

import (
	"bytes"
	"net/http"
	"strings"
	"time"

	"agentd/provider/sse"
	"agentd/recovery"
)

// errorEvent returns the fault of an event that is an error by its name,
// whatever the wire, or nil.
func errorEvent(e sse.Event, now func() time.Time) *recovery.Fault {
	switch {
	case e.Error != nil:
		return classifyEvent(e.Error, now())
	case string(e.Type) == "error" && len(bytes.TrimSpace(e.Data)) > 0:
		return classifyEvent(e.Data, now())
	}
	return nil
}

// classifyEvent makes the fault of an error inside a stream.
func classifyEvent(data []byte, now time.Time) *recovery.Fault {
	r := readReport(data, now)
	f := classify(r.status, r, now)
	if f.Message == "" {
		f.Message = "the stream reports an error: " + excerpt(data)
	}
	return f
}

// classifyResponse makes the fault of an answer whose status is an error.
func classifyResponse(status int, header http.Header, body []byte, now time.Time) *recovery.Fault {
	r := readReport(body, now)
	// Amazon puts the type into a header.
	if t, _, _ := strings.Cut(header.Get("X-Amzn-Errortype"), ":"); t != "" {
		r.words = append([]string{t}, r.words...)
	}
	f := classify(status, r, now)
	f.Status = status
	if f.Message == "" {
		f.Message = strings.ToLower(http.StatusText(status))
	}
	f.RetryAfter, f.ResetAt = whenAgain(f.Kind, header, r, now)
	return f
}

// classify decides the kind of a fault: by what a provider says in a structured
// way first, then by the status, then by wording, where throttles are looked for
// before overflow, and overflow before retryability.
func classify(status int, r report, now time.Time) *recovery.Fault {
	f := &recovery.Fault{Type: r.typ(), Message: oneLine(r.text)}
	if r.param != "" && !strings.Contains(f.Message, r.param) {
		f.Message = oneLine(f.Message + " (parameter " + r.param + ")")
	}
	f.Kind = kindOf(status, r)
	f.RetryAfter, f.ResetAt = whenAgain(f.Kind, nil, r, now)
	return f
}

func kindOf(status int, r report) recovery.Kind {
	word, known := wordKind(r.words)
	if status == http.StatusUnauthorized {
		return recovery.Auth
	}
	// A structured statement of a hard limit, an overflow or a filter says more
	// than any status.
	if known && (word == recovery.Quota || word == recovery.Overflow || word == recovery.Refused) {
		return word
	}
	switch {
	case status == http.StatusPaymentRequired:
		return recovery.Quota
	case status == http.StatusForbidden:
		return recovery.Auth
	case status == http.StatusNotFound:
		return recovery.NotFound
	case status == http.StatusRequestEntityTooLarge:
		return recovery.Overflow
	case status == http.StatusTooManyRequests:
		return throttled(r)
	case status == http.StatusRequestTimeout:
		return recovery.Server
	case status >= 500:
		return serverKind(word, known, r)
	case known && word == recovery.Server && (status == 400 || status == 422):
		return wordingKind(r.text, recovery.Invalid) // Ollama calls everything api_error
	case known && word != recovery.Invalid:
		return word
	case known, status >= 400:
		return wordingKind(r.text, recovery.Invalid)
	}
	// An error without a status: in a stream, or in a body under 200.
	if serverWording.MatchString(r.text) {
		return wordingKind(r.text, recovery.Server)
	}
	return wordingKind(r.text, recovery.Invalid)
}

// throttled tells the kinds of 429 apart.
func throttled(r report) recovery.Kind {
	switch {
	case r.after > 0 || !r.reset.IsZero():
		return recovery.RateLimited // it says itself when it passes
	case quotaWording.MatchString(r.text):
		return recovery.Quota
	case neverFits.MatchString(r.text):
		return recovery.Overflow // one request alone is above the limit
	}
	return recovery.RateLimited
}

// serverKind looks into a 5xx: some servers answer with it whatever happened.
func serverKind(word recovery.Kind, known bool, r report) recovery.Kind {
	switch {
	case known && word == recovery.RateLimited, throttleWording.MatchString(r.text):
		return recovery.RateLimited
	case overflowWording.MatchString(r.text):
		return recovery.Overflow
	}
	return recovery.Server
}

// wordingKind decides by wording alone; otherwise is the answer if none fits.
func wordingKind(text string, otherwise recovery.Kind) recovery.Kind {
	switch {
	case quotaWording.MatchString(text):
		return recovery.Quota
	case throttleWording.MatchString(text):
		return recovery.RateLimited
	case overflowWording.MatchString(text):
		return recovery.Overflow
	case authWording.MatchString(text):
		return recovery.Auth
	case refusalWording.MatchString(text):
		return recovery.Refused
	case modelWording.MatchString(text):
		return recovery.NotFound
	}
	return otherwise
}
