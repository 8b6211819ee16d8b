package daemon

import (
	"context"
	"fmt"
	"os"
	"time"

	"agentd/exitcodes"
	"agentd/firings"
	"agentd/scheduler/daemon"
	"agentd/scheduler/expr"
)

// none is a book without firings.
type none struct{}

func (none) Last(string, string) (firings.Mark, bool, error) { return firings.Mark{}, false, nil }
func (none) Begin(string, string, time.Time) error           { return nil }
func (none) Skip(string, string, time.Time) error            { return nil }

// runAgentd is the engine, pool and launcher of agentd's daemon, with argv in
// the place of "agentd run". It says on stderr how late each run was
// dispatched, and never returns.
func runAgentd(spec string, jobs int, argv []string) error {
	say := func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
	children, err := daemon.NewChildren(func(daemon.Firing) []string { return argv }, os.Environ(), daemon.NewLines(os.Stdout))
	if err != nil {
		return err
	}
	pool := daemon.NewPool(children, jobs, func(daemon.Firing) bool { return true }, func(exitcodes.Code) {}, say)
	e := daemon.NewEngine(daemon.Options{
		Wall: func() time.Time { return time.Now().Round(0) }, Book: none{}, Say: say,
		Dispatch: func(f daemon.Firing) {
			fmt.Fprintf(os.Stderr, "dispatched %d\n", time.Since(f.At).Nanoseconds())
			pool.Dispatch(f)
		},
	})
	s, err := expr.Parse(spec, "UTC")
	if err != nil {
		return err
	}
	list := make([]daemon.Job, jobs)
	for i := range list {
		list[i] = daemon.Job{Name: daemon.Name{Agent: "bob", Job: fmt.Sprint("j", i)}, Dir: "/bob", Schedules: []*expr.Schedule{s}}
	}
	if err := e.Set("bob", "/bob", list); err != nil {
		return err
	}
	e.Run(context.Background())
	return nil
}
