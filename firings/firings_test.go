package firings

import (
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentd/exitcodes"
	"agentd/process"
	"agentd/scheduler/expr"
)

func schedules(t *testing.T, texts ...string) []*expr.Schedule {
	t.Helper()
	var list []*expr.Schedule
	for _, text := range texts {
		s, err := expr.Parse(text, "UTC")
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, s)
	}
	return list
}

func at(t *testing.T, clock string) time.Time {
	t.Helper()
	v, err := time.Parse(time.DateTime, clock)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestDue(t *testing.T) {
	const here = "this boot"
	for _, c := range []struct {
		name, schedule    string
		taken, ended, now string
		boot              string
		want              bool
	}{
		{"the time has come", "*/30 * * * *", "2026-03-01 09:00:00", "", "2026-03-01 09:30:00", here, true},
		{"it has not", "*/30 * * * *", "2026-03-01 09:00:00", "", "2026-03-01 09:29:59", here, false},
		{"a second door at the same firing", "*/30 * * * *", "2026-03-01 09:30:01", "", "2026-03-01 09:30:02", here, false},
		{"the same with jitter", "*/30 * * * *", "2026-03-01 09:30:01", "", "2026-03-01 09:34:00", here, false},
		{"late: firings are coalesced", "*/30 * * * *", "2026-03-01 09:00:00", "", "2026-03-01 17:05:00", here, true},
		{"a run that took longer than the period", "*/30 * * * *", "2026-03-01 09:00:00", "2026-03-01 09:35:00", "2026-03-01 09:35:00", here, false},
		{"the next one after it", "*/30 * * * *", "2026-03-01 09:00:00", "2026-03-01 09:35:00", "2026-03-01 10:00:00", here, true},
		{"fired by an edit", "0 10 * * *", "2026-03-01 12:00:00", "", "2026-03-01 12:00:01", here, false},
		{"the clock was set back an hour", "*/30 * * * *", "2026-03-01 09:00:00", "", "2026-03-01 08:30:00", here, false},
		{"the clock had been years ahead", "*/30 * * * *", "2031-03-01 09:00:00", "", "2026-03-01 08:30:00", here, true},
		{"it had ended years ahead", "*/30 * * * *", "2026-03-01 08:00:00", "2031-03-01 09:00:00", "2026-03-01 08:30:00", here, true},
		{"a distance", "@every 90m", "2026-03-01 09:00:00", "2026-03-01 09:50:00", "2026-03-01 10:30:00", here, true},
		{"a distance, counted from the unit's start", "@every 10s", "2026-03-01 09:00:00", "", "2026-03-01 09:00:09", here, true},
		{"a distance, too early", "@every 90m", "2026-03-01 09:00:00", "", "2026-03-01 09:40:00", here, false},
		{"a distance, and the clock was set back", "@every 30m", "2026-03-01 09:00:00", "", "2026-03-01 08:30:00", here, true},
		{"a distance, asked a little before it was taken", "@every 30m", "2026-03-01 09:00:00", "", "2026-03-01 08:59:59", here, false},
		{"this boot's run was", "@reboot", "2026-03-01 09:00:00", "", "2026-03-01 10:30:00", here, false},
		{"a new boot", "@reboot", "2026-03-01 09:00:00", "", "2026-03-01 10:30:00", "another", true},
		{"a single time", "at 2026-03-01 10:00", "2026-02-01 09:00:00", "", "2026-03-01 10:00:00", here, true},
		{"a single time, taken", "at 2026-03-01 10:00", "2026-03-01 10:00:01", "", "2026-03-01 10:00:02", here, false},
		{"a clock change repeats the hour", "CRON_TZ=Europe/Berlin 30 2 * * *", "2026-10-25 00:30:00", "", "2026-10-25 01:30:00", here, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			mark := Mark{Taken: at(t, c.taken), Boot: c.boot}
			if c.ended != "" {
				mark.Ended = at(t, c.ended)
			}
			if got := mark.Due(schedules(t, c.schedule), at(t, c.now), here); got != c.want {
				t.Errorf("due: %v, want %v", got, c.want)
			}
		})
	}
}

func TestOneOfManyClaims(t *testing.T) {
	book := Book{Dir: t.TempDir()}
	list := schedules(t, "*/30 * * * *")
	now := at(t, "2026-03-01 09:00:00")
	if err := book.Begin("bob", "job", now.Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	for firing := range 3 {
		var got atomic.Int32
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				ok, err := book.Claim("bob", "job", list, now.Add(time.Duration(firing)*time.Hour))
				if err != nil {
					t.Error(err)
				}
				if ok {
					got.Add(1)
				}
			})
		}
		all.Wait()
		if got.Load() != 1 {
			t.Errorf("firing %d was claimed %d times", firing, got.Load())
		}
	}
}

func TestBookKeepsMarks(t *testing.T) {
	book := Book{Dir: t.TempDir()}
	list := schedules(t, "0 10 * * *")
	nine, noon := at(t, "2026-03-01 09:00:00"), at(t, "2026-03-01 12:00:00")
	if _, ok, err := book.Last("bob", "job"); ok || err != nil {
		t.Fatalf("a mark of nothing: %v, %v", ok, err)
	}
	for _, now := range []time.Time{nine, noon} { // the second changes nothing
		if err := book.Begin("bob", "job", now); err != nil {
			t.Fatal(err)
		}
	}
	if mark, ok, err := book.Last("bob", "job"); !ok || err != nil || !mark.Taken.Equal(nine) {
		t.Fatalf("mark %v, %v, %v", mark, ok, err)
	}
	if ok, err := book.Claim("bob", "job", list, noon); !ok || err != nil {
		t.Fatalf("ten o'clock: %v, %v", ok, err)
	}
	mark, _, _ := book.Last("bob", "job")
	if mark.Boot != process.Self().BootID {
		t.Errorf("boot %q", mark.Boot)
	}
	if err := book.Ended("bob", "job", noon.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if mark, _, _ = book.Last("bob", "job"); !mark.Taken.Equal(noon) || !mark.Ended.Equal(noon.Add(time.Minute)) {
		t.Errorf("mark %v", mark)
	}
	if err := book.Skip("bob", "job", noon.Add(24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if ok, err := book.Claim("bob", "job", list, noon.Add(25*time.Hour)); ok || err != nil {
		t.Errorf("skipped, and claimed: %v, %v", ok, err)
	}
}

// TestDamagedMarkCostsNoRun wants a firing to be taken for due in doubt.
func TestDamagedMarkCostsNoRun(t *testing.T) {
	book := Book{Dir: t.TempDir()}
	path := book.path("bob", "job")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(`{"taken":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if ok, err := book.Claim("bob", "job", schedules(t, "0 10 * * *"), time.Now()); !ok || err != nil {
		t.Errorf("claimed: %v, %v", ok, err)
	}
	if _, ok, err := book.Last("bob", "job"); !ok || err != nil {
		t.Errorf("the mark after it: %v, %v", ok, err)
	}
}

func TestUnwritableBookSaysSo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ok, err := Book{Dir: dir}.Claim("bob", "job", schedules(t, "0 10 * * *"), time.Now())
	if ok || exitcodes.From(err) != exitcodes.CannotCreate {
		t.Errorf("claimed: %v, %v", ok, err)
	}
}
