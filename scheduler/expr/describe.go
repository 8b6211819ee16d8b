package expr

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Describe says the schedule in plain words, without its time zone: "every 30
// minutes from 9 to 17:59, Monday to Friday".
func (s *Schedule) Describe() string {
	switch s.kind {
	case Every:
		return "every " + spoken(s.every)
	case Boot:
		return "once after each start of the machine"
	case At:
		layout := "Mon 2 Jan 2006 at 15:04"
		if s.at.Second() != 0 {
			layout += ":05"
		}
		return "once, on " + s.at.Format(layout)
	}
	r := &s.rules[0]
	parts := []string{r.clockWords()}
	var days []string
	for i := range s.rules {
		if day := s.rules[i].dayWords(); !slices.Contains(days, day) {
			days = append(days, day)
		}
	}
	if day := strings.Join(days, " or "); day != "" {
		parts = append(parts, day)
	}
	if r.months != allMonths {
		parts = append(parts, "in "+ranges(r.months.list(), func(n int) string { return title(monthNames[n]) }))
	}
	if len(r.years) > 0 {
		parts = append(parts, yearWords(r.years))
	}
	if len(parts) == 1 && strings.HasPrefix(parts[0], "at ") && strings.Contains(parts[0], ":") {
		return parts[0] + " every day"
	}
	return strings.Join(parts, ", ")
}

// spoken writes a duration: "1 hour 30 minutes", and "hour" for one.
func spoken(d time.Duration) string {
	var parts []string
	for _, unit := range []struct {
		name string
		d    time.Duration
	}{{"hour", time.Hour}, {"minute", time.Minute}, {"second", time.Second}} {
		n := int(d / unit.d)
		d -= time.Duration(n) * unit.d
		switch {
		case n == 1 && d == 0 && len(parts) == 0:
			return unit.name
		case n > 0:
			parts = append(parts, strconv.Itoa(n)+" "+unit.name+plural(n, "", "s"))
		}
	}
	return strings.Join(parts, " ")
}

// maxClocks is how many times of day are listed one by one.
const maxClocks = 6

// clockWords describes the times of day.
func (r *rule) clockWords() string {
	hours, minutes := r.hours.list(), r.minutes.list()
	if r.seconds != 1 {
		return r.secondWords()
	}
	minuteStep, hourStep := stepOf(r.minutes, 60), stepOf(r.hours, 24)
	switch {
	case minuteStep > 0:
		return "every " + count(minuteStep, "minute") + r.hourWindow()
	case len(minutes) == 1 && hourStep > 0:
		words := "every " + count(hourStep, "hour")
		if minutes[0] != 0 {
			words += " at minute " + strconv.Itoa(minutes[0])
		}
		return words
	case len(hours)*len(minutes) <= maxClocks:
		var clocks []string
		for _, h := range hours {
			for _, m := range minutes {
				clocks = append(clocks, fmt.Sprintf("%02d:%02d", h, m))
			}
		}
		return "at " + and(clocks)
	case len(minutes) == 1 && consecutive(hours):
		return fmt.Sprintf("every hour from %02d:%02d to %02d:%02d", hours[0], minutes[0], hours[len(hours)-1], minutes[0])
	}
	words := "at minute" + plural(len(minutes), " ", "s ") + ranges(minutes, strconv.Itoa) + " past "
	if r.hours == allHours {
		return words + "every hour"
	}
	return words + ranges(hours, strconv.Itoa)
}

// secondWords describes times of day whose seconds are not 0.
func (r *rule) secondWords() string {
	hours, minutes, seconds := r.hours.list(), r.minutes.list(), r.seconds.list()
	if len(hours)*len(minutes)*len(seconds) <= maxClocks {
		var clocks []string
		for _, h := range hours {
			for _, m := range minutes {
				for _, s := range seconds {
					clocks = append(clocks, fmt.Sprintf("%02d:%02d:%02d", h, m, s))
				}
			}
		}
		return "at " + and(clocks)
	}
	words := "at second" + plural(len(seconds), " ", "s ") + ranges(seconds, strconv.Itoa)
	if step := stepOf(r.seconds, 60); step > 0 {
		words = "every " + count(step, "second")
	}
	if r.minutes == allSixty {
		if len(seconds) == 1 {
			words += " of every minute"
		}
		return words + r.hourWindow()
	}
	words += " of minute" + plural(len(minutes), " ", "s ") + ranges(minutes, strconv.Itoa)
	if r.hours == allHours {
		return words + " past every hour"
	}
	return words + " past " + ranges(hours, strconv.Itoa)
}

// hourWindow says in which hours something goes on: " from 9 to 17:59".
func (r *rule) hourWindow() string {
	hours := r.hours.list()
	switch {
	case r.hours == allHours:
		return ""
	case consecutive(hours):
		return fmt.Sprintf(" from %d to %d:59", hours[0], hours[len(hours)-1])
	default:
		return " in the hours " + ranges(hours, strconv.Itoa)
	}
}

// dayWords describes the days, "" for every day.
func (r *rule) dayWords() string {
	weekdays := func() string { return "on " + weekdayWords(r.weekdays) }
	first := r.days.from(0)
	switch {
	case r.day != "":
		return "on " + r.day
	case r.lastDays == span(1, 7, 1) && r.weekdays.len() == 1:
		return "on the last " + weekdayWords(r.weekdays) + " of the month"
	case r.lastDays == 1<<1 && r.weekdays == allWeekdays:
		return "on the last day of the month"
	case r.lastDays != 0:
		days := "day" + plural(r.lastDays.len(), " ", "s ") + ranges(r.lastDays.list(), strconv.Itoa) + " from the end of the month"
		if r.weekdays == allWeekdays {
			return "on " + days
		}
		return weekdays() + " if it is " + days
	case r.days == allDays && r.weekdays == allWeekdays:
		return ""
	case r.days == allDays:
		if words := weekdayWords(r.weekdays); strings.Contains(words, " to ") {
			return words
		}
		return weekdays()
	case r.weekdays.len() == 1 && first%7 == 1 && r.days == span(first, min(first+6, 31), 1):
		return "on the " + []string{"first", "second", "third", "fourth", "fifth"}[first/7] + " " + weekdayWords(r.weekdays) + " of the month"
	}
	days := "day" + plural(r.days.len(), " ", "s ") + ranges(r.days.list(), strconv.Itoa) + " of the month"
	if r.weekdays == allWeekdays {
		return "on " + days
	}
	return weekdays() + " if it is " + days
}

// yearWords describes the years.
func yearWords(list []series) string {
	var parts []string
	for _, y := range list {
		count := (y.to-y.from)/y.step + 1
		switch {
		case y.repeats && count > maxYears:
			parts = append(parts, fmt.Sprintf("every %d years from %d", y.step, y.from))
		case count > maxYears:
			parts = append(parts, fmt.Sprintf("every %d years from %d to %d", y.step, y.from, y.to))
		default:
			for n := y.from; n <= y.to; n += y.step {
				parts = append(parts, strconv.Itoa(n))
			}
		}
	}
	if strings.HasPrefix(parts[0], "every") {
		return strings.ReplaceAll(and(parts), "every 1 years", "every year")
	}
	return "in " + strings.ReplaceAll(and(parts), "every 1 years", "every year")
}

// weekdayWords names weekdays, Monday first; a run may go over the end of the
// week.
func weekdayWords(days set) string {
	name := func(d int) string { return title(weekdayNames[d%7]) }
	start := 1
	if days.has(0) && days.has(1) && days != allWeekdays { // over the end: begin after a free day
		for days.has(start) {
			start++
		}
	}
	var list []int
	for d := start; d < start+7; d++ {
		if days.has(d % 7) {
			list = append(list, d)
		}
	}
	return ranges(list, name)
}

// ranges lists numbers, three or more in a row as "9 to 17".
func ranges(list []int, name func(int) string) string {
	var parts []string
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		if j-i < 2 {
			j = i
			parts = append(parts, name(list[i]))
		} else {
			parts = append(parts, name(list[i])+" to "+name(list[j]))
		}
		i = j + 1
	}
	return and(parts)
}

func consecutive(list []int) bool {
	return len(list) > 0 && list[len(list)-1]-list[0] == len(list)-1
}

// stepOf returns n if the set is 0, n, 2n, ... and n divides size, otherwise 0.
func stepOf(s set, size int) int {
	if s.len() < 2 || size%s.len() != 0 {
		return 0
	}
	if n := size / s.len(); s == span(0, size-1, n) {
		return n
	}
	return 0
}

// count writes "2 hours", and "hour" for one.
func count(n int, unit string) string {
	if n == 1 {
		return unit
	}
	return strconv.Itoa(n) + " " + unit + "s"
}
