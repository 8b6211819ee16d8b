package scheduler

import (
	"io/fs"
	"slices"
	"time"

	"agentd/runscript"
	"agentd/scheduler/expr"
	"agentd/systemd"
	"agentd/workspace"
)

// Artifact is a file that install makes for a job.
type Artifact struct {
	Path string
	Text []byte
	Mode fs.FileMode
}

// NameOf returns the name of the job's units.
func NameOf(job *workspace.Job) systemd.JobName {
	return systemd.JobName{Agent: job.Agent, Job: job.Name}
}

// Scheduled reports whether the job gets a timer: it has a schedule and is
// switched on. Without one it can still be started by hand.
func Scheduled(job *workspace.Job) bool {
	return job.Enabled && len(job.Schedules) > 0
}

// Artifacts returns the files of a job: run.sh, the service and, if the job is
// Scheduled, the timer; then the drop-ins that the workspace has for them.
func (t Target) Artifacts(ws *workspace.Workspace, job *workspace.Job) ([]Artifact, error) {
	name := NameOf(job)
	t, err := t.forUser()
	if err != nil {
		return nil, err
	}
	script, err := runscript.Render(runscript.Spec{
		Agent: job.Agent, Job: job.Name, Path: t.Script(name),
		Agentd: t.Agentd, Workspace: job.Dir, StateDir: t.State, Env: t.Env,
	})
	if err != nil {
		return nil, err
	}
	unit := t.serviceOf(job)
	unit.Credentials = t.credentials(ws, job)
	service, err := unit.Bytes()
	if err != nil {
		return nil, err
	}
	files := []Artifact{
		{t.Script(name), script, t.scriptMode()},
		{t.service(name), service, 0o644},
	}
	dropIns, err := t.dropIns(job, Scheduled(job))
	if err != nil {
		return nil, err
	}
	files = append(files, dropIns...)
	if !Scheduled(job) {
		return files, nil
	}
	timer, err := systemd.Timer{
		Name: name, Workspace: job.Dir, When: when(job.Schedules),
		CatchUp: job.CatchUp, Jitter: job.Jitter, Wake: job.Unit.Wake, Scope: t.Scope, Version: t.Version,
	}.Bytes()
	if err != nil {
		return nil, err
	}
	// The timer is the third, before what belongs to it.
	return slices.Insert(files, 2, Artifact{t.timer(name), timer, 0o644}), nil
}

// arm returns the agent's own unit, which sets the timers of pending runs again
// after a boot. There is none where another user's runs would need root's
// systemd: those go on with their job's next firing.
func (t Target) arm(agent, dir string) ([]Artifact, error) {
	if t.Scope == systemd.System && t.User != "" && t.User != "root" {
		return nil, nil
	}
	text, err := systemd.Arm{Agent: agent, Workspace: dir, Agentd: t.Agentd, Env: t.folders(), Scope: t.Scope}.Bytes()
	if err != nil {
		return nil, err
	}
	return []Artifact{{t.service(systemd.JobName{Agent: agent}), text, 0o644}}, nil
}

// scriptMode lets the user of a system unit run a script that root wrote.
func (t Target) scriptMode() fs.FileMode {
	if t.Scope == systemd.System {
		return 0o755
	}
	return 0o700
}

func (t Target) serviceOf(job *workspace.Job) systemd.Service {
	return systemd.Service{
		Name: NameOf(job), Description: job.Description,
		Workspace: job.Dir, Script: t.Script(NameOf(job)), Needs: []string{t.Agentd, t.State},
		Start: Longest(job), Stop: job.Grace + closing,
		Scope: t.Scope, User: t.User, Version: t.Version,
		Hardening: job.Unit.Hardening, NetworkOnline: job.Unit.NetworkOnline, OnFailure: job.Unit.OnFailure,
		MemoryMax: job.Unit.MemoryMax, CPUQuota: job.Unit.CPUQuota, TasksMax: job.Unit.TasksMax,
		Nice: job.Unit.Nice, IOClass: job.Unit.IOClass,
	}
}

// closing is what agentd needs beyond the grace of what it started: to write
// records and to let tee end.
const closing = 30 * time.Second

// Longest returns how long a whole run can take: every attempt with its grace,
// every wait between them and for the lane. Only a run that hangs takes
// longer, and is ended by systemd. It is 0, no limit, if the job has none.
func Longest(job *workspace.Job) time.Duration {
	if job.Timeout <= 0 {
		return 0
	}
	attempts := time.Duration(max(job.Resume.Attempts, 1))
	pause := max(job.Resume.Cooldown, job.Resume.MaxWait)
	total := attempts*(job.LaneWait+job.Timeout+job.Grace) + (attempts-1)*pause + closing
	// A lane taken from a dead owner: what that one left behind gets the grace too.
	return (total + job.Grace).Round(time.Second)
}

// when returns the timer settings of all schedules.
func when(schedules []*expr.Schedule) []systemd.Entry {
	var entries []systemd.Entry
	for _, s := range schedules {
		for _, line := range s.OnCalendar() {
			entries = append(entries, systemd.Entry{Key: "OnCalendar", Value: line})
		}
		for _, setting := range s.Timer() {
			if setting.Key != "OnCalendar" {
				entries = append(entries, systemd.Entry{Key: setting.Key, Value: setting.Value})
			}
		}
	}
	return entries
}
