package scheduler

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agentd/exitcodes"
	"agentd/systemd"
)

// Manager is the systemd that a plan is applied to; *systemd.Conn is one.
type Manager interface {
	UnitPath(ctx context.Context) ([]string, error)
	States(ctx context.Context, jobs ...systemd.JobName) ([]systemd.JobStatus, error)
	Reload(ctx context.Context) error
	Enable(ctx context.Context, units ...string) error
	Disable(ctx context.Context, units ...string) error
	Start(ctx context.Context, unit string) error
	Stop(ctx context.Context, unit string) error
	ResetFailed(ctx context.Context, unit string) error
	Onces() ([]systemd.Once, error)
	CancelOnce(ctx context.Context, name string) error
}

// Report says what applying a plan has done.
type Report struct {
	Written  []string `json:"written"`
	Removed  []string `json:"removed"`
	Enabled  []string `json:"enabled"` // timers, and the agent's own service
	Started  []string `json:"started"` // timers, and the daemon
	Reloaded bool     `json:"reloaded"`
}

// undoTimeout bounds taking back a plan that failed half-way.
const undoTimeout = time.Minute

// Apply does what the plan says, and then has each timer enabled and running
// whose job is not disabled.
// Without a systemd (m is nil) it only writes and removes files. When a step
// fails, the steps before it are taken back, and the error says why. Applying
// a plan made after that of the same workspace does nothing.
func (p *Plan) Apply(ctx context.Context, m Manager) (*Report, error) {
	if err := p.Blocked(); err != nil {
		return nil, err
	}
	a := &applying{plan: p, manager: m, report: &Report{}, before: map[systemd.JobName]systemd.JobStatus{}}
	err := a.run(ctx)
	if err == nil {
		a.tidy(ctx)
		return a.report, nil
	}
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	if failed := a.takeBack(undo); failed != nil {
		return nil, fmt.Errorf("%w (and what was done before cannot be taken back: %w)", err, failed)
	}
	return nil, err
}

// applying is a plan under way.
type applying struct {
	plan    *Plan
	manager Manager // nil: none
	report  *Report
	before  map[systemd.JobName]systemd.JobStatus
	undo    []func(context.Context) error // last first
}

func (a *applying) onUndo(f func(context.Context) error) { a.undo = append(a.undo, f) }

// takeBack undoes all steps and returns the first error.
func (a *applying) takeBack(ctx context.Context) error {
	var first error
	for _, f := range slices.Backward(a.undo) {
		if err := f(ctx); err != nil && first == nil {
			first = err
		}
	}
	return first
}

func (a *applying) run(ctx context.Context) error {
	if a.manager != nil {
		if err := a.look(ctx); err != nil {
			return err
		}
		if err := a.quiet(ctx); err != nil {
			return err
		}
	}
	if err := a.write(); err != nil {
		return err
	}
	if err := a.skip(); err != nil {
		return err
	}
	if a.manager == nil {
		return nil
	}
	if a.touchesUnits() {
		if err := a.manager.Reload(ctx); err != nil {
			return err
		}
		a.report.Reloaded = true
		if err := a.check(ctx); err != nil {
			return err
		}
	}
	return a.arm(ctx)
}

// look asks systemd for the state before.
func (a *applying) look(ctx context.Context) error {
	t := a.plan.Target
	dirs, err := a.manager.UnitPath(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(dirs, func(d string) bool { return sameFolder(d, t.UnitDir) }) {
		return exitcodes.Errorf(exitcodes.Config, "the %s's systemd does not look for units in %s", t.Scope, t.UnitDir).
			WithHint("set XDG_CONFIG_HOME as your session has it, or leave it unset")
	}
	states, err := a.states(ctx)
	if err != nil {
		return err
	}
	for _, s := range states {
		a.before[s.Name] = s
	}
	return nil
}

func (a *applying) states(ctx context.Context) ([]systemd.JobStatus, error) {
	names := make([]systemd.JobName, len(a.plan.Jobs))
	for i, j := range a.plan.Jobs {
		names[i] = j.Name
	}
	return a.manager.States(ctx, names...)
}

// check asks whether systemd takes the units: a drop-in can spoil them.
func (a *applying) check(ctx context.Context) error {
	states, err := a.states(ctx)
	if err != nil {
		return err
	}
	for i, s := range states {
		f := a.plan.Jobs[i].file(a.plan.Target.service(s.Name))
		if f == nil || f.Action == Remove {
			continue
		}
		if s.Refused == "" && !s.Installed {
			s.Refused = s.Name.Service() + " is not-found"
		}
		if s.Refused != "" {
			unit, _, _ := strings.Cut(s.Refused, " ")
			return exitcodes.Errorf(exitcodes.Config, "the %s's systemd does not take a unit of %s: %s", a.plan.Target.Scope, s.Name, s.Refused).
				WithHint("look at its drop-ins: systemctl --" + string(a.plan.Target.Scope) + " cat " + unit)
		}
	}
	return nil
}

func sameFolder(a, b string) bool {
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	one, err1 := filepath.EvalSymlinks(a)
	two, err2 := filepath.EvalSymlinks(b)
	return err1 == nil && err2 == nil && one == two
}

// quiet stops the timers that change or go, before systemd sees their files:
// a timer whose schedule changes under it may start its job at once.
func (a *applying) quiet(ctx context.Context) error {
	for _, j := range a.plan.Jobs {
		was := a.before[j.Name]
		timer := j.startsAtBoot()
		f := a.bootFile(j)
		if f != nil && was.Waiting && (f.Action == Remove || a.rescheduled(j)) {
			a.onUndo(func(ctx context.Context) error { return a.manager.Start(ctx, timer) })
			if err := a.manager.Stop(ctx, timer); err != nil {
				return err
			}
		}
		if err := a.quietDaemon(ctx, j); err != nil {
			return err
		}
		if f != nil && was.Enabled && f.Action == Remove {
			a.onUndo(func(ctx context.Context) error { return a.manager.Enable(ctx, timer) })
			if err := a.manager.Disable(ctx, timer); err != nil {
				return err
			}
		}
		if a.plan.stopServices && was.Running {
			if j.Name == systemd.Daemon {
				a.onUndo(func(ctx context.Context) error { return a.manager.Start(ctx, j.Name.Service()) })
			}
			if err := a.manager.Stop(ctx, j.Name.Service()); err != nil {
				return err
			}
		}
	}
	if a.touchesUnits() {
		a.onUndo(a.manager.Reload) // after the files are back
	}
	return nil
}

// arm enables and starts the timers that are not.
func (a *applying) arm(ctx context.Context) error {
	for _, j := range a.plan.Jobs {
		f := a.bootFile(j)
		if f == nil || f.Action == Remove {
			continue
		}
		if !a.before[j.Name].Enabled && !j.Disabled {
			a.report.Enabled = append(a.report.Enabled, j.startsAtBoot())
		}
		if a.rescheduled(j) {
			if err := a.forget(a.plan.Target.stamp(j.Name)); err != nil {
				return err
			}
		}
	}
	if len(a.report.Enabled) > 0 {
		a.onUndo(func(ctx context.Context) error { return a.manager.Disable(ctx, a.report.Enabled...) })
		if err := a.manager.Enable(ctx, a.report.Enabled...); err != nil {
			return err
		}
	}
	for _, j := range a.plan.Jobs {
		if err := a.startDaemon(ctx, j); err != nil {
			return err
		}
		f := a.bootFile(j)
		if j.Name.Job == "" || j.Disabled || f == nil || f.Action == Remove || (a.before[j.Name].Waiting && !a.rescheduled(j)) {
			continue
		}
		timer := j.Name.Timer()
		a.onUndo(func(ctx context.Context) error { return a.manager.Stop(ctx, timer) })
		if err := a.manager.Start(ctx, timer); err != nil {
			return err
		}
		a.report.Started = append(a.report.Started, timer)
	}
	return nil
}

// startsAtBoot returns the unit that gets enabled: the job's timer, or the
// agent's own service.
func (c JobChange) startsAtBoot() string {
	if c.Name.Job == "" {
		return c.Name.Service()
	}
	return c.Name.Timer()
}

// bootFile returns the change of the unit that gets enabled, or nil if there is
// none.
func (a *applying) bootFile(j JobChange) *FileChange {
	return j.file(filepath.Join(a.plan.Target.UnitDir, j.startsAtBoot()))
}

func (c JobChange) file(path string) *FileChange {
	for i := range c.Files {
		if c.Files[i].Path == path {
			return &c.Files[i]
		}
	}
	return nil
}

// reschedules reports whether the change of a timer concerns when it elapses.
// Other changes leave the running timer alone.
func (f *FileChange) reschedules() bool {
	if f.Action != Change {
		return false
	}
	before, err1 := systemd.Parse(f.old)
	after, err2 := systemd.Parse(f.new)
	if err1 != nil || err2 != nil {
		return true
	}
	one, two := before.Section("Timer"), after.Section("Timer")
	return one == nil || two == nil || !slices.Equal(one.Entries, two.Entries)
}

// touchesUnits reports whether any unit file is written or removed.
func (a *applying) touchesUnits() bool {
	for _, j := range a.plan.Jobs {
		for _, f := range j.Files {
			if f.Action != Keep && strings.HasPrefix(f.Path, a.plan.Target.UnitDir+"/") {
				return true
			}
		}
	}
	return false
}
