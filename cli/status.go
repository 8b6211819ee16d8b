package cli

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"agentd/exitcodes"
	"agentd/scheduler"
	"agentd/systemd"
	"agentd/workspace"
)

type statusOptions struct {
	scope string
	all   bool
}

func (a *App) statusCommand() *cobra.Command {
	var o statusOptions
	cmd := &cobra.Command{
		Use:   "status [JOB]",
		Short: "Show what each job is doing, how it last ended and when it runs next",
		Long: `Status shows the jobs of this workspace; outside of one, or with --all, those of
all agents that are installed.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.status(cmd.Context(), o, args)
		},
	}
	scopeFlag(cmd, &o.scope)
	cmd.Flags().BoolVarP(&o.all, "all", "a", false, "the jobs of all agents, not only of this workspace's")
	return cmd
}

func (a *App) status(ctx context.Context, o statusOptions, args []string) error {
	jobs, broken, err := a.statusJobs(o.all, args)
	if err != nil {
		return err
	}
	_, conn, absent, err := a.target(ctx, o.scope)
	if err != nil {
		return err
	}
	var units scheduler.Units
	if conn != nil {
		defer conn.Close()
		units = conn
	}
	folders, err := a.folders()
	if err != nil {
		return err
	}
	store, err := a.store()
	if err != nil {
		return err
	}
	defer store.Close()
	if err := a.runner(folders).CloseCrashed(store); err != nil {
		return err
	}
	states, err := scheduler.Overview(ctx, jobs, store, units, a.Now())
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(states)
	}
	if err := a.printStates(states); err != nil {
		return err
	}
	for _, b := range broken {
		fmt.Fprintf(a.Stderr, "agentd: %s\n", oneLine(b.Error()))
	}
	if absent != nil {
		a.printf("No timer runs here: %s\n", oneLine(absent.Error()))
	}
	return nil
}

// statusJobs returns the jobs that are meant. The workspaces of other agents
// that cannot be read are named, and do not hide the rest.
func (a *App) statusJobs(all bool, args []string) (jobs []*workspace.Job, broken []error, err error) {
	if len(args) == 1 {
		_, job, err := a.job(args[0])
		return []*workspace.Job{job}, nil, err
	}
	if !all {
		ws, err := a.workspace()
		if err == nil {
			return ws.Jobs, nil, nil
		}
		if exitcodes.From(err) != exitcodes.NoInput || a.dir != "" {
			return nil, nil, err
		}
	}
	folders, err := a.folders()
	if err != nil {
		return nil, nil, err
	}
	registered, err := folders.Registered()
	if err != nil {
		return nil, nil, err
	}
	for _, r := range registered {
		ws, err := workspace.Load(r.Dir)
		if err != nil {
			broken = append(broken, fmt.Errorf("agent %s: %w", r.Agent, err))
			continue
		}
		jobs = append(jobs, ws.Jobs...)
	}
	return jobs, broken, nil
}

func (a *App) printStates(states []scheduler.JobState) error {
	if len(states) == 0 {
		a.printf("No agent is installed for this user. In a workspace: agentd install\n")
		return nil
	}
	now := a.Now()
	w := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	tabf(w, "JOB\tSTATE\tLAST\tNEXT\n")
	for _, s := range states {
		tabf(w, "%s/%s\t%s\t%s\t%s\n", s.Agent, s.Job, stateText(s, now), lastText(s, now), nextText(s, now))
	}
	return w.Flush()
}

func stateText(s scheduler.JobState, now time.Time) string {
	switch s.State {
	case scheduler.Running:
		return "running " + span(now.Sub(*s.StartedAt)) + " (lane " + s.Lane + ")"
	case scheduler.Pending:
		return "goes on " + clock(s.PendingResume.NotBefore, now) + " (" + s.PendingResume.Reason + ")"
	case scheduler.Off:
		return "off"
	case scheduler.Manual:
		return "by hand"
	case scheduler.Dormant:
		return "not started: agentd install"
	case scheduler.Idle:
		return "idle"
	}
	return string(s.State)
}

func lastText(s scheduler.JobState, now time.Time) string {
	switch {
	case s.RunID == "":
		return "never"
	case s.Code == nil:
		return "running"
	}
	text := s.Name
	if *s.Code != exitcodes.OK {
		text += " (" + itoa(int(*s.Code)) + ")"
	}
	return text + "  " + distance(*s.EndedAt, now)
}

func nextText(s scheduler.JobState, now time.Time) string {
	if s.Next == nil {
		return "-"
	}
	return clock(*s.Next, now) + " (" + distance(*s.Next, now) + ")"
}

var _ scheduler.Units = (*systemd.Conn)(nil)
