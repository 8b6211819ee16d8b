package session

import (
	"time"

	"agentd/exitcodes"
	"agentd/provider/message"
)

// Transcript is a session as its journal tells it.
type Transcript struct {
	// Messages is what the model should see: after a compaction the summary and
	// what was kept. The results of an assistant message's tool calls follow it
	// in one message, in the order of the calls.
	Messages []message.Message
	// Seqs has, for each of Messages, the record that it comes from. The results
	// have the number of their assistant message.
	Seqs []uint64
	// Pending holds the calls of the last assistant message without a result.
	Pending []PendingCall
	// External has the id under which a backend keeps its part of the session.
	External map[string]string
	// Spent has what each run has used up, by run id; Total is the sum. What an
	// attempt used before it died is in it.
	Spent map[string]Spent
	Total Spent
	// Last is the newest attempt; nil if there was none.
	Last *AttemptInfo
	// Notes are the newest facts for people.
	Notes       []Note
	Compactions int
	Seq         uint64 // of the last record
}

// PendingCall is a tool call without a result.
type PendingCall struct {
	Call message.Part
	// Started: the tool's body may have run, wholly or in part. A call that was
	// not started can be run as if for the first time.
	Started bool
	Effect  Effect // what a second run would do; empty if not started
}

// Repeatable reports whether the call may be run now.
func (p PendingCall) Repeatable() bool { return !p.Started || p.Effect.Repeatable() }

// Result returns the result that tells the model that nobody knows how the
// call ended, or that it was not run.
func (p PendingCall) Result() message.Part {
	text := "This call was not run: the work was interrupted before it started. Call the tool again if its result is still needed."
	if p.Started {
		text = "The outcome of this call is unknown: the work was interrupted while the tool ran, and its output is lost. " +
			"It may have done all, some or none of what was asked. Look at the present state before you decide whether to call it again."
	}
	return message.Part{Kind: message.ToolResult, ID: p.Call.ID, Name: p.Call.Name, Text: text, IsError: true}
}

// Spent is what was used up.
type Spent struct {
	Usage    message.Usage
	Steps    int // replies of the model
	Requests int // physical requests; for an attempt that died at least its steps
	Replays  int
	Attempts int
}

// AttemptInfo is one attempt; Code means something only if it Ended.
type AttemptInfo struct {
	RunID     string
	N         int
	Backend   string
	Model     string
	StartedAt time.Time
	Ended     bool
	EndedAt   time.Time
	Code      exitcodes.Code
}

// Note is a fact for people.
type Note struct {
	Seq  uint64    `json:"seq"`
	At   time.Time `json:"at"`
	Kind string    `json:"kind"`
	Text string    `json:"text"`
}
