package runner

import (
	"agentd/exitcodes"
	"agentd/history"
	"agentd/workspace"
)

// CloseCrashed closes the records of runs whose agentd died before it could: an
// open record that nobody holds. Every door of agentd calls it first. Where the
// job allows it, such a run is pending from then on.
func (r *Runner) CloseCrashed(store *history.Store) error {
	open, err := store.OpenRuns()
	if err != nil {
		return err
	}
	for _, run := range open {
		if err := r.closeCrashed(store, run.RunID); err != nil {
			return err
		}
	}
	return nil
}

func (r *Runner) closeCrashed(store *history.Store, id string) error {
	hold, ok, err := store.Hold(id)
	if err != nil || !ok {
		return err
	}
	defer hold.Release()
	run, err := store.Read(id) // again: it may have been closed before we held it
	if err != nil || !run.Open() {
		return err
	}
	now := r.Now()
	run.EndedAt = &now
	run.SetCode(exitcodes.Interrupted)
	run.Error = "agentd died during the run"
	run.EndAttempts(exitcodes.Interrupted, now)
	if mayGoOn(run) {
		run.PendingResume = &history.Pending{NotBefore: now, Attempt: len(run.Attempts) + 1, Reason: exitcodes.Interrupted.String()}
	}
	return store.Save(run)
}

// mayGoOn asks the job, as it is now, whether a crashed run of it goes on.
// Attempts count over the run's whole life, crashes included.
func mayGoOn(run *history.Run) bool {
	if len(run.Attempts) == 0 {
		return false // it did not get to work: the next firing is as good
	}
	_, job, err := workspace.LoadJob(run.Workspace, run.Job)
	return err == nil && job.Resume.Crashed && len(run.Attempts) < job.Resume.Attempts
}
