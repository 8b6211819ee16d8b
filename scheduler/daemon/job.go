// Package daemon is the scheduler for machines without systemd: it starts the
// runs of all jobs of a user at their times, each as a process of its own.
//
// The Engine knows when, the Pool how many at once, and Children how. Who has
// taken a firing is decided by the run that is started for it, in the book of
// firings; so a systemd timer may be on for the same job.
package daemon

import (
	"hash/fnv"
	"slices"
	"time"

	"agentd/scheduler/expr"
)

// Name names a job among all of a user's.
type Name struct{ Agent, Job string }

func (n Name) String() string { return n.Agent + "/" + n.Job }

// Job is what the daemon has to know of a job.
type Job struct {
	Name
	Dir       string // of the workspace
	Schedules []*expr.Schedule
	Zone      string // in which the schedules were read; "" is the machine's
	CatchUp   bool
	Jitter    time.Duration
	Grace     time.Duration // between SIGTERM and SIGKILL
}

// delay is how long after its time the job fires: the same at each firing, and
// between 0 and Jitter.
func (j *Job) delay() time.Duration {
	if j.Jitter <= 0 {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(j.Name.String())) // never fails
	return time.Duration(h.Sum64() % uint64(j.Jitter)).Truncate(time.Millisecond)
}

// sameTimes reports whether two versions of a job fire at the same times.
func (j *Job) sameTimes(other *Job) bool {
	return j.Zone == other.Zone && slices.EqualFunc(j.Schedules, other.Schedules, func(a, b *expr.Schedule) bool {
		return a == b || a.String() == b.String() && a.Zone() == b.Zone()
	})
}

func (j *Job) has(kind expr.Kind) bool {
	return slices.ContainsFunc(j.Schedules, func(s *expr.Schedule) bool { return s.Kind() == kind })
}

// Firing asks for one run.
type Firing struct {
	Name
	Dir     string
	Trigger string        // "daemon" or "resume"; or crashed
	RunID   string        // of the pending run, for "resume"
	Due     time.Time     // by the schedule
	At      time.Time     // when it was to start: Due and the job's delay
	Grace   time.Duration // of the job
}

// crashed is the trigger of what is no run of a job, but closes the records of
// runs whose agentd died.
const crashed = "crashed"
