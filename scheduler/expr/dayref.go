package expr

import (
	"strconv"
	"strings"
)

// dayKind tells the ways of naming a day that is not a number.
type dayKind int

const (
	lastDay        dayKind = iota // L, L-n: n days before the last
	lastWorkday                   // LW
	nearestWorkday                // nW
	lastOfWeekday                 // nL, FRIL
	nthOfWeekday                  // n#k, FRI#k
)

// dayRef is a day that depends on the month.
type dayRef struct {
	kind dayKind
	n    int // the days before the last, the day of nW, or k of #k
	day  int // weekday
}

// parseDayRef reads L, L-n, LW, nW, nL and n#k; ok is false for anything else.
func parseDayRef(src source, w word, f cronField) (ref dayRef, ok bool, err *SyntaxError) {
	upper := strings.ToUpper(w.text)
	switch f.max {
	case 31:
		return parseMonthDayRef(src, w, upper, f)
	case 6:
		return parseWeekdayRef(src, w, upper, f)
	}
	return dayRef{}, false, nil
}

func parseMonthDayRef(src source, w word, upper string, f cronField) (dayRef, bool, *SyntaxError) {
	switch {
	case upper == "L":
		return dayRef{kind: lastDay}, true, nil
	case upper == "LW" || upper == "WL":
		return dayRef{kind: lastWorkday}, true, nil
	case strings.HasPrefix(upper, "L-"):
		n, err := strconv.Atoi(upper[2:])
		if !isDigits(upper[2:]) || err != nil || n > 27 {
			return dayRef{}, false, src.errorAt(w.off+2, "%s %q: after L- comes a number of days up to 27", f.name, w.text)
		}
		return dayRef{kind: lastDay, n: n}, true, nil
	case strings.HasSuffix(upper, "W"):
		day, err := parseValue(src, word{w.text[:len(w.text)-1], w.off}, f)
		if err != nil {
			return dayRef{}, false, err
		}
		if day > 27 {
			return dayRef{}, false, src.errorAt(w.off, "%s %s cannot be written as a timer, since the months differ in length: write LW, or a day up to 27W", f.name, w.text)
		}
		return dayRef{kind: nearestWorkday, n: day}, true, nil
	}
	return dayRef{}, false, nil
}

func parseWeekdayRef(src source, w word, upper string, f cronField) (dayRef, bool, *SyntaxError) {
	if name, nth, ok := strings.Cut(w.text, "#"); ok {
		day, err := parseValue(src, word{name, w.off}, f)
		if err != nil {
			return dayRef{}, false, err
		}
		if len(nth) != 1 || nth < "1" || nth > "5" {
			return dayRef{}, false, src.errorAt(w.off+len(name)+1, "%s %q: # is followed by 1 to 5", f.name, w.text)
		}
		return dayRef{kind: nthOfWeekday, n: int(nth[0] - '0'), day: day % 7}, true, nil
	}
	if upper == "L" {
		return dayRef{}, false, src.errorAt(w.off, "%s L does not say which day: write SAT, or SATL for the last of the month", f.name)
	}
	if !strings.HasSuffix(upper, "L") {
		return dayRef{}, false, nil
	}
	day, err := parseValue(src, word{w.text[:len(w.text)-1], w.off}, f)
	if err != nil {
		return dayRef{}, false, err
	}
	return dayRef{kind: lastOfWeekday, day: day % 7}, true, nil
}

// String describes a day that its rules do not describe well.
func (d dayRef) String() string {
	switch d.kind {
	case lastWorkday:
		return "the last weekday (Monday to Friday) of the month"
	case nearestWorkday:
		return "the weekday (Monday to Friday) nearest to day " + strconv.Itoa(d.n) + " of the month"
	default:
		return ""
	}
}

const (
	monday = 1
	friday = 5
)

var workdays = span(monday, friday, 1)

// rules says the day as calendar expressions, one of which must match. The
// workday nearest to a day is the day itself, the Friday before a Saturday or
// the Monday after a Sunday, and stays in the month.
func (d dayRef) rules(base rule) []rule {
	on := func(weekdays, days, lastDays set) rule {
		r := base
		r.day = d.String()
		r.weekdays, r.days, r.lastDays = weekdays, days, lastDays
		return r
	}
	switch d.kind {
	case lastDay:
		return []rule{on(allWeekdays, 0, 1<<(d.n+1))}
	case lastWorkday:
		return []rule{on(workdays, 0, 1<<1), on(1<<friday, 0, 1<<2|1<<3)}
	case nearestWorkday:
		if d.n == 1 {
			return []rule{on(workdays, 1<<1, 0), on(1<<monday, 1<<2|1<<3, 0)}
		}
		return []rule{on(workdays, 1<<d.n, 0), on(1<<friday, 1<<(d.n-1), 0), on(1<<monday, 1<<(d.n+1), 0)}
	case lastOfWeekday:
		return []rule{on(1<<d.day, 0, span(1, 7, 1))}
	default:
		first := 7*(d.n-1) + 1
		return []rule{on(1<<d.day, span(first, min(first+6, 31), 1), 0)}
	}
}
