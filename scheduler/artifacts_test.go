package scheduler

import (
	"strings"
	"testing"
	"time"

	"agentd/systemd"
	"agentd/workspace"
)

func TestLongest(t *testing.T) {
	job := &workspace.Job{
		Timeout: 30 * time.Minute, Grace: 30 * time.Second, LaneWait: time.Minute,
		Resume: workspace.Resume{Attempts: 3, Cooldown: time.Minute, MaxWait: 10 * time.Minute},
	}
	// Three attempts with the lane and the grace, two pauses, a former owner's grace, closing.
	want := 3*(31*time.Minute+30*time.Second) + 2*10*time.Minute + time.Minute
	if got := Longest(job); got != want {
		t.Errorf("Longest = %v, want %v", got, want)
	}
	job.Timeout = 0
	if got := Longest(job); got != 0 {
		t.Errorf("without a timeout: %v", got)
	}
}

func TestTimersOfSchedules(t *testing.T) {
	ws := load(t, `[agent]
name = "bob"
[defaults]
prompt = "x"
backend = "command"
command = ["/bin/cat"]
[jobs.both-days]
schedule = "0 9 1 * 1"
[jobs.two]
schedule = ["0 9 * * *", "30 18 * * *"]
[jobs.every]
schedule = "@every 90m"
catch_up = false
jitter = "2m"
`)
	target, _ := newTarget(t)
	for name, want := range map[string][]string{
		"both-days": {"Persistent=yes", "AccuracySec=1s"},
		"two":       {"*-*-* 9:00:00", "*-*-* 18:30:00"},
		"every":     {"OnUnitActiveSec=", "RandomizedDelaySec=120s", "FixedRandomDelay=yes"},
	} {
		job, err := ws.Job(name)
		if err != nil {
			t.Fatal(err)
		}
		files, err := target.Artifacts(ws, job)
		if err != nil {
			t.Fatal(err)
		}
		text := string(files[2].Text)
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s: no %q in\n%s", name, w, text)
			}
		}
		f, err := systemd.Parse(files[2].Text)
		if err != nil {
			t.Fatal(err)
		}
		if name != "every" && len(f.Section("Timer").All("OnCalendar")) != 2 {
			t.Errorf("%s: not two OnCalendar=\n%s", name, text)
		}
		if name == "every" && strings.Contains(text, "Persistent=") {
			t.Errorf("Persistent= has no effect on @every:\n%s", text)
		}
		if strings.Contains(text, "Requires=") {
			t.Errorf("starting the timer would start a run:\n%s", text)
		}
	}
}
