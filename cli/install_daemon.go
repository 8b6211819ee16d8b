package cli

import (
	"cmp"
	"context"
	"errors"

	"agentd/exitcodes"
	"agentd/scheduler"
	"agentd/systemd"
	"agentd/workspace"
)

// installDaemon has systemd run agentd daemon, and registers the workspace for
// it. Where it runs as another user, who has a registry of his own, it runs
// this workspace only.
func (a *App) installDaemon(ctx context.Context, o installOptions, ws *workspace.Workspace, target scheduler.Target, conn *systemd.Conn, absent error) error {
	if absent != nil {
		return exitcodes.Errorf(exitcodes.Unavailable, "no service can be installed: %w", absent).
			WithHint("Without systemd, start it as you start other programs: agentd daemon")
	}
	var dirs []string
	if !target.OwnState() {
		dirs = []string{ws.Dir}
	}
	plan, err := scheduler.NewDaemonPlan(target, o.force, dirs...)
	if err != nil {
		return err
	}
	refused := plan.Blocked()
	if target.OwnState() {
		refused = cmp.Or(a.ownName(ws.Agent, ws.Dir), refused)
	}
	if !o.dryRun {
		if refused != nil {
			return refused
		}
		if target.OwnState() {
			if err := a.register(ws); err != nil {
				return err
			}
		}
		if err := apply(ctx, plan, conn); err != nil {
			return err
		}
	}
	at := done
	if o.dryRun {
		at = planned(refused)
	}
	if err := errors.Join(a.printPlan(plan, nil, at), refused); err != nil || a.json {
		return err
	}
	timers, err := target.Installed(ws.Agent)
	if err != nil {
		return err
	}
	if len(timers) > 0 {
		a.printf("Its timers stay as well, and each firing is still one run. To leave it to the daemon: agentd uninstall, then agentd install --daemon\n")
	}
	return nil
}

func (a *App) uninstallDaemon(ctx context.Context, o uninstallOptions, jobs []string) error {
	if len(jobs) > 0 || o.agent != "" {
		return exitcodes.Errorf(exitcodes.Usage, "--daemon takes away the daemon's service, and nothing of a job or an agent")
	}
	target, conn, _, err := a.target(ctx, o.scope)
	if err != nil {
		return err
	}
	if conn != nil {
		defer conn.Close()
	}
	plan, err := scheduler.NewDaemonRemoval(target)
	if err != nil {
		return err
	}
	if !o.dryRun {
		if err := apply(ctx, plan, conn); err != nil {
			return err
		}
	}
	return a.printRemoval(plan, o.dryRun)
}
