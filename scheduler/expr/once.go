package expr

import (
	"strconv"
	"strings"
	"time"
)

// Setting is a line of a unit's [Timer] section.
type Setting struct{ Key, Value string }

// minEvery is the shortest distance @every may have: robfig/cron would take
// anything shorter as one second without a word.
const minEvery = time.Second

// parseEvery reads "@every D". D is a Go duration, which may also have days
// and weeks.
func (s *Schedule) parseEvery(src source, words []word) *SyntaxError {
	if len(words) == 1 {
		return src.errorAt(len(strings.TrimRight(string(src), " \t\r\n")), "@every needs a duration such as 90m")
	}
	if len(words) > 2 {
		return src.errorAt(words[2].off, "%q does not belong after the duration; it is written in one piece, as 1h30m", words[2].text)
	}
	d, ok := parseDuration(words[1].text)
	switch {
	case !ok:
		return src.errorAt(words[1].off, "%q is not a duration such as 90m, 1h30m or 2d", words[1].text)
	case d < minEvery:
		return src.errorAt(words[1].off, "%s is too short; the least is 1s", words[1].text)
	case d%time.Second != 0:
		return src.errorAt(words[1].off, "%s is not a whole number of seconds", words[1].text)
	}
	s.kind, s.every = Every, d
	return nil
}

// parseDuration is time.ParseDuration with whole weeks and days before it.
func parseDuration(text string) (time.Duration, bool) {
	var total time.Duration
	rest := text
	for _, unit := range []struct {
		name string
		d    time.Duration
	}{{"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}} {
		number, after, ok := strings.Cut(rest, unit.name)
		if !ok || !isDigits(number) {
			continue
		}
		n, err := strconv.Atoi(number)
		if err != nil || n > 10_000 {
			return 0, false
		}
		total += time.Duration(n) * unit.d
		rest = after
	}
	if rest == "" && text != "" {
		return total, true
	}
	d, err := time.ParseDuration(rest)
	if err != nil || d > 100*365*24*time.Hour {
		return 0, false
	}
	return total + d, true
}

// Timer returns the settings of a [Timer] section for a schedule that is no
// calendar: OnActiveSec and OnUnitActiveSec for Every (OnBootSec would lose its
// anchor when the timer is restarted), OnStartupSec for Boot. OnStartupSec
// counts from the start of the service manager, which is the boot for the
// system's and the first login, or the boot with linger, for a user's; it fires
// at once if the timer is started later, so whoever runs the job compares the
// boot id. Timer returns nil for Calendar and At, which have OnCalendar.
func (s *Schedule) Timer() []Setting {
	switch s.kind {
	case Every:
		d := seconds(s.every)
		return []Setting{{"OnActiveSec", d}, {"OnUnitActiveSec", d}}
	case Boot:
		return []Setting{{"OnStartupSec", "0"}}
	default:
		return nil
	}
}

// seconds writes a duration for systemd: "1h 30min".
func seconds(d time.Duration) string {
	var parts []string
	for _, unit := range []struct {
		name string
		d    time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"min", time.Minute}, {"s", time.Second}} {
		if n := d / unit.d; n > 0 {
			parts = append(parts, strconv.Itoa(int(n))+unit.name)
			d -= n * unit.d
		}
	}
	return strings.Join(parts, " ")
}

// parseAt reads the time after "at": RFC 3339, or a date and a time of the
// zone, which may follow.
func (s *Schedule) parseAt(src source, words []word) *SyntaxError {
	if len(words) == 0 {
		return src.errorAt(len(strings.TrimRight(string(src), " \t\r\n")), "at needs a time such as 2026-12-24 18:00")
	}
	date := words[0]
	clock, rest := word{}, words[1:]
	if i := strings.IndexAny(date.text, "Tt"); i >= 0 {
		clock = word{date.text[i+1:], date.off + i + 1}
		date.text = date.text[:i]
	} else if len(rest) > 0 {
		clock, rest = rest[0], rest[1:]
	}
	if len(rest) > 1 {
		return src.errorAt(rest[1].off, "%q does not belong after the time zone", rest[1].text)
	}
	day, err := parseDate(src, date)
	if err != nil {
		return err
	}
	if clock.text == "" {
		return src.errorAt(date.off+len(date.text), "the time of day is missing, as in %s 18:00", date.text)
	}
	offset, err := s.atZone(src, &clock, rest)
	if err != nil {
		return err
	}
	tod, err := parseClock(src, clock)
	if err != nil {
		return err
	}
	s.kind = At
	wall := day.Add(tod)
	if offset != nil {
		s.at = wall.Add(-*offset)
	} else {
		s.setAt(wall)
	}
	s.at = s.at.In(s.zone.loc)
	return nil
}

// setAt finds the instant of a wall time: the end of the gap it falls in, the
// first of two.
func (s *Schedule) setAt(wall time.Time) {
	m := momentOf(wall, s.zone.loc)
	s.at = m.first
	const layout = "2006-01-02 15:04"
	switch {
	case m.gap:
		s.notes = append(s.notes, wall.Format(layout)+" does not exist, the clocks go forward: it runs at "+
			m.first.In(s.zone.loc).Format("15:04"))
	case !m.second.IsZero():
		s.notes = append(s.notes, wall.Format(layout)+" comes twice, the clocks go back: it runs the first time")
	}
}

// atZone takes an offset such as Z or +01:00 off the clock, or sets the zone
// that follows it.
func (s *Schedule) atZone(src source, clock *word, rest []word) (*time.Duration, *SyntaxError) {
	if i := strings.IndexAny(clock.text, "Zz+-"); i >= 0 {
		text := clock.text[i:]
		t, err := time.Parse("Z07:00", strings.ToUpper(text))
		if err != nil {
			return nil, src.errorAt(clock.off+i, "%q is not an offset such as Z or +01:00", text)
		}
		if len(rest) > 0 {
			return nil, src.errorAt(rest[0].off, "%q does not belong after the offset %s", rest[0].text, text)
		}
		_, sec := t.Zone()
		clock.text = clock.text[:i]
		d := time.Duration(sec) * time.Second
		return &d, nil
	}
	if len(rest) == 0 {
		return nil, nil
	}
	z, err := findZone(rest[0].text)
	if err != nil {
		return nil, src.errorAt(rest[0].off, "time zone %s", err)
	}
	s.zone = z
	return nil, nil
}

func parseDate(src source, w word) (time.Time, *SyntaxError) {
	parts := w.split("-")
	if len(parts) != 3 || len(parts[0].text) != 4 || !isDigits(parts[0].text) {
		return time.Time{}, src.errorAt(w.off, "%q is not a date such as 2026-12-24", w.text)
	}
	year, err := number(src, parts[0], "year", minYear, maxYear)
	if err != nil {
		return time.Time{}, err
	}
	month, err := number(src, parts[1], "month", 1, 12)
	if err != nil {
		return time.Time{}, err
	}
	last := time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
	day, err := number(src, parts[2], "day", 1, last)
	if err != nil {
		return time.Time{}, err
	}
	return time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC), nil
}

func parseClock(src source, w word) (time.Duration, *SyntaxError) {
	parts := w.split(":")
	if len(parts) < 2 || len(parts) > 3 {
		return 0, src.errorAt(w.off, "%q is not a time such as 18:00", w.text)
	}
	var tod time.Duration
	for i, unit := range []struct {
		name string
		max  int
		d    time.Duration
	}{{"hour", 23, time.Hour}, {"minute", 59, time.Minute}, {"second", 59, time.Second}}[:len(parts)] {
		part := parts[i]
		if i == 2 {
			if whole, fraction, ok := strings.Cut(part.text, "."); ok && fraction != "" && strings.Trim(fraction, "0") == "" {
				part.text = whole
			}
		}
		n, err := number(src, part, unit.name, 0, unit.max)
		if err != nil {
			return 0, err
		}
		tod += time.Duration(n) * unit.d
	}
	return tod, nil
}

// number reads a decimal number between lo and hi.
func number(src source, w word, name string, lo, hi int) (int, *SyntaxError) {
	if !isDigits(w.text) {
		return 0, src.errorAt(w.off, "%s %q is not a number", name, w.text)
	}
	n, err := strconv.Atoi(w.text)
	if err != nil || n < lo || n > hi {
		return 0, src.errorAt(w.off, "%s %s is out of %d-%d", name, w.text, lo, hi)
	}
	return n, nil
}
