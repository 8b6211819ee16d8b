// Package history keeps the records of runs. Each run has a folder with its
// record (run.json), its output and its events: they are the truth. The
// SQLite database beside them is an index, made anew when it is lost.
package history

import (
	"time"

	"agentd/exitcodes"
	"agentd/process"
	"agentd/provider/message"
)

// Run is the record of one run. Its JSON is the documented shape of
// `agentd run --json` and `agentd history --json`.
type Run struct {
	RunID     string     `json:"run_id"`
	Agent     string     `json:"agent"`
	Job       string     `json:"job"`
	Lane      string     `json:"lane"`
	Session   string     `json:"session"`
	Trigger   string     `json:"trigger"`
	StartedAt time.Time  `json:"started_at"`
	EndedAt   *time.Time `json:"ended_at"` // null while it runs
	Attempts  []Attempt  `json:"attempts"`

	Code    *exitcodes.Code `json:"code"` // null while it runs
	Name    string          `json:"name"` // "running" while it does
	ResetAt *time.Time      `json:"reset_at"`
	Usage   message.Usage   `json:"usage"`

	// PendingResume says when and how the run goes on, if it does.
	PendingResume *Pending `json:"pending_resume"`

	Error     string           `json:"error,omitempty"`
	Hint      string           `json:"hint,omitempty"`
	Notes     []string         `json:"notes,omitempty"` // what else is worth knowing
	Workspace string           `json:"workspace"`
	Process   process.Identity `json:"process"` // the agentd that works on it
}

// Attempt is one invocation of a backend in a run.
type Attempt struct {
	N         int             `json:"n"`
	Backend   string          `json:"backend"`
	Model     string          `json:"model,omitempty"`
	StartedAt time.Time       `json:"started_at"`
	EndedAt   *time.Time      `json:"ended_at"`
	Code      *exitcodes.Code `json:"code"`
	Name      string          `json:"name"`
	Requests  int             `json:"requests"`
	Replays   int             `json:"replays"`
	ResetAt   *time.Time      `json:"reset_at"`

	Waited float64  `json:"waited_s,omitempty"` // seconds between requests
	Why    []string `json:"why,omitempty"`      // the reason of each replay
	Steps  int      `json:"steps,omitempty"`
	Status int      `json:"status,omitempty"` // the program's own exit status
	Signal string   `json:"signal,omitempty"`
	Error  string   `json:"error,omitempty"`
}

// Pending is an attempt that is still to come.
type Pending struct {
	NotBefore time.Time `json:"not_before"`
	Attempt   int       `json:"attempt"` // its number
	Reason    string    `json:"reason"`  // the name of the code that the last one ended with
}

// running is the name of a run or attempt without a code yet.
const running = "running"

// SetCode ends the run with c.
func (r *Run) SetCode(c exitcodes.Code) { r.Code, r.Name = &c, c.String() }

// SetCode ends the attempt with c.
func (a *Attempt) SetCode(c exitcodes.Code) { a.Code, a.Name = &c, c.String() }

// EndAttempts ends an attempt that has no end yet with c.
func (r *Run) EndAttempts(c exitcodes.Code, at time.Time) {
	for i := range r.Attempts {
		if a := &r.Attempts[i]; a.EndedAt == nil {
			a.EndedAt = &at
			a.SetCode(c)
		}
	}
}

// Open reports whether the record was not closed yet.
func (r *Run) Open() bool { return r.EndedAt == nil }

// Address returns "agent/job".
func (r *Run) Address() string { return r.Agent + "/" + r.Job }

// normalize fills what must not be null and brings times to one zone.
func (r *Run) normalize() {
	if r.Attempts == nil {
		r.Attempts = []Attempt{}
	}
	if r.Code == nil {
		r.Name = running
	}
	r.StartedAt = r.StartedAt.UTC().Truncate(time.Millisecond)
	r.EndedAt, r.ResetAt = utc(r.EndedAt), utc(r.ResetAt)
	for i := range r.Attempts {
		a := &r.Attempts[i]
		if a.Code == nil {
			a.Name = running
		}
		a.StartedAt = a.StartedAt.UTC().Truncate(time.Millisecond)
		a.EndedAt, a.ResetAt = utc(a.EndedAt), utc(a.ResetAt)
	}
}

// utc returns a new time: the one that t points to is the caller's.
func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC().Truncate(time.Millisecond)
	return &u
}

// Triggers lists what can start a run.
func Triggers() []string { return []string{"timer", "daemon", "manual", "resume", "script"} }
