package scheduler

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"agentd/history"
	"agentd/internal/sandbox"
	"agentd/systemd"
	"agentd/workspace"
)

// many is how many jobs are installed at once; others is how many units the
// tools before agentd, which call systemctl for each, are measured with, half-way
// to many. Their time for one is what is compared.
const (
	many   = 1000
	others = 50
)

// counting counts the calls that a plan makes.
type counting struct {
	*systemd.Conn
	reloads, states int
}

func (c *counting) Reload(ctx context.Context) error {
	c.reloads++
	return c.Conn.Reload(ctx)
}

func (c *counting) States(ctx context.Context, jobs ...systemd.JobName) ([]systemd.JobStatus, error) {
	c.states++
	return c.Conn.States(ctx, jobs...)
}

// BenchmarkBooted1000 installs 1,000 jobs and asks for their states under a
// booted systemd. Ratios are the times of one systemctl a unit over agentd's.
func BenchmarkBooted1000(b *testing.B) {
	if !sandbox.Inside() {
		sandbox.Bench(b, sandbox.Options{User: "bob"})
		return
	}
	s := newStand(b)
	var toml strings.Builder
	toml.WriteString("[agent]\nname = \"my-bot\"\n[defaults]\nbackend = \"command\"\ncommand = [\"/bin/true\"]\nprompt = \"x\"\nschedule = \"0 0 1 1 *\"\n")
	for i := range many {
		fmt.Fprintf(&toml, "[jobs.job-%d]\n", i)
	}
	b.ResetTimer()
	for range b.N {
		s.install(loadIn(b, b.TempDir(), toml.String()))
	}
	b.StopTimer()
	s.status()
	s.peers()
	s.report()
}

// stand is where agentd and systemctl are measured side by side.
type stand struct {
	*testing.B
	conn   *counting
	target Target
	ws     *workspace.Workspace

	installed, asked     time.Duration // agentd, all of them
	memory               uint64        // allocated by the install, in bytes
	enabledEach, askEach time.Duration // systemctl, one
}

func newStand(b *testing.B) *stand {
	b.Helper()
	conn, err := systemd.Connect(b.Context(), systemd.User, os.Getenv)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(conn.Close)
	folders, err := workspace.FoldersFromEnv(os.Getenv)
	if err != nil {
		b.Fatal(err)
	}
	target, err := NewTarget(systemd.User, folders, "/usr/bin/agentd", os.Getenv)
	if err != nil {
		b.Fatal(err)
	}
	target.Version = 252
	return &stand{B: b, conn: &counting{Conn: conn}, target: target}
}

func (s *stand) install(ws *workspace.Workspace) {
	s.Helper()
	s.ws = ws
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	r := apply(s.B, plan(s.B, ws, s.target, Options{}), s.conn)
	s.installed = time.Since(start)
	runtime.ReadMemStats(&after)
	s.memory = after.TotalAlloc - before.TotalAlloc
	if s.conn.reloads != 1 || len(r.Started) != many {
		s.Fatalf("%d reloads, %d timers started", s.conn.reloads, len(r.Started))
	}
}

func (s *stand) status() {
	s.Helper()
	store, err := history.Open(s.target.State)
	if err != nil {
		s.Fatal(err)
	}
	defer store.Close()
	s.conn.states = 0
	start := time.Now()
	states, err := View{Store: store, Units: s.conn, Target: s.target, Now: start}.Jobs(s.Context(), s.ws.Jobs)
	s.asked = time.Since(start)
	if err != nil || len(states) != many || states[many-1].State != Idle || s.conn.states != 1 {
		s.Fatalf("%d states, %v, asked %d times", len(states), err, s.conn.states)
	}
}

// peers measures systemctl with half of the jobs there.
func (s *stand) peers() {
	s.Helper()
	removal, err := NewRemoval("my-bot", s.target, namesOf(s.ws.Jobs[:many/2])...)
	if err != nil {
		s.Fatal(err)
	}
	apply(s.B, removal, s.conn)
	dir := s.target.UnitDir
	start := time.Now()
	for i := range others {
		unit := fmt.Sprintf("peer-%d", i)
		s.write(filepath.Join(dir, unit+".service"), "[Service]\nType=oneshot\nExecStart=/bin/true\n")
		s.write(filepath.Join(dir, unit+".timer"), "[Timer]\nOnCalendar=*-1-1\nPersistent=yes\n[Install]\nWantedBy=timers.target\n")
		s.systemctl("enable", "--now", unit+".timer")
	}
	s.enabledEach = time.Since(start) / others
	start = time.Now()
	for i := range others { // what a status needs of a job: two units
		s.systemctl("show", fmt.Sprintf("peer-%d.service", i))
		s.systemctl("show", fmt.Sprintf("peer-%d.timer", i))
	}
	s.askEach = time.Since(start) / others
}

func namesOf(jobs []*workspace.Job) []string {
	var names []string
	for _, j := range jobs {
		names = append(names, j.Name)
	}
	return names
}

func (s *stand) write(path, text string) {
	s.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
}

func (s *stand) systemctl(args ...string) {
	s.Helper()
	if out, err := exec.CommandContext(s.Context(), "systemctl", append([]string{"--user"}, args...)...).CombinedOutput(); err != nil {
		s.Fatalf("systemctl %q: %v: %s", args, err, out)
	}
}

func (s *stand) report() {
	s.ReportMetric(s.installed.Seconds(), "s/install")
	s.ReportMetric(float64(s.memory)/(1<<20), "MB/install")
	s.ReportMetric(s.asked.Seconds()*1000, "ms/status")
	s.ReportMetric(s.enabledEach.Seconds()*many/s.installed.Seconds(), "x-faster-install")
	s.ReportMetric(s.askEach.Seconds()*many/s.asked.Seconds(), "x-faster-status")
}
