package expr

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// shape is how a calendar schedule was written, as far as it matters for
// writing it again.
type shape struct {
	minutes bool // the minutes have * or a step over the whole hour
}

// OnCalendar returns the values of the OnCalendar= lines that fire at the
// schedule's times, nil for Every and Boot. Values are listed one by one, since
// systemd reads steps and ranges otherwise than cron does; the time zone is
// written at the end wherever it has a name.
func (s *Schedule) OnCalendar() []string {
	var lines []string
	switch s.kind {
	case At:
		return []string{s.atLine()}
	case Calendar:
		for i := range s.rules {
			for _, line := range s.rules[i].onCalendar() {
				if s.zone.name != "" {
					line += " " + s.zone.name
				}
				if !slices.Contains(lines, line) {
					lines = append(lines, line)
				}
			}
		}
	}
	return lines
}

// atLine writes the instant in the schedule's zone, or in UTC where the clocks
// show it twice.
func (s *Schedule) atLine() string {
	const layout = "2006-01-02 15:04:05"
	if m := momentOf(wallOf(s.at, s.zone.loc), s.zone.loc); !m.second.IsZero() {
		return s.at.UTC().Format(layout) + " UTC"
	}
	line := s.at.In(s.zone.loc).Format(layout)
	if s.zone.name != "" {
		line += " " + s.zone.name
	}
	return line
}

func (r *rule) onCalendar() []string {
	front := yearsText(r.years) + "-" + numbers(r.months, allMonths, "%d")
	if r.weekdays != allWeekdays {
		front = strings.Join(weekdayList(r.weekdays), ",") + " " + front
	}
	clock := " " + numbers(r.hours, allHours, "%d") +
		":" + numbers(r.minutes, allSixty, "%02d") +
		":" + numbers(r.seconds, allSixty, "%02d")
	var lines []string
	for _, days := range r.daysTexts() {
		lines = append(lines, front+days+clock)
	}
	return lines
}

// daysTexts writes the days of the month with the separator before them. It
// takes several lines when systemd cannot have them in one: in a list of days
// from the end it allows 28 for the first, and 3 less for each one after it.
func (r *rule) daysTexts() []string {
	first, count := r.days.from(0), r.lastDays.len()
	switch {
	case count == 0 && r.weekdays.len() == 1 && first%7 == 1 && r.days == span(first, first+6, 1):
		return []string{fmt.Sprintf("-%d..%d", first, first+6)} // the nth such weekday
	case count == 0:
		return []string{"-" + numbers(r.days, allDays, "%d")}
	case r.lastDays == span(1, 7, 1):
		return []string{"~07/1"}
	case r.lastDays.from(32-3*count) < 0:
		return []string{"~" + numbers(r.lastDays, 0, "%d")}
	}
	var texts []string
	for lo := r.lastDays.from(0); lo >= 0; {
		hi := lo
		for r.lastDays.has(hi + 1) {
			hi++
		}
		if lo == hi {
			texts = append(texts, fmt.Sprintf("~%d", lo))
		} else {
			texts = append(texts, fmt.Sprintf("~%d..%d", lo, hi))
		}
		lo = r.lastDays.from(hi + 1)
	}
	return texts
}

// weekdayList names weekdays in systemd's order, Monday first.
func weekdayList(days set) []string {
	var names []string
	for d := 1; d <= 7; d++ {
		if days.has(d % 7) {
			names = append(names, title(weekdayNames[d%7][:3]))
		}
	}
	return names
}

// numbers lists a set, as * if it is all.
func numbers(s, all set, format string) string {
	if s == all {
		return "*"
	}
	var parts []string
	for _, n := range s.list() {
		parts = append(parts, fmt.Sprintf(format, n))
	}
	return strings.Join(parts, ",")
}

// maxYears is how many years are listed one by one.
const maxYears = 20

func yearsText(list []series) string {
	if len(list) == 0 {
		return "*"
	}
	var parts []string
	for _, r := range list {
		switch count := (r.to-r.from)/r.step + 1; {
		case count <= maxYears:
			for y := r.from; y <= r.to; y += r.step {
				parts = append(parts, strconv.Itoa(y))
			}
		case r.repeats:
			parts = append(parts, fmt.Sprintf("%d/%d", r.from, r.step))
		case r.step == 1:
			parts = append(parts, fmt.Sprintf("%d..%d", r.from, r.to))
		default:
			parts = append(parts, fmt.Sprintf("%d..%d/%d", r.from, r.to, r.step))
		}
	}
	return strings.Join(parts, ",")
}
