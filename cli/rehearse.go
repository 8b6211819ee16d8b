package cli

import (
	"context"
	"io"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"agentd/exitcodes"
	"agentd/history"
	"agentd/provider/rehearsal"
	"agentd/runner"
	"agentd/workspace"
)

type rehearseOptions struct {
	scenario string
	all      bool
	list     bool
}

func (a *App) rehearseCommand() *cobra.Command {
	var o rehearseOptions
	cmd := &cobra.Command{
		Use:   "rehearse JOB",
		Short: "Run a job against a scripted provider that fails: a fire drill",
		Long: `Rehearse runs a job of yours, in a scratch copy of its workspace and without
spending anything, against a scenario: a provider that cuts streams, limits,
stalls or answers nonsense. It prints what happened and which code came out.
Timers are shortened, so that a night's trouble passes in seconds.

A scenario is one of agentd's own (--list) or a file of yours.`,
		Example: `  agentd rehearse triage --scenario rate-limit
  agentd rehearse triage --all`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.rehearse(cmd.Context(), o, args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.scenario, "scenario", "demo", "the scenario's `NAME` or file")
	f.BoolVar(&o.all, "all", false, "every scenario of agentd's own, as a table")
	f.BoolVar(&o.list, "list", false, "list the scenarios and what each re-creates")
	return cmd
}

func (a *App) rehearse(ctx context.Context, o rehearseOptions, args []string) error {
	if o.list {
		return a.listScenarios()
	}
	if len(args) != 1 {
		return exitcodes.Errorf(exitcodes.Usage, "rehearse takes one job").WithHint("Try: agentd rehearse --help")
	}
	ws, job, err := a.job(args[0])
	if err != nil {
		return err
	}
	folders, err := a.folders()
	if err != nil {
		return err
	}
	r := a.runner(folders)
	if o.all {
		return a.rehearseAll(ctx, r, ws, job)
	}
	if _, err := rehearsal.Load(o.scenario); err != nil {
		return err
	}
	var out io.Writer = a.Stdout
	if a.json {
		out = io.Discard
	}
	record, err := r.Rehearse(ctx, ws, job, o.scenario, out)
	if a.json && record != nil {
		if jsonErr := a.printJSON(record); jsonErr != nil && err == nil {
			return jsonErr
		}
	}
	return err
}

func (a *App) listScenarios() error {
	type row struct {
		Name string `json:"scenario"`
		What string `json:"what"`
	}
	var rows []row
	for _, name := range rehearsal.Names() {
		sc, err := rehearsal.Load(name)
		if err != nil {
			return err
		}
		rows = append(rows, row{name, sc.What})
	}
	if a.json {
		return a.printJSON(rows)
	}
	w := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		tabf(w, "%s\t%s\n", r.Name, r.What)
	}
	return w.Flush()
}

// drill is what one scenario came to.
type drill struct {
	Scenario string         `json:"scenario"`
	Code     exitcodes.Code `json:"code"`
	Name     string         `json:"name"`
	Requests int            `json:"requests"`
	Seconds  float64        `json:"seconds"`
	Error    string         `json:"error"`
}

// together is how many drills run at once: they mostly wait.
const together = 8

// rehearseAll runs every scenario. A drill that ends in an error is what the
// drill is for, so the verb itself succeeds; only a bug (70) fails it.
func (a *App) rehearseAll(ctx context.Context, r *runner.Runner, ws *workspace.Workspace, job *workspace.Job) error {
	names := rehearsal.Names()
	drills := make([]drill, len(names))
	slots := make(chan struct{}, together)
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			start := a.Now()
			record, err := r.Rehearse(ctx, ws, job, name, io.Discard)
			drills[i] = drilled(name, record, err, a.Now().Sub(start))
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := a.printDrills(drills); err != nil {
		return err
	}
	for _, d := range drills {
		if d.Code == exitcodes.Software {
			return exitcodes.Errorf(exitcodes.Software, "scenario %s: %s", d.Scenario, d.Error)
		}
	}
	return nil
}

func drilled(name string, record *history.Run, err error, took time.Duration) drill {
	d := drill{Scenario: name, Code: exitcodes.From(err), Seconds: took.Seconds()}
	d.Name = d.Code.String()
	if err != nil {
		d.Error = oneLine(err.Error())
	}
	if record != nil {
		d.Requests = requests(record)
	}
	return d
}

func (a *App) printDrills(drills []drill) error {
	if a.json {
		return a.printJSON(drills)
	}
	w := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	tabf(w, "SCENARIO\tRESULT\tREQUESTS\tTOOK\tWHY\n")
	for _, d := range drills {
		name := d.Name
		if d.Code != exitcodes.OK {
			name += " (" + itoa(int(d.Code)) + ")"
		}
		tabf(w, "%s\t%s\t%d\t%s\t%s\n", d.Scenario, name, d.Requests,
			span(time.Duration(d.Seconds*float64(time.Second))), shorten(d.Error, 60))
	}
	return w.Flush()
}

// shorten cuts a text for a table.
func shorten(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return strings.TrimSpace(string(r[:n-1])) + "…"
	}
	return s
}
