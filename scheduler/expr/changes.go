package expr

import (
	"fmt"
	"slices"
	"time"
)

// clockChanges says on which days of the year after from a systemd timer
// differs from Next. systemd gives each wall time one instant, as a rule the
// first at which the clocks show it, and none in a gap. So it loses what falls
// in a gap, and what a schedule of real hours runs in a repeated hour.
func (s *Schedule) clockChanges(from time.Time) []string {
	if s.kind != Calendar {
		return nil
	}
	var lines []string
	until := from.AddDate(1, 0, 0)
	for t := from; ; {
		_, change := period(t, s.zone.loc)
		if change.IsZero() || !change.Before(until) {
			return lines
		}
		if line := s.changeWarning(change); line != "" {
			lines = append(lines, line)
		}
		t = change
	}
}

// changeWarning describes what one change of the clocks does, "" if nothing.
func (s *Schedule) changeWarning(change time.Time) string {
	loc := s.zone.loc
	before := wallOf(change.Add(-time.Second), loc).Add(time.Second) // had they gone on
	after := wallOf(change, loc)
	switch {
	case after.After(before) && s.hours == fixedHours:
		return s.gapWarning(before, after)
	case after.Before(before):
		return s.repeatWarning(after, before)
	}
	return ""
}

func (s *Schedule) gapWarning(from, to time.Time) string {
	times, first := countWall(s.wall, from, to)
	var n counter
	if times == 0 || s.wall(to.Add(-time.Second), &n).Equal(to) {
		return ""
	}
	return fmt.Sprintf("%s: %s not exist in %s, the clocks go forward to %s; a systemd timer skips the run, the daemon runs once at %s",
		to.Format(dayLayout), timesText(first, times, "does", "do"), s.zoneText(), to.Format("15:04"), to.Format("15:04"))
}

// repeatWarning describes a repeated hour. For a day counted from the end of
// the month systemd asks for other times in between, after which the C library
// may take the second time rather than the first.
func (s *Schedule) repeatWarning(from, to time.Time) string {
	wall, does, daemon := s.wall, "runs one of the two", "runs both times"
	if s.hours == fixedHours {
		wall, does, daemon = s.lastDayWall, "may run the second time", "runs the first time"
	}
	times, first := countWall(wall, from, to)
	if times == 0 {
		return ""
	}
	return fmt.Sprintf("%s: %s twice in %s, the clocks go back to %s; a systemd timer %s, the daemon %s",
		from.Format(dayLayout), timesText(first, times, "comes", "come"), s.zoneText(), from.Format("15:04"), does, daemon)
}

// lastDayWall is wall for the rules that count from the end of the month.
func (s *Schedule) lastDayWall(w time.Time, n *counter) time.Time {
	rules := slices.DeleteFunc(slices.Clone(s.rules), func(r rule) bool { return r.lastDays == 0 })
	return firstWall(rules, w, n)
}

const dayLayout = "Mon 2 Jan 2006"

// maxCounted bounds what countWall counts: more than the minutes of an hour.
const maxCounted = 100

// countWall counts the times from one wall time to before another, and returns
// the first.
func countWall(wall func(time.Time, *counter) time.Time, from, to time.Time) (times int, first time.Time) {
	var n counter
	for w := from.Add(-time.Second); times < maxCounted; times++ {
		if w = wall(w, &n); w.IsZero() || !w.Before(to) {
			break
		}
		if times == 0 {
			first = w
		}
	}
	return times, first
}

// timesText names the first of several times: "02:00 and 5 more times do".
func timesText(first time.Time, times int, one, many string) string {
	layout := "15:04"
	if first.Second() != 0 {
		layout = "15:04:05"
	}
	switch times {
	case 1:
		return first.Format(layout) + " " + one
	case maxCounted:
		return first.Format(layout) + " and many more times " + many
	}
	return fmt.Sprintf("%s and %d more time%s %s", first.Format(layout), times-1, plural(times-1, "", "s"), many)
}

func (s *Schedule) zoneText() string {
	if s.zone.name == "" {
		return "this machine's time zone"
	}
	return s.zone.name
}
