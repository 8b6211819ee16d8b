package cli

import (
	"strconv"
	"strings"
	"time"

	"agentd/exitcodes"
)

// parseAge reads "30d", "2 weeks", "12h" or a Go duration; "" is 0.
func parseAge(s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	if d, ok := age(s); ok && d > 0 {
		return d, nil
	}
	return 0, exitcodes.Errorf(exitcodes.Usage, "%q is not an age such as 30d or 12h", s)
}

// age reads a Go duration, or a number with a unit as people write it.
func age(s string) (time.Duration, bool) {
	if d, err := time.ParseDuration(s); err == nil {
		return d, d >= 0
	}
	end := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	if end < 1 {
		return 0, false
	}
	n, err := strconv.ParseUint(s[:end], 10, 15)
	if err != nil {
		return 0, false
	}
	unit, ok := map[string]time.Duration{
		"s": time.Second, "sec": time.Second, "second": time.Second,
		"m": time.Minute, "min": time.Minute, "minute": time.Minute,
		"h": time.Hour, "hr": time.Hour, "hour": time.Hour,
		"d": 24 * time.Hour, "day": 24 * time.Hour,
		"w": 7 * 24 * time.Hour, "week": 7 * 24 * time.Hour,
	}[singular(strings.TrimSpace(s[end:]))]
	return time.Duration(n) * unit, ok
}

func singular(unit string) string {
	if len(unit) > 1 {
		return strings.TrimSuffix(unit, "s")
	}
	return unit
}

// timeForms says what parseTime reads.
const timeForms = "a date, a time, an age such as 12h, today or yesterday"

// parseTime reads the time that a flag says: as journalctl and people write
// one. "" is no time.
func parseTime(flag, s string, now time.Time) (time.Time, error) {
	s = strings.TrimSpace(s)
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	switch s {
	case "":
		return time.Time{}, nil
	case "now":
		return now, nil
	case "today":
		return midnight, nil
	case "yesterday":
		return midnight.AddDate(0, 0, -1), nil
	}
	if d, ok := age(strings.TrimSuffix(s, " ago")); ok {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			return t, nil
		}
	}
	for _, layout := range []string{"15:04:05", "15:04"} {
		if t, err := time.Parse(layout, s); err == nil {
			return time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), t.Second(), 0, now.Location()), nil
		}
	}
	return time.Time{}, exitcodes.Errorf(exitcodes.Usage, "%s %q is no time: write a date (2026-12-01), a time (2026-12-01T09:00:00Z, 09:30), an age (12h, 2d), today or yesterday", flag, s)
}

// parseSize reads "500M" or "2G" (powers of 1024); "" is 0.
func parseSize(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	shift := 0
	digits := strings.TrimSuffix(strings.ToUpper(s), "B")
	for i, unit := range "KMGT" {
		if n, ok := strings.CutSuffix(digits, string(unit)); ok {
			digits, shift = n, 10*(i+1)
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n <= 0 || n > (1<<62)>>shift {
		return 0, exitcodes.Errorf(exitcodes.Usage, "%q is not a size such as 500M or 2G", s)
	}
	return n << shift, nil
}

// bytesText is a size for people.
func bytesText(n int64) string {
	for _, u := range []struct {
		size int64
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= u.size {
			return strconv.FormatFloat(float64(n)/float64(u.size), 'f', 1, 64) + " " + u.name
		}
	}
	return strconv.FormatInt(n, 10) + " bytes"
}
