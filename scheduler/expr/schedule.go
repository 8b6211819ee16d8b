// Package expr reads schedules. One text means the same to a systemd timer,
// to the daemon and to a person: it is parsed once, and its next times, its
// systemd settings and its description come from the same value.
//
// A schedule is one of:
//
//	*/30 9-17 * * 1-5              cron, five fields, or six with seconds first
//	@hourly @daily @midnight @weekly @monthly @yearly @annually
//	@every 90m                     a fixed distance, at least one second
//	@reboot                        once after the machine has started
//	at 2026-12-24 18:00            once; also RFC 3339
//	OnCalendar: Mon..Fri 09:00     a systemd calendar expression
//
// TZ=Zone or CRON_TZ=Zone before a cron schedule, or a zone at the end of a
// calendar expression or of a one-off time, wins over the zone given to Parse.
//
// Cron is what robfig/cron understands, with more ways to write it: 7 is
// Sunday, names may be written out (MONDAY), ranges may run over the end
// (FRI-SUN, 22-2), and days may be L (the last), 15W (the weekday nearest to
// the 15th), LW (the last weekday), 5L or FRIL (the last Friday) and FRI#3
// (the third Friday). Where both day fields are restricted, either will do.
//
// When the clocks change, a schedule with fixed hours runs once whatever the
// clock does: at the end of a gap, and the first time of a repeated hour. One
// whose hours are * or */n runs in every real hour.
package expr

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/robfig/cron/v3"
)

// Kind says what makes a schedule fire.
type Kind int

const (
	Calendar Kind = iota // times of the calendar
	Every                // a fixed distance from the last firing
	Boot                 // the start of the machine
	At                   // one instant
)

func (k Kind) String() string {
	switch k {
	case Every:
		return "every"
	case Boot:
		return "boot"
	case At:
		return "at"
	default:
		return "calendar"
	}
}

// Schedule is a parsed schedule. It does not change and may be shared.
type Schedule struct {
	text  string
	kind  Kind
	zone  zone
	rules []rule             // Calendar: fires when one of them matches
	cron  *cron.SpecSchedule // Calendar: what computes the rules' times, if it can
	hours hourKind           // Calendar
	every time.Duration      // Every
	at    time.Time          // At
	notes []string           // what is surprising in the text whatever the date
	shape shape              // Calendar: how the text was written
}

// hourKind decides what happens when the clocks change.
type hourKind int

const (
	fixedHours hourKind = iota // each time of the wall clock once
	everyHour                  // real hours
)

// maxText is more than any schedule needs, in runes.
const maxText = 1000

// Parse reads a schedule. zoneName is a name of the zone database, "" is the
// machine's zone. The error is a *SyntaxError. A schedule that can never fire
// is refused; one whose only times are past is not, since that depends on the
// day: its Next is the zero time.
func Parse(text, zoneName string) (*Schedule, error) {
	src := source(text)
	if err := src.check(); err != nil {
		return nil, err
	}
	local, err := findZone(zoneName)
	if err != nil {
		return nil, src.errorAt(0, "time zone %s", err)
	}
	s := &Schedule{text: strings.TrimSpace(text), zone: local}
	if err := s.parse(src); err != nil {
		return nil, err
	}
	if note := s.zone.note; note != "" {
		s.notes = append(s.notes, note)
	}
	return s, nil
}

func (s *Schedule) parse(src source) *SyntaxError {
	words := src.words(0)
	if len(words) == 0 {
		return src.errorAt(0, "it is empty")
	}
	words, err := s.zonePrefix(src, words)
	if err != nil {
		return err
	}
	first := words[0]
	switch lower := strings.ToLower(first.text); {
	case strings.HasPrefix(lower, "oncalendar"):
		return s.parseOnCalendar(src, first)
	case lower == "at":
		return s.parseAt(src, words[1:])
	default:
		return s.parseCron(src, words)
	}
}

// source is the text of a schedule; positions in it are byte offsets.
type source string

// word is a piece of a source.
type word struct {
	text string
	off  int
}

func (src source) check() *SyntaxError {
	if n := utf8.RuneCountInString(string(src)); n > maxText {
		return src.errorAt(0, "it is %d characters long, more than %d", n, maxText)
	}
	trimmed := strings.TrimRight(string(src), " \t\r\n")
	start := len(trimmed) - len(strings.TrimLeft(trimmed, " \t\r\n"))
	for i, r := range trimmed {
		switch {
		case i < start, r == ' ', r == '\t':
		case r == '\n' || r == '\r':
			return src.errorAt(i, "it goes on after a line break; a schedule is one line")
		case r == utf8.RuneError || !unicode.IsPrint(r):
			return src.errorAt(i, "the character %q does not belong here", r)
		}
	}
	return nil
}

// words are the pieces from byte offset from on that white space separates.
func (src source) words(from int) []word {
	var words []word
	start := -1
	for i := from; i <= len(src); i++ {
		blank := i == len(src) || strings.IndexByte(" \t\r\n", src[i]) >= 0
		switch {
		case !blank && start < 0:
			start = i
		case blank && start >= 0:
			words = append(words, word{string(src[start:i]), start})
			start = -1
		}
	}
	return words
}

// split cuts a word at each sep and keeps the positions.
func (w word) split(sep string) []word {
	var parts []word
	off := w.off
	for part := range strings.SplitSeq(w.text, sep) {
		parts = append(parts, word{part, off})
		off += len(part) + len(sep)
	}
	return parts
}

// String returns the text as it was given, without the space around it.
func (s *Schedule) String() string { return s.text }

// Kind says what makes the schedule fire.
func (s *Schedule) Kind() Kind { return s.kind }

// Location returns the zone in which the schedule's times are read.
func (s *Schedule) Location() *time.Location { return s.zone.loc }

// Zone returns the name of the schedule's zone, or "" when it is the machine's
// and that has no name.
func (s *Schedule) Zone() string { return s.zone.name }

// Next returns the first time the schedule fires after the given one, in the
// schedule's zone, and the zero time if it fires no more; it fires from 1970 to
// 2199, the years that systemd knows. For Every that is
// the distance away: after is the last firing, or the start. A Boot schedule
// has no times.
func (s *Schedule) Next(after time.Time) time.Time {
	var n counter
	return s.next(after, &n)
}

func (s *Schedule) next(after time.Time, n *counter) time.Time {
	switch s.kind {
	case Every:
		return cron.Every(s.every).Next(after).In(s.zone.loc)
	case Boot:
		return time.Time{}
	case At:
		if s.at.After(after) {
			return s.at
		}
		return time.Time{}
	}
	if floor := time.Date(minYear-1, 12, 30, 0, 0, 0, 0, time.UTC); after.Before(floor) {
		after = floor
	}
	var t time.Time
	if s.hours == everyHour {
		t = s.nextReal(after, n)
	} else {
		t = s.nextFixed(after, n)
	}
	if t.IsZero() {
		return t
	}
	return t.In(s.zone.loc)
}

// Earliest returns the first time any of the schedules fires after the given
// one, the zero time if none does.
func Earliest(after time.Time, schedules []*Schedule) time.Time {
	var first time.Time
	for _, s := range schedules {
		if t := s.Next(after); !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	return first
}

// Warnings returns what a person may not expect of the schedule, one line
// each: steps that do not come out even, and in the year after from the dates
// on which a systemd timer differs because the clocks change.
func (s *Schedule) Warnings(from time.Time) []string {
	return append(slices.Clone(s.notes), s.clockChanges(from)...)
}
