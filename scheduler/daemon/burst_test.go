package daemon

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"agentd/exitcodes"
	"agentd/firings"
	"agentd/scheduler/expr"
)

// nobook is a book in which nothing is written.
type nobook struct{}

func (nobook) Last(string, string) (firings.Mark, bool, error) { return firings.Mark{}, false, nil }
func (nobook) Begin(string, string, time.Time) error           { return nil }
func (nobook) Skip(string, string, time.Time) error            { return nil }

// timed notes when runs are started and when they have been.
type timed struct {
	Launcher
	mu      sync.Mutex
	started []time.Duration
	ended   sync.WaitGroup
}

func (l *timed) Start(f Firing, ended func(exitcodes.Code)) (Process, error) {
	p, err := l.Launcher.Start(f, func(c exitcodes.Code) {
		ended(c)
		l.ended.Done()
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.started = append(l.started, time.Since(f.At))
	return p, err
}

// BenchmarkBurst has 500 jobs fire at one second, each a process. It reports
// how late they are dispatched and how late their processes have been started.
func BenchmarkBurst(b *testing.B) {
	const jobs = 500
	var dispatched, started []time.Duration
	for range b.N {
		d, s := burst(b, jobs)
		dispatched, started = append(dispatched, d...), append(started, s...)
	}
	report := func(name string, list []time.Duration) {
		slices.Sort(list)
		b.ReportMetric(float64(list[len(list)/2].Microseconds())/1000, name+"-p50-ms")
		b.ReportMetric(float64(list[len(list)*99/100].Microseconds())/1000, name+"-p99-ms")
	}
	report("dispatch", dispatched)
	report("start", started)
}

func burst(b *testing.B, jobs int) (dispatched, started []time.Duration) {
	children, err := NewChildren(func(Firing) []string { return []string{"/bin/date"} }, os.Environ(), NewLines(io.Discard))
	if err != nil {
		b.Fatal(err)
	}
	defer children.Close()
	l := &timed{Launcher: children}
	l.ended.Add(jobs)
	say := func(format string, args ...any) { b.Errorf(format, args...) }
	pool := NewPool(l, jobs, func(Firing) bool { return true }, func(exitcodes.Code) {}, say)
	when := time.Now().Add(time.Second).Truncate(time.Second).Add(time.Second)
	e := NewEngine(Options{
		Wall: func() time.Time { return time.Now().Round(0) }, Book: nobook{}, Say: say,
		Dispatch: func(f Firing) {
			dispatched = append(dispatched, time.Since(f.At))
			pool.Dispatch(f)
		},
	})
	s, err := expr.Parse("at "+when.UTC().Format("2006-01-02T15:04:05Z"), "UTC")
	if err != nil {
		b.Fatal(err)
	}
	var list []Job
	for i := range jobs {
		list = append(list, Job{Name: Name{"bob", fmt.Sprint("j", i)}, Dir: "/bob", Schedules: []*expr.Schedule{s}})
	}
	if err := e.Set("bob", "/bob", list); err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.Run(ctx)
	}()
	l.ended.Wait()
	stop()
	<-done
	pool.Close(context.Background())
	return dispatched, l.started
}
