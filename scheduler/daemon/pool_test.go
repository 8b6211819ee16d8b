package daemon

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"agentd/exitcodes"
)

// fakeRuns are runs that take a time, and may not heed SIGTERM.
type fakeRuns struct {
	takes  time.Duration
	deaf   bool
	broken string // this job's run panics, and that of no-* cannot be started

	mu      sync.Mutex
	now     int // under way
	most    int
	started []string
	ended   []string
}

type fakeRun struct{ signals chan syscall.Signal }

func (r fakeRun) Signal(sig syscall.Signal) { r.signals <- sig }

func (l *fakeRuns) Start(f Firing, ended func(exitcodes.Code)) (Process, error) {
	if f.Job == l.broken {
		panic("broken")
	}
	if strings.HasPrefix(f.Job, "no-") {
		return nil, exitcodes.Errorf(exitcodes.NotFound, "no program")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.started = append(l.started, f.Job)
	l.now++
	l.most = max(l.most, l.now)
	r := fakeRun{make(chan syscall.Signal, 3)}
	go func() {
		code := exitcodes.OK
		over := time.After(l.takes)
	wait:
		for {
			select {
			case <-over:
				break wait
			case sig := <-r.signals:
				if sig == syscall.SIGKILL || !l.deaf {
					code = exitcodes.Code(128 + int(sig))
					break wait
				}
			}
		}
		l.mu.Lock()
		l.now--
		l.ended = append(l.ended, fmt.Sprintf("%s %d", f.Job, code))
		l.mu.Unlock()
		ended(code)
	}()
	return r, nil
}

func (l *fakeRuns) pool(limit int, said *[]string, off ...string) *Pool {
	var mu sync.Mutex
	return NewPool(l, limit, func(f Firing) bool { return !slices.Contains(off, f.Job) }, func(exitcodes.Code) {}, func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		*said = append(*said, fmt.Sprintf(format, args...))
	})
}

func firing(job string) Firing {
	return Firing{Name: Name{"bob", job}, Dir: "/bob", Trigger: "daemon", Grace: 30 * time.Second}
}

// TestLimit wants no more runs at once than are allowed, all to come to their
// turn in order, and one a job to wait.
func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said []string
		l := &fakeRuns{takes: time.Minute}
		p := l.pool(3, &said)
		for i := range 10 {
			p.Dispatch(firing(fmt.Sprint("j", i)))
		}
		synctest.Wait()
		p.Dispatch(firing("j9"))
		p.Dispatch(firing("j0")) // it runs, so another one may wait
		time.Sleep(10 * time.Minute)
		p.Close(context.Background())
		if l.most != 3 || len(l.started) != 11 || l.started[10] != "j0" {
			t.Errorf("at most %d at once, started %v", l.most, l.started)
		}
		if len(said) != 1 || !strings.Contains(said[0], "bob/j9: still waits for one of 3 runs") {
			t.Errorf("said %q", said)
		}
	})
}

// TestPoolGoesOn wants a bug, a failure and a disabled job to cost nobody else
// anything.
func TestPoolGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said []string
		l := &fakeRuns{takes: time.Minute, broken: "bug"}
		p := l.pool(1, &said, "off")
		for _, job := range []string{"bug", "no-program", "off", "good"} {
			p.Dispatch(firing(job))
		}
		time.Sleep(time.Hour)
		p.Close(context.Background())
		if !slices.Equal(l.started, []string{"good"}) {
			t.Errorf("started %v, want only good", l.started)
		}
		all := strings.Join(said, "\n")
		for _, want := range []string{"bob/bug: a bug in agentd: panic: broken", "bob/bug: ended with 70 (software)", "bob/no-program: cannot start its run: no program", "ended with 127"} {
			if !strings.Contains(all, want) {
				t.Errorf("said %q, want %q", all, want)
			}
		}
	})
}

// TestClose ends runs in good order, or else.
func TestClose(t *testing.T) {
	for _, c := range []struct {
		name  string
		deaf  bool
		again time.Duration // a second signal; 0: none
		took  time.Duration
		ended string
	}{
		{"in good order", false, 0, 0, "a 143"},
		{"one that does not heed it", true, 0, 30*time.Second + margin, "a 137"},
		{"at once", true, 2 * time.Second, 2 * time.Second, "a 137"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var said []string
				l := &fakeRuns{takes: time.Hour, deaf: c.deaf}
				p := l.pool(1, &said)
				p.Dispatch(firing("a"))
				synctest.Wait()
				p.Dispatch(firing("queued"))
				ctx, now := context.WithCancel(t.Context())
				defer now()
				if c.again > 0 {
					time.AfterFunc(c.again, now)
				}
				begin := time.Now()
				p.Close(ctx)
				p.Dispatch(firing("late"))
				if took := time.Since(begin); took != c.took || !slices.Equal(l.ended, []string{c.ended}) {
					t.Errorf("took %v and ended %v, want %v and %s", took, l.ended, c.took, c.ended)
				}
				if len(l.started) != 1 {
					t.Errorf("started %v, want no more than a", l.started)
				}
			})
		})
	}
}
