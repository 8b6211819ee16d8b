package expr

import (
	"fmt"
	"strconv"
	"strings"
)

// Cron returns the schedule as the time of a crontab(5) line, and whether
// there is one that means exactly the same: five fields of plain numbers, or
// @reboot. Seconds, years, days counted from the end and a weekday that must
// also be a certain day have none. The time zone is not part of it.
func (s *Schedule) Cron() (string, bool) {
	if s.kind == Boot {
		return "@reboot", true
	}
	if s.kind != Calendar {
		return "", false
	}
	days, weekdays := allDays, allWeekdays
	for i := range s.rules {
		r := &s.rules[i]
		switch {
		case len(r.years) > 0 || r.lastDays != 0 || r.seconds != 1:
			return "", false
		case r.days == allDays && r.weekdays == allWeekdays:
		case r.days == allDays && weekdays == allWeekdays:
			weekdays = r.weekdays
		case r.weekdays == allWeekdays && days == allDays:
			days = r.days
		default:
			return "", false
		}
	}
	r := &s.rules[0]
	open := s.hours == everyHour
	return strings.Join([]string{
		cronText(r.minutes, 0, 59, s.shape.minutes),
		cronText(r.hours, 0, 23, open),
		cronText(days, 1, 31, days == allDays),
		cronText(r.months, 1, 12, r.months == allMonths),
		cronText(weekdays, 0, 6, weekdays == allWeekdays),
	}, " "), true
}

// cronText writes a field. Only an open one begins with *, since crons treat
// that in their own way when the clocks change and when they join day fields.
func cronText(s set, lo, hi int, open bool) string {
	if step := s.wholeStep(lo, hi); open && step > 0 && s.len() > 1 {
		switch first := s.from(0); {
		case step == 1:
			return "*"
		case first == lo:
			return "*/" + strconv.Itoa(step)
		default:
			return fmt.Sprintf("%d-%d/%d", first, hi, step)
		}
	}
	list := s.list()
	var parts []string
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		if j-i < 2 {
			j = i
			parts = append(parts, strconv.Itoa(list[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", list[i], list[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ",")
}
