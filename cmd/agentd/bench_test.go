package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// BenchmarkRunAgainstFlock compares `agentd run` of a job that runs /bin/true
// with what people write into a crontab today: flock, timeout and tee. Both run
// in turn, so that the ratio does not depend on the machine's mood.
func BenchmarkRunAgainstFlock(b *testing.B) {
	dir := b.TempDir()
	agentd := build(b, dir)
	config := "[agent]\nname = \"bench\"\n[jobs.true]\nbackend = \"command\"\ncommand = [\"/bin/true\"]\n"
	if err := os.WriteFile(filepath.Join(dir, "agentd.toml"), []byte(config), 0o600); err != nil {
		b.Fatal(err)
	}
	ours := func() *exec.Cmd { return exec.Command(agentd, "run", "true") }
	peer := func() *exec.Cmd {
		return exec.Command("bash", "-o", "pipefail", "-c", "flock lock timeout 60 sh -c true | tee -a log")
	}
	measure(b, dir, ours) // the first run makes the state folder
	var oursTime, peerTime time.Duration
	var peak int64
	b.ResetTimer()
	for range b.N {
		d, rss := measure(b, dir, ours)
		oursTime += d
		peak = max(peak, rss)
		d, _ = measure(b, dir, peer)
		peerTime += d
	}
	n := float64(b.N)
	b.ReportMetric(0, "ns/op") // the two together say nothing
	b.ReportMetric(oursTime.Seconds()*1000/n, "agentd-ms")
	b.ReportMetric(peerTime.Seconds()*1000/n, "flock-ms")
	b.ReportMetric((oursTime-peerTime).Seconds()*1000/n, "on-top-ms")
	b.ReportMetric(oursTime.Seconds()/peerTime.Seconds(), "ratio")
	b.ReportMetric(float64(peak)/1024, "peak-MiB")
}

// measure runs the command and returns how long it took and its peak memory in
// KiB, children left out.
func measure(b *testing.B, dir string, command func() *exec.Cmd) (time.Duration, int64) {
	b.Helper()
	c := command()
	c.Dir = dir
	c.Env = append(os.Environ(), "HOME="+dir, "XDG_STATE_HOME="+filepath.Join(dir, "state"))
	start := time.Now()
	out, err := c.CombinedOutput()
	took := time.Since(start)
	if err != nil {
		b.Fatalf("%v: %v\n%s", c.Args, err, out)
	}
	return took, c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss
}

func build(b *testing.B, dir string) string {
	b.Helper()
	path := filepath.Join(dir, "agentd")
	if out, err := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, ".").CombinedOutput(); err != nil {
		b.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}
