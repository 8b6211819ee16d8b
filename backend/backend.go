// Package backend does the work of an attempt: with agentd's own generation
// engine (builtin), with any program (command), or with an external agent CLI.
package backend

import (
	"context"
	"io"
	"time"

	"agentd/exitcodes"
	"agentd/provider/message"
	"agentd/session"
	"agentd/workspace"
)

// Backend runs one attempt. Run returns when everything it started has ended:
// no process, goroutine or open file of the attempt is left. A failure of the
// attempt is in the Outcome, never a panic.
type Backend interface {
	Run(ctx context.Context, a Attempt) Outcome
}

// Attempt is what a backend needs to know.
type Attempt struct {
	RunID   string
	N       int // counts from 1 within the run
	Job     *workspace.Job
	Dir     string   // the workspace
	RunDir  string   // the run's own folder, for files the attempt needs
	Prompt  string   // what the run has to do
	Resumed bool     // an attempt of this run came before: its session may hold the prompt already
	Args    []string // extra arguments from the command line, for programs
	Env     []string // the child environment, complete, without what it has no need of
	Session *session.Session
	Output  io.Writer   // plain lines for the log; redacted by the caller
	Events  func(Event) // progress for people and events.jsonl; never nil
}

// Event is one fact about a running attempt.
type Event struct {
	At   time.Time      `json:"at"`
	Kind string         `json:"kind"` // e.g. "tool", "replay", "wait", "text", "session"
	Text string         `json:"text"` // one line for people
	Data map[string]any `json:"data,omitempty"`
}

// Outcome is how an attempt ended.
type Outcome struct {
	Code     exitcodes.Code
	Err      error     // nil if Code is OK; one line, with the provider's or program's own words
	ResetAt  time.Time // when a limit is lifted, if known
	Status   int       // a program's own exit status
	Signal   string    // the signal that ended a program, if one did
	Requests int       // physical requests sent
	Replays  int       // of these, how many repeated an earlier one
	Waited   time.Duration
	Why      []string // why each replay was made
	Steps    int
	Text     string // the last thing the agent said
	Usage    message.Usage
}
