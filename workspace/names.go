package workspace

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
)

const maxSlug = 63

// slugRule says what a name may be, for messages.
const slugRule = "lower-case letters, digits, - and _, at most 63, and starts with a letter or a digit"

// CheckSlug returns why name cannot name an agent, a job, a lane or a
// provider, or nil. The reason suggests a name where there is one.
func CheckSlug(name string) error {
	if isSlug(name) {
		return nil
	}
	if s := Slug(name); s != "" {
		return fmt.Errorf("a name is made of %s: try %q", slugRule, s)
	}
	return errors.New("a name is made of " + slugRule)
}

func isSlug(s string) bool {
	if s == "" || len(s) > maxSlug || s[0] == '-' || s[0] == '_' {
		return false
	}
	for _, c := range s {
		if !isSlugRune(c) {
			return false
		}
	}
	return true
}

func isSlugRune(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

// Slug turns text into a valid name, or "" if nothing of it can stay.
func Slug(text string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(text) {
		switch {
		case isSlugRune(c):
			b.WriteRune(c)
		case unicode.IsLetter(c), unicode.IsMark(c), c == '\'', c == '’':
			// Left out: guessing at a transliteration surprises.
		default:
			b.WriteByte('-')
		}
	}
	s := b.String()
	for strings.Contains(s, "--") {
		s = strings.ReplaceAll(s, "--", "-")
	}
	s = strings.TrimLeft(s, "-_")
	if len(s) > maxSlug {
		s = s[:maxSlug]
	}
	return strings.TrimRight(s, "-_")
}

// placeholders of a session name.
var placeholders = []string{"date", "week", "run"}

// maxSession bounds a rendered session name: it becomes a file name.
const maxSession = 120

// checkSession refuses a template that cannot become a session name.
func checkSession(template string) error {
	if template == "" {
		return errors.New("empty; leave the key out for one session a run")
	}
	rest := template
	for {
		open := strings.IndexAny(rest, "{}")
		if open < 0 {
			break
		}
		end := strings.IndexByte(rest[open:], '}')
		if rest[open] == '}' || end < 0 {
			return fmt.Errorf("a brace without its other half; placeholders are {date}, {week} and {run}")
		}
		name := rest[open+1 : open+end]
		if !isPlaceholder(name) {
			return fmt.Errorf("unknown placeholder {%s}%s", name, placeholderHint(name))
		}
		rest = rest[open+end+1:]
	}
	return checkSessionName(renderSession(template, "00000000-0000-7000-8000-000000000000", time.Unix(0, 0).UTC()))
}

func isPlaceholder(name string) bool {
	for _, p := range placeholders {
		if p == name {
			return true
		}
	}
	return false
}

func placeholderHint(name string) string {
	if best := nearest(name, placeholders); best != "" {
		return fmt.Sprintf(": did you mean {%s}?", best)
	}
	return ": use {date}, {week} or {run}"
}

func checkSessionName(name string) error {
	if len(name) > maxSession {
		return fmt.Errorf("too long: at most %d characters with its placeholders filled in", maxSession)
	}
	for i, c := range name {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		switch {
		case letter, i > 0 && strings.ContainsRune("-_.", c):
		case i == 0:
			return errors.New("a session name starts with a letter or a digit")
		default:
			return fmt.Errorf("a session name is made of letters, digits, -, _ and . (not %q)", c)
		}
	}
	return nil
}

// SessionName returns the name of the session that a run of the job continues:
// the job's template with {date} and {week} in the job's time zone, or
// "JOB-RUNID" for a job without one.
func (j *Job) SessionName(runID string, now time.Time) string {
	template := j.Session
	if template == "" {
		template = j.Name + "-{run}"
	}
	if j.Timezone != "" {
		if zone, err := time.LoadLocation(j.Timezone); err == nil { // Load has checked it
			now = now.In(zone)
		}
	}
	return renderSession(template, runID, now)
}

func renderSession(template, runID string, now time.Time) string {
	year, week := now.ISOWeek()
	return strings.NewReplacer(
		"{date}", now.Format(time.DateOnly),
		"{week}", fmt.Sprintf("%04d-W%02d", year, week),
		"{run}", runID,
	).Replace(template)
}
