package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestLastLines compares with the lines cut out of the whole text, also where
// they reach over more than one block.
func TestLastLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		for range rapid.IntRange(0, 6).Draw(t, "lines") {
			text.WriteString(strings.Repeat("x", rapid.SampledFrom([]int{0, 1, 7, 64<<10 - 1, 64 << 10, 100_000}).Draw(t, "length")))
			text.WriteByte('\n')
		}
		text.WriteString(strings.Repeat("y", rapid.IntRange(0, 2).Draw(t, "partial")))
		n := rapid.IntRange(0, 8).Draw(t, "n")
		lines := strings.SplitAfter(text.String(), "\n")
		if lines[len(lines)-1] == "" {
			lines = lines[:len(lines)-1]
		}
		want := strings.Join(lines[len(lines)-min(n, len(lines)):], "")

		if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		end, err := copyLog(&got, path, 0, n)
		if err != nil || end != int64(text.Len()) || got.String() != want {
			t.Fatalf("last %d of %d lines: %d bytes up to %d (%v), want %d up to %d", n, len(lines), got.Len(), end, err, len(want), text.Len())
		}
	})
}

// TestLogWriter cuts a log anywhere: its lines come out the same.
func TestLogWriter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOf(rapid.StringMatching(`[a-z"\\é]{0,9}`)).Draw(t, "lines")
		text := strings.Join(lines, "\n")
		var out bytes.Buffer
		w := &logWriter{out: &out, runID: "id"}
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			if _, err := w.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := w.flush(); err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(out.String()) {
			var o struct{ Line string }
			if err := json.Unmarshal([]byte(line), &o); err != nil {
				t.Fatal(err)
			}
			got = append(got, o.Line)
		}
		if strings.Join(got, "\n") != strings.TrimSuffix(text, "\n") {
			t.Fatalf("%q became %q", text, got)
		}
	})
}

func TestLogWriterBoundsItsMemory(t *testing.T) {
	var out bytes.Buffer
	w := &logWriter{out: &out, runID: "id"}
	for range 5 {
		if _, err := w.Write(bytes.Repeat([]byte("x"), longLine/2)); err != nil {
			t.Fatal(err)
		}
		if len(w.partial) >= longLine {
			t.Fatalf("%d bytes are kept", len(w.partial))
		}
	}
	if n := strings.Count(out.String(), "\n"); n != 2 {
		t.Fatalf("told in %d pieces, want 2", n)
	}
}

func TestParseTime(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Stockholm")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 3, 29, 14, 30, 0, 0, zone) // the day of the jump
	for s, want := range map[string]string{
		"now":                  "2026-03-29T14:30:00+02:00",
		"today":                "2026-03-29T00:00:00+01:00",
		"yesterday":            "2026-03-28T00:00:00+01:00",
		"09:15":                "2026-03-29T09:15:00+02:00",
		"9:15":                 "2026-03-29T09:15:00+02:00",
		"09:15:20":             "2026-03-29T09:15:20+02:00",
		"2026-03-01":           "2026-03-01T00:00:00+01:00",
		"2026-03-01 09:30":     "2026-03-01T09:30:00+01:00",
		"2026-03-01 09:30:15":  "2026-03-01T09:30:15+01:00",
		"2026-03-01T09:30:00Z": "2026-03-01T09:30:00Z",
		"90m":                  "2026-03-29T13:00:00+02:00",
		"5 min ago":            "2026-03-29T14:25:00+02:00",
		"1 hour ago":           "2026-03-29T13:30:00+02:00",
		"2 days":               "2026-03-27T13:30:00+01:00",
		"1w":                   "2026-03-22T13:30:00+01:00",
		"3 weeks ago":          "2026-03-08T13:30:00+01:00",
	} {
		got, err := parseTime("--since", s, now)
		if err != nil || got.Format(time.RFC3339) != want {
			t.Errorf("%q is %s (%v), want %s", s, got.Format(time.RFC3339), err, want)
		}
	}
	for _, s := range []string{"tomorrow", "-5m", "5", "5 moons", "25:00", "2026-13-01", "99999999d", "d", "ago"} {
		if got, err := parseTime("--since", s, now); err == nil {
			t.Errorf("%q is taken for %s", s, got)
		}
	}
}
