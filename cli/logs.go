package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"agentd/exitcodes"
	"agentd/history"
)

type logsOptions struct {
	run    string
	follow bool
}

func (a *App) logsCommand() *cobra.Command {
	var o logsOptions
	cmd := &cobra.Command{
		Use:   "logs [JOB]",
		Short: "Show what a run printed: the job's latest run, or one by its id",
		Example: `  agentd logs triage
  agentd logs triage -f
  agentd logs --run 7c1b22`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.logs(cmd.Context(), o, args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.run, "run", "", "the run with this `ID`, or the one whose id starts or ends so")
	f.BoolVarP(&o.follow, "follow", "f", false, "go on as the run prints more, and with the runs after it")
	return cmd
}

func (a *App) logs(ctx context.Context, o logsOptions, args []string) error {
	store, err := a.store()
	if err != nil {
		return err
	}
	defer store.Close()
	run, filter, err := a.logsRun(store, o, args)
	if err != nil {
		return err
	}
	if a.json {
		return a.printEvents(store.RunDir(run.RunID))
	}
	if !o.follow {
		return a.printLog(store.RunDir(run.RunID))
	}
	err = a.follow(ctx, store, run, filter, o.run != "")
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, context.Canceled) {
		return cause
	}
	return err
}

// logsRun finds the run that is meant, and the filter for the runs after it.
func (a *App) logsRun(store *history.Store, o logsOptions, args []string) (*history.Run, history.Filter, error) {
	filter, err := a.historyFilter(historyOptions{limit: 1}, args)
	if err != nil {
		return nil, filter, err
	}
	if o.run != "" {
		run, err := store.Get(o.run)
		return run, filter, err
	}
	runs, err := store.List(filter)
	if err != nil {
		return nil, filter, err
	}
	if len(runs) == 0 {
		return nil, filter, exitcodes.Errorf(exitcodes.NoInput, "there is no run yet").WithHint("Start one: agentd run JOB")
	}
	return runs[0], filter, nil
}

func (a *App) printLog(dir string) error {
	f, err := os.Open(filepath.Join(dir, "output.log"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the run ended before it said anything
	}
	if err != nil {
		return fmt.Errorf("cannot read the run's log: %w", err)
	}
	defer f.Close()
	_, err = io.Copy(a.Stdout, f)
	return err
}

func (a *App) printEvents(dir string) error {
	data, err := os.ReadFile(filepath.Join(dir, "events.jsonl"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot read the run's events: %w", err)
	}
	_, err = a.Stdout.Write(data)
	return err
}

// followEvery is how often a followed log is looked at.
const followEvery = 200 * time.Millisecond

// follow prints a run's log as it grows, then the logs of the runs after it,
// until the context ends; a single run until it has ended.
func (a *App) follow(ctx context.Context, store *history.Store, run *history.Run, filter history.Filter, single bool) error {
	for {
		if err := a.followRun(ctx, store, run); err != nil || single {
			return err
		}
		next, err := a.awaitNext(ctx, store, run, filter)
		if err != nil {
			return err
		}
		run = next
	}
}

// followRun prints one run's log until the run has ended.
func (a *App) followRun(ctx context.Context, store *history.Store, run *history.Run) error {
	path := filepath.Join(store.RunDir(run.RunID), "output.log")
	var offset int64
	for {
		current, err := store.Get(run.RunID)
		if err != nil {
			return err
		}
		n, err := a.copyFrom(path, offset)
		if err != nil {
			return err
		}
		offset += n
		if current.EndedAt != nil && n == 0 {
			return nil
		}
		if err := sleep(ctx, followEvery); err != nil {
			return err
		}
	}
}

func (a *App) copyFrom(path string, offset int64) (int64, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("cannot read the run's log: %w", err)
	}
	defer f.Close()
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return 0, err
	}
	return io.Copy(a.Stdout, f)
}

func (a *App) awaitNext(ctx context.Context, store *history.Store, run *history.Run, filter history.Filter) (*history.Run, error) {
	for {
		runs, err := store.List(filter)
		if err != nil {
			return nil, err
		}
		if len(runs) > 0 && runs[0].RunID != run.RunID {
			return runs[0], nil
		}
		if err := sleep(ctx, followEvery); err != nil {
			return nil, err
		}
	}
}

// sleep waits for d, or for ctx to end, which is then the error.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
