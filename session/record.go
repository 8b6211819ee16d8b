package session

import (
	"time"

	"agentd/exitcodes"
	"agentd/provider/message"
)

// Type says what a record is.
type Type string

// The types. A reader passes over one that it does not know.
const (
	TypeSegment         Type = "segment"          // first record of a file: format and number
	TypeMessage         Type = "message"          // something was said
	TypeIntent          Type = "tool_intent"      // a tool body is about to start
	TypeResult          Type = "tool_result"      // a tool body has ended, or its end is known to be unknown
	TypeAttemptStarted  Type = "attempt_started"  // a backend was invoked
	TypeAttemptEnded    Type = "attempt_ended"    // it returned
	TypeCompaction      Type = "compaction"       // the model sees a summary in place of older messages
	TypeExternalSession Type = "external_session" // the id under which an external CLI keeps its part
	TypeNote            Type = "note"             // a fact for people
	TypeSealed          Type = "sealed"           // a torn last line was moved aside
	TypeRepaired        Type = "repaired"         // records were cut off after damage
	TypeBlobLost        Type = "blob_lost"        // an output is gone from the disk
)

// Effect is what running a tool a second time would do.
type Effect string

// The effects.
const (
	Read       Effect = "read"       // changes nothing
	Idempotent Effect = "idempotent" // twice is as good as once
	Unknown    Effect = "unknown"    // must not be run twice
)

// Repeatable reports whether a call whose outcome is unknown may be run again.
func (e Effect) Repeatable() bool { return e == Read || e == Idempotent }

// Outcome is how a tool call ended.
type Outcome string

// The outcomes.
const (
	OutcomeOK          Outcome = "ok"
	OutcomeError       Outcome = "error"
	OutcomeInterrupted Outcome = "interrupted" // stopped by agentd in an orderly way
	OutcomeUnknown     Outcome = "unknown"     // it was started, and nobody saw it end
)

// Record is one line of a journal. Which fields are set depends on Type.
type Record struct {
	Seq  uint64    `json:"seq"`
	At   time.Time `json:"at"`
	Type Type      `json:"type"`

	// message (and the summary of a compaction)
	Message *message.Message `json:"message,omitempty"`
	Usage   *message.Usage   `json:"usage,omitempty"` // also attempt_ended: of the whole attempt
	Finish  string           `json:"finish,omitempty"`

	// tool_intent, tool_result. A result's text is in Blob if that is set.
	CallID     string        `json:"call_id,omitempty"`
	Name       string        `json:"name,omitempty"`
	ArgsSHA256 string        `json:"args_sha256,omitempty"`
	Effect     Effect        `json:"effect,omitempty"`
	Result     *message.Part `json:"result,omitempty"`
	Blob       *Blob         `json:"blob,omitempty"` // also blob_lost
	Outcome    Outcome       `json:"outcome,omitempty"`

	full *message.Part // Result with its text, where a writer has put that into Blob

	// attempt_started, attempt_ended
	RunID    string          `json:"run_id,omitempty"`
	N        int             `json:"n,omitempty"`
	Backend  string          `json:"backend,omitempty"` // also external_session
	Model    string          `json:"model,omitempty"`
	Code     *exitcodes.Code `json:"code,omitempty"`
	Requests int             `json:"requests,omitempty"`
	Replays  int             `json:"replays,omitempty"`

	// compaction: messages before this record are hidden from the model
	KeepFrom uint64 `json:"keep_from_seq,omitempty"`

	// external_session
	ID string `json:"id,omitempty"`

	// note, sealed, repaired
	Kind string `json:"kind,omitempty"`
	Text string `json:"text,omitempty"`
	File string `json:"file,omitempty"`  // where the bytes that were cut off are kept
	Lost int64  `json:"bytes,omitempty"` // how many there were

	// segment
	Version int `json:"version,omitempty"`
	Segment int `json:"segment,omitempty"`
}

// Blob names a large output that is kept beside the journal.
type Blob struct {
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
}
