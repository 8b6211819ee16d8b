package cli

import (
	"context"
	"os"
	"os/user"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"
	"mvdan.cc/sh/v3/syntax"

	"agentd/exitcodes"
	"agentd/scheduler"
	"agentd/systemd"
	"agentd/workspace"
)

type uninstallOptions struct {
	scope  string
	agent  string
	dryRun bool
	daemon bool
}

func (a *App) uninstallCommand() *cobra.Command {
	var o uninstallOptions
	cmd := &cobra.Command{
		Use:   "uninstall [JOB...]",
		Short: "Stop the timers and take away what install wrote",
		Long: `Uninstall stops the timers and running services of this workspace's agent (or
only of the jobs named), and removes their units, timer stamps and run scripts.
Records, sessions and the workspace itself stay.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.uninstall(cmd.Context(), o, args)
		},
	}
	f := cmd.Flags()
	scopeFlag(cmd, &o.scope)
	f.StringVar(&o.agent, "agent", "", "the agent's `NAME`, where its workspace is gone")
	f.BoolVar(&o.daemon, "daemon", false, "take away the service of agentd daemon instead")
	f.BoolVar(&o.dryRun, "dry-run", false, "show what would be removed, and change nothing")
	return cmd
}

func (a *App) uninstall(ctx context.Context, o uninstallOptions, jobs []string) error {
	if o.daemon {
		return a.uninstallDaemon(ctx, o, jobs)
	}
	agent, err := a.agentName(o.agent)
	if err != nil {
		return err
	}
	target, conn, _, err := a.target(ctx, o.scope)
	if err != nil {
		return err
	}
	if conn != nil {
		defer conn.Close()
	}
	plan, err := scheduler.NewRemoval(agent, target, jobs...)
	if err != nil {
		return err
	}
	if !o.dryRun {
		if err := apply(ctx, plan, conn); err != nil {
			return err
		}
		if err := a.forget(agent, target); err != nil {
			return err
		}
	}
	return a.printRemoval(plan, o.dryRun)
}

// agentName is the agent asked for, or that of the workspace at hand. A broken
// agentd.toml must not stand in the way of an uninstall.
func (a *App) agentName(name string) (string, error) {
	if name != "" {
		return name, nil
	}
	dir, err := a.findWorkspace()
	if err != nil {
		return "", err
	}
	folders, err := a.folders()
	if err != nil {
		return "", err
	}
	ws, err := workspace.Load(dir)
	if err == nil {
		if err := folders.CheckOwner(ws.Agent, dir); err != nil {
			return "", exitcodes.Errorf(exitcodes.Config, "nothing is removed: %w", err).
				WithHint("To take away what was installed there: agentd uninstall --agent " + ws.Agent)
		}
		return ws.Agent, nil
	}
	registered, listErr := folders.Registered()
	if listErr == nil {
		for _, r := range registered {
			if r.Dir == dir {
				return r.Agent, nil
			}
		}
	}
	return "", err
}

// forget unregisters an agent of which nothing is installed any more.
func (a *App) forget(agent string, target scheduler.Target) error {
	left, err := target.Installed(agent)
	if err != nil || len(left) > 0 {
		return err
	}
	folders, err := a.folders()
	if err != nil {
		return err
	}
	return folders.Unregister(agent)
}

func (a *App) printRemoval(p *scheduler.Plan, dry bool) error {
	if a.json {
		return a.printJSON(p.Jobs)
	}
	_, _, removed := p.Count()
	command := "agentd uninstall"
	if p.Agent == systemd.Daemon.Agent {
		command += " --daemon"
	}
	if removed == 0 && p.Agent == systemd.Daemon.Agent {
		a.printf("The daemon's service is not installed.\n")
		return nil
	}
	if removed == 0 {
		a.printf("Nothing of agent %s is installed.\n", p.Agent)
		return nil
	}
	for _, j := range p.Jobs {
		a.printf("%s\n", j.Name)
		for _, f := range j.Files {
			if f.Action == scheduler.Remove {
				a.printf("  - %s\n", a.shown(f.Path))
			}
		}
	}
	if dry {
		a.printf("%s to remove. To do it: %s\n", count(removed, "file"), command)
		return nil
	}
	a.printf("%s removed.\n", count(removed, "file"))
	return nil
}

// ownerOf returns the name of the user who owns dir.
func ownerOf(dir string) (string, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return "", exitcodes.Errorf(exitcodes.NoInput, "cannot look at the workspace: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", exitcodes.Errorf(exitcodes.Failure, "cannot tell who owns %s", dir)
	}
	u, err := user.LookupId(strconv.Itoa(int(stat.Uid)))
	if err != nil {
		return "", exitcodes.Errorf(exitcodes.Config, "cannot tell who owns %s: %w", dir, err).WithHint("Name the user: --user USER")
	}
	if u.Uid == "0" {
		return "", nil
	}
	return u.Username, nil
}

// shellWord is s as one word for a shell, so that what is shown can be pasted.
func shellWord(s string) string {
	if quoted, err := syntax.Quote(s, syntax.LangBash); err == nil {
		return quoted
	}
	return strconv.Quote(s)
}
