package expr

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
)

func TestCronToOnCalendar(t *testing.T) {
	tests := []struct {
		cron string
		want []string
	}{
		{"* * * * *", []string{"*-*-* *:*:00 UTC"}},
		{"? ? ? ? ?", []string{"*-*-* *:*:00 UTC"}},
		{"* * * * * *", []string{"*-*-* *:*:* UTC"}},
		{"15 30 9 * * *", []string{"*-*-* 9:30:15 UTC"}},
		{"*/7 * * * *", []string{"*-*-* *:00,07,14,21,28,35,42,49,56:00 UTC"}},
		{"5/15 * * * *", []string{"*-*-* *:05,20,35,50:00 UTC"}},
		{"0 20/4 * * *", []string{"*-*-* 20:00:00 UTC"}},
		{"0 22-2 * * *", []string{"*-*-* 0,1,2,22,23:00:00 UTC"}},
		{"0 22-2/2 * * *", []string{"*-*-* 0,2,22:00:00 UTC"}},
		{"0 9 28-2 * *", []string{"*-*-1,2,28,29,30,31 9:00:00 UTC"}},
		{"0 9 1 NOV-feb *", []string{"*-1,2,11,12-1 9:00:00 UTC"}},
		{"0 9 1 January,Sept *", []string{"*-1,9-1 9:00:00 UTC"}},
		{"0 9 * * 7", []string{"Sun *-*-* 9:00:00 UTC"}},
		{"0 9 * * 5-7", []string{"Fri,Sat,Sun *-*-* 9:00:00 UTC"}},
		{"0 9 * * 0-7", []string{"*-*-* 9:00:00 UTC"}},
		{"0 9 * * FRI-SUN", []string{"Fri,Sat,Sun *-*-* 9:00:00 UTC"}},
		{"0 9 * * SUN-TUE", []string{"Mon,Tue,Sun *-*-* 9:00:00 UTC"}},
		{"0 9 * * MONDAY,Thurs", []string{"Mon,Thu *-*-* 9:00:00 UTC"}},
		{"0 9 * * */2", []string{"Tue,Thu,Sat,Sun *-*-* 9:00:00 UTC"}},
		{"@weekly", []string{"Sun *-*-* 0:00:00 UTC"}},
		{"@HOURLY", []string{"*-*-* *:00:00 UTC"}},
		{"@midnight", []string{"*-*-* 0:00:00 UTC"}},
		{"@monthly", []string{"*-*-1 0:00:00 UTC"}},
		{"@annually", []string{"*-1-1 0:00:00 UTC"}},
		{"CRON_TZ=Europe/Stockholm 0 9 * * *", []string{"*-*-* 9:00:00 Europe/Stockholm"}},
		{"TZ=Africa/Cairo @daily", []string{"*-*-* 0:00:00 Africa/Cairo"}},

		// Either of two restricted day fields will do; only * and ? do not restrict.
		{"0 9 13 * 5", []string{"*-*-13 9:00:00 UTC", "Fri *-*-* 9:00:00 UTC"}},
		{"0 9 */10 * 5", []string{"*-*-1,11,21,31 9:00:00 UTC", "Fri *-*-* 9:00:00 UTC"}},
		{"0 9 1-31 * 5", []string{"*-*-* 9:00:00 UTC"}},
		{"0 9 30 2 5", []string{"Fri *-2-* 9:00:00 UTC"}},
		{"0 9 */1 * 5", []string{"Fri *-*-* 9:00:00 UTC"}},

		{"0 9 L * *", []string{"*-*~1 9:00:00 UTC"}},
		{"0 9 l-3 * ?", []string{"*-*~4 9:00:00 UTC"}},
		{"0 9 1,L * *", []string{"*-*-1 9:00:00 UTC", "*-*~1 9:00:00 UTC"}},
		{"0 9 LW * *", []string{"Mon,Tue,Wed,Thu,Fri *-*~1 9:00:00 UTC", "Fri *-*~2,3 9:00:00 UTC"}},
		{"0 9 15W * *", []string{"Mon,Tue,Wed,Thu,Fri *-*-15 9:00:00 UTC", "Fri *-*-14 9:00:00 UTC", "Mon *-*-16 9:00:00 UTC"}},
		{"0 9 1W * *", []string{"Mon,Tue,Wed,Thu,Fri *-*-1 9:00:00 UTC", "Mon *-*-2,3 9:00:00 UTC"}},
		{"0 9 * * 5L", []string{"Fri *-*~07/1 9:00:00 UTC"}},
		{"0 9 * * FRIL", []string{"Fri *-*~07/1 9:00:00 UTC"}},
		{"0 9 * * 7L", []string{"Sun *-*~07/1 9:00:00 UTC"}},
		{"0 9 * * FRI#3", []string{"Fri *-*-15..21 9:00:00 UTC"}},
		{"0 9 * * 1#1", []string{"Mon *-*-1..7 9:00:00 UTC"}},
		{"0 9 * * 1#5", []string{"Mon *-*-29,30,31 9:00:00 UTC"}},
		{"0 9 1 * MON#2", []string{"*-*-1 9:00:00 UTC", "Mon *-*-8..14 9:00:00 UTC"}},
	}
	for _, tt := range tests {
		t.Run(tt.cron, func(t *testing.T) {
			if got := mustParse(t, tt.cron, "UTC").OnCalendar(); !slices.Equal(got, tt.want) {
				t.Errorf("OnCalendar() =\n%q, want\n%q", got, tt.want)
			}
		})
	}
}

// TestWorkdays compares LW and nW with what they mean, day by day.
func TestWorkdays(t *testing.T) {
	nearest := func(year int, month time.Month, day int) int {
		last := time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
		switch time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Weekday() {
		case time.Saturday:
			if day == 1 {
				return 3
			}
			return day - 1
		case time.Sunday:
			if day == last {
				return day - 2
			}
			return day + 1
		}
		return day
	}
	texts := map[string]int{"0 0 LW * *": 0, "0 0 1W * *": 1, "0 0 2W * *": 2, "0 0 15W * *": 15, "0 0 27W * *": 27}
	for text, n := range texts {
		s := mustParse(t, text, "UTC")
		at := time.Date(2023, 12, 31, 23, 0, 0, 0, time.UTC)
		for i := range 12 * 28 {
			year, month, day := 2024, time.Month(i+1), n
			if n == 0 {
				day = time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
			}
			first := time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)
			want := time.Date(first.Year(), first.Month(), nearest(first.Year(), first.Month(), day), 0, 0, 0, 0, time.UTC)
			if at = s.Next(at); !at.Equal(want) {
				t.Fatalf("%s: %s, want %s", text, at, want)
			}
		}
	}
}

func TestCronMistakes(t *testing.T) {
	tests := []struct {
		text, reason string
		column       int
	}{
		{"", "it is empty", 1},
		{"  ", "it is empty", 1},
		{"* * *", "it has 3 of the 5 fields minute, hour, day, month, weekday", 1},
		{"0 9 * * * 1 2", "it has 7 fields, more than 6; a command or a year does not belong here", 13},
		{"0 9 * * * /usr/bin/true", `"/usr/bin/true" looks like a command, which does not belong here`, 11},
		{"61 * * * *", "minute 61 is out of 0-59", 1},
		{"0 24 * * *", "hour 24 is out of 0-23", 3},
		{"0 9 0 * *", "day of the month 0 is out of 1-31", 5},
		{"0 9 * 13 *", "month 13 is out of 1-12", 7},
		{"0 9 * * 8", "weekday 8 is out of 0-7", 9},
		{"0 9,25 * * *", "hour 25 is out of 0-23", 5},
		{"0 9-25 * * *", "hour 25 is out of 0-23", 5},
		{"ö 9 * * *", `minute "ö" is not a number`, 1},
		{"ö9 x * * *", `minute "ö9" is not a number`, 1},
		{"0 9 * * mun", `weekday "mun" is neither 0-7 nor a name`, 9},
		{"0 9 * * mondya", `weekday "mondya" is neither 0-7 nor a name: did you mean monday?`, 9},
		{"0 9 * * MO", `weekday "MO" is neither 0-7 nor a name: did you mean monday?`, 9},
		{", * * * *", `minute has an empty place in the list ","`, 1},
		{"0 9, * * *", `hour has an empty place in the list "9,"`, 5},
		{"0 9- * * *", "hour has a value missing", 5},
		{"-5 9 * * *", "minute has a value missing", 1},
		{"1-2-3 9 * * *", `minute range "1-2-3" has more than two ends`, 4},
		{"*/5/2 9 * * *", `minute "*/5/2" has two steps`, 4},
		{"*/0 9 * * *", "the step of minute is 0; it is at least 1", 3},
		{"*/x 9 * * *", `the step of minute, "x", is not a number`, 3},
		{"*/99999999999999999999 9 * * *", "the step of minute, 99999999999999999999, is too large", 3},
		{"99999999999999999999 9 * * *", "minute 99999999999999999999 is out of 0-59", 1},
		{"+5 9 * * *", `minute "+5" is not a number`, 1},
		{"0 9 30 2 *", "it never fires: February has no day 30", 5},
		{"0 9 31 4,jun *", "it never fires: April and June have no day 31", 5},
		{"0 9 30W * *", "day of the month 30W cannot be written as a timer, since the months differ in length: write LW, or a day up to 27W", 5},
		{"0 9 40W * *", "day of the month 40 is out of 1-31", 5},
		{"0 9 L-28 * *", `day of the month "L-28": after L- comes a number of days up to 27`, 7},
		{"0 9 * * L", "weekday L does not say which day: write SAT, or SATL for the last of the month", 9},
		{"0 9 * * FRI#6", `weekday "FRI#6": # is followed by 1 to 5`, 13},
		{"0 L * * *", `hour "L" is not a number`, 3},
		{"TZ=", "TZ= names no time zone", 4},
		{"CRON_TZ= 0 9 * * *", "CRON_TZ= names no time zone", 9},
		{"TZ=UTC", "there is no schedule after TZ=UTC", 7},
		{"TZ=Europe/Nowhere 0 9 * * *", `time zone "Europe/Nowhere" is not known; it has a name such as Europe/Stockholm`, 4},
		{"TZ=europe/stockholm 0 9 * * *", `time zone "europe/stockholm" is not known: did you mean Europe/Stockholm?`, 4},
		{"TZ=../../etc/passwd 0 9 * * *", `time zone "../../etc/passwd" is not known; it has a name such as Europe/Stockholm`, 4},
		{"@dayly", "@dayly is not known: did you mean @daily?", 1},
		{"@daily 9:00", `"9:00" does not belong after @daily`, 8},
		{"0 9 * *\n*", "it goes on after a line break; a schedule is one line", 8},
		{"0 9 * * \x00", `the character '\x00' does not belong here`, 9},
		{strings.Repeat("*", 1001), "it is 1001 characters long, more than 1000", 1},
	}
	for _, tt := range tests {
		t.Run(tt.text[:min(len(tt.text), 30)], func(t *testing.T) {
			s, err := Parse(tt.text, "UTC")
			if err == nil {
				t.Fatalf("Parse accepts it: %q", s.OnCalendar())
			}
			e := err.(*SyntaxError)
			if e.Reason != tt.reason || e.Column != tt.column || e.Text != tt.text {
				t.Errorf("column %d: %s\nwant   %d: %s", e.Column, e.Reason, tt.column, tt.reason)
			}
		})
	}
}

func TestStepNotes(t *testing.T) {
	tests := []struct{ text, want string }{
		{"*/45 * * * *", `minute "*/45" is not even: it starts over every hour, so after 45 the next is 0`},
		{"*/90 * * * *", `minute "*/90" is only ever 0: the step of 90 is larger than the range, and starts over every hour`},
		{"0 */5 * * *", `hour "*/5" is not even: it starts over every day, so after 20 the next is 0`},
		{"0 9 */2 * *", `day of the month "*/2" starts over on day 1 of every month`},
		{"0 9 * * */2", `weekday "*/2" is not even: it starts over every week, so after Saturday the next is Sunday`},
		{"0 9 * */5 *", `month "*/5" is not even: it starts over every year, so after November the next is January`},
		{"*/15 */6 * */3 *", ""},
		{"10-20/3 9-17/2 1-9/2 * *", ""},
		{"0 9 1-31 * 5", `either day field will do and "1-31" is every day, so "5" changes nothing: write * for "1-31"`},
		{"0 9 1 * 0-6", `either day field will do and "0-6" is every day, so "1" changes nothing: write * for "0-6"`},
		{"0 9 30 2 5", "February has no day 30, so only the weekday counts"},
	}
	for _, tt := range tests {
		got := strings.Join(mustParse(t, tt.text, "UTC").Warnings(time.Unix(0, 0)), "\n")
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.text, got, tt.want)
		}
	}
}

// TestRobfigAgrees reads random schedules with robfig/cron itself.
func TestRobfigAgrees(t *testing.T) {
	parser := cron.NewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)
	r := specs{rand.New(rand.NewPCG(2, 3))}
	accepted := 0
	for range 3000 {
		text := r.spec()
		theirs, err := parser.Parse("TZ=UTC " + text)
		if err != nil {
			continue
		}
		ours, err := Parse(text, "UTC")
		at := r.base("UTC")
		if err != nil {
			if next := theirs.Next(at); !next.IsZero() {
				t.Errorf("%v; robfig fires at %s", err, next)
			}
			continue
		}
		accepted++
		for range 5 {
			want := theirs.Next(at)
			if got := ours.Next(at); !got.Equal(want) {
				t.Fatalf("%s after %s: %s, robfig says %s", text, at, got, want)
			}
			at = want
		}
	}
	if accepted < 500 {
		t.Errorf("only %d of the schedules were compared", accepted)
	}
}

// TestLeapDayAcrossACentury: robfig/cron gives up after five years.
func TestLeapDayAcrossACentury(t *testing.T) {
	s := mustParse(t, "0 0 29 2 *", "UTC")
	want := time.Date(2104, 2, 29, 0, 0, 0, 0, time.UTC)
	if got := s.Next(time.Date(2096, 3, 1, 0, 0, 0, 0, time.UTC)); !got.Equal(want) {
		t.Errorf("Next = %s, want %s", got, want)
	}
}
