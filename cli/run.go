package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"agentd/backend"
	"agentd/exitcodes"
	"agentd/history"
	"agentd/runner"
	"agentd/systemd"
	"agentd/workspace"
)

type runOptions struct {
	resume  string
	prompt  string
	trigger string
	runID   string
}

// latest is what --resume without a session means.
const latest = "latest"

func (a *App) runCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run JOB [-- ARG...]",
		Short: "Run a job now",
		Long: `Run takes the job's lane, continues or starts its session, runs its backend,
and ends with the code that says how it went (agentd exitcodes). Arguments after
-- go to the backend's program.

Ctrl-C ends a run for good. SIGTERM is how a machine goes down: a run that waits
between two attempts then goes on later, by itself or with agentd resume.`,
		Example: `  agentd run triage
  agentd run bob/triage --resume
  agentd run triage --prompt "Only look at issue 12."`,
		Args: jobThenArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := saysSomething(cmd, "resume", "prompt", "run-id"); err != nil {
				return err
			}
			return a.run(cmd, o, args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.resume, "resume", "", "continue `SESSION`, by its name or the start of it, or without a value the job's latest session")
	f.Lookup("resume").NoOptDefVal = latest
	f.StringVar(&o.prompt, "prompt", "", "say `TEXT` instead of the job's prompt; - reads it from standard input")
	f.StringVar(&o.trigger, "trigger", "manual", "what started the run: timer, daemon, manual, resume or script")
	f.StringVar(&o.runID, "run-id", "", "the run's `ID`, where a script made it and writes the log")
	_ = f.MarkHidden("run-id")
	return cmd
}

// jobThenArgs wants one job; all else stands behind "--".
func jobThenArgs(cmd *cobra.Command, args []string) error {
	dash := cmd.ArgsLenAtDash()
	if dash == -1 {
		dash = len(args)
	}
	if dash != 1 {
		return exitcodes.Errorf(exitcodes.Usage, "run takes one job, and arguments for its program only behind --; it got %d", dash)
	}
	return nil
}

// saysSomething refuses an empty value for the flags named: it comes from a
// variable of a script that was not set, and would be taken for no flag.
func saysSomething(cmd *cobra.Command, flags ...string) error {
	for _, name := range flags {
		if f := cmd.Flags().Lookup(name); f.Changed && strings.TrimSpace(f.Value.String()) == "" {
			return exitcodes.Errorf(exitcodes.Usage, "--%s is empty", name)
		}
	}
	return nil
}

func (a *App) run(cmd *cobra.Command, o runOptions, args []string) error {
	outliveReader()
	if _, ok := systemd.ParseTrigger(o.trigger); !ok && !slices.Contains(history.Triggers(), o.trigger) {
		return exitcodes.Errorf(exitcodes.Usage, "unknown trigger %q", o.trigger).
			WithHint("Triggers: " + strings.Join(history.Triggers(), ", "))
	}
	if o.runID != "" {
		if err := history.CheckRunID(o.runID); err != nil {
			return err
		}
		if err := endWithParent(); err != nil {
			return err
		}
	}
	ws, job, err := a.job(args[0])
	if err != nil {
		return err
	}
	if len(args) > 1 && job.Backend == "builtin" {
		return exitcodes.Errorf(exitcodes.Usage, "job %s runs no program that would take %q: its backend is builtin", job.Address(), args[1])
	}
	if o.prompt, err = a.promptText(o.prompt); err != nil {
		return err
	}
	if scope, ok := systemd.ParseTrigger(o.trigger); ok {
		o.trigger = a.startedBy(cmd.Context(), scope, job)
	}
	folders, err := a.folders()
	if err != nil {
		return err
	}
	req := runner.Request{
		Workspace: ws,
		Job:       job,
		Trigger:   o.trigger,
		RunID:     o.runID,
		Prompt:    o.prompt,
		Args:      args[1:],
		Output:    a.Stdout,
		KeepLog:   o.runID == "",
	}
	switch o.resume {
	case "":
	case latest:
		req.Resume = true
	default:
		req.Session = o.resume
	}
	return a.finish(a.runner(folders).Run(cmd.Context(), req))
}

// promptText is the prompt of a command line: "-" is what stands on standard
// input.
func (a *App) promptText(prompt string) (string, error) {
	if prompt != "-" {
		return prompt, nil
	}
	data, err := io.ReadAll(a.Stdin)
	if err != nil {
		return "", exitcodes.Errorf(exitcodes.IO, "cannot read the prompt: %w", err)
	}
	if strings.TrimSpace(string(data)) == "" {
		return "", exitcodes.Errorf(exitcodes.Usage, "standard input has no prompt")
	}
	return string(data), nil
}

// startedBy returns what made systemd start the job's service: a timer, or
// somebody by hand. Where it does not say, it is taken for the timer.
func (a *App) startedBy(ctx context.Context, scope systemd.Scope, job *workspace.Job) string {
	conn, err := systemd.Connect(ctx, scope, a.Getenv)
	if err != nil {
		fmt.Fprintf(a.Stderr, "taken for a start by the timer: %v\n", err)
		return "timer"
	}
	defer conn.Close()
	by, err := conn.StartedBy(ctx, systemd.JobName{Agent: job.Agent, Job: job.Name})
	switch {
	case err != nil:
		fmt.Fprintf(a.Stderr, "taken for a start by the timer: %v\n", err)
		return "timer"
	case by.Timer:
		return "timer"
	case by.Once:
		return "resume"
	default:
		return "manual"
	}
}

// endWithParent has the kernel send SIGTERM when the run script is killed in a
// way that it cannot pass on.
func endWithParent() error {
	runtime.LockOSThread() // the signal is tied to this thread
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGTERM), 0, 0, 0); err != nil {
		return exitcodes.Errorf(exitcodes.Software, "cannot tie agentd to its script: %w", err)
	}
	return nil
}

func (a *App) runner(folders workspace.Folders) *runner.Runner {
	return &runner.Runner{Folders: folders, Environ: a.Environ(), Backends: newBackend, Waker: waker{a}, Now: a.Now}
}

// closeCrashed closes the records of runs whose agentd died.
func (a *App) closeCrashed(store *history.Store) error {
	folders, err := a.folders()
	if err != nil {
		return err
	}
	return a.runner(folders).CloseCrashed(store)
}

// newBackend makes the backend that the job names.
func newBackend(job *workspace.Job, ws *workspace.Workspace, getenv func(string) string) (backend.Backend, error) {
	if job.Backend == "command" {
		return backend.NewCommand(), nil
	}
	if job.External() {
		return newExternal(job, ws, getenv)
	}
	return backend.NewBuiltin(backend.BuiltinOptions{Providers: ws.Providers, Getenv: getenv, Version: version}), nil
}

// newExternal makes the backend of an agent CLI.
func newExternal(job *workspace.Job, ws *workspace.Workspace, getenv func(string) string) (backend.Backend, error) {
	b, err := ws.Backend(job.Backend)
	if err != nil {
		return nil, err
	}
	folders, err := workspace.FoldersFromEnv(getenv)
	if err != nil {
		return nil, err
	}
	return backend.NewExternal(backend.ExternalOptions{Backend: b, Locks: filepath.Join(folders.State, "backends")})
}
