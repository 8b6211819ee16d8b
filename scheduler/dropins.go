package scheduler

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentd/exitcodes"
	"agentd/systemd"
	"agentd/workspace"
)

// DropInFolder is the folder of a workspace with drop-ins for units:
// service.conf and timer.conf are for those of every job, JOB.service.conf and
// JOB.timer.conf for those of one. They are read after agentd's own settings,
// the job's last.
const DropInFolder = "systemd"

// The names that drop-ins are installed under. A person's own, such as the
// override.conf of systemctl edit, come after them.
const (
	dropInOfWorkspace = "10-agentd-workspace.conf"
	dropInOfJob       = "20-agentd-job.conf"
)

// dropIns returns the drop-ins for the units of a job.
func (t Target) dropIns(job *workspace.Job, timer bool) ([]Artifact, error) {
	name := NameOf(job)
	var files []Artifact
	for _, d := range []struct{ source, unit, base string }{
		{"service.conf", t.service(name), dropInOfWorkspace},
		{job.Name + ".service.conf", t.service(name), dropInOfJob},
		{"timer.conf", t.timer(name), dropInOfWorkspace},
		{job.Name + ".timer.conf", t.timer(name), dropInOfJob},
	} {
		if d.unit == t.timer(name) && !timer {
			continue
		}
		path := filepath.Join(job.Dir, DropInFolder, d.source)
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, exitcodes.Errorf(exitcodes.NoInput, "cannot read a drop-in: %w", err)
		}
		if systemd.SetsTimes(text) {
			return nil, exitcodes.Errorf(exitcodes.Config, "%s sets times, which a run would not take for its own: it goes by agentd.toml", path).
				WithHint("give the job that schedule in " + workspace.FileName)
		}
		text, err = systemd.DropIn{Name: name, Workspace: job.Dir, Text: text}.Bytes()
		if err != nil {
			return nil, exitcodes.Errorf(exitcodes.Config, "%s: %w", path, err)
		}
		files = append(files, Artifact{filepath.Join(d.unit+".d", d.base), text, 0o644})
	}
	return files, nil
}

// checkDropIns refuses drop-ins for jobs that are not there: they are meant to
// have an effect.
func checkDropIns(ws *workspace.Workspace) error {
	list, err := entries(filepath.Join(ws.Dir, DropInFolder))
	if err != nil {
		return exitcodes.Errorf(exitcodes.NoInput, "cannot look for drop-ins: %w", err)
	}
	for _, e := range list {
		base, isConf := strings.CutSuffix(e.Name(), ".conf")
		if !isConf || base == "service" || base == "timer" {
			continue
		}
		job, kind, _ := strings.Cut(base, ".")
		known := slices.ContainsFunc(ws.Jobs, func(j *workspace.Job) bool { return j.Name == job })
		if !known || kind != "service" && kind != "timer" {
			return exitcodes.Errorf(exitcodes.Config, "%s is a drop-in for nothing", filepath.Join(ws.Dir, DropInFolder, e.Name())).
				WithHint("name it service.conf or timer.conf for all jobs, JOB.service.conf or JOB.timer.conf for one")
		}
	}
	return nil
}

// rescheduled reports whether the job's timer, or a drop-in of it, changes when
// it elapses.
func (a *applying) rescheduled(j JobChange) bool {
	timer := a.bootFile(j)
	if timer == nil {
		return false
	}
	if timer.reschedules() {
		return true
	}
	return slices.ContainsFunc(j.Files, func(f FileChange) bool {
		return filepath.Dir(f.Path) == a.plan.Target.timer(j.Name)+".d" && f.Action != Keep && f.Action != Refuse
	})
}
