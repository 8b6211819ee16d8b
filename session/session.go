// Package session keeps named conversations on disk. A session is an
// append-only journal with one writer: what was said, what was about to be
// done, and what came of it. From the journal alone a later attempt knows what
// the model should see and which tool calls may be run.
package session

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"agentd/exitcodes"
	"agentd/provider/message"
)

// Session is a session open for writing. Its methods may be called from
// several goroutines. After an error of code IO nothing more can be written:
// close the session and open it again.
type Session struct {
	agent, name, dir string
	mu               sync.Mutex
	lock             *lock
	journal          *journal
	state            *state
	closed           bool
}

// Agent returns the agent that the session belongs to.
func (s *Session) Agent() string { return s.agent }

// Name returns the session's name.
func (s *Session) Name() string { return s.name }

// Dir returns the session's folder.
func (s *Session) Dir() string { return s.dir }

// Transcript returns the session as it stands; later records do not change it.
func (s *Session) Transcript() *Transcript {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.transcript()
}

// Message records something said: a prompt, or a complete reply of the model
// with what it used and why it finished. It returns once the record is durable.
// Results of tools are recorded by Result.
func (s *Session) Message(m message.Message, usage message.Usage, finish string) error {
	if m.Role == message.Tool {
		return exitcodes.Errorf(exitcodes.Software, "a message of tool results cannot be recorded: results are recorded one by one")
	}
	m = clean(m)
	rec := &Record{Type: TypeMessage, Message: &m, Finish: finish}
	if usage != (message.Usage{}) {
		rec.Usage = &usage
	}
	return s.commit(rec, nil)
}

// Intent records that the body of a tool call of the last assistant message is
// about to start. The body may start when Intent has returned without an error.
// A call whose outcome is unknown has an intent already; a second one is
// recorded, so that the journal tells how often the body was started.
func (s *Session) Intent(part message.Part, effect Effect) error {
	sum := sha256.Sum256([]byte(part.Arguments))
	rec := &Record{Type: TypeIntent, CallID: part.ID, Name: part.Name, ArgsSHA256: hex.EncodeToString(sum[:]), Effect: effect}
	return s.commit(rec, func() error {
		if !slices.ContainsFunc(s.state.pending(), func(p PendingCall) bool { return p.Call.ID == part.ID }) {
			return exitcodes.Errorf(exitcodes.Software, "tool call %q is not open in session %s/%s", part.ID, s.agent, s.name)
		}
		return nil
	})
}

// Result records how a tool call of the last assistant message ended;
// result.ID says which call. It returns once the record is durable.
func (s *Session) Result(result message.Part, outcome Outcome) error {
	result.Kind = message.ToolResult
	result = cleanPart(result)
	rec := &Record{Type: TypeResult, CallID: result.ID, Name: result.Name, Result: &result, Outcome: outcome}
	return s.commit(rec, func() error {
		if s.state.openCall(result.ID) == nil {
			return exitcodes.Errorf(exitcodes.Software, "tool call %q has a result already, or is not in session %s/%s", result.ID, s.agent, s.name)
		}
		return nil
	})
}

// AttemptStarted records that a backend is about to be invoked for the n-th
// time within the run.
func (s *Session) AttemptStarted(runID string, n int, backend, model string) error {
	return s.commit(&Record{Type: TypeAttemptStarted, RunID: runID, N: n, Backend: backend, Model: model}, nil)
}

// AttemptEnded records how the attempt ended and what it used in all.
func (s *Session) AttemptEnded(runID string, n int, code exitcodes.Code, requests, replays int, usage message.Usage) error {
	rec := &Record{Type: TypeAttemptEnded, RunID: runID, N: n, Code: &code, Requests: requests, Replays: replays}
	if usage != (message.Usage{}) {
		rec.Usage = &usage
	}
	return s.commit(rec, nil)
}

// Compaction lets the model see summary in place of all messages before record
// keepFrom (one of Transcript.Seqs; 0 keeps none). The messages stay in the
// journal. A call without a result cannot be hidden.
func (s *Session) Compaction(keepFrom uint64, summary message.Message) error {
	summary = clean(summary)
	return s.commit(&Record{Type: TypeCompaction, KeepFrom: keepFrom, Message: &summary}, func() error {
		last := s.state.lastAssistant()
		if last != nil && len(s.state.pending()) > 0 && (keepFrom == 0 || keepFrom > last.seq) {
			return exitcodes.Errorf(exitcodes.Software, "a compaction of session %s/%s would hide a tool call that has no result", s.agent, s.name)
		}
		return nil
	})
}

// ExternalSession records the id under which the backend keeps its own part of
// the conversation.
func (s *Session) ExternalSession(backend, id string) error {
	return s.commit(&Record{Type: TypeExternalSession, Backend: backend, ID: id}, nil)
}

// Note records a fact for people, such as a lost external session.
func (s *Session) Note(kind, text string) error {
	return s.commit(&Record{Type: TypeNote, Kind: kind, Text: text}, nil)
}

// Append writes rec without waiting for the disk: it survives the end of this
// process, and after a Sync also that of the machine. Seq and At are filled in.
func (s *Session) Append(rec *Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.append(rec)
}

// Sync makes everything appended so far durable.
func (s *Session) Sync() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return s.closedError()
	}
	return s.journal.sync()
}

// commit checks, appends and syncs.
func (s *Session) commit(rec *Record, check func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if check != nil {
		if err := check(); err != nil {
			return err
		}
	}
	if err := s.append(rec); err != nil {
		return err
	}
	return s.journal.sync()
}

func (s *Session) append(rec *Record) error {
	if s.closed {
		return s.closedError()
	}
	if s.journal.broken != nil {
		return s.journal.broken
	}
	if r := rec.Result; rec.Type == TypeResult && r != nil && len(r.Text) > maxInline {
		blob, err := putBlob(s.journal.disk, s.dir, r.Text)
		if err != nil {
			return diskError(err, "keep the output of tool call %q", rec.CallID)
		}
		short := *r
		short.Text = ""
		rec.full, rec.Result, rec.Blob = r, &short, blob
	}
	return s.journal.append(rec)
}

// Close makes everything durable and lets the next writer in. It may be called
// again.
func (s *Session) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	err := s.journal.close()
	if err == nil && s.journal.broken == nil {
		s.cacheInfo()
	}
	return firstError(err, s.lock.release())
}

func (s *Session) closedError() error {
	return exitcodes.Errorf(exitcodes.Software, "session %s/%s is closed", s.agent, s.name)
}

// clean gives m the form in which it will be read back, so that a conversation
// is the same before and after a restart.
func clean(m message.Message) message.Message {
	parts := make([]message.Part, len(m.Parts))
	for i, p := range m.Parts {
		parts[i] = cleanPart(p)
	}
	m.Parts = parts
	return m
}

func cleanPart(p message.Part) message.Part {
	for _, s := range []*string{&p.Text, &p.ID, &p.Name, &p.Arguments, &p.Wire} {
		*s = strings.ToValidUTF8(*s, "\ufffd")
	}
	if len(p.Opaque) > 0 {
		var b bytes.Buffer
		if json.Compact(&b, p.Opaque) == nil {
			p.Opaque = b.Bytes()
		}
	}
	return p
}

// clock is the time that records are stamped with.
func clock(now func() time.Time) func() time.Time {
	if now == nil {
		return time.Now
	}
	return now
}
