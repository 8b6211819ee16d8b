package scheduler

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentd/internal/sandbox"
	"agentd/systemd"
	"agentd/workspace"
)

// fakeAgentd notes its arguments and ends as the job's name says.
const fakeAgentd = `#!/bin/bash
job=${*: -1}
: "${HOME:?}"
echo "$*" >>"$(dirname "$0")/calls"
echo "output of $job"
case $job in
  limited) exit 75 ;;
  busy) exit 80 ;;
  slow) trap 'echo stopping in good order; exit 143' TERM; echo ready >"$(dirname "$0")/slow"; sleep 300 & wait ;;
esac
`

const bootedJobs = `[agent]
name = "my-bot"
[defaults]
backend = "command"
command = ["/bin/cat"]
prompt = "x"
[jobs.tick]
schedule = "* * * * * *"
[jobs.yearly]
schedule = "0 0 1 1 *"
[jobs.limited]
schedule = "@yearly"
description = "50% \"off\" $HOME \\"
[jobs.busy]
schedule = "@yearly"
[jobs.slow]
`

// booted is the life of an install under a running systemd.
type booted struct {
	*testing.T
	conn      *systemd.Conn
	target    Target
	bin, work string
}

func TestBootedUser(t *testing.T) {
	if !sandbox.Inside() {
		sandbox.Test(t, sandbox.Options{User: "bob"})
		return
	}
	bootedLife(t, systemd.User)
}

func TestBootedSystem(t *testing.T) {
	if !sandbox.Inside() {
		sandbox.Test(t, sandbox.Options{})
		return
	}
	bootedLife(t, systemd.System)
}

func bootedLife(t *testing.T, scope systemd.Scope) {
	b := newBooted(t, scope)
	before := b.listing()
	ws := loadIn(t, b.work, bootedJobs)

	// As if it had run two days ago; nothing was missed since.
	stamp := b.target.stamp(systemd.JobName{Agent: "my-bot", Job: "yearly"})
	if err := os.MkdirAll(filepath.Dir(stamp), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := putStamp(stamp, time.Now().Add(-48*time.Hour)); err != nil {
		t.Fatal(err)
	}
	r := apply(t, plan(t, ws, b.target, Options{}), b.conn)
	if len(r.Started) != 4 || len(r.Enabled) != 5 || !r.Reloaded {
		t.Errorf("report %+v", r)
	}
	if r := apply(t, plan(t, ws, b.target, Options{}), b.conn); len(r.Written)+len(r.Started)+len(r.Enabled) > 0 || r.Reloaded {
		t.Errorf("the second apply did %+v", r)
	}

	b.timerFires()
	b.codes()
	b.stops()
	b.editRunsNothing(ws)
	b.arms()

	removal, err := NewRemoval("my-bot", b.target)
	if err != nil {
		t.Fatal(err)
	}
	apply(t, removal, b.conn)
	if d := cmp.Diff(before, b.listing()); d != "" {
		t.Errorf("uninstall left behind or took away:\n%s", d)
	}
}

func newBooted(t *testing.T, scope systemd.Scope) *booted {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, err := systemd.Connect(ctx, scope, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	home := os.Getenv("HOME")
	// What a lived-in home has.
	for _, dir := range []string{".config", ".local/share", "bin", `agents/it's "50%" $HOME\ ü`} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	b := &booted{T: t, conn: conn, bin: filepath.Join(home, "bin"), work: filepath.Join(home, `agents/it's "50%" $HOME\ ü`)}
	if err := os.WriteFile(filepath.Join(b.bin, "agentd"), []byte(fakeAgentd), 0o700); err != nil {
		t.Fatal(err)
	}
	folders, err := workspace.FoldersFromEnv(os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	b.target, err = NewTarget(scope, folders, filepath.Join(b.bin, "agentd"), os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	if b.target.Version, err = conn.Version(ctx); err != nil || b.target.Version < 200 {
		t.Fatalf("version %d, %v", b.target.Version, err)
	}
	return b
}

// listing returns all that an install could leave: files, and what systemd
// knows by name.
func (b *booted) listing() string {
	b.Helper()
	var list strings.Builder
	for _, argv := range [][]string{
		{"systemctl", "--" + string(b.target.Scope), "list-units", "--all", "--plain", "--no-legend", "agentd-*"},
		{"systemctl", "--" + string(b.target.Scope), "list-unit-files", "--no-legend", "agentd-*"},
		{"find", os.Getenv("HOME"), "/etc/systemd", "-not", "-path", "*/.local/state*", "-not", "-path", "*/bin/*", "-not", "-name", "agentd.toml", "-not", "-path", "*/systemd/timers*", "-not", "-path", "*/.local/share/systemd"},
		{"find", b.target.StampDir, "-name", "*agentd*"},
	} {
		out, _ := exec.Command(argv[0], argv[1:]...).Output() // find minds a folder that is not there
		list.Write(out)
	}
	return list.String()
}

func (b *booted) status(job string) systemd.JobStatus {
	b.Helper()
	list, err := b.conn.Status(b.Context(), systemd.JobName{Agent: "my-bot", Job: job})
	if err != nil {
		b.Fatal(err)
	}
	return list[0]
}

// await asks for a job's status until it fits.
func (b *booted) await(job, what string, fits func(systemd.JobStatus) bool) systemd.JobStatus {
	b.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		s := b.status(job)
		if fits(s) {
			return s
		}
		if time.Now().After(deadline) {
			b.Fatalf("%s is not %s: %+v", job, what, s)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (b *booted) calls(job string) (n int, last string) {
	data, err := os.ReadFile(filepath.Join(b.bin, "calls"))
	if err != nil && !os.IsNotExist(err) {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if strings.HasSuffix(line, " "+job+"\n") {
			n, last = n+1, line
		}
	}
	return n, last
}

func (b *booted) timerFires() {
	b.Helper()
	s := b.await("tick", "done with a first run", func(s systemd.JobStatus) bool { return s.Result != "" && !s.Last.IsZero() })
	if !s.Installed || !s.Enabled || !s.Waiting || s.Result != "success" || s.Status != 0 {
		b.Errorf("status %+v", s)
	}
	if n, call := b.calls("tick"); n == 0 || !strings.Contains(call, "--workspace "+b.work+" ") || !strings.Contains(call, "--trigger systemd-"+string(b.target.Scope)+" tick") {
		b.Errorf("run.sh called agentd %d times, last %q", n, call)
	}
	logs, err := filepath.Glob(filepath.Join(b.target.State, "runs/*/output.log"))
	if err != nil || len(logs) == 0 {
		b.Fatalf("no logs: %v", err)
	}
	if text, err := os.ReadFile(logs[0]); err != nil || string(text) != "output of tick\n" {
		b.Errorf("log %q, %v", text, err)
	}
	yearly := b.status("yearly")
	if next := yearly.Next; next.Month() != time.January || next.Day() != 1 || next.Before(time.Now()) {
		b.Errorf("yearly is next at %v", next)
	}
	if n, _ := b.calls("yearly"); n > 0 {
		b.Error("installing ran a job that is not due")
	}
}

// arms checks the unit that sets the timers of pending runs after a boot.
func (b *booted) arms() {
	b.Helper()
	unit := (systemd.JobName{Agent: "my-bot"}).Service()
	if err := b.conn.Start(b.Context(), unit); err != nil {
		b.Error(err)
	}
	calls, err := os.ReadFile(filepath.Join(b.bin, "calls"))
	if err != nil || strings.Count(string(calls), "resume --arm --agent my-bot\n") != 1 {
		b.Errorf("%v, calls:\n%s", err, calls)
	}
	if out, err := exec.Command("systemctl", "--"+string(b.target.Scope), "is-enabled", unit).Output(); err != nil {
		b.Errorf("%s is not enabled: %s", unit, out)
	}
}

// codes checks what systemd makes of agentd's exit codes.
func (b *booted) codes() {
	b.Helper()
	for _, c := range []struct {
		job, active, result string
		status              int
	}{
		{"limited", "failed", "exit-code", 75},
		{"busy", "inactive", "success", 80},
	} {
		if err := b.conn.Trigger(b.Context(), (systemd.JobName{Agent: "my-bot", Job: c.job}).Service()); err != nil {
			b.Fatal(err)
		}
		s := b.await(c.job, "done", func(s systemd.JobStatus) bool { return s.Result != "" && !s.Running })
		active, _ := exec.Command("systemctl", "--"+string(b.target.Scope), "is-active", s.Name.Service()).Output()
		if _, call := b.calls(c.job); !strings.Contains(call, "--trigger systemd-"+string(b.target.Scope)+" "+c.job) {
			b.Errorf("started by hand: %q", call)
		}
		if s.Result != c.result || s.Status != c.status || strings.TrimSpace(string(active)) != c.active {
			b.Errorf("%s: %+v, unit is %s; want %s, %d, %s", c.job, s, active, c.result, c.status, c.active)
		}
	}
}

// stops checks that a stop reaches agentd through run.sh and leaves nothing.
func (b *booted) stops() {
	b.Helper()
	unit := (systemd.JobName{Agent: "my-bot", Job: "slow"}).Service()
	if err := b.conn.Trigger(b.Context(), unit); err != nil {
		b.Fatal(err)
	}
	b.await("slow", "ready", func(s systemd.JobStatus) bool {
		_, err := os.Stat(filepath.Join(b.bin, "slow"))
		return err == nil && s.Running && s.PID > 0
	})
	if err := b.conn.Stop(b.Context(), unit); err != nil {
		b.Fatal(err)
	}
	s := b.await("slow", "stopped", func(s systemd.JobStatus) bool { return !s.Running })
	// No failure, so systemd may have forgotten it.
	if s.Result != "" && s.Result != "success" {
		b.Errorf("after a stop: %+v", s)
	}
	logs, _ := exec.Command("grep", "-rl", "stopping in good order", filepath.Join(b.target.State, "runs")).Output()
	if len(logs) == 0 {
		b.Error("the log does not have the end of the run")
	}
}

// editRunsNothing gives a job a schedule that has just passed: that must not
// run it, although its last run is two days ago.
func (b *booted) editRunsNothing(ws *workspace.Workspace) {
	b.Helper()
	hour := time.Now().UTC().Add(-time.Hour)
	schedule := fmt.Sprintf("%s %s * * *", strconv.Itoa(hour.Minute()), strconv.Itoa(hour.Hour()))
	edited := strings.Replace(bootedJobs, "0 0 1 1 *", schedule, 1)
	ws = loadIn(b.T, ws.Dir, strings.Replace(edited, "[jobs.yearly]", "[jobs.yearly]\ntimezone = \"UTC\"", 1))
	r := apply(b.T, plan(b.T, ws, b.target, Options{}), b.conn)
	if len(r.Written) != 1 || len(r.Started) != 1 {
		b.Errorf("report %+v", r)
	}
	ticks, _ := b.calls("tick")
	b.await("tick", "fired twice since", func(systemd.JobStatus) bool {
		n, _ := b.calls("tick")
		return n > max(ticks+2, 7)
	})
	s := b.await("tick", "between two runs", func(s systemd.JobStatus) bool { return s.Result != "" })
	if s.Result != "success" {
		b.Errorf("a job that runs every second: %+v", s)
	}
	if n, call := b.calls("yearly"); n > 0 {
		b.Errorf("the edit ran the job at once: %s", call)
	}
	if s := b.status("yearly"); !s.Waiting || s.Next.Before(time.Now()) || time.Until(s.Next) > 24*time.Hour {
		b.Errorf("after the edit: %+v", s)
	}
}
