package expr

import (
	"os"
	"slices"
	"testing"
	"time"
)

func TestEvery(t *testing.T) {
	tests := []struct {
		text  string
		every time.Duration
		timer string
	}{
		{"@every 90m", 90 * time.Minute, "1h 30min"},
		{"@every 1h30m10s", time.Hour + 30*time.Minute + 10*time.Second, "1h 30min 10s"},
		{"@every 1s", time.Second, "1s"},
		{"@every 2d", 48 * time.Hour, "2d"},
		{"@every 1w1d12h", 204 * time.Hour, "8d 12h"},
		{"@every 1000ms", time.Second, "1s"},
	}
	start := time.Date(2026, 3, 28, 12, 0, 0, 500, time.UTC)
	for _, tt := range tests {
		s := mustParse(t, tt.text, "Europe/Stockholm")
		if want := start.Truncate(time.Second).Add(tt.every); !s.Next(start).Equal(want) {
			t.Errorf("%s: next is %s, want %s", tt.text, s.Next(start), want)
		}
		want := []Setting{{"OnActiveSec", tt.timer}, {"OnUnitActiveSec", tt.timer}}
		if !slices.Equal(s.Timer(), want) || s.OnCalendar() != nil || s.Kind() != Every {
			t.Errorf("%s: %v, Timer() = %v, OnCalendar() = %q", tt.text, s.Kind(), s.Timer(), s.OnCalendar())
		}
	}
}

func TestBoot(t *testing.T) {
	s := mustParse(t, "@reboot", "")
	if s.Kind() != Boot || !s.Next(time.Now()).IsZero() || s.OnCalendar() != nil {
		t.Errorf("%v, next %s, OnCalendar %q", s.Kind(), s.Next(time.Now()), s.OnCalendar())
	}
	if want := []Setting{{"OnStartupSec", "0"}}; !slices.Equal(s.Timer(), want) {
		t.Errorf("Timer() = %v, want %v", s.Timer(), want)
	}
}

func TestAt(t *testing.T) {
	const stockholm = "Europe/Stockholm"
	tests := []struct{ text, want, line string }{
		{"at 2026-12-24 18:00", "2026-12-24T18:00:00+01:00", "2026-12-24 18:00:00 Europe/Stockholm"},
		{"At 2026-12-24T18:00:30", "2026-12-24T18:00:30+01:00", "2026-12-24 18:00:30 Europe/Stockholm"},
		{"at 2026-12-24T17:00:00Z", "2026-12-24T18:00:00+01:00", "2026-12-24 18:00:00 Europe/Stockholm"},
		{"at 2026-12-24t17:00:00.000z", "2026-12-24T18:00:00+01:00", "2026-12-24 18:00:00 Europe/Stockholm"},
		{"at 2026-12-24T12:00:00-05:00", "2026-12-24T18:00:00+01:00", "2026-12-24 18:00:00 Europe/Stockholm"},
		{"at 2026-12-24 18:00 Africa/Cairo", "2026-12-24T18:00:00+02:00", "2026-12-24 18:00:00 Africa/Cairo"},
		{"TZ=Africa/Cairo at 2026-12-24 18:00", "2026-12-24T18:00:00+02:00", "2026-12-24 18:00:00 Africa/Cairo"},
		{"OnCalendar: @1798131600", "2026-12-24T18:00:00+01:00", "2026-12-24 18:00:00 Europe/Stockholm"},
		{"at 2026-03-29 02:30", "2026-03-29T03:00:00+02:00", "2026-03-29 03:00:00 Europe/Stockholm"},
		{"at 2026-10-25 02:30", "2026-10-25T02:30:00+02:00", "2026-10-25 00:30:00 UTC"},
		{"at 2026-10-25T02:30:00+01:00", "2026-10-25T02:30:00+01:00", "2026-10-25 01:30:00 UTC"},
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range tests {
		s := mustParse(t, tt.text, stockholm)
		at := s.Next(start)
		if got := at.Format(time.RFC3339); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.text, got, tt.want)
		}
		if !s.Next(at).IsZero() || s.Kind() != At || s.Timer() != nil {
			t.Errorf("%s: fires again, or is %v", tt.text, s.Kind())
		}
		if got := s.OnCalendar(); len(got) != 1 || got[0] != tt.line {
			t.Errorf("%s: OnCalendar() = %q, want %q", tt.text, got, tt.line)
		}
	}
}

func TestOnceMistakes(t *testing.T) {
	tests := []struct {
		text, reason string
		column       int
	}{
		{"@every", "@every needs a duration such as 90m", 7},
		{"@every 0s", "0s is too short; the least is 1s", 8},
		{"@every -5m", "-5m is too short; the least is 1s", 8},
		{"@every 500ms", "500ms is too short; the least is 1s", 8},
		{"@every 1.5s", "1.5s is not a whole number of seconds", 8},
		{"@every 90", `"90" is not a duration such as 90m, 1h30m or 2d`, 8},
		{"@every 1x", `"1x" is not a duration such as 90m, 1h30m or 2d`, 8},
		{"@every 99999999d", `"99999999d" is not a duration such as 90m, 1h30m or 2d`, 8},
		{"@every 2562047h", `"2562047h" is not a duration such as 90m, 1h30m or 2d`, 8},
		{"@every 1h 30m", `"30m" does not belong after the duration; it is written in one piece, as 1h30m`, 11},
		{"@reboot 5", `"5" does not belong after @reboot`, 9},
		{"at", "at needs a time such as 2026-12-24 18:00", 3},
		{"at noon", `"noon" is not a date such as 2026-12-24`, 4},
		{"at 2026-12-24", "the time of day is missing, as in 2026-12-24 18:00", 14},
		{"at 24.12.2026 18:00", `"24.12.2026" is not a date such as 2026-12-24`, 4},
		{"at 2026-02-29 18:00", "day 29 is out of 1-28", 12},
		{"at 2026-13-01 18:00", "month 13 is out of 1-12", 9},
		{"at 2026-12-24 24:00", "hour 24 is out of 0-23", 15},
		{"at 2026-12-24 18:61", "minute 61 is out of 0-59", 18},
		{"at 2026-12-24 18:00:00.5", `second "00.5" is not a number`, 21},
		{"at 2026-12-24 18", `"18" is not a time such as 18:00`, 15},
		{"at 2026-12-24T18:00:00+1", `"+1" is not an offset such as Z or +01:00`, 23},
		{"at 2026-12-24T18:00Z UTC", `"UTC" does not belong after the offset Z`, 22},
		{"at 2026-12-24 18:00 Mars", `time zone "Mars" is not known; it has a name such as Europe/Stockholm`, 21},
		{"at 2026-12-24 18:00 UTC 1", `"1" does not belong after the time zone`, 25},
		{"2026-12-24 18:00", `it has 2 of the 5 fields minute, hour, day, month, weekday: a single time is written "at 2026-12-24 18:00"`, 1},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			s, err := Parse(tt.text, "UTC")
			if err == nil {
				t.Fatalf("accepted as %v", s.Kind())
			}
			e := err.(*SyntaxError)
			if e.Reason != tt.reason || e.Column != tt.column {
				t.Errorf("column %d: %s\nwant   %d: %s", e.Column, e.Reason, tt.column, tt.reason)
			}
		})
	}
}

func TestEarliest(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	list := []*Schedule{mustParse(t, "0 9 * * *", "UTC"), mustParse(t, "@reboot", "UTC"), mustParse(t, "30 8 * * *", "UTC")}
	if got, want := Earliest(start, list), start.Add(8*time.Hour+30*time.Minute); !got.Equal(want) {
		t.Errorf("Earliest = %s, want %s", got, want)
	}
	if got := Earliest(start, list[1:2]); !got.IsZero() {
		t.Errorf("Earliest of @reboot = %s", got)
	}
}

func TestLocalZone(t *testing.T) {
	link := func(target string) func(string) (string, error) {
		return func(string) (string, error) {
			if target == "" {
				return "", os.ErrInvalid
			}
			return target, nil
		}
	}
	file := func(text string) func(string) ([]byte, error) {
		return func(string) ([]byte, error) {
			if text == "" {
				return nil, os.ErrNotExist
			}
			return []byte(text), nil
		}
	}
	tests := []struct {
		name, tz string
		set      bool
		link     string
		timezone string
		want     string
		note     bool
	}{
		{name: "the link", link: "/usr/share/zoneinfo/Europe/Stockholm", want: "Europe/Stockholm"},
		{name: "a relative link", link: "../usr/share/zoneinfo/Etc/UTC", want: "UTC"},
		{name: "a copy and its name", timezone: "Africa/Cairo\n", want: "Africa/Cairo"},
		{name: "a link out of the database", link: "/etc/my.tz", timezone: "Africa/Cairo", want: ""},
		{name: "a copy without a name", want: ""},
		{name: "TZ wins", tz: "Asia/Kolkata", set: true, link: "/usr/share/zoneinfo/Europe/Stockholm", want: "Asia/Kolkata"},
		{name: "TZ with a colon", tz: ":Asia/Kolkata", set: true, want: "Asia/Kolkata"},
		{name: "TZ with a path", tz: "/usr/share/zoneinfo/Asia/Kolkata", set: true, want: "Asia/Kolkata"},
		{name: "TZ empty", set: true, link: "/usr/share/zoneinfo/Europe/Stockholm", want: "UTC"},
		{name: "TZ with a rule", tz: "CET-1CEST", set: true, note: true},
	}
	for _, tt := range tests {
		z := localZone(tt.tz, tt.set, link(tt.link), file(tt.timezone))
		if z.name != tt.want || z.loc == nil || (z.note != "") != tt.note {
			t.Errorf("%s: %q (%v) %q, want %q", tt.name, z.name, z.loc, z.note, tt.want)
		}
	}
}
