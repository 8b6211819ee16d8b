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
	Running State = "running"
	Pending State = "pending" // a run of it goes on later
	Idle    State = "idle"    // waits for its next time
	Manual  State = "manual"  // has no schedule
	Off     State = "off"     // switched off in agentd.toml
	Dormant State = "dormant" // has a schedule, but no timer of it runs
)

// JobState is what is known about one job; its JSON has the field names of a
// run record where it tells of the last run.
type JobState struct {
	Agent     string     `json:"agent"`
	Job       string     `json:"job"`
	Lane      string     `json:"lane"`
	Workspace string     `json:"workspace"`
	State     State      `json:"state"`
	Enabled   bool       `json:"enabled"`
	Installed bool       `json:"installed"`
	Next      *time.Time `json:"next"` // null: not by itself

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

// Units asks a systemd about jobs; *systemd.Conn does. Nil means there is none.
type Units interface {
	Status(ctx context.Context, jobs ...systemd.JobName) ([]systemd.JobStatus, error)
}

// Overview returns the states of the jobs in their order.
func Overview(ctx context.Context, jobs []*workspace.Job, store *history.Store, units Units, now time.Time) ([]JobState, error) {
	byName := map[systemd.JobName]systemd.JobStatus{}
	if units != nil && len(jobs) > 0 {
		names := make([]systemd.JobName, len(jobs))
		for i, j := range jobs {
			names[i] = NameOf(j)
		}
		list, err := units.Status(ctx, names...)
		if err != nil {
			return nil, err
		}
		for _, u := range list {
			byName[u.Name] = u
		}
	}
	pending, err := store.PendingRuns()
	if err != nil {
		return nil, err
	}
	states := make([]JobState, len(jobs))
	for i, j := range jobs {
		last, err := store.Last(j.Agent, j.Name)
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
		s.judge(j, byName[NameOf(j)], now)
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
}

// judge decides the state and the next time.
func (s *JobState) judge(j *workspace.Job, unit systemd.JobStatus, now time.Time) {
	s.Installed = unit.Installed
	switch {
	case s.RunID != "" && s.EndedAt == nil:
		s.State = Running
	case s.PendingResume != nil:
		s.State = Pending
	case !j.Enabled:
		s.State = Off
	case len(j.Schedules) == 0:
		s.State = Manual
	case unit.Waiting:
		s.State = Idle
	default:
		s.State = Dormant
	}
	if !unit.Waiting {
		return
	}
	next := unit.Next
	if next.IsZero() { // a timer whose service runs does not say
		next = expr.Earliest(now, j.Schedules)
	}
	if !next.IsZero() {
		s.Next = &next
	}
}
