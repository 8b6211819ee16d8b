package runner

import (
	"agentd/exitcodes"
	"agentd/history"
)

// CloseCrashed closes the records of runs whose agentd died before it could: an
// open record that nobody holds. It is for every door of agentd to call first.
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
	for i := range run.Attempts {
		if a := &run.Attempts[i]; a.EndedAt == nil {
			a.EndedAt = &now
			a.SetCode(exitcodes.Interrupted)
		}
	}
	return store.Save(run)
}
