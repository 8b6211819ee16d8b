package scheduler

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"agentd/exitcodes"
	"agentd/firings"
	"agentd/systemd"
)

// Switches is the systemd that jobs are switched in; *systemd.Conn is one.
type Switches interface {
	States(ctx context.Context, jobs ...systemd.JobName) ([]systemd.JobStatus, error)
	Enable(ctx context.Context, units ...string) error
	Disable(ctx context.Context, units ...string) error
	Start(ctx context.Context, unit string) error
	Stop(ctx context.Context, unit string) error
	Trigger(ctx context.Context, unit string) error
	Onces() ([]systemd.Once, error)
	CancelOnce(ctx context.Context, name string) error
}

// Switched says what became of a job.
type Switched struct {
	Agent   string `json:"agent"`
	Job     string `json:"job"`
	Changed bool   `json:"changed"` // false: it was so before
}

// disabled is the file beside a job's run.sh that keeps an install from
// starting its timer; its time is when a person disabled the job.
func (t Target) disabled(job systemd.JobName) string {
	return filepath.Join(filepath.Dir(t.Script(job)), "disabled")
}

// DisabledSince returns when the job was disabled, or the zero time.
func (t Target) DisabledSince(job systemd.JobName) time.Time {
	info, err := os.Stat(t.disabled(job))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// Disable stops the timers of jobs until Enable, whatever is installed in
// between. What runs now goes on to its end.
func (t Target) Disable(ctx context.Context, m Switches, jobs ...systemd.JobName) ([]Switched, error) {
	return t.each(ctx, m, jobs, t.timer, func(ctx context.Context, s systemd.JobStatus) (bool, error) {
		marked, err := t.mark(s.Name)
		if err != nil {
			return false, err
		}
		if err := m.Stop(ctx, s.Name.Timer()); err != nil {
			return false, err
		}
		if err := t.cancelOnces(ctx, m, s.Name); err != nil {
			return false, err
		}
		return marked || s.Enabled || s.Waiting, m.Disable(ctx, s.Name.Timer())
	})
}

func (t Target) cancelOnces(ctx context.Context, m Switches, job systemd.JobName) error {
	list, err := m.Onces()
	if err != nil {
		return err
	}
	for _, once := range list {
		if once.Owner.Name == job {
			if err := m.CancelOnce(ctx, once.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// Enable starts the timers of jobs again. What they would have run meanwhile is
// not made up for.
func (t Target) Enable(ctx context.Context, m Switches, jobs ...systemd.JobName) ([]Switched, error) {
	return t.each(ctx, m, jobs, t.timer, func(ctx context.Context, s systemd.JobStatus) (bool, error) {
		if err := t.unmark(s.Name); err != nil {
			return false, err
		}
		if s.Enabled && s.Waiting {
			return false, nil
		}
		if err := m.Enable(ctx, s.Name.Timer()); err != nil {
			return false, err
		}
		if s.Waiting {
			return true, nil
		}
		if err := os.Remove(t.stamp(s.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("cannot forget when the timer fired: %w", err)
		}
		if t.Scope == systemd.User { // a machine's job may be another user's, and so its book
			if err := (firings.Book{Dir: t.State}).Skip(s.Name.Agent, s.Name.Job, t.now()); err != nil {
				return false, err
			}
		}
		return true, m.Start(ctx, s.Name.Timer())
	})
}

// Start starts the jobs' services now and does not wait for their ends.
func (t Target) Start(ctx context.Context, m Switches, jobs ...systemd.JobName) ([]Switched, error) {
	return t.each(ctx, m, jobs, t.service, func(ctx context.Context, s systemd.JobStatus) (bool, error) {
		return !s.Running, m.Trigger(ctx, s.Name.Service())
	})
}

// Stop ends the jobs' services in good order and waits for that. Their timers
// stay.
func (t Target) Stop(ctx context.Context, m Switches, jobs ...systemd.JobName) ([]Switched, error) {
	return t.each(ctx, m, jobs, t.service, func(ctx context.Context, s systemd.JobStatus) (bool, error) {
		return s.Running, m.Stop(ctx, s.Name.Service())
	})
}

// each does something to every job, many at once, and only if all have the
// unit.
func (t Target) each(ctx context.Context, m Switches, jobs []systemd.JobName, unit func(systemd.JobName) string,
	do func(context.Context, systemd.JobStatus) (bool, error),
) ([]Switched, error) {
	for _, j := range jobs {
		if err := t.mustHave(j, unit(j)); err != nil {
			return nil, err
		}
	}
	states, err := m.States(ctx, jobs...)
	if err != nil {
		return nil, err
	}
	list, errs := make([]Switched, len(states)), make([]error, len(states))
	var wait sync.WaitGroup
	slots := make(chan struct{}, 16) // jobs under way
	for i, s := range states {
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			list[i] = Switched{Agent: s.Name.Agent, Job: s.Name.Job}
			list[i].Changed, errs[i] = do(ctx, s)
		})
	}
	wait.Wait()
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		return nil, fmt.Errorf("%s: %w", jobs[i], errs[i])
	}
	return list, nil
}

// Has reports whether the job has a unit.
func (t Target) Has(job systemd.JobName) bool { return isFile(t.service(job)) }

func (t Target) mustHave(job systemd.JobName, path string) error {
	if isFile(path) {
		return nil
	}
	if t.Has(job) {
		return exitcodes.Errorf(exitcodes.NoInput, "%s has no timer: it has no schedule, or enabled = false", job).
			WithHint("Change agentd.toml, then: agentd install")
	}
	return exitcodes.Errorf(exitcodes.NoInput, "%s is not installed", job).WithHint("Install it: agentd install")
}
