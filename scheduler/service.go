package scheduler

import (
	"context"

	"agentd/systemd"
)

// NewDaemonPlan returns what has to be done to have systemd run agentd daemon
// on the registered workspaces, or on the given ones only.
func NewDaemonPlan(t Target, force bool, dirs ...string) (*Plan, error) {
	found, err := t.installed(systemd.Daemon.Agent)
	if err != nil {
		return nil, err
	}
	own, err := t.forUser()
	if err != nil {
		return nil, err
	}
	text, err := systemd.DaemonService{
		Agentd: t.Agentd, Workspaces: dirs, Env: own.Env, Scope: t.Scope, User: t.User, Version: t.Version,
	}.Bytes()
	if err != nil {
		return nil, err
	}
	change, err := compare(systemd.Daemon, []Artifact{{t.service(systemd.Daemon), text, 0o644}}, found[systemd.Daemon], force)
	return &Plan{Agent: systemd.Daemon.Agent, Target: t, Jobs: []JobChange{change}}, err
}

// NewDaemonRemoval returns a plan that takes the daemon's service away.
func NewDaemonRemoval(t Target) (*Plan, error) {
	found, err := t.installed(systemd.Daemon.Agent)
	if err != nil {
		return nil, err
	}
	gone, err := removals(found, true)
	return &Plan{Agent: systemd.Daemon.Agent, Target: t, Jobs: gone, stopServices: true}, err
}

// HasDaemon reports whether the daemon's service is installed.
func (t Target) HasDaemon() bool { return isFile(t.service(systemd.Daemon)) }

// quietDaemon ends a daemon whose service changes: its runs end in good order.
func (a *applying) quietDaemon(ctx context.Context, j JobChange) error {
	f := a.bootFile(j)
	if j.Name != systemd.Daemon || f == nil || f.Action != Change || !a.before[j.Name].Running {
		return nil
	}
	unit := j.Name.Service()
	a.onUndo(func(ctx context.Context) error { return a.manager.Start(ctx, unit) })
	return a.manager.Stop(ctx, unit)
}

// startDaemon starts the daemon if it does not run.
func (a *applying) startDaemon(ctx context.Context, j JobChange) error {
	f := a.bootFile(j)
	if j.Name != systemd.Daemon || f == nil || f.Action == Remove || f.Action == Keep && a.before[j.Name].Running {
		return nil
	}
	unit := j.Name.Service()
	a.onUndo(func(ctx context.Context) error { return a.manager.Stop(ctx, unit) })
	if err := a.manager.Start(ctx, unit); err != nil {
		_ = a.manager.ResetFailed(ctx, unit)
		return err
	}
	a.report.Started = append(a.report.Started, unit)
	return nil
}
