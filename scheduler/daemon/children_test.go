package daemon

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"agentd/exitcodes"
)

// safeBuffer is a buffer for many.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// shells returns a launcher whose runs are the shell scripts that their jobs
// are named by.
func shells(t *testing.T, env ...string) (*Children, *safeBuffer) {
	t.Helper()
	out := &safeBuffer{}
	c, err := NewChildren(func(f Firing) []string { return []string{"/bin/sh", "-c", f.Job} }, append(os.Environ(), env...), NewLines(out))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, out
}

// run starts a script and returns what it ends with.
func run(t *testing.T, c *Children, script string) (Process, <-chan exitcodes.Code) {
	t.Helper()
	ended := make(chan exitcodes.Code, 2)
	p, err := c.Start(firing(script), func(code exitcodes.Code) { ended <- code })
	if err != nil {
		t.Fatal(err)
	}
	return p, ended
}

func await[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(20 * time.Second):
		t.Fatal("it does not end")
		panic("unreachable")
	}
}

func TestChildEnds(t *testing.T) {
	c, _ := shells(t, "NOTIFY_SOCKET=/nowhere", "WATCHDOG_USEC=1")
	for script, want := range map[string]exitcodes.Code{
		"exit 0":                                 0,
		"exit 80":                                80,
		"kill -KILL $$":                          137,
		"kill -TERM $$":                          143,
		"sleep 3 & exit 75":                      75, // which keeps the output open
		`test -z "$NOTIFY_SOCKET$WATCHDOG_USEC"`: 0,
		"read x && exit 1; exit 0":               0, // there is no input
	} {
		_, ended := run(t, c, script)
		if got := await(t, ended); got != want {
			t.Errorf("%s ended with %d, want %d", script, got, want)
		}
	}
}

// TestChildLines wants whole lines with the address before them, and all of
// them before the end is told.
func TestChildLines(t *testing.T) {
	c, out := shells(t)
	script := "printf one; echo ' line'; echo another >&2; printf unended"
	_, ended := run(t, c, script)
	await(t, ended)
	address := "bob/" + script + "  "
	if got, want := out.String(), address+"one line\n"+address+"another\n"+address+"unended\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestLinesStayWhole has many talk at once.
func TestLinesStayWhole(t *testing.T) {
	out := &safeBuffer{}
	l := NewLines(out)
	var wait sync.WaitGroup
	for i := range 20 {
		wait.Go(func() {
			l.Copy(fmt.Sprintf("bob/j%d  ", i), strings.NewReader(strings.Repeat("a line\n", 200)+fmt.Sprintf("bob/j%d  says so itself\n", i)))
		})
	}
	wait.Wait()
	counts := map[string]int{}
	for line := range strings.Lines(out.String()) {
		counts[line]++
	}
	if len(counts) != 40 || counts["bob/j7  a line\n"] != 200 || counts["bob/j7  says so itself\n"] != 1 {
		t.Errorf("%d different lines: %v", len(counts), counts)
	}
	out = &safeBuffer{}
	NewLines(out).Copy("x ", strings.NewReader(strings.Repeat("a", 3*maxLine/2)))
	if got, want := out.String(), "x "+strings.Repeat("a", maxLine)+"\nx "+strings.Repeat("a", maxLine/2)+"\n"; got != want {
		t.Errorf("a long line comes out as %d bytes, want %d", len(got), len(want))
	}
}

// TestChildSignals wants a signal to go to the run, and to nobody once it has
// ended.
func TestChildSignals(t *testing.T) {
	c, _ := shells(t)
	p, ended := run(t, c, "exec sleep 300")
	p.Signal(syscall.SIGTERM)
	if got := await(t, ended); got != exitcodes.Terminated {
		t.Errorf("ended with %d, want 143", got)
	}
	p.Signal(syscall.SIGKILL) // goes nowhere
}

func TestChildCannotStart(t *testing.T) {
	dir := t.TempDir()
	plain := dir + "/plain"
	if err := os.WriteFile(plain, []byte("no program"), 0o755); err != nil {
		t.Fatal(err)
	}
	for program, want := range map[string]exitcodes.Code{dir + "/absent": exitcodes.NotFound, plain: exitcodes.NotExecutable, dir: exitcodes.NotExecutable} {
		c, err := NewChildren(func(Firing) []string { return []string{program} }, nil, NewLines(&safeBuffer{}))
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Start(firing("x"), func(exitcodes.Code) { t.Error("it has ended, though it was not started") })
		if exitcodes.From(err) != want {
			t.Errorf("%s: %v (%d), want %d", program, err, exitcodes.From(err), want)
		}
		c.Close()
	}
}

// TestManyChildren starts and ends more than the reaper can see one by one.
func TestManyChildren(t *testing.T) {
	c, _ := shells(t)
	var wait sync.WaitGroup
	var mu sync.Mutex
	var codes []exitcodes.Code
	for i := range 300 {
		wait.Add(1)
		_, err := c.Start(firing(fmt.Sprintf("exit %d", i%3)), func(code exitcodes.Code) {
			mu.Lock()
			defer mu.Unlock()
			codes = append(codes, code)
			wait.Done()
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		wait.Wait()
	}()
	await(t, done)
	slices.Sort(codes)
	if len(codes) != 300 || codes[99] != 0 || codes[100] != 1 || codes[200] != 2 {
		t.Errorf("codes %v", codes)
	}
}
