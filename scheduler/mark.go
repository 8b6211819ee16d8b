package scheduler

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"agentd/atomicfile"
	"agentd/exitcodes"
	"agentd/firings"
	"agentd/systemd"
)

// Mark notes that jobs are disabled, where no systemd has them: the daemon
// heeds it, and so does a later install.
func (t Target) Mark(jobs ...systemd.JobName) ([]Switched, error) {
	return eachMarked(jobs, t.mark)
}

// Unmark takes back a Mark. What the jobs would have run until now is not made
// up for.
func (t Target) Unmark(now time.Time, jobs ...systemd.JobName) ([]Switched, error) {
	return eachMarked(jobs, func(job systemd.JobName) (bool, error) {
		if t.DisabledSince(job).IsZero() {
			return false, nil
		}
		if err := (firings.Book{Dir: t.State}).Skip(job.Agent, job.Job, now); err != nil {
			return false, err
		}
		return true, t.unmark(job)
	})
}

func eachMarked(jobs []systemd.JobName, do func(systemd.JobName) (bool, error)) ([]Switched, error) {
	var list []Switched
	for _, job := range jobs {
		changed, err := do(job)
		if err != nil {
			return list, err
		}
		list = append(list, Switched{Agent: job.Agent, Job: job.Job, Changed: changed})
	}
	return list, nil
}

// mark reports whether the job was not disabled before.
func (t Target) mark(job systemd.JobName) (bool, error) {
	if !t.DisabledSince(job).IsZero() {
		return false, nil
	}
	path := t.disabled(job)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return false, exitcodes.Errorf(exitcodes.CannotCreate, "cannot disable %s: %w", job, err)
	}
	return true, atomicfile.Write(path, []byte("disabled by a person; to undo it: agentd enable "+job.String()+"\n"), 0o644)
}

// unmark also takes away the folders of a job that is not installed.
func (t Target) unmark(job systemd.JobName) error {
	if err := os.Remove(t.disabled(job)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return exitcodes.Errorf(exitcodes.CannotCreate, "cannot enable %s: %w", job, err)
	}
	removeEmpty(filepath.Dir(t.disabled(job)), t)
	return nil
}
