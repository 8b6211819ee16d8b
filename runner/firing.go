package runner

import (
	"fmt"
	"time"

	"agentd/firings"
	"agentd/scheduler/expr"
)

// scheduled reports whether it is the schedule that started the run. Only what
// keeps to the schedule takes firings: a person, a script and cron run the job
// when they like.
func (w *run) scheduled() bool {
	return len(w.job.Schedules) > 0 && (w.req.Trigger == "timer" || w.req.Trigger == "daemon")
}

// takeFiring takes the firing that the run is for. It reports false, and says
// so, if nothing is due: the daemon or the timer has taken it already, systemd
// makes up for a time that passed while the last run was going on, or it fires
// because the timer was edited.
func (w *run) takeFiring() (bool, error) {
	if !w.scheduled() {
		return true, nil
	}
	now := w.Now()
	due, err := w.book().Claim(w.job.Agent, w.job.Name, w.job.Schedules, now)
	if err != nil || due {
		return due, err
	}
	text := "no more"
	if next := expr.Earliest(now, w.job.Schedules); !next.IsZero() {
		text = "next at " + next.Format("Mon 2006-01-02 15:04:05 MST")
	}
	fmt.Fprintf(w.req.Output, "%s is not due: its firing has been taken, or the %s did not keep to the schedule (%s); to run it now: agentd run %s\n",
		w.job.Address(), w.req.Trigger, text, w.job.Address())
	return false, nil
}

// endFiring has the firings forgotten that came while the run was going on. A
// record that cannot be written costs at most a run too many.
func (w *run) endFiring(ended time.Time) {
	if w.scheduled() || w.onlyPending() {
		if err := w.book().Ended(w.job.Agent, w.job.Name, ended); err != nil {
			fmt.Fprintf(w.req.Output, "%v\n", err)
		}
	}
}

func (w *run) book() firings.Book { return firings.Book{Dir: w.Folders.State} }
