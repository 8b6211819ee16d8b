package backend

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestResetTime(t *testing.T) {
	t.Parallel()
	stockholm := zone(t, "Europe/Stockholm")
	now := time.Date(2026, 4, 22, 13, 30, 0, 0, time.UTC) // 15:30 in Stockholm
	tests := []struct{ text, want string }{               // want "" is none
		{"You've hit your session limit · resets 4:20am (Europe/Warsaw)", "2026-04-23T02:20:00Z"},
		{"You've hit your session limit · resets 4pm (Europe/Warsaw)", "2026-04-22T14:00:00Z"},
		{"You've hit your limit · resets Apr 23 at 4pm (America/Recife)", "2026-04-23T19:00:00Z"},
		{"Weekly limit reached · resets 10am (Asia/Seoul) · /upgrade to Max", "2026-04-23T01:00:00Z"},
		{"Claude AI usage limit reached|1776870000", "2026-04-22T15:00:00Z"},
		{"Claude AI usage limit reached|1776870000000", "2026-04-22T15:00:00Z"},
		{"Claude AI usage limit reached|1762952400", ""}, // long over
		{"Claude usage limit reached. Your limit will reset at 3pm (America/Bogota).", "2026-04-22T20:00:00Z"},
		{"You will regain access on 2026-05-01 at 00:00 UTC.", "2026-05-01T00:00:00Z"},
		{"You've hit your usage limit. Try again at 3:51 PM.", "2026-04-22T13:51:00Z"},
		{"You've hit your usage limit. Try again at 3:29 PM.", "2026-04-22T13:31:00Z"}, // it is just over
		{"You've hit your usage limit. Try again at 3:20 PM.", "2026-04-23T13:20:00Z"},
		{"try again at Apr 23rd, 2026 9:01 PM.", "2026-04-23T19:01:00Z"},
		{"try again at Feb 23rd, 2026 9:01 PM.", ""},
		{"try again at Dec 23rd, 2030 9:01 PM.", "2026-05-23T13:30:00Z"}, // capped
		{"Try again in 4 days 20 hours 9 minutes.", "2026-04-27T09:39:00Z"},
		{"Your quota will reset after 53s.", "2026-04-22T13:30:53Z"},
		{"Please retry in 34.07s", "2026-04-22T13:30:34.07Z"},
		{"Please try again in 58 hours.", "2026-04-24T23:30:00Z"},
		{"Rate Limited [retrying in 2h5m attempt #4]", "2026-04-22T15:35:00Z"},
		{"try again in 2h 5m", "2026-04-22T15:35:00Z"},
		{"Please try again in 250ms.", "2026-04-22T13:30:00.25Z"},
		{"resets at 2026-04-22T18:00:00+02:00", "2026-04-22T16:00:00Z"},
		{"resets Friday 9am", "2026-04-24T07:00:00Z"},
		{"resets 18:45", "2026-04-22T16:45:00Z"},
		{`{"resets_at": 1776870000}`, "2026-04-22T15:00:00Z"},
		{"try again in 9999 days", "2026-05-23T13:30:00Z"},
		{"Please try again later.", ""},
		{"the function resets 3 counters", ""},
		{"resets 99:99", ""},
	}
	for _, tt := range tests {
		got, ok := resetTime(tt.text, now, stockholm)
		if text := got.UTC().Format(time.RFC3339Nano); ok != (tt.want != "") || ok && text != tt.want {
			t.Errorf("%q: got %s %v, want %q", tt.text, text, ok, tt.want)
		}
	}
}

// Whatever is printed, a reset is in the future and not beyond the cap.
func TestResetTimeIsReasonable(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 10, 25, 0, 59, 0, 0, time.UTC) // clocks go back in Europe
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`(resets|try again in|retry after|reset at|until) (on )?(Oct|Feb 29|Mon)?,? ?[0-9]{1,5}(:[0-9]{2})?( ?[apm]{2}| days| h|s)?( \((Europe/Stockholm|X/Y)\))?`).Draw(t, "text")
		got, ok := resetTime(text, now, time.UTC)
		if ok && (!got.After(now) || got.After(now.Add(maxReset))) {
			t.Fatalf("%q resets at %s", text, got)
		}
	})
}

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}
