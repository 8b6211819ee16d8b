package backend

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	// maxReset bounds how far away the end of a limit is believed: the longest
	// known limits are a month's.
	maxReset = 31 * 24 * time.Hour
	// justOver is how long ago a reset may have been to be about to come: CLIs
	// print full minutes, and clocks differ.
	justOver = 2 * time.Minute
	// soon is what stands for a reset that is just over.
	soon = time.Minute
)

var (
	resetLead = regexp.MustCompile(`(?i)\b(?:resets?|try again|retry(?:ing)?|regain access|available again|wait|until)(?:\s+(?:after|at|on|in|for))?[\s:]+`)
	resetUnix = regexp.MustCompile(`(?i)(?:\||\bresets?[_ ]?at"?[:=]\s*)(\d{10}|\d{13})\b`)
	isoTime   = regexp.MustCompile(`^(\d{4})-(\d{2})-(\d{2})(?:(?:[Tt ]| at )(\d{2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?)?\s*(?i:(Z|UTC|GMT)\b|([+-])(\d{2}):?(\d{2}))?`)
	wordDate  = regexp.MustCompile(`^(?i:(?:on )?(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.? (\d{1,2})(?:st|nd|rd|th)?(?:,? (\d{4}))?(?:,? at|,)? )`)
	weekday   = regexp.MustCompile(`^(?i:(?:on )?(sun|mon|tue|wed|thu|fri|sat)[a-z]*(?:,? at|,)? )`)
	clock12   = regexp.MustCompile(`^(\d{1,2})(?::(\d{2}))?(?::(\d{2}))?\s*(?i:([ap])\.?m\b\.?)`)
	clock24   = regexp.MustCompile(`^(\d{1,2}):(\d{2})(?::(\d{2}))?`)
	zoneName  = regexp.MustCompile(`^\s*(?:\(([A-Za-z][A-Za-z0-9_+/-]*)\)|(UTC|GMT|Z)\b)`)
	spanPart  = regexp.MustCompile(`^(?:,?\s*(?:and\s+)?)(\d+(?:\.\d+)?)\s*([A-Za-z]+)`)
)

// resetTime finds when a limit is lifted in what a program printed at now.
// Times without a zone are those of local. The result is in the future, and
// within maxReset.
func resetTime(text string, now time.Time, local *time.Location) (time.Time, bool) {
	if m := resetUnix.FindStringSubmatch(text); m != nil {
		n, err := strconv.ParseInt(m[1], 10, 64)
		if err == nil {
			return reasonable(unixTime(n), now)
		}
	}
	for _, at := range resetLead.FindAllStringIndex(text, -1) {
		rest := text[at[1]:]
		if d, ok := span(rest); ok {
			return reasonable(now.Add(d), now)
		}
		if t, ok := moment(rest, now, local); ok {
			return reasonable(t, now)
		}
	}
	return time.Time{}, false
}

// unixTime reads seconds, or milliseconds where seconds would be absurd.
func unixTime(n int64) time.Time {
	if n > 100_000_000_000 {
		return time.UnixMilli(n)
	}
	return time.Unix(n, 0)
}

// reasonable keeps a reset in the future and within reach. One that is long
// over says nothing.
func reasonable(t, now time.Time) (time.Time, bool) {
	switch {
	case t.After(now.Add(maxReset)):
		return now.Add(maxReset), true
	case t.After(now):
		return t, true
	case now.Sub(t) <= justOver:
		return now.Add(soon), true
	}
	return time.Time{}, false
}

// span reads "2h 5m", "4 days 20 hours 9 minutes", "34.07s".
func span(s string) (time.Duration, bool) {
	total, found := 0.0, false
	for {
		m := spanPart.FindStringSubmatch(s)
		if m == nil {
			break
		}
		size, ok := spanUnit(strings.ToLower(m[2]))
		n, err := strconv.ParseFloat(m[1], 64)
		if !ok || err != nil {
			break
		}
		total += n * float64(size)
		found = true
		s = s[len(m[0]):]
	}
	return time.Duration(min(total, float64(2*maxReset))), found
}

func spanUnit(name string) (time.Duration, bool) {
	switch name {
	case "ms", "millisecond", "milliseconds":
		return time.Millisecond, true
	case "s", "sec", "secs", "second", "seconds":
		return time.Second, true
	case "m", "min", "mins", "minute", "minutes":
		return time.Minute, true
	case "h", "hr", "hrs", "hour", "hours":
		return time.Hour, true
	case "d", "day", "days":
		return 24 * time.Hour, true
	case "w", "week", "weeks":
		return 7 * 24 * time.Hour, true
	}
	return 0, false
}

// moment reads a date, a time of day, or both.
func moment(s string, now time.Time, local *time.Location) (time.Time, bool) {
	if m := isoTime.FindStringSubmatch(s); m != nil {
		return isoMoment(m, local)
	}
	if m := wordDate.FindStringSubmatch(s); m != nil {
		return dateMoment(m, s[len(m[0]):], now, local)
	}
	day := -1
	if m := weekday.FindStringSubmatch(s); m != nil {
		day = strings.Index("sunmontuewedthufrisat", strings.ToLower(m[1])) / 3
		s = s[len(m[0]):]
	}
	c, ok := readClock(s, local)
	if !ok {
		return time.Time{}, false
	}
	here := now.In(c.zone)
	t := c.on(here.Year(), here.Month(), here.Day())
	for i := 1; i <= 8 && (now.Sub(t) > justOver || day >= 0 && int(t.Weekday()) != day); i++ {
		t = c.on(here.Year(), here.Month(), here.Day()+i)
	}
	return t, true
}

func isoMoment(m []string, local *time.Location) (time.Time, bool) {
	zone := local
	if m[7] != "" {
		zone = time.UTC
	}
	if m[8] != "" {
		offset := number(m[9])*3600 + number(m[10])*60
		if m[8] == "-" {
			offset = -offset
		}
		zone = time.FixedZone("", offset)
	}
	return time.Date(number(m[1]), time.Month(number(m[2])), number(m[3]), number(m[4]), number(m[5]), number(m[6]), 0, zone), true
}

// dateMoment is a date in words, with a time of day behind it. Without a year
// it is the one that is nearest.
func dateMoment(m []string, rest string, now time.Time, local *time.Location) (time.Time, bool) {
	c, ok := readClock(rest, local)
	if !ok {
		return time.Time{}, false
	}
	month := time.Month(strings.Index("janfebmaraprmayjunjulaugsepoctnovdec", strings.ToLower(m[1]))/3 + 1)
	if m[3] != "" {
		return c.on(number(m[3]), month, number(m[2])), true
	}
	year := now.In(c.zone).Year()
	t := c.on(year, month, number(m[2]))
	if now.Sub(t) > 180*24*time.Hour {
		t = c.on(year+1, month, number(m[2]))
	}
	return t, true
}

// clock is a time of day.
type clock struct {
	hour, minute, second int
	zone                 *time.Location
}

func (c clock) on(year int, month time.Month, day int) time.Time {
	return time.Date(year, month, day, c.hour, c.minute, c.second, 0, c.zone)
}

func readClock(s string, local *time.Location) (clock, bool) {
	c := clock{zone: local}
	m := clock12.FindStringSubmatch(s)
	if m != nil {
		c.hour = number(m[1]) % 12
		if strings.EqualFold(m[4], "p") {
			c.hour += 12
		}
	} else if m = clock24.FindStringSubmatch(s); m != nil {
		c.hour = number(m[1])
	} else {
		return c, false
	}
	c.minute, c.second = number(m[2]), number(m[3])
	if number(m[1]) > 23 || c.minute > 59 || c.second > 60 {
		return c, false
	}
	if z := zoneName.FindStringSubmatch(s[len(m[0]):]); z != nil {
		name := z[1] + z[2]
		if name == "Z" || name == "GMT" {
			name = "UTC"
		}
		if loc, err := time.LoadLocation(name); err == nil {
			c.zone = loc
		}
	}
	return c, true
}

// number reads digits that an expression has matched; none are 0.
func number(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}
