package cli

import (
	"context"
	"errors"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"agentd/exitcodes"
	"agentd/history"
	"agentd/runner"
	"agentd/session"
	"agentd/workspace"
)

type resumeOptions struct {
	cancel bool
	arm    bool
	agent  string
	prompt string
}

func (a *App) resumeCommand() *cobra.Command {
	var o resumeOptions
	cmd := &cobra.Command{
		Use:   "resume [JOB|SESSION]",
		Short: "Go on with a run that met a limit, or with a session",
		Long: `Resume goes on now with the pending run of a job, whatever its reset time, under
the same record and in the same session. Without one it starts a new run of the
job in its latest session; a SESSION names one. Without an argument it lists the
pending runs.`,
		Example: `  agentd resume
  agentd resume triage
  agentd resume triage-2026-12-01 --prompt "Go on with the second half."
  agentd resume triage --cancel`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := saysSomething(cmd, "prompt"); err != nil {
				return err
			}
			if len(args) == 0 && o.prompt != "" {
				return exitcodes.Errorf(exitcodes.Usage, "--prompt needs a job or a session to say it to")
			}
			var err error
			if o.prompt, err = a.promptText(o.prompt); err != nil {
				return err
			}
			switch {
			case o.arm:
				ofAgent := func(r *history.Run) bool { return o.agent == "" || r.Agent == o.agent }
				return a.arm(cmd.Context(), ofAgent, func(r *history.Run) {
					a.say("%s goes on %s.\n", r.Address(), clock(r.PendingResume.NotBefore, a.Now()))
				})
			case len(args) == 0:
				return a.listPending(o)
			case o.cancel:
				return a.cancelPending(cmd.Context(), args[0])
			}
			return a.resume(cmd.Context(), o, args[0])
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.cancel, "cancel", false, "drop the pending run instead: it stays as it ended")
	f.StringVar(&o.prompt, "prompt", "", "say `TEXT` instead of the job's prompt, in a session; - reads it from standard input")
	f.BoolVar(&o.arm, "arm", false, "set the timers of pending runs again, as after a boot")
	f.StringVar(&o.agent, "agent", "", "with --arm: only this `AGENT`'s runs")
	for _, name := range []string{"arm", "agent"} { // for a unit only
		_ = f.MarkHidden(name)
	}
	return cmd
}

// pendingRuns returns the pending runs that arg means: a job's, or one by id.
// Crashed runs are closed first, since one may become pending by that.
func (a *App) pendingRuns(arg string) ([]*history.Run, error) {
	store, err := a.store()
	if err != nil {
		return nil, err
	}
	defer store.Close()
	if err := a.closeCrashed(store); err != nil {
		return nil, err
	}
	runs, err := store.PendingRuns()
	if err != nil {
		return nil, err
	}
	agent := ""
	if ws, err := a.workspace(); err == nil {
		agent = ws.Agent
	}
	var found []*history.Run
	for _, r := range runs {
		job := arg == r.Address() || arg == r.Job && (agent == "" || agent == r.Agent)
		if arg == "" || job || arg == r.RunID || arg == r.Session || strings.HasSuffix(r.RunID, arg) {
			found = append(found, r)
		}
	}
	return found, nil
}

func (a *App) listPending(o resumeOptions) error {
	if o.cancel {
		return exitcodes.Errorf(exitcodes.Usage, "--cancel needs a job, so that nothing is dropped by mistake")
	}
	runs, err := a.pendingRuns("")
	if err != nil {
		return err
	}
	if a.json {
		if runs == nil {
			runs = []*history.Run{}
		}
		return a.printJSON(runs)
	}
	if len(runs) == 0 {
		a.printf("No run is pending.\n")
		return nil
	}
	now := a.Now()
	w := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	tabf(w, "JOB\tRUN\tWHY\tGOES ON\tSESSION\n")
	for _, r := range runs {
		p := r.PendingResume
		tabf(w, "%s\t%s\t%s\t%s (%s)\t%s\n", r.Address(), short(r.RunID), p.Reason, clock(p.NotBefore, now), distance(p.NotBefore, now), r.Session)
	}
	return w.Flush()
}

func (a *App) cancelPending(ctx context.Context, arg string) error {
	runs, err := a.pendingRuns(arg)
	if err != nil {
		return err
	}
	if len(runs) == 0 {
		return exitcodes.Errorf(exitcodes.NoInput, "no run of %q is pending", arg).WithHint("All that are: agentd resume")
	}
	folders, err := a.folders()
	if err != nil {
		return err
	}
	for _, r := range runs {
		if err := a.runner(folders).Cancel(ctx, r.RunID); err != nil {
			return err
		}
		a.say("Dropped the pending run %s of %s.\n", short(r.RunID), r.Address())
	}
	return nil
}

func (a *App) resume(ctx context.Context, o resumeOptions, arg string) error {
	outliveReader()
	runs, err := a.pendingRuns(arg)
	if err != nil {
		return err
	}
	folders, err := a.folders()
	if err != nil {
		return err
	}
	if len(runs) > 0 && o.prompt == "" {
		return a.resumeRun(ctx, folders, runs[0])
	}
	ws, job, err := a.job(arg)
	if err == nil {
		req := runner.Request{Workspace: ws, Job: job, Trigger: "resume", Prompt: o.prompt, Resume: true, Output: a.Stdout, KeepLog: true}
		return a.finish(a.runner(folders).Run(ctx, req))
	}
	if exitcodes.From(err) != exitcodes.NoInput {
		return err
	}
	return a.resumeSession(ctx, folders, o, arg, err)
}

func (a *App) resumeRun(ctx context.Context, folders workspace.Folders, r *history.Run) error {
	ws, job, err := workspace.LoadJob(r.Workspace, r.Job)
	if err != nil {
		return err
	}
	record, err := a.runner(folders).Resume(ctx, runner.Request{Workspace: ws, Job: job, Trigger: "resume", Output: a.Stdout, KeepLog: true}, r.RunID)
	if record == nil && err == nil {
		return exitcodes.Errorf(exitcodes.LaneBusy, "run %s was taken on by another agentd meanwhile", r.RunID)
	}
	return a.finish(record, err)
}

// resumeSession starts a new run, in a session that arg names, of the job that
// used it last. noJob is why arg is not a job.
func (a *App) resumeSession(ctx context.Context, folders workspace.Folders, o resumeOptions, arg string, noJob error) error {
	st, agent, err := a.sessionStore()
	if err != nil {
		return err
	}
	info, err := st.Find(agent, arg)
	if err != nil {
		return noJob
	}
	run, err := a.lastIn(info)
	if err != nil {
		return err
	}
	ws, job, err := workspace.LoadJob(run.Workspace, run.Job)
	if err != nil {
		return err
	}
	req := runner.Request{Workspace: ws, Job: job, Trigger: "resume", Prompt: o.prompt, Session: info.Name, Output: a.Stdout, KeepLog: true}
	return a.finish(a.runner(folders).Run(ctx, req))
}

// lastIn returns the newest run in a session.
func (a *App) lastIn(info session.Info) (*history.Run, error) {
	store, err := a.store()
	if err != nil {
		return nil, err
	}
	defer store.Close()
	runs, err := store.List(history.Filter{Agent: info.Agent})
	if err != nil {
		return nil, err
	}
	for _, r := range runs {
		if r.Session == info.Name {
			return r, nil
		}
	}
	return nil, exitcodes.Errorf(exitcodes.NoInput, "no run in history used session %s/%s", info.Agent, info.Name).
		WithHint("Name the job: agentd run JOB --resume=" + info.Name)
}

// finish prints the record for programs and passes the error on.
func (a *App) finish(record *history.Run, err error) error {
	if a.json && record != nil {
		if jsonErr := a.printJSON(record); jsonErr != nil && err == nil {
			return jsonErr
		}
	}
	return err
}

// arm sets the timers of the pending runs that are meant, and tells armed of
// each. A boot takes the timers away.
func (a *App) arm(ctx context.Context, meant func(*history.Run) bool, armed func(*history.Run)) error {
	folders, err := a.folders()
	if err != nil {
		return err
	}
	runs, err := a.pendingRuns("")
	if err != nil {
		return err
	}
	var errs []error
	for _, r := range runs {
		if !meant(r) {
			continue
		}
		if err := a.runner(folders).Arm(ctx, r); err != nil {
			errs = append(errs, err)
			continue
		}
		armed(r)
	}
	return errors.Join(errs...)
}
