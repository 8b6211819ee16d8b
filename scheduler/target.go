package scheduler

import (
	"fmt"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agentd/exitcodes"
	"agentd/systemd"
	"agentd/workspace"
)

// Target says where the files of jobs go and what they refer to.
type Target struct {
	Scope    systemd.Scope
	UnitDir  string   // for units
	Config   string   // the user's XDG_CONFIG_HOME; "" in the system scope
	StampDir string   // where this scope's systemd remembers when timers fired
	Data     string   // for run.sh: Data/AGENT/JOB/run.sh
	State    string   // agentd's state folder; with a User, that in the user's home is taken
	Agentd   string   // absolute path of the program
	User     string   // User= of units in the system scope; "" is root
	Env      []string // NAME=VALUE that run.sh exports
	Version  int      // of the systemd that reads the units; 0: unknown

	Now func() time.Time // nil: time.Now
}

// NewTarget returns the usual target of a scope: agentd is the absolute path
// of the program, getenv is os.Getenv outside tests.
func NewTarget(scope systemd.Scope, folders workspace.Folders, agentd string, getenv func(string) string) (Target, error) {
	t := Target{
		Scope: scope, Data: folders.Data, State: folders.State, Agentd: agentd, Env: environment(getenv),
		UnitDir: "/etc/systemd/system", StampDir: "/var/lib/systemd/timers",
	}
	if scope == systemd.System {
		t.Data = "/var/lib/agentd" // root's home is closed to the users of units
	}
	if !filepath.IsAbs(agentd) {
		return Target{}, fmt.Errorf("cannot install: %q is not the absolute path of agentd", agentd)
	}
	if scope == systemd.System {
		return t, nil
	}
	home := getenv("HOME")
	for _, d := range []struct {
		to                   *string
		variable, home, path string
	}{
		{&t.UnitDir, "XDG_CONFIG_HOME", ".config", "systemd/user"},
		{&t.StampDir, "XDG_DATA_HOME", ".local/share", "systemd/timers"},
	} {
		base := getenv(d.variable)
		if !filepath.IsAbs(base) {
			if !filepath.IsAbs(home) {
				return Target{}, exitcodes.Errorf(exitcodes.Config, "cannot tell where your units are: neither %s nor HOME is an absolute path", d.variable).
					WithHint("set HOME")
			}
			base = filepath.Join(home, d.home)
		}
		*d.to = filepath.Join(base, d.path)
		if d.variable == "XDG_CONFIG_HOME" {
			t.Config = base
		}
	}
	return t, nil
}

// environment returns what a run needs of the environment of the install:
// where programs are and where agentd's folders are. A timer has neither.
func environment(getenv func(string) string) []string {
	var env []string
	for _, name := range []string{"PATH", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"} {
		if value := getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// folders returns what Env says about agentd's folders.
func (t Target) folders() []string {
	var env []string
	for _, e := range t.Env {
		if strings.HasPrefix(e, "XDG_") {
			env = append(env, e)
		}
	}
	return env
}

// forUser returns the target with what belongs to the user of system units,
// instead of to who installs them.
func (t Target) forUser() (Target, error) {
	if t.OwnState() {
		return t, nil
	}
	u, err := user.Lookup(t.User)
	if err != nil {
		return Target{}, exitcodes.Errorf(exitcodes.Config, "cannot install for %q: %w", t.User, err)
	}
	getenv := func(name string) string { return map[string]string{"HOME": u.HomeDir}[name] }
	folders, err := workspace.FoldersFromEnv(getenv)
	if err != nil {
		return Target{}, err
	}
	t.State = folders.State
	t.Env = slices.DeleteFunc(slices.Clone(t.Env), func(e string) bool { return strings.HasPrefix(e, "XDG_") })
	return t, nil
}

// OwnState reports whether State is that of the user who installs: another
// user's files are not root's to make.
func (t Target) OwnState() bool {
	return t.Scope == systemd.User || t.User == "" || t.User == "root"
}

func (t Target) now() time.Time {
	if t.Now == nil {
		return time.Now()
	}
	return t.Now()
}

// Script returns the path of the job's run.sh.
func (t Target) Script(job systemd.JobName) string {
	return filepath.Join(t.Data, job.Agent, job.Job, "run.sh")
}

func (t Target) service(job systemd.JobName) string { return filepath.Join(t.UnitDir, job.Service()) }
func (t Target) timer(job systemd.JobName) string   { return filepath.Join(t.UnitDir, job.Timer()) }
func (t Target) stamp(job systemd.JobName) string {
	return filepath.Join(t.StampDir, "stamp-"+job.Timer())
}
