package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"

	"agentd/exitcodes"
	"agentd/firings"
	"agentd/history"
	"agentd/process"
	"agentd/scheduler/daemon"
	"agentd/systemd"
	"agentd/workspace"
)

type daemonOptions struct {
	maxRuns int
	standby bool
}

func (a *App) daemonCommand() *cobra.Command {
	var o daemonOptions
	cmd := &cobra.Command{
		Use:   "daemon [DIR...]",
		Short: "Run jobs at their times without systemd, as in a container",
		Long: `Daemon runs the jobs of all workspaces that agentd install has registered, or of
those in the given folders only, until a signal ends it.

Each run is a process of its own, and its lines come out with the job's address
before them. Lanes, limits and records are those of agentd run. What fell due
while the daemon was not there, or the machine slept, is made up for by one run;
with catch_up = false it is told and left out. A firing that a systemd timer has
taken is not taken again. Runs that met a limit go on at their time.

A change of an agentd.toml is taken over when it is saved, and on SIGHUP: runs
under way go on, and jobs whose times have not changed keep them. While a file
has mistakes its jobs stay as they were. agentd disable and agentd enable count.

SIGTERM and SIGINT stop the runs in good order: each has its job's grace to end.
A second one ends them at once.`,
		Example: `  agentd daemon
  agentd daemon /agents/bob /agents/eve     in a container, also as its first process
  agentd daemon --max-runs 2
  agentd daemon --standby                   take over when the other daemon ends`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.daemon(cmd.Context(), o, args)
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.maxRuns, "max-runs", 0, "how many runs at once, at most `N`; others wait, one a job (default: 4 for each processor, at least 16)")
	f.BoolVar(&o.standby, "standby", false, "if another daemon runs here, wait until it ends")
	return cmd
}

func (a *App) daemon(ctx context.Context, o daemonOptions, args []string) error {
	if o.maxRuns < 0 {
		return exitcodes.Errorf(exitcodes.Usage, "--max-runs %d is less than 1", o.maxRuns)
	}
	if o.maxRuns == 0 {
		o.maxRuns = max(16, 4*runtime.NumCPU())
	}
	if a.dir != "" {
		args = append([]string{a.dir}, args...)
	}
	folders, err := a.folders()
	if err != nil {
		return err
	}
	c, err := a.daemonConfig(folders, args)
	if err != nil {
		return err
	}
	c.MaxRuns = o.maxRuns
	lock, err := daemon.TakeLock(ctx, folders.State, a.Now(), o.standby, func(holder string) {
		fmt.Fprintf(a.Stderr, "agentd: on standby until the other daemon ends: %s\n", holder)
	})
	if err != nil {
		return err
	}
	defer func() { _ = lock.Release() }() // the end of the process does it too
	// For this verb SIGHUP does not mean the end, and a second signal matters.
	signal.Reset(syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT)
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(signals)
	outliveReader()
	if ctx.Err() != nil { // meanwhile
		return context.Cause(ctx)
	}
	return daemon.Run(c, signals)
}

func (a *App) daemonConfig(folders workspace.Folders, args []string) (daemon.Config, error) {
	target, err := a.targetIn(systemd.User)
	if err != nil {
		return daemon.Config{}, err
	}
	var dirs []string
	for _, arg := range args {
		dir, err := filepath.Abs(arg)
		if err != nil {
			return daemon.Config{}, exitcodes.Errorf(exitcodes.NoInput, "cannot find the workspace %s: %w", arg, err)
		}
		dirs = append(dirs, dir)
	}
	return daemon.Config{
		Dirs: dirs, Agents: folders.Agents(), List: registeredDirs(folders),
		Book: firings.Book{Dir: folders.State}, Boot: process.Self().BootID,
		Pending: pendingFirings(folders.State),
		Disabled: func(n daemon.Name) bool {
			return !target.DisabledSince(systemd.JobName{Agent: n.Agent, Job: n.Job}).IsZero()
		},
		Argv: func(f daemon.Firing) []string {
			return []string{target.Agentd, "run", f.Name.String(), "--trigger", f.Trigger, "-C", f.Dir}
		},
		Closer:  []string{target.Agentd, "resume", "--json"}, // listing what is pending closes what has crashed
		Environ: a.Environ(), Stdout: a.Stdout, Stderr: a.Stderr,
	}, nil
}

func registeredDirs(folders workspace.Folders) func() ([]string, error) {
	return func() ([]string, error) {
		list, err := folders.Registered()
		dirs := make([]string, len(list))
		for i, r := range list {
			dirs[i] = r.Dir
		}
		return dirs, err
	}
}

// pendingFirings lists the runs that are to go on, with their times.
func pendingFirings(state string) func() ([]daemon.Firing, error) {
	return func() ([]daemon.Firing, error) {
		store, err := history.Open(state)
		if err != nil {
			return nil, err
		}
		defer store.Close()
		runs, err := store.PendingRuns()
		var list []daemon.Firing
		for _, r := range runs {
			list = append(list, daemon.Firing{
				Name: daemon.Name{Agent: r.Agent, Job: r.Job}, Dir: r.Workspace, Trigger: "resume",
				RunID: r.RunID, Due: r.PendingResume.NotBefore,
			})
		}
		return list, err
	}
}
