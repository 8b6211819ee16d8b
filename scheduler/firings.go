package scheduler

import (
	"context"

	"agentd/firings"
)

// skip has the firings before now forgotten of every job whose timer is new or
// has another schedule: neither systemd, which may start a job when its timer is
// edited, nor the daemon is to make up for them.
func (a *applying) skip() error {
	t := a.plan.Target
	if !t.OwnState() {
		return nil // systemd is kept from it all the same: see quiet and forget
	}
	book := firings.Book{Dir: t.State}
	for _, j := range a.plan.Jobs {
		f := a.bootFile(j)
		if j.Name.Job == "" || f == nil || f.Action != Add && !a.rescheduled(j) {
			continue
		}
		before, known, err := book.Last(j.Name.Agent, j.Name.Job)
		if err != nil {
			return err
		}
		if err := book.Skip(j.Name.Agent, j.Name.Job, t.now()); err != nil {
			return err
		}
		a.onUndo(func(context.Context) error { return book.Restore(j.Name.Agent, j.Name.Job, before, known) })
	}
	return nil
}
