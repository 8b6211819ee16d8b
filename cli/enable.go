package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"agentd/exitcodes"
	"agentd/history"
	"agentd/scheduler"
	"agentd/systemd"
)

// switching is one of the verbs that switch jobs.
type switching struct {
	name, short, long string
	do                func(scheduler.Target, context.Context, scheduler.Switches, ...systemd.JobName) ([]scheduler.Switched, error)
	alone             func(scheduler.Target, ...systemd.JobName) ([]scheduler.Switched, error) // without systemd; nil: not possible
	timer             bool                                                                     // it is about timers: --all leaves out jobs without one
	done, before      string                                                                   // what to say of a job that changed, or was so before
}

func (a *App) switchCommands() []*cobra.Command {
	return []*cobra.Command{
		a.switchCommand(switching{
			name: "enable", short: "Start the timers of disabled jobs again",
			long: `Enable takes back a disable. What the job would have run meanwhile is not made
up for.`,
			do: scheduler.Target.Enable, alone: a.unmark, timer: true, done: "enabled", before: "was enabled already",
		}),
		a.switchCommand(switching{
			name: "disable", short: "Keep jobs from running by themselves, whatever is installed later",
			long: `Disable stops the timers of jobs. Later installs leave them stopped. A run that
is under way goes on to its end (agentd stop ends it); one that was to go on later
waits for enable. Runs by hand still work.
agentd daemon heeds it too, and there no install is needed.`,
			do: scheduler.Target.Disable, alone: scheduler.Target.Mark, timer: true, done: "disabled; to undo it: agentd enable", before: "was disabled already",
		}),
		a.switchCommand(switching{
			name: "start", short: "Have systemd run jobs now, as their timers would",
			long: `Start has systemd run the services of jobs, with the environment and the limits
of a run at its time, and does not wait for the end. To run a job here and watch
it: agentd run.`,
			do: scheduler.Target.Start, done: "started; to watch it: agentd logs -f", before: "was running already",
		}),
		a.switchCommand(switching{
			name: "stop", short: "End the runs that systemd has started",
			long: `Stop ends the runs of jobs in good order: the agent gets SIGTERM, its job's grace
to end, and then SIGKILL. Their timers go on.`,
			do: scheduler.Target.Stop, done: "stopped", before: "was not running",
		}),
	}
}

type switchOptions struct {
	scope string
	all   bool
}

func (a *App) switchCommand(s switching) *cobra.Command {
	var o switchOptions
	cmd := &cobra.Command{
		Use:     s.name + " JOB...",
		Short:   s.short,
		Long:    s.long,
		Example: "  agentd " + s.name + " triage\n  agentd " + s.name + " --all",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.switchJobs(cmd.Context(), s, o, args)
		},
	}
	scopeFlag(cmd, &o.scope)
	cmd.Flags().BoolVarP(&o.all, "all", "a", false, "all installed jobs of this workspace")
	return cmd
}

func (a *App) switchJobs(ctx context.Context, s switching, o switchOptions, args []string) error {
	if o.all == (len(args) > 0) {
		return exitcodes.Errorf(exitcodes.Usage, "name the jobs to %s, or say --all", s.name)
	}
	target, conn, absent, err := a.target(ctx, o.scope)
	if err != nil {
		return err
	}
	if absent != nil && s.alone == nil {
		return absent
	}
	if conn != nil {
		defer conn.Close()
	}
	jobs, err := a.switchedJobs(target, s, args)
	if err != nil {
		return err
	}
	var list, more []scheduler.Switched
	installed, others := jobs, []systemd.JobName(nil)
	if s.alone != nil {
		installed, others = split(jobs, func(j systemd.JobName) bool { return conn != nil && target.Has(j) })
	}
	if len(installed) > 0 {
		if list, err = s.do(target, ctx, conn, installed...); err != nil {
			return err
		}
	}
	if len(others) > 0 {
		if more, err = s.alone(target, others...); err != nil {
			return err
		}
		list = append(list, more...)
	}
	if s.timer && conn != nil {
		if err := a.rearm(ctx, jobs); err != nil {
			return err
		}
	}
	if a.json {
		return a.printJSON(list)
	}
	for _, j := range list {
		text := s.done
		if !j.Changed {
			text = s.before
		}
		a.printf("%s/%s  %s\n", j.Agent, j.Job, text)
	}
	return nil
}

// rearm sets the timers of the jobs' pending runs, or takes back those of
// disabled jobs.
func (a *App) rearm(ctx context.Context, jobs []systemd.JobName) error {
	return a.arm(ctx, func(r *history.Run) bool { return slices.Contains(jobs, jobName(r)) }, func(*history.Run) {})
}

// unmark is scheduler.Target.Unmark, now.
func (a *App) unmark(t scheduler.Target, jobs ...systemd.JobName) ([]scheduler.Switched, error) {
	return t.Unmark(a.Now(), jobs...)
}

// split returns the jobs for which is holds, and the others.
func split(jobs []systemd.JobName, is func(systemd.JobName) bool) (yes, no []systemd.JobName) {
	for _, j := range jobs {
		if is(j) {
			yes = append(yes, j)
		} else {
			no = append(no, j)
		}
	}
	return yes, no
}

// switchedJobs returns the jobs that are named, or all that can be switched.
func (a *App) switchedJobs(target scheduler.Target, s switching, args []string) ([]systemd.JobName, error) {
	var jobs []systemd.JobName
	for _, arg := range args {
		_, job, err := a.job(arg)
		if err != nil {
			return nil, err
		}
		if err := a.ownName(job.Agent, job.Dir); err != nil {
			return nil, err
		}
		jobs = append(jobs, scheduler.NameOf(job))
	}
	if len(args) > 0 {
		return jobs, nil
	}
	ws, err := a.workspace()
	if err != nil {
		return nil, err
	}
	if err := a.ownName(ws.Agent, ws.Dir); err != nil {
		return nil, err
	}
	for _, job := range ws.Jobs {
		name := scheduler.NameOf(job)
		if (s.alone != nil || target.Has(name)) && (!s.timer || scheduler.Scheduled(job)) {
			jobs = append(jobs, name)
		}
	}
	if len(jobs) == 0 {
		return nil, exitcodes.Errorf(exitcodes.NoInput, "nothing to %s: no job of %s is installed", s.name, ws.Agent).
			WithHint("Install them: agentd install")
	}
	return jobs, nil
}
