package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestMain is one of the programs when it is asked to be.
func TestMain(m *testing.M) {
	run := map[string]func(string, int, []string) error{"robfig": runRobfig, "agentd": runAgentd}[os.Getenv("BENCH_BE")]
	if run == nil {
		os.Exit(m.Run())
	}
	jobs, err := strconv.Atoi(os.Getenv("BENCH_JOBS"))
	if err == nil {
		err = run(os.Getenv("BENCH_SPEC"), jobs, os.Args[1:])
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// build makes a program, once for all benchmarks.
func build(b *testing.B, dir, pkg string) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), filepath.Base(pkg))
	cmd := exec.Command("go", "build", "-o", path, pkg)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	return path
}

// self is this test binary as another program.
func self(be, spec string, jobs int, argv ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], argv...)
	cmd.Env = append(os.Environ(), "BENCH_BE="+be, "BENCH_SPEC="+spec, fmt.Sprintf("BENCH_JOBS=%d", jobs))
	return cmd
}

// crontab writes lines for supercronic, which has a field for seconds and one
// for years.
func crontab(b *testing.B, spec string, jobs int, command string) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "crontab")
	if err := os.WriteFile(path, []byte(strings.Repeat(spec+" "+command+"\n", jobs)), 0o600); err != nil {
		b.Fatal(err)
	}
	return path
}

const idleJobs = 10_000

// BenchmarkIdle has 10,000 jobs, none of which fires. It reports the resident
// memory and the processor time of a daemon that waits.
func BenchmarkIdle(b *testing.B) {
	b.Run("agentd", func(b *testing.B) {
		program := build(b, "../..", "agentd/cmd/agentd")
		home := b.TempDir()
		text := "[agent]\nname = \"bob\"\n[defaults]\nbackend = \"command\"\ncommand = [\"date\"]\nschedule = \"0 0 1 1 *\"\n"
		for i := range idleJobs {
			text += fmt.Sprintf("[jobs.j%d]\n", i)
		}
		if err := os.WriteFile(filepath.Join(home, "agentd.toml"), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
		cmd := exec.Command(program, "daemon", home)
		cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
		idle(b, cmd)
	})
	b.Run("supercronic", func(b *testing.B) {
		program := build(b, "..", "github.com/aptible/supercronic")
		idle(b, exec.Command(program, crontab(b, "0 0 1 1 *", idleJobs, "date")))
	})
	b.Run("robfig", func(b *testing.B) {
		idle(b, self("robfig", "0 0 0 1 1 *", idleJobs, "date"))
	})
}

// idle runs a daemon until it waits, and then for a while.
func idle(b *testing.B, cmd *exec.Cmd) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	for b.Loop() {
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		for last := -1.0; ; {
			time.Sleep(time.Second)
			now, _, err := usage(cmd.Process.Pid)
			if err != nil {
				b.Fatalf("%v\n%s", err, stderr.String())
			}
			if now-last < 0.05 && now > 0 {
				break
			}
			last = now
		}
		before, _, err := usage(cmd.Process.Pid)
		if err != nil {
			b.Fatal(err)
		}
		const window = 30 * time.Second
		time.Sleep(window)
		after, resident, err := usage(cmd.Process.Pid)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(resident, "MB")
		b.ReportMetric(100*(after-before)/window.Seconds(), "cpu-%")
		stop(cmd)
	}
}

func stop(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // killed
}

// usage returns the processor time of a process in seconds, and its resident
// memory in megabytes.
func usage(pid int) (seconds, megabytes float64, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const utime, stime, rss = 11, 12, 21
	var n [3]float64
	for i, f := range []int{utime, stime, rss} {
		v, err := strconv.ParseInt(fields[f], 10, 64)
		if err != nil {
			return 0, 0, err
		}
		n[i] = float64(v)
	}
	const ticks = 100 // a second, on every Linux that Go runs on
	return (n[0] + n[1]) / ticks, n[2] * float64(os.Getpagesize()) / 1e6, nil
}

const burstJobs = 500

// BenchmarkBurst has 500 jobs fire at one second. Each is date, which prints
// when it has been started. It reports how late that is.
func BenchmarkBurst(b *testing.B) {
	argv := []string{"/bin/date", "+started %s%N"}
	soon := func(seconds int) time.Time {
		return time.Now().UTC().Truncate(time.Second).Add(time.Duration(seconds) * time.Second)
	}
	b.Run("agentd", func(b *testing.B) {
		var started, dispatched []time.Duration
		for b.Loop() {
			when := soon(3)
			s, d := burst(b, self("agentd", "at "+when.Format("2006-01-02T15:04:05Z"), burstJobs, argv...), when)
			started, dispatched = append(started, s...), append(dispatched, d...)
		}
		report(b, "start", started)
		report(b, "dispatch", dispatched)
	})
	b.Run("supercronic", func(b *testing.B) {
		program := build(b, "..", "github.com/aptible/supercronic")
		var started []time.Duration
		for b.Loop() {
			when := soon(4)
			spec := fmt.Sprintf("%d %d %d %d %d * %d", when.Second(), when.Minute(), when.Hour(), when.Day(), when.Month(), when.Year())
			cmd := exec.Command(program, "-passthrough-logs", crontab(b, spec, burstJobs, "/bin/date '+started %s%N'"))
			cmd.Env = append(os.Environ(), "TZ=UTC")
			s, _ := burst(b, cmd, when)
			started = append(started, s...)
		}
		report(b, "start", started)
	})
	b.Run("robfig", func(b *testing.B) {
		var started []time.Duration
		for b.Loop() {
			when := soon(3)
			cmd := self("robfig", fmt.Sprintf("%d %d %d %d %d *", when.Second(), when.Minute(), when.Hour(), when.Day(), when.Month()), burstJobs, argv...)
			cmd.Env = append(cmd.Env, "TZ=UTC")
			s, _ := burst(b, cmd, when)
			started = append(started, s...)
		}
		report(b, "start", started)
	})
}

// burst runs a daemon until all its jobs have run.
func burst(b *testing.B, cmd *exec.Cmd, when time.Time) (started, dispatched []time.Duration) {
	b.Helper()
	out := &lines{want: burstJobs, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	defer stop(cmd)
	select {
	case <-out.done:
	case <-time.After(time.Minute):
		b.Fatalf("%d of %d jobs ran", len(out.started), burstJobs)
	}
	out.mu.Lock()
	defer out.mu.Unlock()
	for _, ns := range out.started {
		started = append(started, time.Unix(0, ns).Sub(when))
	}
	return started, out.dispatched
}

// lines reads what the jobs and the daemon print.
type lines struct {
	mu         sync.Mutex
	rest       []byte
	started    []int64 // nanoseconds since 1970
	dispatched []time.Duration
	want       int
	done       chan struct{}
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, p...)
	for {
		i := bytes.IndexByte(l.rest, '\n')
		if i < 0 {
			return len(p), nil
		}
		line := string(l.rest[:i])
		l.rest = l.rest[i+1:]
		if n, err := after(line, "started "); err == nil {
			if l.started = append(l.started, n); len(l.started) == l.want {
				close(l.done)
			}
		} else if n, err := after(line, "dispatched "); err == nil {
			l.dispatched = append(l.dispatched, time.Duration(n))
		}
	}
}

func after(line, word string) (int64, error) {
	_, text, found := strings.Cut(line, word)
	if !found {
		return 0, errors.New("another line")
	}
	text, _, _ = strings.Cut(text, `"`)
	return strconv.ParseInt(strings.TrimSpace(text), 10, 64)
}

func report(b *testing.B, name string, list []time.Duration) {
	slices.Sort(list)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(ms(list[len(list)/2]), name+"-p50-ms")
	b.ReportMetric(ms(list[len(list)*99/100]), name+"-p99-ms")
}
