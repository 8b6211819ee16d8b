package provider

import (
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"agentd/recovery"
)

// maxWait bounds what is believed of a provider's wish to wait.
const maxWait = 366 * 24 * time.Hour

// whenAgain returns how long the provider asks to wait, and the same as a time;
// zero where it does not say. The header says it for any kind; the counters of
// a limit, and wording, count only for a rate limit.
func whenAgain(k recovery.Kind, h http.Header, r report, now time.Time) (time.Duration, time.Time) {
	at := retryAfter(h, now)
	limited := k == recovery.RateLimited
	if at.IsZero() && r.after > 0 {
		at = now.Add(r.after)
	}
	if at.IsZero() && !r.reset.IsZero() {
		at = r.reset
	}
	if at.IsZero() && limited {
		at = limitReset(h, r, now)
	}
	if at.IsZero() && limited {
		if d := waitWording(r.text); d > 0 {
			at = now.Add(d)
		}
	}
	if !at.After(now) || at.Sub(now) > maxWait {
		return 0, time.Time{}
	}
	return at.Sub(now), at
}

// retryAfter reads Retry-After (seconds or one of the HTTP dates) and
// retry-after-ms.
func retryAfter(h http.Header, now time.Time) time.Time {
	if ms, err := strconv.ParseFloat(strings.TrimSpace(h.Get("Retry-After-Ms")), 64); err == nil && ms > 0 && ms < 1e14 {
		return now.Add(time.Duration(math.Ceil(ms)) * time.Millisecond)
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if v == "" {
		return time.Time{}
	}
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		if d := seconds(s); d > 0 {
			return now.Add(d)
		}
		return time.Time{}
	}
	if d, err := time.ParseDuration(v); err == nil && d > 0 {
		return now.Add(d)
	}
	if t, err := http.ParseTime(v); err == nil {
		return t
	}
	if t, err := time.Parse(time.RFC3339, v); err == nil {
		return t
	}
	return time.Time{}
}

// limit is one counter of a rate limit as headers give it.
type limit struct{ remaining, reset string }

// limitReset reads the headers that count a limit. Of the counters that are
// used up the latest reset counts; if none is known to be, the earliest.
func limitReset(h http.Header, r report, now time.Time) time.Time {
	get := func(k string) string {
		if v := h.Get(k); v != "" {
			return v
		}
		for name, v := range r.header {
			if strings.EqualFold(name, k) {
				return v
			}
		}
		return ""
	}
	if get("anthropic-ratelimit-unified-status") == "rejected" || get("anthropic-ratelimit-unified-remaining") == "0" {
		if t := resetTime(get("anthropic-ratelimit-unified-reset"), now); !t.IsZero() {
			return t
		}
	}
	var used, other time.Time
	for _, l := range limitHeaders() {
		t := resetTime(get(l.reset), now)
		if t.IsZero() {
			continue
		}
		if n, err := strconv.ParseFloat(get(l.remaining), 64); err == nil && n <= 0 {
			if t.After(used) {
				used = t
			}
			continue
		}
		if other.IsZero() || t.Before(other) {
			other = t
		}
	}
	if !used.IsZero() {
		return used
	}
	return other
}

func limitHeaders() []limit {
	list := []limit{
		{"X-Ratelimit-Remaining", "X-Ratelimit-Reset"},
		{"Ratelimit-Remaining", "Ratelimit-Reset"},
		{"X-Ratelimit-Remaining", "X-Ratelimit-Reset-After"},
	}
	for _, what := range []string{"Requests", "Tokens", "Input-Tokens", "Output-Tokens"} {
		list = append(list,
			limit{"X-Ratelimit-Remaining-" + what, "X-Ratelimit-Reset-" + what},
			limit{"Anthropic-Ratelimit-" + what + "-Remaining", "Anthropic-Ratelimit-" + what + "-Reset"})
	}
	return list
}

// resetTime reads a reset as a duration ("6m0s"), a date, or a number: seconds
// from now, a Unix time in seconds, or one in milliseconds, told apart by size.
func resetTime(v string, now time.Time) time.Time {
	v = strings.TrimSpace(v)
	if v == "" {
		return time.Time{}
	}
	if n, err := strconv.ParseFloat(v, 64); err == nil {
		return unixTime(n, now)
	}
	if d, err := time.ParseDuration(v); err == nil && d > 0 {
		return now.Add(d)
	}
	if t, err := time.Parse(time.RFC3339, v); err == nil {
		return t
	}
	if t, err := http.ParseTime(v); err == nil {
		return t
	}
	return time.Time{}
}

func unixTime(n float64, now time.Time) time.Time {
	switch {
	case !(n > 0) || n > 1e15:
		return time.Time{}
	case n > 1e11:
		return time.UnixMilli(int64(n))
	case n > 1e9:
		return time.Unix(int64(math.Ceil(n)), 0)
	}
	return now.Add(seconds(n))
}

// seconds converts, rounding up to a millisecond and refusing nonsense.
func seconds(s float64) time.Duration {
	if !(s > 0) || s > maxWait.Seconds() {
		return 0
	}
	return time.Duration(math.Ceil(s*1000)) * time.Millisecond
}

var (
	askedWait = regexp.MustCompile(`(?i)(?:try again|retry|please wait|wait for|wait|resets?|available again)[^0-9.]{0,25}((?:\d+(?:\.\d+)?\s*` + waitUnit + `\b[\s,]*(?:and\s+)?|\d+(?:\.\d+)?\s*(?:d|h|m|s))+)`)
	waitPiece = regexp.MustCompile(`(?i)(\d+(?:\.\d+)?)\s*(` + waitUnit + `|d|h|m|s)`)
)

const waitUnit = `(?:milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)`

// waitWording finds a wait in a sentence: "Please try again in 1m26.4s".
func waitWording(text string) time.Duration {
	m := askedWait.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	var total time.Duration
	for _, p := range waitPiece.FindAllStringSubmatch(m[1], -1) {
		n, err := strconv.ParseFloat(p[1], 64)
		if err != nil {
			continue
		}
		unit := strings.ToLower(p[2])
		scale := 1.0
		switch {
		case strings.HasPrefix(unit, "ms"), strings.HasPrefix(unit, "milli"):
			scale = 0.001
		case strings.HasPrefix(unit, "m"):
			scale = 60
		case strings.HasPrefix(unit, "h"):
			scale = 3600
		case strings.HasPrefix(unit, "d"):
			scale = 86400
		}
		total += seconds(n * scale)
	}
	return total
}
