package cli

import (
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"agentd/exitcodes"
	"agentd/history"
)

type historyOptions struct {
	limit int
	since string
	until string
	code  string
	all   bool
}

func (a *App) historyCommand() *cobra.Command {
	var o historyOptions
	cmd := &cobra.Command{
		Use:   "history [JOB]",
		Short: "List past runs, the newest first",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.history(o, args)
		},
	}
	f := cmd.Flags()
	f.IntVarP(&o.limit, "limit", "n", 20, "at most `N` runs")
	f.StringVar(&o.since, "since", "", "only runs since `TIME`: "+timeForms)
	f.StringVar(&o.until, "until", "", "only runs before `TIME`: "+timeForms)
	f.StringVar(&o.code, "code", "", "only runs that ended with `CODE`, a number or a name")
	f.BoolVarP(&o.all, "all", "a", false, "the runs of all agents, not only of this workspace's")
	return cmd
}

func (a *App) history(o historyOptions, args []string) error {
	filter, err := a.historyFilter(o, args)
	if err != nil {
		return err
	}
	store, err := a.store()
	if err != nil {
		return err
	}
	defer store.Close()
	runs, err := store.List(filter)
	if err != nil {
		return err
	}
	if a.json {
		if runs == nil {
			runs = []*history.Run{}
		}
		return a.printJSON(runs)
	}
	return a.printRuns(runs)
}

func (a *App) store() (*history.Store, error) {
	folders, err := a.folders()
	if err != nil {
		return nil, err
	}
	return history.Open(folders.State)
}

// historyFilter reads the options. Outside a workspace all agents are meant.
func (a *App) historyFilter(o historyOptions, args []string) (history.Filter, error) {
	filter := history.Filter{Limit: o.limit}
	if o.limit < 1 {
		return filter, exitcodes.Errorf(exitcodes.Usage, "--limit %d is not at least 1", o.limit)
	}
	var err error
	if filter.Since, err = parseTime("--since", o.since, a.Now()); err != nil {
		return filter, err
	}
	if filter.Until, err = parseTime("--until", o.until, a.Now()); err != nil {
		return filter, err
	}
	if o.code != "" {
		code, err := parseCode(o.code)
		if err != nil {
			return filter, err
		}
		filter.Code = &code
	}
	if len(args) == 1 {
		if agent, job, ok := strings.Cut(args[0], "/"); ok {
			filter.Agent, filter.Job = agent, job
			return filter, nil
		}
		_, job, err := a.job(args[0])
		if err != nil {
			return filter, err
		}
		filter.Agent, filter.Job = job.Agent, job.Name
		return filter, nil
	}
	if !o.all {
		if ws, err := a.workspace(); err == nil {
			filter.Agent = ws.Agent
		}
	}
	return filter, nil
}

// parseCode reads an exit code by number or name.
func parseCode(s string) (exitcodes.Code, error) {
	for _, e := range exitcodes.Table() {
		if e.Name == s || s == itoa(int(e.Code)) {
			return e.Code, nil
		}
	}
	return 0, exitcodes.Errorf(exitcodes.Usage, "there is no exit code %q", s).WithHint("All of them: agentd exitcodes")
}

func (a *App) printRuns(runs []*history.Run) error {
	if len(runs) == 0 {
		a.printf("No runs.\n")
		return nil
	}
	now := a.Now()
	w := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	tabf(w, "RUN\tJOB\tSTARTED\tTOOK\tTRIGGER\tATTEMPTS\tREQUESTS\tRESULT\n")
	for _, r := range runs {
		took := "running"
		if r.EndedAt != nil {
			took = span(r.EndedAt.Sub(r.StartedAt))
		}
		tabf(w, "%s\t%s/%s\t%s\t%s\t%s\t%d\t%d\t%s\n", short(r.RunID), r.Agent, r.Job,
			clock(r.StartedAt, now), took, r.Trigger, len(r.Attempts), requests(r), result(r, now))
	}
	return w.Flush()
}

func requests(r *history.Run) int {
	n := 0
	for _, at := range r.Attempts {
		n += at.Requests
	}
	return n
}

// result is how a run ended, for people: "rate_limited (75), until 09:10".
func result(r *history.Run, now time.Time) string {
	if r.Code == nil {
		return "running"
	}
	if *r.Code == exitcodes.OK {
		return "ok"
	}
	s := r.Name + " (" + itoa(int(*r.Code)) + ")"
	if r.ResetAt != nil {
		s += ", until " + clock(*r.ResetAt, now)
	}
	return s
}
