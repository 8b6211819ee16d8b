package lanes

import (
	"fmt"
	"strings"
	"time"

	"agentd/exitcodes"
)

// Busy is the error for a lane that others hold.
type Busy struct {
	Lane    string
	Slots   int           // as requested
	Holders []Owner       // an empty one is unknown
	Waited  time.Duration // before giving up
	At      time.Time     // when it was found busy
}

func (b *Busy) Error() string {
	s := fmt.Sprintf("lane %s is held by ", b.Lane)
	for i, h := range b.Holders {
		if i > 0 {
			s += ", "
		}
		s += b.describe(h)
	}
	if b.Waited > 0 {
		s += fmt.Sprintf("; waited %v", b.Waited.Round(time.Millisecond))
	}
	return s
}

func (b *Busy) describe(o Owner) string {
	if o.Process.PID == 0 {
		return "a process that is not on record"
	}
	var parts []string
	if o.RunID != "" {
		parts = append(parts, "run "+o.RunID)
	}
	parts = append(parts, fmt.Sprintf("pid %d", o.Process.PID))
	who := o.Job
	if who == "" {
		who = "another run"
	}
	held := max(b.At.Sub(o.Since), 0).Round(time.Second)
	return fmt.Sprintf("%s (%s) since %s, %v", who, strings.Join(parts, ", "), o.Since.Local().Format(time.DateTime), held)
}

// dyingLimit is how long even one who does not wait gives a lane whose holder
// is dead or not on record. A holder that was killed while it started a program
// leaves its lock to that program until this has come up or died too; that takes
// milliseconds.
const dyingLimit = 2 * time.Second

// dying reports whether a holder is about to go: what holds the lock is not
// the process that took it.
func (b *Busy) dying() bool {
	for _, h := range b.Holders {
		if h.Process.PID == 0 || !h.Process.Alive() {
			return true
		}
	}
	return false
}

// ExitCode returns LaneBusy.
func (b *Busy) ExitCode() exitcodes.Code { return exitcodes.LaneBusy }
