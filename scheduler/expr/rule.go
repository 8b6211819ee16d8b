package expr

import (
	"math/bits"
	"time"
)

// set holds small numbers: bit n is n.
type set uint64

// span returns the numbers lo, lo+step, ... up to hi.
func span(lo, hi, step int) set {
	var s set
	for n := lo; n <= hi; n += step {
		s |= 1 << n
	}
	return s
}

func (s set) has(n int) bool { return s>>n&1 != 0 }
func (s set) len() int       { return bits.OnesCount64(uint64(s)) }

// from returns the smallest member that is at least n, or -1.
func (s set) from(n int) int {
	n = max(n, 0)
	if n > 63 || s>>n == 0 {
		return -1
	}
	return n + bits.TrailingZeros64(uint64(s>>n))
}

func (s set) list() []int {
	var list []int
	for n := s.from(0); n >= 0; n = s.from(n + 1) {
		list = append(list, n)
	}
	return list
}

// wholeStep returns n if the set is every nth number of lo to hi, otherwise 0.
func (s set) wholeStep(lo, hi int) int {
	first := s.from(0)
	for n := first - lo + 1; n <= hi-lo+1 && first >= 0; n++ {
		if s == span(first, hi, n) {
			return n
		}
	}
	return 0
}

var (
	allSixty    = span(0, 59, 1)
	allHours    = span(0, 23, 1)
	allDays     = span(1, 31, 1)
	allMonths   = span(1, 12, 1)
	allWeekdays = span(0, 6, 1)
)

// series is from, from+step, ... up to to.
type series struct {
	from, to, step int
	repeats        bool // written as from/step, without an end
}

func (y series) has(n int) bool {
	return n >= y.from && n <= y.to && (n-y.from)%y.step == 0
}

// Years that systemd knows; nothing fires outside of them.
const (
	minYear = 1970
	maxYear = 2199
)

// rule is a calendar expression whose parts must all match.
type rule struct {
	weekdays set      // 0 is Sunday
	years    []series // none is every year
	months   set
	days     set // of the month
	lastDays set // counted from the end, 1 is the last; instead of days
	hours    set
	minutes  set
	seconds  set
	day      string // what to call the day, if its parts do not say
}

// counter counts the steps of a search; tests bound it.
type counter int

// leapYears is the longest wait of a rule: a weekday on 29 February across a
// century that has no leap day.
const leapYears = 40

// next returns the first wall time after w that matches, the zero time if
// there is none. Wall times are held as times in UTC.
func (r *rule) next(w time.Time, n *counter) time.Time {
	w = w.Truncate(time.Second).Add(time.Second)
	if day := w.Truncate(24 * time.Hour); r.matchesDay(w.Year(), w.Month(), w.Day()) {
		if t := r.nextClock(w, n); t >= 0 {
			return day.Add(t)
		}
	}
	day := r.nextDay(w, n)
	if day.IsZero() {
		return day
	}
	return day.Add(r.nextClock(day, n))
}

// nextDay returns the first day after that of w that matches.
func (r *rule) nextDay(w time.Time, n *counter) time.Time {
	year, month, day := w.Date()
	end := min(year+leapYears+1, maxYear)
	if len(r.years) > 0 {
		end = maxYear
	}
	first := int(month)
	for ; year <= end; year, first, day = year+1, 1, 0 {
		*n++
		if !r.matchesYear(year) {
			continue
		}
		for m := r.months.from(first); m >= 0; m = r.months.from(m + 1) {
			if m != first {
				day = 0
			}
			days := r.daysOf(year, time.Month(m))
			for d := days.from(day + 1); d >= 0; d = days.from(d + 1) {
				*n++
				t := time.Date(year, time.Month(m), d, 0, 0, 0, 0, time.UTC)
				if r.weekdays.has(int(t.Weekday())) {
					return t
				}
			}
			day = 0
		}
	}
	return time.Time{}
}

// nextClock returns the first time of the day at or after w's, or -1.
func (r *rule) nextClock(w time.Time, n *counter) time.Duration {
	h, m, s := w.Clock()
	for hour := r.hours.from(h); hour >= 0; hour = r.hours.from(hour + 1) {
		if hour > h {
			m, s = 0, 0
		}
		for minute := r.minutes.from(m); minute >= 0; minute = r.minutes.from(minute + 1) {
			*n++
			if minute > m {
				s = 0
			}
			if second := r.seconds.from(s); second >= 0 {
				return time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute + time.Duration(second)*time.Second
			}
		}
	}
	return -1
}

func (r *rule) matchesYear(year int) bool {
	if year < minYear || year > maxYear {
		return false
	}
	for _, y := range r.years {
		if y.has(year) {
			return true
		}
	}
	return len(r.years) == 0
}

func (r *rule) matchesDay(year int, month time.Month, day int) bool {
	return r.matchesYear(year) && r.months.has(int(month)) && r.daysOf(year, month).has(day) &&
		r.weekdays.has(int(time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Weekday()))
}

// daysOf returns the days of a month that match, whatever the weekday.
func (r *rule) daysOf(year int, month time.Month) set {
	last := time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
	if r.lastDays == 0 {
		return r.days & span(1, last, 1)
	}
	var days set
	for _, back := range r.lastDays.list() {
		if day := last + 1 - back; day >= 1 {
			days |= 1 << day
		}
	}
	return days
}

// never reports whether the rule matches no time at all.
func (r *rule) never() bool {
	var n counter
	return r.next(time.Date(minYear-1, 12, 31, 23, 59, 59, 0, time.UTC), &n).IsZero()
}
