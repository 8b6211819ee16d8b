package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"agentd/scheduler"
	"agentd/scheduler/expr"
	"agentd/systemd"
	"agentd/workspace"
)

// units compares what is installed with agentd.toml, and asks systemd about
// the timers.
func (p Patient) units(ctx context.Context, ws *workspace.Workspace, target scheduler.Target) []Finding {
	plan, err := scheduler.NewPlan(ws, target, scheduler.Options{})
	if err != nil {
		return []Finding{failed("units", err)}
	}
	var list []Finding
	if err := plan.Blocked(); err != nil {
		list = append(list, failed("units", err))
		list[0].Level = Warn
	} else if added, changed, removed := differing(plan); added+changed+removed > 0 && !(target.HasDaemon() && changed+removed == 0 && untouched(plan)) {
		list = append(list, Finding{
			Check: "units", Level: Warn, Text: fmt.Sprintf("%s: what is installed is not what agentd.toml says now: %d to add, %d to change, %d to remove", ws.Agent, added, changed, removed),
			Fix: "agentd -C " + ws.Dir + " install", repair: p.reinstall(ws, target),
		})
	}
	return append(list, p.timers(ctx, ws, target)...)
}

// untouched reports whether nothing of the agent is installed: its jobs are left
// to the daemon.
func untouched(plan *scheduler.Plan) bool {
	return !slices.ContainsFunc(plan.Jobs, func(j scheduler.JobChange) bool {
		return slices.ContainsFunc(j.Files, func(f scheduler.FileChange) bool { return f.Action != scheduler.Add })
	})
}

// differing counts what an install would do, but for scripts that differ
// because this shell has another PATH than the one that installed them.
func differing(plan *scheduler.Plan) (added, changed, removed int) {
	added, changed, removed = plan.Count()
	for _, j := range plan.Jobs {
		for _, f := range j.Files {
			if f.Action == scheduler.Change && f.OnlyEnvironment() {
				changed--
			}
		}
	}
	return added, changed, removed
}

// reinstall returns a repair that installs the jobs, all if none is named.
func (p Patient) reinstall(ws *workspace.Workspace, target scheduler.Target, jobs ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		plan, err := scheduler.NewPlan(ws, target, scheduler.Options{Jobs: jobs})
		if err != nil {
			return err
		}
		return p.apply(ctx, plan)
	}
}

func (p Patient) apply(ctx context.Context, plan *scheduler.Plan) error {
	var m scheduler.Manager // nil without a systemd: files are all there is
	if p.Manager != nil {
		m = p.Manager
	}
	_, err := plan.Apply(ctx, m)
	return err
}

// timers finds jobs that should run by themselves and do not, and services
// that systemd could not even start.
func (p Patient) timers(ctx context.Context, ws *workspace.Workspace, target scheduler.Target) []Finding {
	if p.Manager == nil || len(ws.Jobs) == 0 {
		return nil
	}
	names := make([]systemd.JobName, len(ws.Jobs))
	for i, j := range ws.Jobs {
		names[i] = scheduler.NameOf(j)
	}
	states, err := p.Manager.Status(ctx, names...)
	if err != nil {
		return []Finding{failed("timers", err)}
	}
	var list []Finding
	for i, s := range states {
		job := ws.Jobs[i]
		since := target.DisabledSince(s.Name)
		switch {
		case s.Refused != "":
			list = append(list, Finding{
				Check: "timers", Level: Fail, Text: fmt.Sprintf("%s: systemd does not take a unit of it: %s", job.Address(), s.Refused),
				Fix: "look at its drop-ins: systemctl " + journalScope(target.Scope) + " cat " + s.Name.Service(),
			})
		case !s.Installed || !scheduler.Scheduled(job):
		case !since.IsZero():
			list = append(list, Finding{Check: "timers", Level: Warn, Text: job.Address() + " is disabled since " + since.Format("2 Jan 2006"), Fix: "agentd enable " + job.Address()})
		case !s.Waiting || !s.Enabled:
			list = append(list, Finding{
				Check: "timers", Level: Fail, Text: job.Address() + ": its timer does not run, or not after a boot",
				Fix: "agentd -C " + ws.Dir + " install", repair: p.reinstall(ws, target, job.Name),
			})
		case s.Next.IsZero() && !s.Running && !expr.Earliest(p.Now, job.Schedules).IsZero():
			list = append(list, Finding{
				Check: "timers", Level: Fail, Text: job.Address() + ": its timer runs and never fires",
				Fix: "systemctl " + journalScope(target.Scope) + " cat " + s.Name.Timer() + ", and look at its drop-ins",
			})
		}
		list = append(list, otherTimes(job, filepath.Join(target.UnitDir, s.Name.Timer()+".d"))...)
		if reason := beforeAgentd(s); reason != "" {
			list = append(list, Finding{
				Check: "timers", Level: Fail, Text: fmt.Sprintf("%s: systemd could not start its last run: %s", job.Address(), reason),
				Fix: "journalctl " + journalScope(target.Scope) + " -u " + s.Name.Service(),
			})
		}
	}
	return list
}

// otherTimes finds drop-ins with times of their own: at these the job starts,
// and ends at once, since its schedule is that of agentd.toml.
func otherTimes(job *workspace.Job, dir string) []Finding {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil // there are none
	}
	var list []Finding
	for _, f := range files {
		path := filepath.Join(dir, f.Name())
		if text, err := os.ReadFile(path); err == nil && systemd.SetsTimes(text) {
			list = append(list, Finding{
				Check: "timers", Level: Warn, Text: fmt.Sprintf("%s: %s sets times at which no run comes: runs go by agentd.toml", job.Address(), path),
				Fix: "put the schedule into agentd.toml, and remove the drop-in",
			})
		}
	}
	return list
}

func journalScope(s systemd.Scope) string { return "--" + string(s) }

// beforeAgentd explains the statuses that systemd itself gives a service whose
// program it could not start; agentd has none of them.
func beforeAgentd(s systemd.JobStatus) string {
	if s.Result == "success" || s.Status < 200 || s.Status > 243 {
		return ""
	}
	reasons := map[int]string{
		200: "it cannot enter the working directory", 203: "it cannot execute /bin/bash", 216: "there is no such group", 217: "there is no such user",
		226: "it cannot set up the name spaces of the sandbox: hardening = false, or a newer kernel", 228: "it cannot set up the filter of system calls",
		243: "a credential is missing or cannot be decrypted",
	}
	if r, ok := reasons[s.Status]; ok {
		return r
	}
	return fmt.Sprintf("status %d, see \"Process Exit Codes\" in systemd.exec(5)", s.Status)
}

// times tells of schedules that do not do what one may think.
func (p Patient) times(ws *workspace.Workspace) []Finding {
	var list []Finding
	for _, job := range ws.Jobs {
		if !scheduler.Scheduled(job) {
			continue
		}
		if expr.Earliest(p.Now, job.Schedules).IsZero() && !slices.ContainsFunc(job.Schedules, func(s *expr.Schedule) bool { return s.Kind() == expr.Boot }) {
			list = append(list, Finding{Check: "times", Level: Warn, Text: job.Address() + " never runs again: all its times are past", Fix: "give it another schedule, or enabled = false"})
		}
		for _, s := range job.Schedules {
			for _, w := range s.Warnings(p.Now) {
				list = append(list, Finding{Check: "times", Level: Warn, Text: job.Address() + ": " + w})
			}
		}
	}
	return list
}

// daemon looks at the daemon's service, if it is installed.
func (p Patient) daemon(ctx context.Context) []Finding {
	if p.Manager == nil || !p.Target.HasDaemon() {
		return nil
	}
	unit := systemd.Daemon.Service()
	states, err := p.Manager.States(ctx, systemd.Daemon)
	switch {
	case err != nil:
		return []Finding{failed("daemon", err)}
	case states[0].Running && states[0].Enabled:
		return []Finding{{Check: "daemon", Level: OK, Text: "agentd daemon runs as a service"}}
	}
	return []Finding{{
		Check: "daemon", Level: Fail, Text: "agentd daemon is installed as a service, and does not run, or not after a boot",
		Fix: "systemctl " + journalScope(p.Target.Scope) + " enable --now " + unit + "; to see what it says: journalctl " + journalScope(p.Target.Scope) + " -u " + unit,
		repair: func(ctx context.Context) error {
			if err := p.Manager.Enable(ctx, unit); err != nil {
				return err
			}
			return p.Manager.Start(ctx, unit)
		},
	}}
}

// gone is an agent whose workspace is not there any more.
func (p Patient) gone(r workspace.Registration) Finding {
	return Finding{
		Check: "workspace", Level: Fail, Text: fmt.Sprintf("%s: its workspace %s is gone", r.Agent, r.Dir),
		Fix: "agentd uninstall --agent " + r.Agent, repair: func(ctx context.Context) error {
			if err := p.remove(ctx, r.Agent); err != nil {
				return err
			}
			return p.Folders.Unregister(r.Agent)
		},
	}
}

func (p Patient) remove(ctx context.Context, agent string) error {
	plan, err := scheduler.NewRemoval(agent, p.Target)
	if err != nil {
		return err
	}
	return p.apply(ctx, plan)
}

// orphans finds units of agents that nobody knows, whose workspaces are gone.
func (p Patient) orphans(known []workspace.Registration) []Finding {
	files, err := os.ReadDir(p.Target.UnitDir)
	if err != nil {
		return nil // nothing is installed
	}
	var list []Finding
	seen := map[string]bool{}
	for _, f := range files {
		name, ok := systemd.ParseName(f.Name())
		if !ok || name == systemd.Daemon || seen[name.Agent] || slices.ContainsFunc(known, func(r workspace.Registration) bool { return r.Agent == name.Agent }) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(p.Target.UnitDir, f.Name()))
		if err != nil {
			continue
		}
		owner, ok := systemd.OwnerOf(text)
		if !ok || owner.Name != name {
			continue
		}
		if _, err := os.Stat(owner.Workspace); err == nil {
			continue
		}
		seen[name.Agent] = true
		list = append(list, Finding{
			Check: "units", Level: Fail, Text: fmt.Sprintf("%s has units, but its workspace %s is gone", name.Agent, owner.Workspace),
			Fix: "agentd uninstall --agent " + name.Agent, repair: func(ctx context.Context) error { return p.remove(ctx, name.Agent) },
		})
	}
	return list
}
