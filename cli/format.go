package cli

import (
	"fmt"
	"io"
	"strconv"
	"time"
)

// tabf writes a row for a tabwriter, which reports its errors at Flush.
func tabf(w io.Writer, format string, args ...any) {
	fmt.Fprintf(w, format, args...)
}

// distance says how far t is from now: "in 12 min", "8 h ago".
func distance(t, now time.Time) string {
	d := t.Sub(now)
	if d < 0 {
		return span(-d) + " ago"
	}
	return "in " + span(d)
}

// span is a duration in the one unit that tells most.
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Round(time.Second).Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Round(time.Minute).Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Round(time.Hour).Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// clock is t for a table: the time alone today, else with its date.
func clock(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	switch {
	case t.Format(time.DateOnly) == now.Format(time.DateOnly):
		return t.Format("15:04")
	case t.Year() == now.Year():
		return t.Format("Mon 2 Jan 15:04")
	}
	return t.Format("Mon 2 Jan 2006 15:04")
}

// short is a run id as people see it: the end, since ids of one hour start alike.
func short(runID string) string {
	if len(runID) <= 12 {
		return runID
	}
	return runID[len(runID)-12:]
}

func itoa(n int) string { return strconv.Itoa(n) }
