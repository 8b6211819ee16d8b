package session

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentd/exitcodes"
	"agentd/provider/message"
)

// benchOpen makes the test binary open the session in that store and say what
// it cost.
const benchOpen = "AGENTD_TEST_BENCH_OPEN"

// BenchmarkAppendAgainstBareFsync measures a record that is durable, in turns
// with as many bytes written to a plain file on the same disk and synced. The
// ratio is of the times of both.
func BenchmarkAppendAgainstBareFsync(b *testing.B) {
	dir := b.TempDir()
	s, err := Store{Dir: dir}.Open("bob", "bench", Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	bare, err := os.OpenFile(filepath.Join(dir, "bare"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		b.Fatal(err)
	}
	defer bare.Close()
	text := message.NewText(message.User, strings.Repeat("What was said. ", 30))
	line := []byte(strings.Repeat("x", 600))
	var ours, theirs []time.Duration
	for b.Loop() {
		start := time.Now()
		if err := s.Message(text, message.Usage{}, ""); err != nil {
			b.Fatal(err)
		}
		middle := time.Now()
		if _, err := bare.Write(line); err != nil {
			b.Fatal(err)
		}
		if err := bare.Sync(); err != nil {
			b.Fatal(err)
		}
		ours, theirs = append(ours, middle.Sub(start)), append(theirs, time.Since(middle))
	}
	b.ReportMetric(float64(median(ours).Microseconds()), "append-µs")
	b.ReportMetric(float64(median(theirs).Microseconds()), "bare-µs")
	b.ReportMetric(float64(median(ours))/float64(median(theirs)), "ratio")
}

// median does not see the moments in which a disk does something else.
func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

// BenchmarkOpen100k opens a session of 100,000 records as a resume does, in a
// process of its own.
func BenchmarkOpen100k(b *testing.B) {
	const records = 100_000
	st := Store{Dir: b.TempDir()}
	fill(b, st, records)
	var took, peak int
	for b.Loop() {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), benchOpen+"="+st.Dir)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			b.Fatal(err)
		}
		var seq, us, kb int
		if _, err := fmt.Sscan(string(out), &seq, &us, &kb); err != nil || seq < records {
			b.Fatalf("%q: %v", out, err)
		}
		took, peak = took+us, max(peak, kb)
	}
	b.ReportMetric(float64(took)/float64(b.N)/1000, "open-ms")
	b.ReportMetric(float64(peak)/1024, "peak-MiB")
}

// fill makes a session in which a model works: a question now and then, a call,
// what it gave.
func fill(b *testing.B, st Store, records uint64) {
	b.Helper()
	s, err := st.Open("bob", "bench", Options{})
	if err != nil {
		b.Fatal(err)
	}
	check := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	s.journal.disk = volatileDisk{}
	s.journal.f = volatileFile{s.journal.f}
	check(s.AttemptStarted("r", 1, "builtin", "m"))
	for i := 0; s.journal.seq < records; i++ {
		if i%50 == 0 {
			check(s.Message(message.NewText(message.User, "Go on with the next of them, and say what you did."), message.Usage{}, ""))
		}
		call := toolCall(fmt.Sprint("call-", i), "shell", `{"command":"git log --oneline | head -20"}`)
		check(s.Message(calls(call), message.Usage{InputTokens: 1000, OutputTokens: 50}, "tool_calls"))
		check(s.Intent(call, Unknown))
		check(s.Result(result(call.ID, strings.Repeat("842f88d Wait for the holder\n", 10)), OutcomeOK))
	}
	check(s.AttemptEnded("r", 1, exitcodes.OK, 1, 0, message.Usage{}))
	check(s.Close())
}

// volatileDisk and volatileFile leave out the syncs, which fill has no use for.
type volatileDisk struct{ osDisk }

func (volatileDisk) SyncDir(string) error { return nil }

type volatileFile struct{ file }

func (volatileFile) Sync() error { return nil }

// openForBench is what the process of BenchmarkOpen100k does.
func openForBench(dir string) error {
	start := time.Now()
	s, err := Store{Dir: dir}.Open("bob", "bench", Options{})
	if err != nil {
		return err
	}
	took := time.Since(start)
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	peak, err := strconv.Atoi(strings.Fields(after)[0])
	if err != nil {
		return err
	}
	fmt.Println(s.Transcript().Seq, took.Microseconds(), peak)
	return s.Close()
}
