package scheduler

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCalendar(t *testing.T) {
	ws := load(t, `
[agent]
name = "bob"
[defaults]
model = "rehearsal/hello"
prompt = "x"
timezone = "UTC"
[lanes.wide]
slots = 2
[jobs.a]
schedule = ["0 9 * * *", "0 10 * * *"]
[jobs.b]
schedule = "0 9 * * *"
[jobs.c]
schedule = "0 9 * * *"
lane_wait = "10m"
[jobs.late]
schedule = "5 9 * * *"
lane_wait = "4m59s"
[jobs.long]
schedule = "0 */6 * * *"
lane = "long"
[jobs.w1]
schedule = "0 3 * * *"
lane = "wide"
jitter = "2m"
[jobs.w2]
schedule = "0 3 * * *"
lane = "wide"
[jobs.w3]
schedule = "0 3 * * *"
lane = "wide"
lane_wait = "1m"
[jobs.w4]
schedule = "4 3 * * *"
lane = "wide"
[jobs.off]
schedule = "0 9 * * *"
enabled = false
[jobs.hand]
[jobs.boot]
schedule = "@reboot"
[jobs.once]
schedule = "at 2026-12-03 00:00"
`)
	lengths := map[string]time.Duration{
		"bob/a": 10 * time.Minute, "bob/c": 5 * time.Minute, "bob/long": 7 * time.Hour,
	}
	from := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	list, cut := Calendar(ws.Jobs, lengths, from, from.AddDate(0, 0, 1))
	var got []string
	for _, o := range list {
		got = append(got, strings.TrimSpace(fmt.Sprintln(o.At.Format("15:04"), o.Job.Name, o.Fate, strings.Join(o.Holders, " "))))
	}
	want := []string{
		"03:00 w1 runs",
		"03:00 w2 runs",
		"03:00 w3 waits bob/w2 bob/w1", // w2 takes a minute, w1 up to three
		"03:04 w4 runs",
		"06:00 long runs",
		"09:00 a runs",
		"09:00 b skipped bob/a",
		"09:00 c waits bob/a",
		"09:05 late skipped bob/c", // c goes on from 9:10 to 9:15
		"10:00 a runs",
		"12:00 long merged",
		"18:00 long runs",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if len(cut) != 0 {
		t.Errorf("cut %v", cut)
	}
}

// A job that fires each second does not fill the memory.
func TestCalendarIsCut(t *testing.T) {
	ws := load(t, `
[agent]
name = "bob"
[jobs.tick]
model = "rehearsal/hello"
prompt = "x"
schedule = "* * * * * *"
`)
	from := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	list, cut := Calendar(ws.Jobs, nil, from, from.AddDate(1, 0, 0))
	if len(list) != MaxOccasions || len(cut) != 1 || cut[0] != ws.Jobs[0] {
		t.Errorf("%d occasions, cut %v", len(list), cut)
	}
	for _, o := range list {
		if o.Fate != Runs || o.Takes != time.Second {
			t.Fatalf("%+v: a job of unknown length is not known to meet itself", o)
		}
	}
}
