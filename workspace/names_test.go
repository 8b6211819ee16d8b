package workspace

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestSlugs(t *testing.T) {
	t.Parallel()
	for name, valid := range map[string]bool{
		"a": true, "0": true, "bob-2_x": true, strings.Repeat("a", 63): true,
		"": false, "-a": false, "_a": false, "A": false, "a.b": false, "a/b": false, "å": false, "a b": false, strings.Repeat("a", 64): false,
	} {
		if got := CheckSlug(name) == nil; got != valid {
			t.Errorf("CheckSlug(%q) accepts: %v, want %v", name, got, valid)
		}
	}
	for text, want := range map[string]string{
		"Bob": "bob", "My Agents (2)": "my-agents-2", "--x--": "x", "Björn": "bjrn", "日本": "", "...": "", "a.b": "a-b",
		strings.Repeat("x", 62) + "-yz": strings.Repeat("x", 62),
	} {
		if got := Slug(text); got != want {
			t.Errorf("Slug(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestSlugIsValidOrEmpty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		text := rapid.String().Draw(r, "text")
		if s := Slug(text); s != "" && CheckSlug(s) != nil {
			r.Errorf("Slug(%q) = %q, which is not valid", text, s)
		}
	})
}

func TestSessionName(t *testing.T) {
	t.Parallel()
	const run = "019ac0de-0000-7000-8000-000000000001"
	// In Stockholm it is Friday already; the ISO year differs from the calendar's.
	now := time.Date(2026, 12, 31, 23, 30, 0, 0, time.UTC)
	tests := []struct{ template, zone, want string }{
		{"", "", "triage-" + run},
		{"fixed", "", "fixed"},
		{"triage-{date}", "", "triage-2026-12-31"},
		{"triage-{date}", "Europe/Stockholm", "triage-2027-01-01"},
		{"{week}", "", "2026-W53"},
		{"{week}", "Europe/Stockholm", "2026-W53"},
		{"x.{run}.{date}", "UTC", "x." + run + ".2026-12-31"},
	}
	for _, tt := range tests {
		j := Job{Name: "triage", Session: tt.template, Timezone: tt.zone}
		got := j.SessionName(run, now)
		if got != tt.want {
			t.Errorf("SessionName(%q in %q) = %q, want %q", tt.template, tt.zone, got, tt.want)
		}
		if err := checkSessionName(got); err != nil {
			t.Errorf("%q is no session name: %v", got, err)
		}
	}
	if got := (&Job{Session: "{week}"}).SessionName(run, time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)); got != "2026-W49" {
		t.Errorf("week = %q", got)
	}
}

// A template that is accepted always makes a valid name.
func TestAcceptedTemplatesMakeNames(t *testing.T) {
	t.Parallel()
	part := rapid.SampledFrom([]string{"a", "B", "-", "_", ".", "{date}", "{week}", "{run}", "{", "}", "/", "{x}", "å", strings.Repeat("z", 50)})
	rapid.Check(t, func(r *rapid.T) {
		template := strings.Join(rapid.SliceOfN(part, 0, 6).Draw(r, "parts"), "")
		if checkSession(template) != nil {
			return
		}
		at := time.Unix(rapid.Int64Range(0, 4e9).Draw(r, "at"), 0)
		name := (&Job{Name: "a", Session: template}).SessionName("019ac0de-0000-7000-8000-000000000001", at)
		if err := checkSessionName(name); err != nil {
			r.Errorf("template %q made %q: %v", template, name, err)
		}
	})
}

func TestDurations(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"0": 0, "0s": 0, "90s": 90 * time.Second, "1h30m": 90 * time.Minute, "1h 30m": 90 * time.Minute, "1.5h": 90 * time.Minute,
		"1d": 24 * time.Hour, "2w": 14 * 24 * time.Hour, "250ms": 250 * time.Millisecond, " 5 m ": 5 * time.Minute,
	} {
		if got, err := parseDuration(text); err != nil || got != want {
			t.Errorf("parseDuration(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", " ", "5", "m", "-5m", "5M", "5y", "5m3", "1..5h", "1e3s", "999999999w", "5µs", "5m;"} {
		if got, err := parseDuration(text); err == nil {
			t.Errorf("parseDuration(%q) = %v", text, got)
		}
	}
}

func TestFormattedDurationsComeBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, 1e10).Draw(r, "ms")) * time.Millisecond
		if got, err := parseDuration(FormatDuration(d)); err != nil || got != d {
			r.Errorf("%v became %q and came back as %v, %v", d, FormatDuration(d), got, err)
		}
	})
	for d, want := range map[time.Duration]string{0: "0s", 600 * time.Second: "10m", 36 * time.Hour: "1d12h", 8 * 24 * time.Hour: "8d"} {
		if got := FormatDuration(d); got != want {
			t.Errorf("FormatDuration(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"prompt", "prompt_file", "timeout", "lane", "lane_wait", "on"}
	for name, want := range map[string]string{
		"promt": "prompt", "propmt": "prompt", "Prompt": "prompt", "prompt-file": "prompt_file", "time_out": "timeout", "lan": "lane", "no": "on",
		"memory": "", "x": "", "": "", "timeouts_for_all": "", strings.Repeat("prompt", 100): "",
	} {
		if got := nearest(name, known); got != want {
			t.Errorf("nearest(%q) = %q, want %q", name, got, want)
		}
	}
}
