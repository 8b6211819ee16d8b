package cli

import (
	"bytes"
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"agentd/exitcodes"
	"agentd/scheduler"
	"agentd/scheduler/daemon"
	"agentd/systemd"
	"agentd/workspace"
)

type statusOptions struct {
	scope string
	all   bool
	watch bool
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
			if o.watch {
				return a.watchStatus(cmd.Context(), o, args)
			}
			return a.status(cmd.Context(), o, args)
		},
	}
	scopeFlag(cmd, &o.scope)
	cmd.Flags().BoolVarP(&o.all, "all", "a", false, "the jobs of all agents, not only of this workspace's")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "show it again as it changes, until Ctrl-C")
	return cmd
}

func (a *App) status(ctx context.Context, o statusOptions, args []string) error {
	jobs, broken, err := a.statusJobs(o.all, args)
	if err != nil {
		return err
	}
	target, conn, absent, err := a.target(ctx, o.scope)
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
	if err := a.closeCrashed(store); err != nil {
		return err
	}
	view := scheduler.View{Store: store, Units: units, Target: target, Now: a.Now(), Daemon: daemon.Held(folders.State)}
	states, err := view.Jobs(ctx, jobs)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(states)
	}
	start := "agentd install"
	if absent != nil {
		start = "agentd daemon" // or cron, which install explains
	}
	if err := a.printStates(states, start); err != nil {
		return err
	}
	for _, b := range broken {
		fmt.Fprintf(a.Stderr, "agentd: %s\n", oneLine(b.Error()))
	}
	if absent != nil && !view.Daemon {
		a.printf("No timer runs here: %s\n", oneLine(absent.Error()))
	}
	return nil
}

// watchEvery is how often a watched status is looked at.
const watchEvery = time.Second

// watchStatus shows the status again whenever it reads differently: over the
// former on a terminal, else below it.
func (a *App) watchStatus(ctx context.Context, o statusOptions, args []string) error {
	var shown []byte
	for {
		var now bytes.Buffer
		view := *a
		view.Stdout = &now
		if err := view.status(ctx, o, args); err != nil {
			return err
		}
		if !bytes.Equal(now.Bytes(), shown) {
			if a.terminal(a.Stdout) && !a.json {
				a.printf("\x1b[H\x1b[2J") // to the corner, and clear
			} else if shown != nil && !a.json {
				a.printf("\n")
			}
			shown = now.Bytes()
			if _, err := a.Stdout.Write(shown); err != nil {
				return nil // the reader went away
			}
		}
		if err := sleep(ctx, watchEvery); err != nil {
			return context.Cause(ctx)
		}
	}
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

// printStates prints a table; start is what starts the jobs that nothing does.
func (a *App) printStates(states []scheduler.JobState, start string) error {
	if len(states) == 0 {
		a.printf("No agent is installed for this user. In a workspace: agentd install\n")
		return nil
	}
	now := a.Now()
	w := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	tabf(w, "JOB\tSTATE\tLAST\tNEXT\n")
	for _, s := range states {
		tabf(w, "%s/%s\t%s\t%s\t%s\n", s.Agent, s.Job, stateText(s, now, start), lastText(s, now), nextText(s, now))
	}
	return w.Flush()
}

func stateText(s scheduler.JobState, now time.Time, start string) string {
	switch s.State {
	case scheduler.Running:
		text := "running " + span(now.Sub(*s.StartedAt)) + " (lane " + s.Lane + ")"
		if s.Waiting {
			text = "waiting (lane " + s.Lane + "), begun " + distance(*s.StartedAt, now)
		}
		return text
	case scheduler.Pending:
		return pendingText(s, now)
	case scheduler.Off:
		return "off"
	case scheduler.Disabled:
		return "disabled since " + clock(*s.DisabledAt, now) + ": agentd enable " + s.Job
	case scheduler.Manual:
		return "by hand"
	case scheduler.Dormant:
		return "not started: " + start
	case scheduler.Idle:
		return "idle"
	}
	return string(s.State)
}

// pendingText is for a run that goes on later: when, why, and what is in its way.
func pendingText(s scheduler.JobState, now time.Time) string {
	reason := " (" + s.PendingResume.Reason + ")"
	due := s.PendingResume.NotBefore
	switch {
	case s.DisabledAt != nil:
		return "disabled since " + clock(*s.DisabledAt, now) + ", with a run to go on" + reason + ": agentd enable " + s.Job
	case due.After(now):
		return "goes on " + clock(due, now) + reason
	}
	return "due since " + clock(due, now) + reason + ": agentd resume " + s.Job
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
	if s.Next.Sub(now) < time.Second {
		return "now"
	}
	return clock(*s.Next, now) + " (" + distance(*s.Next, now) + ")"
}

var _ scheduler.Units = (*systemd.Conn)(nil)
