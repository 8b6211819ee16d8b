package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"agentd/exitcodes"
	"agentd/history"
)

type logsOptions struct {
	run     string
	since   string
	scope   string
	follow  bool
	journal bool
}

func (a *App) logsCommand() *cobra.Command {
	var o logsOptions
	cmd := &cobra.Command{
		Use:   "logs [JOB]",
		Short: "Show what a run printed: the job's latest run, one by its id, or all since a time",
		Long: `Logs shows what a run printed, which agentd keeps with the run, whoever started
it. With --journal it is what systemd's journal has of the job's service: with
times, and with what systemd and run.sh said before and after agentd. The journal
is also where a run's output is looked for that is not there any more.`,
		Example: `  agentd logs triage
  agentd logs triage -f
  agentd logs triage --since 12h
  agentd logs --run 7c1b22
  agentd logs triage --journal`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.logs(cmd.Context(), o, args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.run, "run", "", "the run with this `ID`, or the one whose id starts or ends so")
	f.StringVar(&o.since, "since", "", "all runs since `TIME`: a date, an RFC 3339 time, or an age such as 12h")
	f.BoolVarP(&o.follow, "follow", "f", false, "go on as the run prints more, and with the runs after it")
	f.BoolVar(&o.journal, "journal", false, "show what systemd's journal has of the job's service")
	scopeFlag(cmd, &o.scope)
	return cmd
}

func (a *App) logs(ctx context.Context, o logsOptions, args []string) error {
	if o.run != "" && o.since != "" {
		return exitcodes.Errorf(exitcodes.Usage, "--run is one run, --since is many: name one of them")
	}
	if o.journal && o.run == "" && len(args) == 0 {
		return exitcodes.Errorf(exitcodes.Usage, "name the job, or a run of it: agentd logs JOB --journal")
	}
	store, err := a.store()
	if err != nil {
		return err
	}
	defer store.Close()
	if o.journal && o.run == "" && (o.follow || o.since != "") {
		return a.jobJournal(ctx, o, args[0])
	}
	runs, filter, err := a.logsRuns(store, o, args)
	if err != nil {
		return err
	}
	if err := a.printLogs(ctx, store, o, runs); err != nil || !o.follow || o.journal {
		return err
	}
	err = a.follow(ctx, store, runs[len(runs)-1], filter, o.run != "")
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, context.Canceled) {
		return cause
	}
	return err
}

// logsRuns finds the runs that are meant, the latest last, and the filter for
// the runs after them.
func (a *App) logsRuns(store *history.Store, o logsOptions, args []string) ([]*history.Run, history.Filter, error) {
	filter, err := a.historyFilter(historyOptions{limit: 1, since: o.since}, args)
	if err != nil {
		return nil, filter, err
	}
	if o.run != "" {
		run, err := store.Get(o.run)
		return []*history.Run{run}, filter, err
	}
	all := filter
	if o.since != "" {
		all.Limit = 0
	}
	runs, err := store.List(all)
	if err != nil {
		return nil, filter, err
	}
	if len(runs) == 0 {
		text := "there is no run yet"
		if o.since != "" {
			text = "there is no run since then"
		}
		return nil, filter, exitcodes.Errorf(exitcodes.NoInput, "%s", text).WithHint("Start one: agentd run JOB")
	}
	slices.Reverse(runs)
	filter.Since = time.Time{}
	return runs, filter, nil
}

// printLogs prints the logs of runs; the last is left to follow, if asked for.
func (a *App) printLogs(ctx context.Context, store *history.Store, o logsOptions, runs []*history.Run) error {
	for i, run := range runs {
		dir := store.RunDir(run.RunID)
		if o.since != "" && !a.json {
			a.printf("== run %s  %s/%s  %s ==\n", run.RunID, run.Agent, run.Job, clock(run.StartedAt, a.Now()))
		}
		var err error
		switch {
		case o.journal:
			err = a.runJournal(ctx, o.scope, run)
		case a.json:
			err = a.printEvents(dir)
		case o.follow && i == len(runs)-1:
		default:
			err = a.printLog(ctx, o.scope, dir, run)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// printLog prints what the run said, from the journal where its file is gone.
func (a *App) printLog(ctx context.Context, scope, dir string, run *history.Run) error {
	f, err := os.Open(filepath.Join(dir, "output.log"))
	if errors.Is(err, fs.ErrNotExist) {
		_ = a.runJournal(ctx, scope, run) // or else it ended before it said anything
		return nil
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
