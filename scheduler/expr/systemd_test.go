package expr

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// zones of the comparison: no change, half-hour changes, changes at midnight,
// both hemispheres, and a zone that changes for Ramadan.
var zones = []string{
	"UTC", "Europe/Stockholm", "Europe/London", "America/New_York", "America/St_Johns",
	"America/Santiago", "Africa/Cairo", "Africa/Casablanca", "Asia/Kolkata", "Asia/Beirut",
	"Australia/Lord_Howe", "Pacific/Auckland",
}

// needSystemd skips the test where systemd-analyze cannot take a base time.
func needSystemd(t *testing.T) {
	t.Helper()
	out, err := analyze("2026-01-01 00:00:00 UTC", 1, "daily UTC")
	if err != nil {
		t.Skipf("systemd-analyze calendar --base-time does not work here: %v: %s", err, out)
	}
}

// analyze asks systemd for the next times of several expressions.
func analyze(base string, iterations int, lines ...string) (string, error) {
	args := append([]string{"calendar", "--iterations=" + strconv.Itoa(iterations), "--base-time=" + base, "--"}, lines...)
	cmd := exec.Command("systemd-analyze", args...)
	cmd.Env = append(os.Environ(), "TZ=UTC", "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// systemdTimes returns the next times of each line after base.
func systemdTimes(t *testing.T, base time.Time, iterations int, lines []string) [][]time.Time {
	t.Helper()
	if len(lines) == 0 {
		return nil
	}
	out, err := analyze(base.UTC().Format("2006-01-02 15:04:05")+" UTC", iterations, lines...)
	if err != nil {
		t.Fatalf("systemd-analyze: %v\n%s", err, out)
	}
	var all [][]time.Time
	for line := range strings.SplitSeq(out, "\n") {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch {
		case key == "Normalized form":
			all = append(all, nil)
		case key == "Next elapse" && value != "never", strings.HasPrefix(key, "Iter"):
			at, err := time.Parse("Mon 2006-01-02 15:04:05 UTC", value)
			if err != nil {
				t.Fatalf("cannot read %q: %v", line, err)
			}
			all[len(all)-1] = append(all[len(all)-1], at)
		}
	}
	if len(all) != len(lines) {
		t.Fatalf("systemd-analyze answered for %d of %d expressions:\n%s", len(all), len(lines), out)
	}
	return all
}

// specs makes random cron schedules.
type specs struct{ *rand.Rand }

func (r specs) pick(list ...string) string { return list[r.IntN(len(list))] }

func (r specs) field(lo, hi int, names []string) string {
	value := func() string {
		n := lo + r.IntN(hi-lo+1)
		if len(names) > 0 && r.IntN(3) == 0 {
			return names[n%len(names)][:3]
		}
		return strconv.Itoa(n)
	}
	element := func() string {
		switch r.IntN(8) {
		case 0:
			return "*/" + strconv.Itoa(1+r.IntN(hi-lo+2))
		case 1:
			return value() + "-" + value()
		case 2:
			return value() + "-" + value() + "/" + strconv.Itoa(1+r.IntN(5))
		case 3:
			return value() + "/" + strconv.Itoa(1+r.IntN(hi-lo+1))
		default:
			return value()
		}
	}
	parts := []string{element()}
	for r.IntN(3) == 0 {
		parts = append(parts, element())
	}
	return strings.Join(parts, ",")
}

func (r specs) spec() string {
	orStar := func(one int, field string) string {
		if r.IntN(one) == 0 {
			return field
		}
		return "*"
	}
	hour := orStar(2, r.field(0, 23, nil))
	if r.IntN(3) == 0 { // where the clocks change
		hour = r.pick("0", "1", "2", "3", "0-3", "1,2", "2-4", "23", "*/2", "22-2")
	}
	day := orStar(4, r.field(1, 31, nil))
	weekday := orStar(3, r.field(0, 7, weekdayNames))
	if r.IntN(12) == 0 {
		day = r.pick("L", "LW", "L-3", "15W", "1W", "27W", "1,L", "10W,20W")
	}
	if r.IntN(12) == 0 {
		weekday = r.pick("5L", "FRIL", "MON#1", "7#2", "TUE#5", "SUNL,1", "3#3,4#4")
	}
	line := strings.Join([]string{r.field(0, 59, nil), hour, day, orStar(4, r.field(1, 12, monthNames)), weekday}, " ")
	if r.IntN(8) == 0 {
		line = r.field(0, 59, nil) + " " + line
	}
	return strings.ReplaceAll(line, "  ", " 1 ")
}

// base returns a time, every other time shortly before a change of the clocks.
func (r specs) base(zone string) time.Time {
	at := time.Unix(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Unix()+r.Int64N(3*365*86400), 0)
	if r.IntN(2) == 0 {
		return at.UTC()
	}
	loc, err := time.LoadLocation(zone)
	if err != nil {
		return at.UTC()
	}
	if _, change := at.In(loc).ZoneBounds(); !change.IsZero() {
		at = change.Add(-time.Duration(r.Int64N(26*3600)) * time.Second)
	}
	return at.UTC()
}

// TestSystemdAgrees compares random schedules with systemd: where our times
// differ from a timer's, Warnings has said so. EXPR_SPECS sets how many.
func TestSystemdAgrees(t *testing.T) {
	needSystemd(t)
	total := 300
	if n, err := strconv.Atoi(os.Getenv("EXPR_SPECS")); err == nil {
		total = n
	}
	const batch, iterations = 25, 8
	r := specs{rand.New(rand.NewPCG(1, uint64(total)))}
	compared := 0
	for i := 0; compared < total; i++ {
		zone := zones[i%len(zones)]
		base := r.base(zone)
		var schedules []*Schedule
		var lines []string
		for len(schedules) < batch {
			s, err := Parse(r.spec(), zone)
			if err != nil {
				if strings.Contains(err.Error(), "never fires") {
					continue
				}
				t.Fatal(err)
			}
			schedules = append(schedules, s)
			lines = append(lines, s.OnCalendar()...)
		}
		answers := systemdTimes(t, base, iterations, lines)
		for _, s := range schedules {
			n := len(s.OnCalendar())
			compareWithSystemd(t, s, base, merge(answers[:n], iterations))
			answers = answers[n:]
		}
		compared += len(schedules)
	}
	t.Logf("%d schedules compared", compared)
}

// merge joins the times of several lines, up to where all of them are known.
func merge(lines [][]time.Time, iterations int) []time.Time {
	var all []time.Time
	var until time.Time
	for _, line := range lines {
		all = append(all, line...)
		if len(line) == iterations && (until.IsZero() || line[iterations-1].Before(until)) {
			until = line[iterations-1]
		}
	}
	slices.SortFunc(all, time.Time.Compare)
	all = slices.CompactFunc(all, time.Time.Equal)
	return slices.DeleteFunc(all, func(at time.Time) bool { return !until.IsZero() && at.After(until) })
}

func compareWithSystemd(t *testing.T, s *Schedule, base time.Time, theirs []time.Time) {
	t.Helper()
	if len(theirs) == 0 {
		t.Errorf("%q: systemd knows no time after %s; Next is %s", s, base, s.Next(base))
		return
	}
	last := theirs[len(theirs)-1]
	var ours []time.Time
	for at := s.Next(base); !at.IsZero() && !at.After(last); at = s.Next(at) {
		ours = append(ours, at)
	}
	for _, diff := range difference(ours, theirs) {
		if !warned(s, diff) {
			t.Errorf("%q in %s after %s: %s fires in one and not the other\nours   %v\ntheirs %v\nlines %q",
				s, s.Zone(), base, diff.In(s.Location()), ours, theirs, s.OnCalendar())
			return
		}
	}
}

// difference returns the times that are in one of the lists only.
func difference(a, b []time.Time) []time.Time {
	in := func(list []time.Time, at time.Time) bool {
		return slices.ContainsFunc(list, at.Equal)
	}
	var diff []time.Time
	for _, at := range a {
		if !in(b, at) {
			diff = append(diff, at)
		}
	}
	for _, at := range b {
		if !in(a, at) {
			diff = append(diff, at)
		}
	}
	return diff
}

// warned reports whether Warnings speaks of a clock change close to an instant.
func warned(s *Schedule, at time.Time) bool {
	const near = 2 * time.Hour
	start, end := at.In(s.Location()).ZoneBounds()
	for _, change := range []time.Time{start, end} {
		if change.IsZero() || at.Sub(change).Abs() > near {
			continue
		}
		day := change.In(s.Location()).Format("Mon 2 Jan 2006: ")
		if slices.ContainsFunc(s.Warnings(change.Add(-time.Second)), func(line string) bool { return strings.HasPrefix(line, day) }) {
			return true
		}
	}
	return false
}
