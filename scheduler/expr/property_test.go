package expr

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// maxSteps bounds the work of one Next: a step is a day, a minute or a change
// of the clocks that is looked at. Counted, since time depends on the machine.
const maxSteps = 2000

func drawSchedule(t *rapid.T, zone string) *Schedule {
	r := specs{rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))}
	for {
		if s, err := Parse(r.spec(), zone); err == nil {
			return s
		}
	}
}

// TestNextIsInOrder: from wherever one asks, the next time is later, and no
// time is passed over.
func TestNextIsInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone := rapid.SampledFrom(zones).Draw(t, "zone")
		s := drawSchedule(t, zone)
		r := specs{rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "base"), 0))}
		from := r.base(zone)
		next := s.Next(from)
		if !next.After(from) {
			t.Fatalf("%s: Next(%s) = %s", s, from, next)
		}
		between := from.Add(time.Duration(rapid.Int64Range(0, int64(next.Sub(from))-1).Draw(t, "between")))
		if got := s.Next(between); !got.Equal(next) {
			t.Fatalf("%s: Next(%s) = %s, but Next(%s) = %s", s, from, next, between, got)
		}
	})
}

// TestWrittenAgain: a schedule written as calendar expressions or as cron
// fires at the same times.
func TestWrittenAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSchedule(t, "UTC")
		checkWrittenAgain(t, s, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	})
}

func checkWrittenAgain(t interface {
	Fatalf(string, ...any)
}, s *Schedule, at time.Time) {
	var again []*Schedule
	for _, line := range s.OnCalendar() {
		line, err := Parse("OnCalendar: "+line, "UTC")
		if err != nil {
			t.Fatalf("%s: %v", s, err)
			return
		}
		again = append(again, line)
	}
	cron, isCron := s.Cron()
	for range 5 {
		want := s.Next(at)
		if got := Earliest(at, again); len(again) > 0 && !got.Equal(want) {
			t.Fatalf("%s: next after %s is %s, as %q it is %s", s, at, want, s.OnCalendar(), got)
		}
		if isCron && s.kind == Calendar {
			c, err := Parse(cron, s.Zone())
			if err != nil {
				t.Fatalf("%s: %v", s, err)
				return
			}
			if got := c.Next(at); !got.Equal(want) || c.hours != s.hours {
				t.Fatalf("%s: next after %s is %s, as %q it is %s", s, at, want, cron, got)
			}
		}
		if want.IsZero() {
			return
		}
		at = want
	}
}

// TestBoundedSearch counts the steps to the next time, for schedules that fire
// seldom or no more.
func TestBoundedSearch(t *testing.T) {
	texts := []string{
		"0 0 29 2 *", "* * 29 2 *", "59 59 23 31 12 *", "0 0 29 2 MON#5",
		"OnCalendar: Mon *-02-29 *:*", "OnCalendar: Mon *-02-29", "OnCalendar: Sun *-02~1 23:59:59",
		"OnCalendar: 2199-12-31 *:00", "OnCalendar: 2199-12-31 23:59:59", "OnCalendar: 2000..2020-*-* *:00",
		"OnCalendar: 1972..2199/100-02-29 *:*", "OnCalendar: Fri *-*~28/27 0:0",
		"OnCalendar: 1972/4,1976/4,1980/4-02-29 1:0", "1,2,3 4-5 27W,LW,L-5 2 7#5,SUNL",
	}
	var schedules []*Schedule
	for _, zone := range zones {
		for _, text := range texts {
			schedules = append(schedules, mustParse(t, text, zone))
		}
	}
	r := specs{rand.New(rand.NewPCG(5, 6))}
	for range 500 {
		if s, err := Parse(r.spec(), zones[r.IntN(len(zones))]); err == nil {
			schedules = append(schedules, s)
		}
	}
	most := counter(0)
	for _, s := range schedules {
		for _, year := range []int{1, 1970, 2026, 2096, 2190, 2199, 2300} {
			var n counter
			s.next(time.Date(year, 3, 1, 0, 0, 0, 1, time.UTC), &n)
			if most = max(most, n); n > maxSteps {
				t.Errorf("%s in %s from %d: %d steps", s, s.Zone(), year, n)
			}
		}
	}
	t.Logf("at most %d steps", most)
}

// TestFarYears: the search reaches the last year in every zone.
func TestFarYears(t *testing.T) {
	for _, zone := range zones {
		for _, text := range []string{"OnCalendar: 2199-12-31 *:00", "OnCalendar: 2199-12-31"} {
			s := mustParse(t, text, zone)
			want := time.Date(2199, 12, 31, 0, 0, 0, 0, s.Location())
			if got := s.Next(time.Date(2026, 10, 25, 0, 0, 0, 0, time.UTC)); !got.Equal(want) {
				t.Errorf("%s in %s: %s, want %s", text, zone, got, want)
			}
		}
	}
}

// TestEndOfLeapYear: beyond its table Go gives a change of the clocks on this
// day that lies in the past.
func TestEndOfLeapYear(t *testing.T) {
	for _, zone := range zones {
		for _, text := range []string{"30 12 * * *", "30 * * * *"} {
			s := mustParse(t, text, zone)
			at := time.Date(2040, 12, 31, 11, 45, 0, 0, s.Location())
			if got, want := s.Next(at), at.Add(45*time.Minute); !got.Equal(want) {
				t.Errorf("%s in %s: %s, want %s", text, zone, got, want)
			}
			s.Warnings(at)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"*/30 9-17 * * 1-5", "0 0 L,15W * FRI#3,5L", "@weekly", "@every 1w2d3h", "@reboot", "at 2026-12-24T18:00:00+01:00",
		"at 2026-12-24 18:00 UTC", "OnCalendar: Mon..Fri,Sun *-1/2~7/2 1..5/2,9:0/7:*", "oncalendar = 26..30-2-29", "OnCalendar:@12",
		"TZ=", "CRON_TZ=Africa/Cairo 0 0 * * *", "TZ=UTC TZ=UTC * * * * *", ", , , , ,", "5/15 20/4 7/2 7/7 7/7", "0 22-2/3 28-3 nov-feb sat-mon",
		"\xff * * * *", "0 9 * * #", "W W W W L", "0 0 W * L", "@", "@every", "OnCalendar:~", "OnCalendar: *-~", "at T", "at t:",
	} {
		f.Add(text)
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text, "UTC")
		if err != nil {
			e := err.(*SyntaxError)
			if e.Column < 1 || e.Column > utf8.RuneCountInString(text)+1 || e.Reason == "" || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%q: column %d, %q", text, e.Column, err)
			}
			return
		}
		var n counter
		next := s.next(start, &n)
		if n > maxSteps || !next.IsZero() && !next.After(start) {
			t.Fatalf("%q: next is %s after %d steps", text, next, n)
		}
		for _, line := range append(s.OnCalendar(), append(s.Warnings(start), s.Describe())...) {
			if line == "" || strings.ContainsAny(line, "\n\x00") {
				t.Fatalf("%q: bad line %q", text, line)
			}
		}
		checkWrittenAgain(t, s, start)
	})
}
