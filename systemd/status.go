package systemd

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
)

// JobStatus is what systemd knows about a job.
type JobStatus struct {
	Name      JobName
	Installed bool // it has a service unit
	Enabled   bool // its timer (of an agent: its service) starts with the machine or the session
	Waiting   bool // its timer runs
	Running   bool // its service runs: a oneshot is "activating" all along
	// Refused says which of its units systemd does not take, such as
	// "agentd-bob-triage.service is bad-setting", or is "".
	Refused string

	Next time.Time // when the timer elapses next; zero: never or unknown
	Last time.Time // when it last did; zero: never
	// Result is how the last run ended: "success", "exit-code", "timeout", ...
	// It is "" before the first, and after a success of a job without a timer,
	// which systemd forgets.
	Result string
	Status int // exit status of the last run
	PID    int // of the running script, else 0
}

// States returns what two calls can tell about any number of jobs, in the
// given order: all but the times, the results and the pid.
func (c *Conn) States(ctx context.Context, jobs ...JobName) ([]JobStatus, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	states, _, err := c.states(ctx, jobs)
	return states, err
}

// Status returns all about jobs in the given order. Beyond the two calls of
// States it takes one for each unit that is there, all under way at once. A
// timer in a named time zone costs systemd a process each time it is looked
// at, so for hundreds of jobs prefer States.
func (c *Conn) Status(ctx context.Context, jobs ...JobName) ([]JobStatus, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	out, units, err := c.states(ctx, jobs)
	if err != nil {
		return nil, err
	}
	var wait sync.WaitGroup
	slots := make(chan struct{}, 16) // calls under way
	errs := make([]error, len(jobs))
	for i, j := range jobs {
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			errs[i] = c.detail(ctx, &out[i], units[j.Service()], units[j.Timer()])
		})
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, c.explain("describe a unit", err)
		}
	}
	return out, nil
}

func (c *Conn) states(ctx context.Context, jobs []JobName) ([]JobStatus, map[string]dbus.UnitStatus, error) {
	if len(jobs) == 0 {
		return nil, nil, nil
	}
	names := make([]string, 0, 2*len(jobs))
	for _, j := range jobs {
		names = append(names, j.Service(), j.Timer())
	}
	list, err := c.bus.ListUnitsByNamesContext(ctx, names)
	if err != nil {
		return nil, nil, c.explain("list units", err)
	}
	units := make(map[string]dbus.UnitStatus, len(list))
	for _, u := range list {
		units[u.Name] = u
	}
	enabled, err := c.enabledUnits(ctx)
	if err != nil {
		return nil, nil, err
	}
	out := make([]JobStatus, len(jobs))
	for i, j := range jobs {
		service, timer := units[j.Service()], units[j.Timer()]
		out[i] = JobStatus{
			Name:      j,
			Installed: service.LoadState == "loaded",
			Enabled:   enabled[j.Timer()] || j.Job == "" && enabled[j.Service()],
			Waiting:   timer.LoadState == "loaded" && timer.ActiveState == "active",
			// A oneshot is "activating" from its start to its end.
			Running: slices.Contains([]string{"activating", "active", "deactivating"}, service.ActiveState),
			Refused: refused(service, timer),
		}
	}
	return out, units, nil
}

// refused tells of the first unit that is there and cannot be used.
func refused(units ...dbus.UnitStatus) string {
	for _, u := range units {
		if !slices.Contains([]string{"", "loaded", "not-found"}, u.LoadState) {
			return u.Name + " is " + u.LoadState
		}
	}
	return ""
}

// enabledUnits returns the units that the targets of agentd's units want. It
// looks at the links, which is all that "enabled" means: asked for it, systemd
// reads every unit file there is.
func (c *Conn) enabledUnits(ctx context.Context) (map[string]bool, error) {
	dirs, err := c.UnitPath(ctx)
	if err != nil {
		return nil, err
	}
	enabled := map[string]bool{}
	for _, dir := range dirs {
		for _, wants := range WantsFolders() {
			links, err := os.ReadDir(filepath.Join(dir, wants))
			if err != nil {
				continue // not there, or not for us to see
			}
			for _, l := range links {
				enabled[l.Name()] = true
			}
		}
	}
	return enabled, nil
}

// WantsFolders returns the folders, in one of units, that the links are in
// which enable agentd's units.
func WantsFolders() []string {
	return []string{"timers.target.wants", "default.target.wants", "multi-user.target.wants"}
}

func (c *Conn) detail(ctx context.Context, s *JobStatus, service, timer dbus.UnitStatus) error {
	if service.LoadState == "loaded" {
		p, err := c.bus.GetUnitTypePropertiesContext(ctx, service.Name, "Service")
		if err != nil {
			return err
		}
		if pid, _ := p["MainPID"].(uint32); s.Running {
			s.PID = int(pid)
		}
		if ended, _ := p["ExecMainExitTimestamp"].(uint64); ended > 0 {
			status, _ := p["ExecMainStatus"].(int32)
			s.Result, _ = p["Result"].(string)
			s.Status = int(status)
		}
	}
	if timer.LoadState == "loaded" {
		p, err := c.bus.GetUnitTypePropertiesContext(ctx, timer.Name, "Timer")
		if err != nil {
			return err
		}
		s.Last = realtime(p["LastTriggerUSec"])
		if s.Waiting {
			s.Next = nextElapse(p)
		}
	}
	return nil
}

// nextElapse returns the earlier of the two times a timer can have. The
// monotonic one counts from the boot.
func nextElapse(p map[string]any) time.Time {
	next := realtime(p["NextElapseUSecRealtime"])
	mono, _ := p["NextElapseUSecMonotonic"].(uint64)
	if mono == 0 || mono == never {
		return next
	}
	up, err := monotonic()
	if err != nil {
		return next
	}
	at := time.Now().Add(time.Duration(mono)*time.Microsecond - up).Truncate(time.Second)
	if next.IsZero() || at.Before(next) {
		return at
	}
	return next
}

// never is how systemd writes a time that does not come.
const never = ^uint64(0)

func realtime(v any) time.Time {
	us, _ := v.(uint64)
	if us == 0 || us == never {
		return time.Time{}
	}
	return time.UnixMicro(int64(us))
}

// Linger reports whether the user's manager runs without a session: where it
// does not, jobs stop at logout. It asks the file that logind keeps, since
// logind itself may not be there.
func Linger() (on bool, name string, err error) {
	u, err := user.Current()
	if err != nil {
		return false, "", fmt.Errorf("cannot tell who you are: %w", err)
	}
	switch _, err := os.Stat(filepath.Join("/var/lib/systemd/linger", u.Username)); {
	case err == nil:
		return true, u.Username, nil
	case os.IsNotExist(err):
		return false, u.Username, nil
	default:
		return false, u.Username, fmt.Errorf("cannot tell whether linger is on: %w", err)
	}
}
