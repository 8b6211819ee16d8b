package expr

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// calendarNames are systemd's words for calendar expressions.
var calendarNames = map[string]string{
	"minutely":      "*:*",
	"hourly":        "*:00",
	"daily":         "*-*-*",
	"weekly":        "Mon",
	"monthly":       "*-*-1",
	"quarterly":     "*-1,4,7,10-1",
	"semiannually":  "*-1,7-1",
	"semi-annually": "*-1,7-1",
	"biannually":    "*-1,7-1",
	"bi-annually":   "*-1,7-1",
	"yearly":        "*-1-1",
	"annually":      "*-1-1",
	"anually":       "*-1-1",
}

// calendarField is a component of a calendar expression.
type calendarField struct {
	name   string
	lo, hi int
}

var (
	yearField    = calendarField{"year", minYear, maxYear}
	monthField   = calendarField{"month", 1, 12}
	dayField     = calendarField{"day", 1, 31}
	lastDayField = calendarField{"day from the end of the month", 1, 28}
	hourField    = calendarField{"hour", 0, 23}
	minuteField  = calendarField{"minute", 0, 59}
	secondField  = calendarField{"second", 0, 59}
)

// elements is a component as written.
type elements struct {
	any  bool // *
	list []series
	open bool // * or a repetition over the whole range
}

// set returns the values of a component that is not the year.
func (e elements) set(f calendarField) set {
	if e.any {
		return span(f.lo, f.hi, 1)
	}
	var s set
	for _, r := range e.list {
		s |= span(r.from, r.to, r.step)
	}
	return s
}

// parseOnCalendar reads a systemd calendar expression after "OnCalendar:" or
// "OnCalendar=".
func (s *Schedule) parseOnCalendar(src source, first word) *SyntaxError {
	const key = "oncalendar"
	off := first.off + len(key)
	off += len(src[off:]) - len(strings.TrimLeft(string(src[off:]), " \t"))
	if off >= len(src) || src[off] != ':' && src[off] != '=' {
		return src.errorAt(first.off, "OnCalendar is followed by a colon and an expression, as in OnCalendar: Mon..Fri 09:00")
	}
	words := src.words(off + 1)
	if len(words) == 0 {
		return src.errorAt(len(src), "there is no expression after OnCalendar")
	}
	if strings.HasPrefix(words[0].text, "@") {
		return s.parseEpoch(src, words)
	}
	words, err := s.zoneSuffix(src, words)
	if err != nil {
		return err
	}
	if line, ok := calendarNames[strings.ToLower(words[0].text)]; ok && len(words) == 1 {
		src = source(line)
		words = src.words(0)
	}
	r, hours, minutes, err := parseCalendar(src, words)
	if err != nil {
		return err
	}
	if r.never() {
		return src.errorAt(words[0].off, "it never fires: there is no such day")
	}
	s.rules = []rule{r}
	s.hours = hourKindOf(r.hours, hours.open)
	s.shape = shape{minutes: minutes.open}
	return nil
}

// parseEpoch reads "@1395716396", seconds since 1970.
func (s *Schedule) parseEpoch(src source, words []word) *SyntaxError {
	if len(words) > 1 {
		return src.errorAt(words[1].off, "%q does not belong after %s", words[1].text, words[0].text)
	}
	text := words[0].text[1:]
	n, err := strconv.ParseInt(text, 10, 64)
	if !isDigits(text) || err != nil || n >= time.Date(maxYear+1, 1, 1, 0, 0, 0, 0, time.UTC).Unix() {
		return src.errorAt(words[0].off, "%q is not a number of seconds since 1970 such as @1782320400", words[0].text)
	}
	s.kind = At
	s.at = time.Unix(n, 0).In(s.zone.loc)
	return nil
}

// zoneSuffix takes the time zone off the end.
func (s *Schedule) zoneSuffix(src source, words []word) ([]word, *SyntaxError) {
	last := words[len(words)-1]
	c := last.text[0] | 0x20
	if len(words) == 1 || c < 'a' || c > 'z' {
		return words, nil
	}
	if _, err := parseWeekdays(src, last); err == nil {
		return words, nil // in the wrong place
	}
	z, err := findZone(last.text)
	if err != nil {
		return nil, src.errorAt(last.off, "time zone %s", err)
	}
	s.zone = z
	return words[:len(words)-1], nil
}

// parseCalendar reads "WEEKDAYS DATE TIME", each of which may be missing.
func parseCalendar(src source, words []word) (r rule, hours, minutes elements, err *SyntaxError) {
	r = rule{weekdays: allWeekdays, months: allMonths, days: allDays}
	rest := words
	if c := rest[0].text[0] | 0x20; c >= 'a' && c <= 'z' {
		if r.weekdays, err = parseWeekdays(src, rest[0]); err != nil {
			return r, hours, minutes, err
		}
		rest = rest[1:]
	}
	if len(rest) > 0 && !strings.Contains(rest[0].text, ":") {
		if err = parseCalendarDate(src, rest[0], &r); err != nil {
			return r, hours, minutes, err
		}
		rest = rest[1:]
	}
	r.hours, r.minutes, r.seconds = 1, 1, 1 // midnight
	if len(rest) > 0 {
		if hours, minutes, err = parseCalendarTime(src, rest[0], &r); err != nil {
			return r, hours, minutes, err
		}
		rest = rest[1:]
	}
	if len(rest) > 0 {
		return r, hours, minutes, src.errorAt(rest[0].off, "%q does not belong here; the order is weekdays, date, time, time zone", rest[0].text)
	}
	return r, hours, minutes, nil
}

func parseWeekdays(src source, w word) (set, *SyntaxError) {
	var days set
	for _, element := range w.split(",") {
		sep := ".."
		if !strings.Contains(element.text, sep) {
			sep = "-"
		}
		ends := element.split(sep)
		if len(ends) > 2 {
			return 0, src.errorAt(ends[2].off-len(sep), "weekday range %q has more than two ends", element.text)
		}
		lo, err := parseWeekday(src, ends[0])
		if err != nil {
			return 0, err
		}
		hi := lo
		if len(ends) == 2 {
			if hi, err = parseWeekday(src, ends[1]); err != nil {
				return 0, err
			}
		}
		if lo > hi {
			return 0, src.errorAt(element.off, "weekday range %q runs backwards: for systemd a week goes from Mon to Sun", element.text)
		}
		for d := lo; d <= hi; d++ {
			days |= 1 << (d % 7)
		}
	}
	return days, nil
}

// parseWeekday returns 1 for Monday up to 7 for Sunday.
func parseWeekday(src source, w word) (int, *SyntaxError) {
	lower := strings.ToLower(w.text)
	for i, name := range weekdayNames {
		if lower == name || lower == name[:3] {
			if i == 0 {
				i = 7
			}
			return i, nil
		}
	}
	if lower == "" {
		return 0, src.errorAt(w.off, "a weekday is missing")
	}
	known := append(slices.Clone(weekdayNames), slices.Sorted(mapKeys(calendarNames))...)
	return 0, src.errorAt(w.off, "%q is not a weekday%s", w.text, didYouMean(lower, known))
}

// parseCalendarDate reads YEAR-MONTH-DAY or MONTH-DAY; ~ before the day counts
// from the end of the month.
func parseCalendarDate(src source, w word, r *rule) *SyntaxError {
	parts := w.split("-")
	day, fromEnd := parts[len(parts)-1], false
	if before, after, ok := strings.Cut(day.text, "~"); ok {
		fromEnd = true
		parts = append(parts[:len(parts)-1], word{before, day.off}, word{after, day.off + len(before) + 1})
		day = parts[len(parts)-1]
	}
	if len(parts) < 2 || len(parts) > 3 {
		hint := ""
		if isDigits(w.text) {
			hint = "; the hour alone is written " + w.text + ":00"
		}
		return src.errorAt(w.off, "%q is not a date such as *-12-24, nor a time such as 18:00%s", w.text, hint)
	}
	if len(parts) == 3 {
		e, err := parseElements(src, parts[0], yearField)
		if err != nil {
			return err
		}
		if !e.any {
			r.years = e.list
		}
	}
	months, err := parseElements(src, parts[len(parts)-2], monthField)
	if err != nil {
		return err
	}
	r.months = months.set(monthField)
	if !fromEnd || day.text == "*" {
		days, err := parseElements(src, day, dayField)
		r.days = days.set(dayField)
		return err
	}
	days, err := parseElements(src, day, lastDayField)
	if err != nil {
		return err
	}
	r.days, r.lastDays = 0, days.lastDays()
	return nil
}

// lastDays returns the days counted from the end. There a step without an end
// goes towards the end of the month: 7/2 is 7, 5, 3 and 1.
func (e elements) lastDays() set {
	var s set
	for _, r := range e.list {
		if !r.repeats {
			s |= span(r.from, r.to, r.step)
			continue
		}
		for n := r.from; n >= 1; n -= r.step {
			s |= 1 << n
		}
	}
	return s
}

// parseCalendarTime reads HOUR:MINUTE or HOUR:MINUTE:SECOND.
func parseCalendarTime(src source, w word, r *rule) (hours, minutes elements, err *SyntaxError) {
	parts := w.split(":")
	if len(parts) < 2 || len(parts) > 3 {
		return hours, minutes, src.errorAt(w.off, "%q is not a time such as 18:00", w.text)
	}
	if hours, err = parseElements(src, parts[0], hourField); err != nil {
		return hours, minutes, err
	}
	if minutes, err = parseElements(src, parts[1], minuteField); err != nil {
		return hours, minutes, err
	}
	r.hours, r.minutes = hours.set(hourField), minutes.set(minuteField)
	if len(parts) == 3 {
		if i := strings.Index(strings.ReplaceAll(parts[2].text, "..", "  "), "."); i >= 0 {
			return hours, minutes, src.errorAt(parts[2].off+i, "fractions of a second are not kept")
		}
		seconds, err := parseElements(src, parts[2], secondField)
		if err != nil {
			return hours, minutes, err
		}
		r.seconds = seconds.set(secondField)
	}
	return hours, minutes, nil
}

// parseElements reads a list of values, ranges and repetitions, or *.
func parseElements(src source, w word, f calendarField) (elements, *SyntaxError) {
	if w.text == "*" {
		return elements{any: true, open: true}, nil
	}
	var e elements
	for _, element := range w.split(",") {
		r, open, err := parseElement(src, element, f)
		if err != nil {
			return e, err
		}
		e.list = append(e.list, r)
		e.open = e.open || open
	}
	return e, nil
}

func parseElement(src source, w word, f calendarField) (series, bool, *SyntaxError) {
	fail := func(off int, format string, args ...any) (series, bool, *SyntaxError) {
		return series{}, false, src.errorAt(off, format, args...)
	}
	pieces := w.split("/")
	ends := pieces[0].split("..")
	switch {
	case w.text == "":
		return fail(w.off, "%s has a value missing", f.name)
	case len(pieces) > 2:
		return fail(pieces[2].off-1, "%s %q has two steps", f.name, w.text)
	case len(ends) > 2:
		return fail(ends[2].off-2, "%s range %q has more than two ends", f.name, w.text)
	case pieces[0].text == "*" && len(pieces) == 2:
		return fail(w.off, "%s %q: a calendar expression has no steps after *: write %d/%s", f.name, w.text, f.lo, pieces[1].text)
	case pieces[0].text == "*":
		return fail(w.off, "%s: * stands alone, not in a list", f.name)
	}
	lo, err := calendarValue(src, ends[0], f)
	if err != nil {
		return series{}, false, err
	}
	r := series{from: lo, to: lo, step: 1}
	if len(ends) == 2 {
		if r.to, err = calendarValue(src, ends[1], f); err != nil {
			return series{}, false, err
		}
		if r.to < lo {
			return fail(w.off, "%s range %q runs backwards; write two ranges", f.name, pieces[0].text)
		}
	}
	if len(pieces) == 1 {
		return r, false, nil
	}
	if r.step, err = number(src, pieces[1], "the step of "+f.name, 1, f.hi); err != nil {
		return series{}, false, err
	}
	if len(ends) == 1 {
		if f == lastDayField && lo-r.step < f.lo || f != lastDayField && lo+r.step > f.hi {
			return fail(pieces[1].off, "%s %q: the step leads past the end, so that it never repeats", f.name, w.text)
		}
		r.to, r.repeats = f.hi, true
	}
	return r, len(ends) == 1 && lo < f.lo+r.step, nil
}

// calendarValue reads a number; a year may have two digits.
func calendarValue(src source, w word, f calendarField) (int, *SyntaxError) {
	if w.text == "" {
		return 0, src.errorAt(w.off, "%s has a value missing", f.name)
	}
	if f == yearField && isDigits(w.text) && len(w.text) <= 2 {
		n, _ := strconv.Atoi(w.text)
		if n < 70 {
			return 2000 + n, nil
		}
		return 1900 + n, nil
	}
	return number(src, w, f.name, f.lo, f.hi)
}
