package expr

import (
	"slices"
	"testing"
	"time"
)

// TestCalendarExamples has the examples of systemd.time(7), each with the
// normal form that page gives for it.
func TestCalendarExamples(t *testing.T) {
	tests := []struct {
		text, normal string
		want         []string // times after Thu 2026-01-01 00:00 UTC
	}{
		{"Sat,Thu,Mon..Wed,Sat..Sun", "Mon..Thu,Sat,Sun *-*-* 00:00:00", []string{"01-03 00:00", "01-04 00:00", "01-05 00:00"}},
		{"Mon,Sun 12-*-* 2,1:23", "Mon,Sun 2012-*-* 01,02:23:00", nil},
		{"Wed *-1", "Wed *-*-01 00:00:00", []string{"04-01 00:00", "07-01 00:00"}},
		{"Wed..Wed,Wed *-1", "Wed *-*-01 00:00:00", []string{"04-01 00:00"}},
		{"Wed, 17:48", "", nil},                  // a list that ends in a comma
		{"Wed..Sat,Tue 12-10-15 1:2:3", "", nil}, // that day is a Monday
		{"*-*-7 0:0:0", "*-*-07 00:00:00", []string{"01-07 00:00", "02-07 00:00"}},
		{"10-15", "*-10-15 00:00:00", []string{"10-15 00:00"}},
		{"monday *-12-* 17:00", "Mon *-12-* 17:00:00", []string{"12-07 17:00", "12-14 17:00"}},
		{"Mon,Fri *-*-3,1,2 *:30:45", "Mon,Fri *-*-01,02,03 *:30:45", []string{"01-02 00:30:45", "01-02 01:30:45"}},
		{"12,14,13,12:20,10,30", "*-*-* 12,13,14:10,20,30:00", []string{"01-01 12:10", "01-01 12:20", "01-01 12:30", "01-01 13:10"}},
		{"12..14:10,20,30", "*-*-* 12..14:10,20,30:00", []string{"01-01 12:10", "01-01 12:20"}},
		{"mon,fri *-1/2-1,3 *:30:45", "Mon,Fri *-01/2-01,03 *:30:45", []string{"05-01 00:30:45", "05-01 01:30:45"}},
		{"03-05 08:05:40", "*-03-05 08:05:40", []string{"03-05 08:05:40"}},
		{"08:05:40", "*-*-* 08:05:40", []string{"01-01 08:05:40", "01-02 08:05:40"}},
		{"05:40", "*-*-* 05:40:00", []string{"01-01 05:40"}},
		{"Sat,Sun 12-05 08:05:40", "Sat,Sun *-12-05 08:05:40", []string{"12-05 08:05:40"}},
		{"Sat,Sun 08:05:40", "Sat,Sun *-*-* 08:05:40", []string{"01-03 08:05:40", "01-04 08:05:40"}},
		{"2003-03-05 05:40", "2003-03-05 05:40:00", nil},
		{"2027-03-05 05:40", "2027-03-05 05:40:00", nil},
		{"2027-02..04-05", "2027-02..04-05 00:00:00", nil},
		{"2003-03-05 05:40 UTC", "2003-03-05 05:40:00 UTC", nil},
		{"03-05", "*-03-05 00:00:00", []string{"03-05 00:00"}},
		{"hourly", "*-*-* *:00:00", []string{"01-01 01:00", "01-01 02:00"}},
		{"daily", "*-*-* 00:00:00", []string{"01-02 00:00"}},
		{"daily UTC", "*-*-* 00:00:00 UTC", []string{"01-02 00:00"}},
		{"monthly", "*-*-01 00:00:00", []string{"02-01 00:00"}},
		{"weekly", "Mon *-*-* 00:00:00", []string{"01-05 00:00", "01-12 00:00"}},
		{"weekly Pacific/Auckland", "Mon *-*-* 00:00:00 Pacific/Auckland", []string{"01-04 11:00", "01-11 11:00"}},
		{"yearly", "*-01-01 00:00:00", nil},
		{"annually", "*-01-01 00:00:00", nil},
		{"quarterly", "*-01,04,07,10-01 00:00:00", []string{"04-01 00:00", "07-01 00:00"}},
		{"semiannually", "*-01,07-01 00:00:00", []string{"07-01 00:00"}},
		{"minutely", "*-*-* *:*:00", []string{"01-01 00:01", "01-01 00:02"}},
		{"*:2/3", "*-*-* *:02/3:00", []string{"01-01 00:02", "01-01 00:05"}},
		{"*-02~03", "*-02~03 00:00:00", []string{"02-26 00:00"}},
		{"Mon *-05~07/1", "Mon *-05~07/1 00:00:00", []string{"05-25 00:00"}},
		{"*-*~1", "*-*~01 00:00:00", []string{"01-31 00:00", "02-28 00:00", "03-31 00:00"}},
		{"*-*~3..6/2", "*-*~03..06/2 00:00:00", []string{"01-27 00:00", "01-29 00:00"}},
		{"*-*~07/3", "*-*~07/3 00:00:00", []string{"01-25 00:00", "01-28 00:00", "01-31 00:00"}},
		{"*:10..20/11", "*-*-* *:10:00", []string{"01-01 00:10", "01-01 01:10"}},
		{"*:*:0/20", "*-*-* *:*:00/20", []string{"01-01 00:00:20", "01-01 00:00:40", "01-01 00:01"}},
		{"Mon-Fri 9:00", "Mon..Fri *-*-* 09:00:00", []string{"01-01 09:00", "01-02 09:00", "01-05 09:00"}},
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var texts []string
	for _, tt := range tests {
		if tt.normal == "" {
			if _, err := Parse("OnCalendar: "+tt.text, "UTC"); err == nil {
				t.Errorf("%s: accepted", tt.text)
			}
			continue
		}
		texts = append(texts, tt.text)
		s := mustParse(t, "OnCalendar: "+tt.text, "UTC")
		normal := mustParse(t, "oncalendar="+tt.normal, "UTC")
		if !slices.Equal(s.OnCalendar(), normal.OnCalendar()) {
			t.Errorf("%s: %q, but its normal form is %q", tt.text, s.OnCalendar(), normal.OnCalendar())
		}
		at := start
		for _, want := range tt.want {
			at = s.Next(at).UTC()
			layout := "01-02 15:04:05"
			if len(want) == len("01-02 15:04") {
				layout = "01-02 15:04"
			}
			if got := at.Format(layout); got != want || at.Year() != 2026 || layout == "01-02 15:04" && at.Second() != 0 {
				t.Errorf("%s: next is %s, want %s", tt.text, at, want)
				break
			}
		}
	}
	t.Run("systemd", func(t *testing.T) { sameForSystemd(t, start, texts) })
}

// sameForSystemd compares the times of expressions with systemd's, given as
// they are and as we write them.
func sameForSystemd(t *testing.T, start time.Time, texts []string) {
	needSystemd(t)
	var lines []string
	for _, text := range texts {
		lines = append(lines, mustParse(t, "OnCalendar: "+text, "UTC").OnCalendar()...)
	}
	const n = 6
	given, written := systemdTimes(t, start, n, texts), systemdTimes(t, start, n, lines)
	for i, text := range texts {
		at := start
		s := mustParse(t, "OnCalendar: "+text, "UTC")
		if !slices.EqualFunc(given[i], written[i], time.Time.Equal) {
			t.Errorf("%s: systemd reads it as %v, and our %q as %v", text, given[i], lines[i], written[i])
		}
		for _, want := range given[i] {
			if at = s.Next(at); !at.Equal(want) {
				t.Errorf("%s: next is %s, systemd says %s", text, at, want)
				break
			}
		}
		if len(given[i]) < n {
			if at = s.Next(at); !at.IsZero() {
				t.Errorf("%s: fires at %s, after systemd's last", text, at)
			}
		}
	}
}

func TestCalendarMistakes(t *testing.T) {
	tests := []struct {
		text, reason string
		column       int
	}{
		{"", "there is no expression after OnCalendar", 13},
		{"*/7:00", `hour "*/7": a calendar expression has no steps after *: write 0/7`, 13},
		{"9-17:00", `hour "9-17" is not a number`, 13},
		{"22..2:00", `hour range "22..2" runs backwards; write two ranges`, 13},
		{"Sun..Tue", `weekday range "Sun..Tue" runs backwards: for systemd a week goes from Mon to Sun`, 13},
		{"Mon,", "a weekday is missing", 17},
		{"20/4:00", `hour "20/4": the step leads past the end, so that it never repeats`, 16},
		{"*:0/60", "the step of minute 60 is out of 1-59", 17},
		{"1/0:00", "the step of hour 0 is out of 1-23", 15},
		{"*-*~31", "day from the end of the month 31 is out of 1-28", 17},
		{"*-*~1/1", `day from the end of the month "1/1": the step leads past the end, so that it never repeats`, 19},
		{"*-*~5..3", `day from the end of the month range "5..3" runs backwards; write two ranges`, 17},
		{"*-13-1", "month 13 is out of 1-12", 15},
		{"*-*-32", "day 32 is out of 1-31", 17},
		{"2200-1-1", "year 2200 is out of 1970-2199", 13},
		{"*-02-30", "it never fires: there is no such day", 13},
		{"2027-02-29 10:00", "it never fires: there is no such day", 13},
		{"Mon 2027-01-01", "it never fires: there is no such day", 13},
		{"24:00", "hour 24 is out of 0-23", 13},
		{"10:60", "minute 60 is out of 0-59", 16},
		{"10:00:00.5", "fractions of a second are not kept", 21},
		{"10:00:00:00", `"10:00:00:00" is not a time such as 18:00`, 13},
		{"1-1 0", `"0" is not a time such as 18:00`, 17},
		{"12", `"12" is not a date such as *-12-24, nor a time such as 18:00; the hour alone is written 12:00`, 13},
		{"12:", "minute has a value missing", 16},
		{"1,*:00", "hour: * stands alone, not in a list", 15},
		{"1/2/3:00", `hour "1/2/3" has two steps`, 16},
		{"1..2..3:00", `hour range "1..2..3" has more than two ends`, 17},
		{"Tues", `"Tues" is not a weekday: did you mean tuesday?`, 13},
		{"dayly", `"dayly" is not a weekday: did you mean daily?`, 13},
		{"10:00 Europe/Nowhere", `time zone "Europe/Nowhere" is not known; it has a name such as Europe/Stockholm`, 19},
		{"10:00 Mon", `"Mon" does not belong here; the order is weekdays, date, time, time zone`, 19},
		{"10:00 *-*-*", `"*-*-*" does not belong here; the order is weekdays, date, time, time zone`, 19},
		{"@12x", `"@12x" is not a number of seconds since 1970 such as @1782320400`, 13},
		{"@12 UTC", `"UTC" does not belong after @12`, 17},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			s, err := Parse("OnCalendar: "+tt.text, "UTC")
			if err == nil {
				t.Fatalf("accepted: %q", s.OnCalendar())
			}
			e := err.(*SyntaxError)
			if e.Reason != tt.reason || e.Column != min(tt.column, len(e.Text)+1) {
				t.Errorf("column %d: %s\nwant   %d: %s", e.Column, e.Reason, tt.column, tt.reason)
			}
		})
	}
}

// TestCalendarAcceptance: what we accept, systemd accepts too.
func TestCalendarAcceptance(t *testing.T) {
	needSystemd(t)
	texts := []string{"*:0/59", "19/4:00", "*-*~28", "*-*~28/1", "*-*~28/2", "*-*~1..28", "*-*~2,7,9", "*-*~22,21,20", "*-*~*", "*~1", "*-*", "26-1-1", "99-1-1", "2199-12-31",
		"2026/2-1-1", "1970..2199/3-1-1", "010:00", "1,1,1:00", "*-1/2-1", "Mon..Mon", "10:00 utc", "10:00 Etc/UTC", "bi-annually",
		"2030..2090-1-1", "2000,2030..2032-1-1 4:5:6", "@4000000000", "*:*:*", "Mon *-02-29"}
	for _, text := range texts {
		lines := append(mustParse(t, "OnCalendar: "+text, "UTC").OnCalendar(), text)
		if out, err := analyze("2026-01-01 00:00:00 UTC", 1, lines...); err != nil {
			t.Errorf("systemd refuses one of %q: %v\n%s", lines, err, out)
		}
	}
}

// TestLastDaysInLines: systemd cannot have every list of days from the end.
func TestLastDaysInLines(t *testing.T) {
	tests := []struct {
		text string
		want []string
	}{
		{"*-*~3,25", []string{"*-*~3,25 0:00:00 UTC"}},
		{"*-*~3,26", []string{"*-*~3 0:00:00 UTC", "*-*~26 0:00:00 UTC"}},
		{"*-*~1..28", []string{"*-*~1..28 0:00:00 UTC"}},
		{"*-*~5/1,20,25", []string{"*-*~1..5 0:00:00 UTC", "*-*~20 0:00:00 UTC", "*-*~25 0:00:00 UTC"}},
		{"*-*~7/1", []string{"*-*~07/1 0:00:00 UTC"}},
	}
	for _, tt := range tests {
		lines := mustParse(t, "OnCalendar: "+tt.text, "UTC").OnCalendar()
		if !slices.Equal(lines, tt.want) {
			t.Errorf("%s: %q, want %q", tt.text, lines, tt.want)
		}
	}
	needSystemd(t)
	for _, tt := range tests {
		if out, err := analyze("2026-01-01 00:00:00 UTC", 1, tt.want...); err != nil {
			t.Errorf("systemd refuses one of %q: %v\n%s", tt.want, err, out)
		}
	}
}

func TestPastOnly(t *testing.T) {
	s := mustParse(t, "OnCalendar: 2020-01-01", "UTC")
	if at := s.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)); !at.IsZero() {
		t.Errorf("fires at %s", at)
	}
}
