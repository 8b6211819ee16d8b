package cli

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestDaemonLeavesRunsAlone takes a job away while its run is going on.
func TestDaemonLeavesRunsAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `[jobs.work]
schedule = "* * * * * *"
command = ["sh", "-c", "touch begun; until test -e finish; do sleep 0.02; done; echo finished"]
[jobs.other]
schedule = "* * * * * *"
command = ["true"]
lane = "other"
`)
	w.start()
	w.until("at work", func() bool { _, err := os.Stat(w.dir + "/bob/begun"); return err == nil })
	config := w.read("bob/agentd.toml")
	start, end := strings.Index(config, "[jobs.work]"), strings.Index(config, "[jobs.other]")
	w.write("bob/agentd.toml", config[:start]+config[end:])
	w.until("changed", func() bool { return strings.Contains(w.read("err"), "has changed: 1 job") })
	if err := w.daemon.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	w.until("read again", func() bool { return strings.Contains(w.read("err"), "read again: 1 job") })
	w.write("bob/finish", "")
	w.until("finished", func() bool { return strings.Contains(w.read("out"), "bob/work  finished\n") })
	w.until("in the record", func() bool {
		return strings.Contains(w.agent("history", "bob/work", "--code", "ok", "--json", "-C", "bob"), `"code":0`)
	})
}

// TestDaemonEndsAtOnce sends a second signal, for a run that does not heed the
// first one.
func TestDaemonEndsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `[jobs.deaf]
schedule = "* * * * * *"
grace = "5m"
command = ["sh", "-c", "trap '' TERM; touch begun; while :; do sleep 0.05; done"]
`)
	w.start()
	w.until("at work", func() bool { _, err := os.Stat(w.dir + "/bob/begun"); return err == nil })
	begin := time.Now()
	if err := w.daemon.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	w.until("stopping", func() bool { return strings.Contains(w.read("err"), "SIGTERM: runs that are to end: 1") })
	if err := w.daemon.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := w.end(); code != 143 {
		t.Errorf("ended with %d, want 143", code)
	}
	if took := time.Since(begin); took > time.Minute {
		t.Errorf("took %v", took)
	}
	if all := w.agent("history", "deaf", "--json", "-C", "bob"); !strings.Contains(all, `"deaf"`) {
		t.Errorf("no record: %s", all)
	}
	w.agent("resume", "--json") // closes the record
	if all := w.agent("history", "deaf", "--json", "-C", "bob"); !strings.Contains(all, `"code":85`) {
		t.Errorf("the run is not on record as interrupted: %s", all)
	}
}

// TestDaemonOutlivesItsReader takes away what reads its output.
func TestDaemonOutlivesItsReader(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `[jobs.tick]
schedule = "* * * * * *"
command = ["sh", "-c", "echo said | tee -a ticks"]
`)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := w.command(w.agentd, "daemon", "bob")
	c.Stdout, c.Stderr = write, write
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	w.daemon = c
	_ = write.Close()
	ticks := func() int { return strings.Count(w.read("bob/ticks"), "said") }
	w.until("running", func() bool { return ticks() > 0 })
	_ = read.Close()
	before := ticks()
	w.until("going on", func() bool { return ticks() > before+2 })
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := w.end(); code != 143 {
		t.Errorf("ended with %d, want 143", code)
	}
}

// TestDaemonAndTimer has a timer fire the daemon's job all the time: each
// second of the schedule is one run, whoever is first.
func TestDaemonAndTimer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `[jobs.tick]
schedule = "* * * * * *"
command = ["true"]
`)
	begin := time.Now()
	w.start()
	w.until("running", func() bool { return strings.Contains(w.read("out"), "done  ok") })
	for range 40 {
		_, _ = w.command(w.agentd, "run", "bob/tick", "--trigger", "timer", "-C", "bob").Output() // 80 if the daemon's run is not over
	}
	if err := w.daemon.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	w.end()
	seconds := int(time.Since(begin).Seconds()) + 2
	if runs := strings.Count(w.agent("history", "tick", "--json", "-n", "1000", "-C", "bob"), `"run_id"`); runs < 1 || runs > seconds {
		t.Errorf("%d runs in %d seconds", runs, seconds)
	}
}
