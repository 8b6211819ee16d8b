package cli

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"agentd/exitcodes"
	"agentd/history"
)

type logsOptions struct {
	run     string
	since   string
	until   string
	scope   string
	lines   int // -1 is all
	follow  bool
	events  bool
	journal bool
}

// many is whether all runs of a time are meant.
func (o logsOptions) many() bool { return o.since != "" || o.until != "" }

func (a *App) logsCommand() *cobra.Command {
	var o logsOptions
	cmd := &cobra.Command{
		Use:   "logs [JOB]",
		Short: "Show what a run printed: the job's latest run, one by its id, or all since a time",
		Long: `Logs shows what a run printed, which agentd keeps with the run, whoever started
it. With --json each line is an object with its run_id and its line. With --events
it is what agentd noted of the run, a JSON object a line: attempts, requests and
tools, each with its time. With --journal it is what systemd's journal has of the
job's service: with times, and with what systemd and run.sh said before and after
agentd. The journal is also where a run's output is looked for that is not there
any more.`,
		Example: `  agentd logs triage
  agentd logs triage -f
  agentd logs triage -n 20
  agentd logs triage --since yesterday
  agentd logs --run 7c1b22
  agentd logs triage --journal`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := saysSomething(cmd, "run", "since", "until"); err != nil {
				return err
			}
			if cmd.Flags().Changed("lines") && o.lines < 0 {
				return exitcodes.Errorf(exitcodes.Usage, "--lines %d is less than 0", o.lines)
			}
			return a.logs(cmd.Context(), o, args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.run, "run", "", "the run with this `ID`, or the one whose id starts or ends so")
	f.StringVar(&o.since, "since", "", "all runs since `TIME`: "+timeForms)
	f.StringVar(&o.until, "until", "", "all runs before `TIME`: "+timeForms)
	f.IntVarP(&o.lines, "lines", "n", -1, "only the last `N` lines of a run")
	f.BoolVarP(&o.follow, "follow", "f", false, "go on as the run prints more, and with the runs after it")
	f.BoolVar(&o.events, "events", false, "show what agentd noted of the run, a JSON object a line")
	f.BoolVar(&o.journal, "journal", false, "show what systemd's journal has of the job's service")
	f.Lookup("lines").DefValue = "all"
	scopeFlag(cmd, &o.scope)
	return cmd
}

func (o logsOptions) check(args []string) error {
	switch {
	case o.run != "" && o.many():
		return exitcodes.Errorf(exitcodes.Usage, "--run is one run, --since and --until are many: name one of them")
	case o.follow && o.until != "":
		return exitcodes.Errorf(exitcodes.Usage, "--follow has no end, --until is one: leave one of them")
	case o.journal && o.events:
		return exitcodes.Errorf(exitcodes.Usage, "the journal has no events: leave --journal or --events")
	case o.journal && o.run == "" && len(args) == 0:
		return exitcodes.Errorf(exitcodes.Usage, "name the job, or a run of it: agentd logs JOB --journal")
	}
	return nil
}

func (a *App) logs(ctx context.Context, o logsOptions, args []string) error {
	if err := o.check(args); err != nil {
		return err
	}
	store, err := a.store()
	if err != nil {
		return err
	}
	defer store.Close()
	if o.journal && o.run == "" && (o.follow || o.many()) {
		return a.jobJournal(ctx, o, args[0])
	}
	runs, filter, err := a.logsRuns(store, o, args)
	if err != nil {
		return err
	}
	if err := a.printLogs(ctx, store, o, runs); err != nil || !o.follow || o.journal {
		return err
	}
	err = a.follow(ctx, store, o, runs[len(runs)-1], filter)
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, context.Canceled) {
		return cause
	}
	return err
}

// logsRuns finds the runs that are meant, the latest last, and the filter for
// the runs after them.
func (a *App) logsRuns(store *history.Store, o logsOptions, args []string) ([]*history.Run, history.Filter, error) {
	filter, err := a.historyFilter(historyOptions{limit: 1, since: o.since, until: o.until}, args)
	if err != nil {
		return nil, filter, err
	}
	if o.run != "" {
		run, err := store.Get(o.run)
		if err == nil && filter.Job != "" && (run.Agent != filter.Agent || run.Job != filter.Job) {
			err = exitcodes.Errorf(exitcodes.NoInput, "run %s is one of %s/%s, not of %s/%s", run.RunID, run.Agent, run.Job, filter.Agent, filter.Job)
		}
		return []*history.Run{run}, filter, err
	}
	all := filter
	if o.many() {
		all.Limit = 0
	}
	runs, err := store.List(all)
	if err != nil {
		return nil, filter, err
	}
	if len(runs) == 0 {
		text := "there is no run yet"
		if o.many() {
			text = "there is no run in that time"
		}
		return nil, filter, exitcodes.Errorf(exitcodes.NoInput, "%s", text).WithHint("Start one: agentd run JOB")
	}
	slices.Reverse(runs)
	filter.Since, filter.Until = time.Time{}, time.Time{}
	return runs, filter, nil
}

// printLogs prints the logs of runs; the last is left to follow, if asked for.
func (a *App) printLogs(ctx context.Context, store *history.Store, o logsOptions, runs []*history.Run) error {
	for i, run := range runs {
		if o.many() && !a.json && !o.events {
			a.printf("== run %s  %s/%s  %s ==\n", run.RunID, run.Agent, run.Job, clock(run.StartedAt, a.Now()))
		}
		var err error
		switch {
		case o.journal:
			err = a.runJournal(ctx, o, run)
		case o.follow && i == len(runs)-1:
		default:
			err = a.printLog(ctx, store, o, run)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
