package systemd

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
)

// JobStatus is what systemd knows about a job.
type JobStatus struct {
	Name      JobName
	Installed bool // it has a service unit
	Enabled   bool // its timer starts with the machine or the session
	Waiting   bool // its timer runs
	Running   bool // its service runs: a oneshot is "activating" all along

	Next time.Time // when the timer elapses next; zero: never or unknown
	Last time.Time // when it last did; zero: never
	// Result is how the last run ended: "success", "exit-code", "timeout", ...
	// It is "" before the first, and after a success of a job without a timer,
	// which systemd forgets.
	Result string
	Status int // exit status of the last run
	PID    int // of the running script, else 0
}

// Status returns the states of jobs in the given order. Whatever their number,
// their units are asked for in two calls; only the times and results of units
// that are there take one more each, all under way at once.
func (c *Conn) Status(ctx context.Context, jobs ...JobName) ([]JobStatus, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	names := make([]string, 0, 2*len(jobs))
	for _, j := range jobs {
		names = append(names, j.Service(), j.Timer())
	}
	if len(names) == 0 {
		return nil, nil
	}
	units, err := c.bus.ListUnitsByNamesContext(ctx, names)
	if err != nil {
		return nil, c.explain("list units", err)
	}
	enabled, err := c.enabledTimers(ctx)
	if err != nil {
		return nil, err
	}
	byName := make(map[string]dbus.UnitStatus, len(units))
	for _, u := range units {
		byName[u.Name] = u
	}
	out := make([]JobStatus, len(jobs))
	var wait sync.WaitGroup
	slots := make(chan struct{}, 16) // calls under way
	errs := make([]error, len(jobs))
	for i, j := range jobs {
		out[i] = JobStatus{Name: j, Enabled: enabled[j.Timer()]}
		service, timer := byName[j.Service()], byName[j.Timer()]
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			errs[i] = c.detail(ctx, &out[i], service, timer)
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

func (c *Conn) enabledTimers(ctx context.Context) (map[string]bool, error) {
	files, err := c.bus.ListUnitFilesByPatternsContext(ctx, []string{"enabled", "enabled-runtime"}, []string{unitPrefix + "*.timer"})
	if err != nil {
		return nil, c.explain("list unit files", err)
	}
	enabled := make(map[string]bool, len(files))
	for _, f := range files {
		enabled[filepath.Base(f.Path)] = true
	}
	return enabled, nil
}

func (c *Conn) detail(ctx context.Context, s *JobStatus, service, timer dbus.UnitStatus) error {
	if service.LoadState == "loaded" {
		s.Installed = true
		s.Running = service.ActiveState == "activating" || service.ActiveState == "active" || service.ActiveState == "deactivating"
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
		s.Waiting = timer.ActiveState == "active"
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
