package scheduler

import (
	"context"
	"time"

	"agentd/exitcodes"
	"agentd/history"
	"agentd/scheduler/expr"
	"agentd/systemd"
	"agentd/workspace"
)

// State says what a job is doing.
type State string

// The states.
const (
	Running  State = "running"
	Pending  State = "pending"  // a run of it goes on later
	Idle     State = "idle"     // waits for its next time
	Manual   State = "manual"   // has no schedule
	Off      State = "off"      // switched off in agentd.toml
	Disabled State = "disabled" // by a person
	Dormant  State = "dormant"  // has a schedule, but no timer of it runs
)

// JobState is what is known about one job; its JSON has the field names of a
// run record where it tells of the last run.
type JobState struct {
	Agent      string     `json:"agent"`
	Job        string     `json:"job"`
	Lane       string     `json:"lane"`
	Workspace  string     `json:"workspace"`
	State      State      `json:"state"`
	Enabled    bool       `json:"enabled"` // in agentd.toml
	Installed  bool       `json:"installed"`
	DisabledAt *time.Time `json:"disabled_at"`
	Next       *time.Time `json:"next"` // null: not by itself

	// Waiting is of a run under way: it does no work now, for its lane is taken
	// or it waits until it may try again.
	Waiting bool `json:"waiting"`

	// The last run, or the one under way; empty before the first.
	RunID         string           `json:"run_id"`
	Session       string           `json:"session"`
	Trigger       string           `json:"trigger"`
	StartedAt     *time.Time       `json:"started_at"`
	EndedAt       *time.Time       `json:"ended_at"`
	Code          *exitcodes.Code  `json:"code"`
	Name          string           `json:"name"`
	ResetAt       *time.Time       `json:"reset_at"`
	PendingResume *history.Pending `json:"pending_resume"`
}

// Units asks a systemd about jobs; *systemd.Conn does, with two calls for any
// number of them.
type Units interface {
	States(ctx context.Context, jobs ...systemd.JobName) ([]systemd.JobStatus, error)
}

// View is where the states of jobs are looked up.
type View struct {
	Store  *history.Store
	Units  Units // nil: there is no systemd
	Target Target
	Now    time.Time
	Daemon bool // a daemon runs: it starts the jobs that have no timer
}

// Jobs returns the states of the jobs in their order. Their next times are
// those of the schedule: systemd would have to be asked for each.
func (v View) Jobs(ctx context.Context, jobs []*workspace.Job) ([]JobState, error) {
	byName := map[systemd.JobName]systemd.JobStatus{}
	if v.Units != nil && len(jobs) > 0 {
		names := make([]systemd.JobName, len(jobs))
		for i, j := range jobs {
			names[i] = NameOf(j)
		}
		list, err := v.Units.States(ctx, names...)
		if err != nil {
			return nil, err
		}
		for _, u := range list {
			byName[u.Name] = u
		}
	}
	pending, err := v.Store.PendingRuns()
	if err != nil {
		return nil, err
	}
	states := make([]JobState, len(jobs))
	for i, j := range jobs {
		last, err := v.Store.Last(j.Agent, j.Name)
		if err != nil {
			return nil, err
		}
		s := JobState{Agent: j.Agent, Job: j.Name, Lane: j.Lane, Workspace: j.Dir, Enabled: j.Enabled}
		s.tell(last)
		for _, p := range pending {
			if p.Agent == j.Agent && p.Job == j.Name && s.PendingResume == nil {
				s.PendingResume = p.PendingResume
			}
		}
		if since := v.Target.DisabledSince(NameOf(j)); !since.IsZero() {
			s.DisabledAt = &since
		}
		s.judge(j, byName[NameOf(j)], v.Now, v.Daemon)
		states[i] = s
	}
	return states, nil
}

func (s *JobState) tell(last *history.Run) {
	if last == nil {
		return
	}
	s.RunID, s.Session, s.Trigger = last.RunID, last.Session, last.Trigger
	s.StartedAt, s.EndedAt = &last.StartedAt, last.EndedAt
	s.Code, s.Name, s.ResetAt = last.Code, last.Name, last.ResetAt
	n := len(last.Attempts)
	s.Waiting = last.EndedAt == nil && (n == 0 || last.Attempts[n-1].EndedAt != nil)
}

// judge decides the state and the next time.
func (s *JobState) judge(j *workspace.Job, unit systemd.JobStatus, now time.Time, daemon bool) {
	s.Installed = unit.Installed
	waits := unit.Waiting || daemon && Scheduled(j) && s.DisabledAt == nil
	switch {
	case s.RunID != "" && s.EndedAt == nil:
		s.State = Running
	case s.PendingResume != nil:
		s.State = Pending
	case !j.Enabled:
		s.State = Off
	case len(j.Schedules) == 0:
		s.State = Manual
	case waits:
		s.State = Idle
	case s.DisabledAt != nil:
		s.State = Disabled
	default:
		s.State = Dormant
	}
	if !waits {
		return
	}
	if next := s.next(j.Schedules, now); !next.IsZero() {
		s.Next = &next
	}
}

// next returns the earliest time of the schedules. A fixed distance counts from
// the last run, as the timer does.
func (s *JobState) next(schedules []*expr.Schedule, now time.Time) time.Time {
	var next time.Time
	for _, sched := range schedules {
		at := sched.Next(now)
		if sched.Kind() == expr.Every && s.StartedAt != nil {
			if since := sched.Next(*s.StartedAt); since.After(now) {
				at = since
			}
		}
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}
