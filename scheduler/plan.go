// Package scheduler turns the jobs of a workspace into what makes them run on
// time: it plans, applies and takes back the run scripts and systemd units.
package scheduler

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"agentd/exitcodes"
	"agentd/runscript"
	"agentd/systemd"
	"agentd/workspace"
)

// Action is what a plan does to a file.
type Action string

// The actions.
const (
	Add    Action = "add"
	Change Action = "change"
	Remove Action = "remove"
	Keep   Action = "keep"    // it is as it should be
	Refuse Action = "foreign" // somebody else's, or edited by hand: nothing is done
)

// FileChange is what a plan does to one file.
type FileChange struct {
	Path   string `json:"path"`
	Action Action `json:"action"`
	Diff   string `json:"diff,omitempty"`   // unified, of a change
	Reason string `json:"reason,omitempty"` // why it is refused

	old, new         []byte
	oldMode, newMode fs.FileMode
}

// JobChange is what a plan does to the files of one job, or with a Name without
// Job to those of the agent itself.
type JobChange struct {
	Name     systemd.JobName
	Job      *workspace.Job // nil: it is no longer in agentd.toml, or this is the agent
	Files    []FileChange
	Disabled bool // by a person: its timer is not started
}

// MarshalJSON names the job as all records do.
func (c JobChange) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Agent    string       `json:"agent"`
		Job      string       `json:"job"`
		Disabled bool         `json:"disabled"`
		Files    []FileChange `json:"files"`
	}{c.Name.Agent, c.Name.Job, c.Disabled, c.Files})
}

// OnlyEnvironment reports whether a run.sh differs only in what it exports: the
// shell that asks has other variables than the one that installed it.
func (f *FileChange) OnlyEnvironment() bool {
	if filepath.Base(f.Path) != "run.sh" {
		return false
	}
	return slices.Equal(withoutExports(f.old), withoutExports(f.new))
}

func withoutExports(script []byte) []string {
	return slices.DeleteFunc(strings.Split(string(script), "\n"), func(line string) bool {
		return strings.HasPrefix(line, "export ") || strings.HasPrefix(line, "# X-Agentd-")
	})
}

// Unchanged reports whether all files of the job are as they should be.
func (c JobChange) Unchanged() bool {
	return !slices.ContainsFunc(c.Files, func(f FileChange) bool { return f.Action != Keep })
}

// Plan is what install or uninstall is going to do.
type Plan struct {
	Agent  string
	Target Target
	Jobs   []JobChange

	stopServices bool // an uninstall ends running jobs
}

// Count returns the number of files that the plan adds, changes and removes.
func (p *Plan) Count() (added, changed, removed int) {
	for _, j := range p.Jobs {
		for _, f := range j.Files {
			switch f.Action {
			case Add:
				added++
			case Change:
				changed++
			case Remove:
				removed++
			case Keep, Refuse:
			}
		}
	}
	return added, changed, removed
}

// Blocked returns why the plan cannot be applied, or nil: a file in its way is
// somebody else's or was edited by hand.
func (p *Plan) Blocked() error {
	for _, j := range p.Jobs {
		for _, f := range j.Files {
			if f.Action == Refuse {
				return exitcodes.Errorf(exitcodes.CannotCreate, "cannot write %s: %s", f.Path, f.Reason).
					WithHint("keep your changes in a drop-in or move the file away; to overwrite what agentd once wrote: --force")
			}
		}
	}
	return nil
}

// Options choose what a plan covers.
type Options struct {
	Jobs  []string // only these jobs; none: all, and what is no longer in agentd.toml goes
	Force bool     // also overwrite files of agentd that were edited by hand
}

// Selected returns the named jobs of a workspace, each once; without names all.
func Selected(ws *workspace.Workspace, names []string) ([]*workspace.Job, error) {
	if len(names) == 0 {
		return ws.Jobs, nil
	}
	var jobs []*workspace.Job
	for _, name := range names {
		job, err := ws.Job(name)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(jobs, job) {
			jobs = append(jobs, job)
		}
	}
	return jobs, nil
}

// NewPlan returns what has to be done so that the target holds the jobs of the
// workspace. It changes nothing.
func NewPlan(ws *workspace.Workspace, target Target, o Options) (*Plan, error) {
	jobs, err := Selected(ws, o.Jobs)
	if err != nil {
		return nil, err
	}
	if err := checkDropIns(ws); err != nil {
		return nil, err
	}
	found, err := target.installed(ws.Agent)
	if err != nil {
		return nil, err
	}
	p := &Plan{Agent: ws.Agent, Target: target}
	for _, job := range jobs {
		artifacts, err := target.Artifacts(ws, job)
		if err != nil {
			return nil, err
		}
		change, err := compare(NameOf(job), artifacts, found[NameOf(job)], o.Force)
		if err != nil {
			return nil, err
		}
		change.Job, change.Disabled = job, !target.DisabledSince(change.Name).IsZero()
		p.Jobs = append(p.Jobs, change)
		delete(found, NameOf(job))
	}
	if len(ws.Jobs) > 0 {
		self := systemd.JobName{Agent: ws.Agent}
		artifacts, err := target.arm(ws.Agent, ws.Dir)
		if err != nil {
			return nil, err
		}
		change, err := compare(self, artifacts, found[self], o.Force)
		if err != nil {
			return nil, err
		}
		if len(change.Files) > 0 {
			p.Jobs = append(p.Jobs, change)
		}
		delete(found, self)
	}
	if len(o.Jobs) == 0 {
		gone, err := removals(found, o.Force)
		if err != nil {
			return nil, err
		}
		p.Jobs = append(p.Jobs, gone...)
	}
	return p, nil
}

// NewRemoval returns a plan that takes away what was installed for an agent,
// or only for the named jobs of it; hand-edited files too, since that is what
// is asked for.
func NewRemoval(agent string, target Target, jobs ...string) (*Plan, error) {
	if err := workspace.CheckSlug(agent); err != nil { // it becomes part of paths
		return nil, exitcodes.Errorf(exitcodes.Usage, "cannot uninstall %q: %w", agent, err)
	}
	found, err := target.installed(agent)
	if err != nil {
		return nil, err
	}
	if len(jobs) > 0 {
		var wanted []systemd.JobName
		for _, j := range jobs {
			name := systemd.JobName{Agent: agent, Job: strings.TrimPrefix(j, agent+"/")}
			if _, ok := found[name]; !ok {
				return nil, exitcodes.Errorf(exitcodes.NoInput, "%s is not installed", name).WithHint("agentd status")
			}
			wanted = append(wanted, name)
		}
		left := 0 // jobs that stay, and with them what is the agent's own
		for name := range found {
			if name.Job != "" && !slices.Contains(wanted, name) {
				delete(found, name)
				left++
			}
		}
		if left > 0 {
			delete(found, systemd.JobName{Agent: agent})
		}
	}
	gone, err := removals(found, true)
	return &Plan{Agent: agent, Target: target, Jobs: gone, stopServices: true}, err
}

// Installed returns the jobs of the agent that the target has files of.
func (t Target) Installed(agent string) ([]systemd.JobName, error) {
	found, err := t.installed(agent)
	delete(found, systemd.JobName{Agent: agent})
	return sortedNames(found), err
}

// compare returns what has to be done to have the artifacts where now those
// files of agentd are installed.
func compare(name systemd.JobName, artifacts []Artifact, installed []string, force bool) (JobChange, error) {
	change := JobChange{Name: name}
	for _, a := range artifacts {
		f := FileChange{Path: a.Path, new: a.Text, newMode: a.Mode}
		if err := f.load(); err != nil {
			return JobChange{}, err
		}
		f.decide(name, force)
		change.Files = append(change.Files, f)
		installed = slices.DeleteFunc(installed, func(path string) bool { return path == a.Path })
	}
	for _, path := range installed { // the timer of a job that was switched off
		f, err := removal(path, name, force)
		if err != nil {
			return JobChange{}, err
		}
		change.Files = append(change.Files, f)
	}
	return change, nil
}

// load reads what is there now.
func (f *FileChange) load() error {
	info, err := os.Lstat(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !info.Mode().IsRegular() {
		f.Action, f.Reason = Refuse, "it is not a regular file"
		return nil
	}
	if err == nil {
		f.oldMode = info.Mode().Perm()
		f.old, err = os.ReadFile(f.Path)
	}
	if err != nil {
		return fmt.Errorf("cannot look at what is installed: %w", err)
	}
	if f.old == nil {
		f.old = []byte{}
	}
	return nil
}

// decide compares what is there with what should be.
func (f *FileChange) decide(name systemd.JobName, force bool) {
	switch {
	case f.Action == Refuse:
	case f.old == nil:
		f.Action = Add
	case bytes.Equal(f.old, f.new) && f.oldMode == f.newMode:
		f.Action = Keep
	default:
		f.Action, f.Reason = Change, obstacle(f.Path, f.old, name, force)
		if f.Reason != "" {
			f.Action = Refuse
		}
		f.Diff = string(diff.Diff(f.Path, f.old, f.Path+" (new)", f.new))
	}
}

// obstacle returns why a file must not be replaced or removed, or "".
func obstacle(path string, text []byte, name systemd.JobName, force bool) string {
	owner, intact, ok := ownerOf(path, text)
	switch {
	case !ok:
		return "it was not made by agentd"
	case owner != name:
		return "it belongs to the job " + owner.String()
	case !intact && !force:
		return "it was edited by hand"
	}
	return ""
}

// ownerOf reads the mark of a unit or a run.sh.
func ownerOf(path string, text []byte) (name systemd.JobName, intact, ok bool) {
	if filepath.Base(path) == "run.sh" {
		o, ok := runscript.OwnerOf(text)
		return systemd.JobName{Agent: o.Agent, Job: o.Job}, o.Intact, ok
	}
	o, ok := systemd.OwnerOf(text)
	return o.Name, o.Intact, ok
}
