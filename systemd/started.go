package systemd

import (
	"context"
	"strings"
)

// StartedBy says which timers have started a job's service that is going on.
type StartedBy struct {
	Timer bool // the job's own
	Once  bool // one of StartOnce
}

// StartedBy asks which timers wait for the job's service to end: those that
// started it. It is for the service itself to ask. What systemd puts into a
// service's environment does not tell: it names the first timer for ever.
func (c *Conn) StartedBy(ctx context.Context, job JobName) (StartedBy, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	onces, err := c.Onces()
	if err != nil {
		return StartedBy{}, err
	}
	names := []string{job.Timer()}
	for _, o := range onces {
		if o.Owner.Name == job {
			names = append(names, o.Name+".timer")
		}
	}
	list, err := c.bus.ListUnitsByNamesContext(ctx, names)
	if err != nil {
		return StartedBy{}, c.explain("list units", err)
	}
	var by StartedBy
	for _, u := range list {
		running := u.SubState == "running" // a timer: not "waiting" for its time, nor "elapsed" for good
		by.Timer = by.Timer || running && u.Name == job.Timer()
		by.Once = by.Once || running && u.Name != job.Timer()
	}
	return by, nil
}

// triggerPrefix begins what a service tells run.sh, and that agentd, of who
// starts it.
const triggerPrefix = "systemd-"

func (s Scope) trigger() string { return triggerPrefix + string(s) }

// ParseTrigger returns the scope of the systemd that a service names as its
// trigger; ok is false for all other triggers.
func ParseTrigger(trigger string) (scope Scope, ok bool) {
	name, ok := strings.CutPrefix(trigger, triggerPrefix)
	if !ok {
		return "", false
	}
	scope, err := ParseScope(name)
	return scope, err == nil
}
