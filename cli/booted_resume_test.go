package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentd/internal/sandbox"
	"agentd/systemd"
)

// limitedOnce is a model that meets a usage limit, which resets after some
// seconds, until the file says that it was met; then it answers.
func limitedOnce(met string, seconds int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if _, err := os.Stat(met); err != nil {
			if err := os.WriteFile(met, nil, 0o600); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			w.Header().Set("Retry-After", fmt.Sprint(seconds))
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusTooManyRequests)
			fmt.Fprint(w, `{"error":{"message":"You have hit your usage limit.","type":"usage_limit_reached","code":"usage_limit_reached"}}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"id\":\"r\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Done after the limit.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}
}

// model serves limitedOnce and puts a workspace beside it whose jobs use it.
// The deadline of a generation is so short that it cannot wait for the reset.
func (p *person) model(job string, seconds int) {
	p.Helper()
	s := httptest.NewServer(limitedOnce(filepath.Join(p.work, "met"), seconds))
	p.Cleanup(s.Close)
	config := fmt.Sprintf(`[agent]
name = "bob"

[jobs.%s]
schedule = "@yearly"
prompt   = "Work."
model    = "rehearsal/outside"
env      = { AGENTD_REHEARSAL_URL = %q }
recovery = { deadline = "1s" }
resume   = { cooldown = "1s", max_wait = "1s" }
`, job, s.URL)
	if err := os.WriteFile(filepath.Join(p.work, "agentd.toml"), []byte(config), 0o600); err != nil {
		p.Fatal(err)
	}
}

type attempts []struct {
	Name     string `json:"name"`
	Attempts []struct {
		Code int `json:"code"`
	} `json:"attempts"`
	PendingResume *struct{} `json:"pending_resume"`
}

// oneRunWithTwo checks that history has one run: a limit, then success.
func (p *person) oneRunWithTwo() {
	p.Helper()
	var runs attempts
	p.decode(&runs, "history", "--json")
	if len(runs) != 1 || len(runs[0].Attempts) != 2 || runs[0].Attempts[0].Code != 75 || runs[0].Attempts[1].Code != 0 || runs[0].PendingResume != nil {
		p.Errorf("history: %+v, want one run with 75 and then 0", runs)
	}
}

// onceTimers checks how many timers let runs go on later.
func (p *person) onceTimers(want int) {
	p.Helper()
	out, err := exec.Command("systemctl", "--user", "list-timers", "--all", "--plain", "--no-legend", systemd.OncePrefix+"*").Output()
	if got := strings.Count(string(out), systemd.OncePrefix); err != nil || got != want {
		p.Errorf("%d timers of pending runs (%v), want %d:\n%s", got, err, want, out)
	}
}

// TestBootedResume lets a timer's run meet a limit that lasts longer than the
// run may wait: systemd goes on with it when the limit has reset.
func TestBootedResume(t *testing.T) {
	if !sandbox.Inside() {
		sandbox.Test(t, sandbox.Options{User: "bob"})
		return
	}
	p := newPerson(t)
	p.model("late", 5)
	p.mustSay("added", "install")
	p.service("late", "exit-code 75")
	p.mustSay("bob/late", "resume")

	// A disabled job's run waits for enable.
	p.onceTimers(1)
	p.mustSay("disabled", "disable", "late")
	p.onceTimers(0)
	p.mustSay("disabled", "status", "late")
	p.mustSay("bob/late", "resume")
	p.mustSay("enabled", "enable", "late")
	p.await("history", "--code", "ok", "--json")
	p.oneRunWithTwo()
	p.mustSay("No run is pending.", "resume")
	p.eventually("the service ends", func() bool {
		state, _ := exec.Command("systemctl", "--user", "is-active", "agentd-bob-late.service").Output()
		return strings.TrimSpace(string(state)) == "inactive" // a oneshot that runs is "activating"
	})
	p.service("late", "success 0") // the next firing is a new run
	var runs attempts
	if p.decode(&runs, "history", "--json"); len(runs) != 2 {
		t.Errorf("%d runs, want 2", len(runs))
	}
	p.mustSay("removed", "uninstall")
}

// TestBootedResumeAfterReboot stops the machine while a run is pending: after
// the next boot it goes on.
func TestBootedResumeAfterReboot(t *testing.T) {
	if !sandbox.Inside() {
		disk, err := os.MkdirTemp("/var/tmp", "agentd-disk-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(disk) })
		for _, boot := range []string{"first", "second"} {
			t.Run(boot, func(t *testing.T) {
				sandbox.Test(t, sandbox.Options{User: "bob", Disk: disk, Env: []string{"BOOT=" + boot}})
			})
			if t.Failed() || t.Skipped() {
				return
			}
		}
		return
	}
	t.Run(os.Getenv("BOOT"), func(t *testing.T) {
		p := newPerson(t)
		if strings.HasSuffix(t.Name(), "/first") {
			p.model("late", 8)
			p.mustSay("added", "install")
			p.service("late", "exit-code 75")
			p.mustSay("bob/late", "resume")
			return
		}
		// The model has a new address; nobody runs anything by hand.
		p.model("late", 8)
		p.eventually("the pending run goes on", func() bool {
			out, err := p.output("history", "--code", "ok", "--json")
			return err == nil && strings.TrimSpace(out) != "[]"
		})
		p.oneRunWithTwo()
	})
}
