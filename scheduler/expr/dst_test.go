package expr

import (
	"testing"
	"time"
)

// In 2026 the clocks change in
//
//	Europe/Stockholm     29 March 02:00 -> 03:00, 25 October 03:00 -> 02:00
//	Africa/Cairo         24 April 00:00 -> 01:00, 30 October 00:00 -> 29 October 23:00
//	America/Santiago     6 September 00:00 -> 01:00, 5 April 00:00 -> 4 April 23:00
//	Australia/Lord_Howe  4 October 02:00 -> 02:30, 5 April 02:00 -> 01:30
//
// as worked out by hand from the rules of the zones.
func TestClockChanges(t *testing.T) {
	const stockholm, cairo, santiago, lordHowe = "Europe/Stockholm", "Africa/Cairo", "America/Santiago", "Australia/Lord_Howe"
	tests := []struct {
		name, text, zone, after string
		want                    []string
	}{
		{"before the gap", "30 1 * * *", stockholm, "2026-03-28T12:00:00+01:00",
			[]string{"2026-03-29T01:30:00+01:00", "2026-03-30T01:30:00+02:00"}},
		{"in the gap, at its end", "30 2 * * *", stockholm, "2026-03-28T12:00:00+01:00",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"}},
		{"several in the gap, once", "*/10 2 * * *", stockholm, "2026-03-28T12:00:00+01:00",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:00:00+02:00"}},
		{"in the gap and at its end, once", "0 2,3 * * *", stockholm, "2026-03-28T12:00:00+01:00",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:00:00+02:00", "2026-03-30T03:00:00+02:00"}},
		{"in the gap and after it", "30 2,3 * * *", stockholm, "2026-03-28T12:00:00+01:00",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-29T03:30:00+02:00"}},
		{"the gap on its weekday only", "30 2 * * SUN", stockholm, "2026-03-28T12:00:00+01:00",
			[]string{"2026-03-29T03:00:00+02:00", "2026-04-05T02:30:00+02:00"}},
		{"hourly over the gap", "0 * * * *", stockholm, "2026-03-29T00:30:00+01:00",
			[]string{"2026-03-29T01:00:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-29T04:00:00+02:00"}},
		{"every other hour over the gap", "0 */2 * * *", stockholm, "2026-03-29T00:30:00+01:00",
			[]string{"2026-03-29T04:00:00+02:00", "2026-03-29T06:00:00+02:00"}},
		{"minutes over the gap", "*/30 * * * *", stockholm, "2026-03-29T01:10:00+01:00",
			[]string{"2026-03-29T01:30:00+01:00", "2026-03-29T03:00:00+02:00"}},
		{"hours 0-23 are every hour", "0 0-23 * * *", stockholm, "2026-03-29T01:30:00+01:00",
			[]string{"2026-03-29T03:00:00+02:00"}},

		{"in the repeated hour, once", "30 2 * * *", stockholm, "2026-10-24T12:00:00+02:00",
			[]string{"2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"}},
		{"asked in the second of the hours", "30 2 * * *", stockholm, "2026-10-25T02:10:00+01:00",
			[]string{"2026-10-26T02:30:00+01:00"}},
		{"minutes, asked in the second of the hours", "* 2 * * *", stockholm, "2026-10-25T02:00:00+01:00",
			[]string{"2026-10-26T02:00:00+01:00"}},
		{"the end of the repeated hour", "0 3 * * *", stockholm, "2026-10-25T02:10:00+01:00",
			[]string{"2026-10-25T03:00:00+01:00"}},
		{"lists in the repeated hour", "0,30 1,2,3 * * *", stockholm, "2026-10-25T01:10:00+02:00",
			[]string{"2026-10-25T01:30:00+02:00", "2026-10-25T02:00:00+02:00", "2026-10-25T02:30:00+02:00", "2026-10-25T03:00:00+01:00"}},
		{"hourly in the repeated hour", "0 * * * *", stockholm, "2026-10-25T01:30:00+02:00",
			[]string{"2026-10-25T02:00:00+02:00", "2026-10-25T02:00:00+01:00", "2026-10-25T03:00:00+01:00"}},
		{"minutes in the repeated hour", "*/30 * * * *", stockholm, "2026-10-25T02:10:00+02:00",
			[]string{"2026-10-25T02:30:00+02:00", "2026-10-25T02:00:00+01:00", "2026-10-25T02:30:00+01:00", "2026-10-25T03:00:00+01:00"}},
		{"every other hour, repeated", "0 */2 * * *", stockholm, "2026-10-25T00:30:00+02:00",
			[]string{"2026-10-25T02:00:00+02:00", "2026-10-25T02:00:00+01:00", "2026-10-25T04:00:00+01:00"}},
		{"*/24 is once a day", "30 */24 * * *", cairo, "2026-04-23T12:00:00+02:00",
			[]string{"2026-04-24T01:00:00+03:00", "2026-04-25T00:30:00+03:00"}},

		{"a list with a step is a list", "30 0,*/2,3 * * *", stockholm, "2026-10-25T00:45:00+02:00",
			[]string{"2026-10-25T02:30:00+02:00", "2026-10-25T03:30:00+01:00"}},

		{"no midnight in Cairo", "0 0 * * *", cairo, "2026-04-22T12:00:00+02:00",
			[]string{"2026-04-23T00:00:00+02:00", "2026-04-24T01:00:00+03:00", "2026-04-25T00:00:00+03:00"}},
		{"noon on Cairo's day", "0 12 * * FRI", cairo, "2026-04-18T12:00:00+02:00",
			[]string{"2026-04-24T12:00:00+03:00", "2026-05-01T12:00:00+03:00"}},
		{"hourly in Cairo", "0 * * * *", cairo, "2026-04-23T22:30:00+02:00",
			[]string{"2026-04-23T23:00:00+02:00", "2026-04-24T01:00:00+03:00"}},
		{"Cairo's last hour twice", "30 23 * * *", cairo, "2026-10-29T12:00:00+03:00",
			[]string{"2026-10-29T23:30:00+03:00", "2026-10-30T23:30:00+02:00"}},
		{"no midnight in Santiago", "@daily", santiago, "2026-09-05T12:00:00-04:00",
			[]string{"2026-09-06T01:00:00-03:00", "2026-09-07T00:00:00-03:00"}},
		{"Santiago's day and weekday", "0 0 6 9 *", santiago, "2026-09-01T12:00:00-04:00",
			[]string{"2026-09-06T01:00:00-03:00", "2027-09-06T00:00:00-03:00"}},
		{"Santiago's last hour twice", "0 23 * * *", santiago, "2026-04-04T12:00:00-03:00",
			[]string{"2026-04-04T23:00:00-03:00", "2026-04-05T23:00:00-04:00"}},
		{"half an hour missing", "15 2 * * *", lordHowe, "2026-10-03T12:00:00+10:30",
			[]string{"2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00"}},
		{"half an hour twice", "*/15 * * * *", lordHowe, "2026-04-05T01:40:00+11:00",
			[]string{"2026-04-05T01:45:00+11:00", "2026-04-05T01:30:00+10:30", "2026-04-05T01:45:00+10:30", "2026-04-05T02:00:00+10:30"}},

		{"a calendar expression in the gap", "OnCalendar: 02:30", stockholm, "2026-03-28T12:00:00+01:00",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"}},
		{"a calendar expression every hour", "OnCalendar: hourly", stockholm, "2026-10-25T01:30:00+02:00",
			[]string{"2026-10-25T02:00:00+02:00", "2026-10-25T02:00:00+01:00"}},
		{"a calendar repetition of hours", "OnCalendar: 0/2:00", stockholm, "2026-10-25T00:30:00+02:00",
			[]string{"2026-10-25T02:00:00+02:00", "2026-10-25T02:00:00+01:00"}},
		{"once in the gap", "at 2026-03-29 02:30", stockholm, "2026-03-28T12:00:00+01:00",
			[]string{"2026-03-29T03:00:00+02:00", ""}},
		{"once in the repeated hour", "at 2026-10-25 02:30", stockholm, "2026-03-28T12:00:00+01:00",
			[]string{"2026-10-25T02:30:00+02:00", ""}},
		{"its zone wins", "TZ=Europe/Stockholm 30 2 * * *", cairo, "2026-03-28T12:00:00+01:00",
			[]string{"2026-03-29T03:00:00+02:00"}},
		{"fractions of a second", "* * * * * *", stockholm, "2026-03-28T12:00:00.7+01:00",
			[]string{"2026-03-28T12:00:01+01:00", "2026-03-28T12:00:02+01:00"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := mustParse(t, tt.text, tt.zone)
			at, err := time.Parse(time.RFC3339, tt.after)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range tt.want {
				at = s.Next(at)
				got := ""
				if !at.IsZero() {
					got = at.Format(time.RFC3339)
				}
				if got != want {
					t.Fatalf("%s: next is %s, want %s", tt.text, got, want)
				}
			}
		})
	}
}

func TestClockChangeWarnings(t *testing.T) {
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	tests := []struct {
		text, zone string
		want       []string
	}{
		{"30 2 * * *", "Europe/Stockholm", []string{
			"Sun 29 Mar 2026: 02:30 does not exist in Europe/Stockholm, the clocks go forward to 03:00; a systemd timer skips the run, the daemon runs once at 03:00"}},
		{"*/10 2 * * *", "Europe/Stockholm", []string{
			"Sun 29 Mar 2026: 02:00 and 5 more times do not exist in Europe/Stockholm, the clocks go forward to 03:00; a systemd timer skips the run, the daemon runs once at 03:00"}},
		{"0 * * * *", "Europe/Stockholm", []string{
			"Sun 25 Oct 2026: 02:00 comes twice in Europe/Stockholm, the clocks go back to 02:00; a systemd timer runs one of the two, the daemon runs both times"}},
		{"0 0 * * *", "Africa/Cairo", []string{
			"Fri 24 Apr 2026: 00:00 does not exist in Africa/Cairo, the clocks go forward to 01:00; a systemd timer skips the run, the daemon runs once at 01:00"}},
		{"* * * * *", "Europe/Stockholm", []string{
			"Sun 25 Oct 2026: 02:00 and 59 more times come twice in Europe/Stockholm, the clocks go back to 02:00; a systemd timer runs one of the two, the daemon runs both times"}},
		{"* * 2 * * *", "Europe/Stockholm", []string{
			"Sun 29 Mar 2026: 02:00 and many more times do not exist in Europe/Stockholm, the clocks go forward to 03:00; a systemd timer skips the run, the daemon runs once at 03:00"}},
		{"30 2 * * SUNL", "Europe/Stockholm", []string{
			"Sun 29 Mar 2026: 02:30 does not exist in Europe/Stockholm, the clocks go forward to 03:00; a systemd timer skips the run, the daemon runs once at 03:00",
			"Sun 25 Oct 2026: 02:30 comes twice in Europe/Stockholm, the clocks go back to 02:00; a systemd timer may run the second time, the daemon runs the first time"}},
		{"0 2,3 * * *", "Europe/Stockholm", nil}, // at 03:00 both run once
		{"30 2 * * MON-SAT", "Europe/Stockholm", nil},
		{"30 9 * * *", "Europe/Stockholm", nil},
		{"0 9,10 * * *", "Europe/Stockholm", nil},
		{"0 * * * *", "UTC", nil},
		{"@every 1h", "Europe/Stockholm", nil},
		{"@reboot", "Europe/Stockholm", nil},
	}
	for _, tt := range tests {
		t.Run(tt.text+" "+tt.zone, func(t *testing.T) {
			got := mustParse(t, tt.text, tt.zone).Warnings(from)
			if len(got) != len(tt.want) {
				t.Fatalf("Warnings() = %q, want %q", got, tt.want)
			}
			for i := range got {
				if got[i] != tt.want[i] {
					t.Errorf("Warnings()[%d] = %q, want %q", i, got[i], tt.want[i])
				}
			}
		})
	}
}
