// Package doctor looks for what makes unattended runs fail, says what mends
// it, and mends what can be mended without a decision.
package doctor

import (
	"context"
	"time"

	"agentd/exitcodes"
	"agentd/scheduler"
	"agentd/systemd"
	"agentd/workspace"
)

// Level says how bad a finding is.
type Level string

// The levels.
const (
	OK   Level = "ok"
	Warn Level = "warn" // may become trouble
	Fail Level = "fail" // runs fail or do not happen
)

// Finding is one thing that was looked at.
type Finding struct {
	Check string `json:"check"` // what was looked at: "bus", "linger", "program", ...
	Level Level  `json:"level"`
	Text  string `json:"text"`            // one line
	Fix   string `json:"fix,omitempty"`   // a command or what to do
	Fixed bool   `json:"fixed,omitempty"` // by Repair

	repair func(ctx context.Context) error
}

// Repairable reports whether Repair can mend it.
func (f *Finding) Repairable() bool { return f.repair != nil && f.Level != OK }

// Repair mends what was found, and notes it in Fixed.
func (f *Finding) Repair(ctx context.Context) error {
	if !f.Repairable() {
		return nil
	}
	if err := f.repair(ctx); err != nil {
		return err
	}
	f.Fixed = true
	return nil
}

// Manager is the systemd that is asked; *systemd.Conn is one.
type Manager interface {
	scheduler.Manager
	Status(ctx context.Context, jobs ...systemd.JobName) ([]systemd.JobStatus, error)
}

// Patient is an installation of agentd for one user and scope. All fields but
// Manager and Absent are required.
type Patient struct {
	Target  scheduler.Target
	Folders workspace.Folders
	Manager Manager // nil: there is none
	Absent  error   // why there is none
	Daemon  bool    // agentd daemon runs, which starts the jobs that have no timer
	Getenv  func(string) string
	Now     time.Time

	// LoginPath returns the PATH of the user's login shell.
	LoginPath func(ctx context.Context) (string, error)
	// EnableLinger lets the user's systemd run without a session.
	EnableLinger func(ctx context.Context) error
	// UserOf returns who runs the jobs of a workspace in the system scope, ""
	// for root.
	UserOf func(dir string) (string, error)
}

// Examine looks at everything: the machine first, then each registered agent.
func (p Patient) Examine(ctx context.Context) []Finding {
	list := p.machine(ctx)
	agents, err := p.Folders.Registered()
	if err != nil {
		return append(list, failed("agents", err))
	}
	if len(agents) == 0 {
		list = append(list, Finding{Check: "agents", Level: Warn, Text: "no agent is installed for this user", Fix: "agentd install, in a workspace"})
	}
	login := p.loginPath(ctx)
	for _, r := range agents {
		list = append(list, p.agent(ctx, r, login)...)
	}
	list = append(list, p.daemon(ctx)...)
	list = append(list, p.orphans(agents)...)
	return append(list, p.lanes()...)
}

// agent looks at one agent.
func (p Patient) agent(ctx context.Context, r workspace.Registration, login string) []Finding {
	ws, err := workspace.Load(r.Dir)
	switch {
	case exitcodes.From(err) == exitcodes.NoInput:
		return []Finding{p.gone(r)}
	case err != nil:
		f := failed("workspace", err)
		f.Fix = "agentd -C " + r.Dir + " validate"
		return []Finding{f}
	}
	var list []Finding
	for _, w := range ws.Warnings {
		list = append(list, Finding{Check: "workspace", Level: Warn, Text: ws.Agent + ": " + w.String()})
	}
	target := p.Target
	if target.Scope == systemd.System {
		if target.User, err = p.UserOf(ws.Dir); err != nil {
			return append(list, failed("workspace", err))
		}
	}
	list = append(list, p.programs(ws, target, login)...)
	list = append(list, p.keys(ws)...)
	list = append(list, p.units(ctx, ws, target)...)
	list = append(list, p.times(ws)...)
	if len(list) == 0 {
		list = append(list, Finding{Check: "agent", Level: OK, Text: ws.Agent + ": programs, keys, units and times are in order"})
	}
	return list
}

// failed is the finding of a check that could not be made.
func failed(check string, err error) Finding {
	return Finding{Check: check, Level: Fail, Text: err.Error(), Fix: exitcodes.HintOf(err)}
}
