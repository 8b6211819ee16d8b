package session

import (
	"maps"
	"slices"
	"time"

	"agentd/exitcodes"
	"agentd/provider/message"
)

// state is what the records so far add up to.
type state struct {
	seq      uint64
	entries  []*entry
	attempts map[string]*Spent // by run id
	total    Spent
	current  *attempt // the last one started
	external map[string]string
	lost     map[string]bool // blobs known to be gone, by sha256
	notes    []Note

	messages    int // ever said, hidden ones too
	compactions int
	started     time.Time
	updated     time.Time
	lastCode    *exitcodes.Code
}

// entry is a message that the model sees.
type entry struct {
	seq     uint64
	msg     message.Message
	calls   []*call // of an assistant message
	summary bool
}

// call is one tool call of an assistant message.
type call struct {
	part    message.Part
	started bool
	effect  Effect
	result  *message.Part
	blob    *Blob // the result's text is there, and not loaded yet
	at      place // of the result's record
	outcome Outcome
}

// attempt adds up what its own messages have used, for the case that it dies
// before it can say so itself.
type attempt struct {
	runID string
	n     int
	usage message.Usage
	steps int
	ended bool
	info  AttemptInfo
}

// maxNotes bounds what is kept of an endless session.
const maxNotes = 100

func newState() *state {
	return &state{attempts: map[string]*Spent{}, external: map[string]string{}, lost: map[string]bool{}}
}

// apply takes the next record. It accepts any order: what cannot be placed is
// passed over, because a session must stay usable.
func (s *state) apply(rec *Record, at place) {
	s.seq = rec.Seq
	if s.started.IsZero() {
		s.started = rec.At
	}
	s.updated = rec.At
	switch rec.Type {
	case TypeMessage:
		s.say(rec)
	case TypeIntent:
		if c := s.find(rec.CallID, func(c *call) bool { return !c.started && c.result == nil }); c != nil {
			c.started, c.effect = true, rec.Effect
		}
	case TypeResult:
		s.answer(rec, at)
	case TypeAttemptStarted:
		s.startAttempt(rec)
	case TypeAttemptEnded:
		s.endAttempt(rec)
	case TypeCompaction:
		s.compact(rec)
	case TypeExternalSession:
		s.external[rec.Backend] = rec.ID
	case TypeBlobLost:
		if rec.Blob != nil {
			s.lost[rec.Blob.SHA256] = true
		}
	case TypeNote, TypeSealed:
		s.note(rec)
	case TypeRepaired:
		s.note(rec)
		s.doubt()
	}
}

func (s *state) say(rec *Record) {
	if rec.Message == nil {
		return
	}
	e := &entry{seq: rec.Seq, msg: *rec.Message}
	if e.msg.Role == message.Assistant {
		for _, p := range e.msg.Parts {
			if p.Kind == message.ToolCall {
				e.calls = append(e.calls, &call{part: p})
			}
		}
		s.step(rec.Usage)
	}
	s.entries = append(s.entries, e)
	s.messages++
}

func (s *state) answer(rec *Record, at place) {
	if rec.Blob != nil {
		delete(s.lost, rec.Blob.SHA256) // an output that was lost may be written again
	}
	c := s.openCall(rec.CallID)
	if c == nil || rec.Result == nil {
		return
	}
	c.result, c.blob, c.at, c.outcome = rec.Result, rec.Blob, at, rec.Outcome
	if rec.full != nil {
		c.result, c.blob = rec.full, nil
	}
}

// step counts one reply of the model.
func (s *state) step(usage *message.Usage) {
	if s.current == nil || s.current.ended {
		return
	}
	spent := s.attempts[s.current.runID]
	s.current.steps++
	for _, sum := range []*Spent{spent, &s.total} {
		sum.Steps++
		sum.Requests++ // until the attempt tells the true number
	}
	if usage != nil {
		s.current.usage = s.current.usage.Add(*usage)
		spent.Usage = spent.Usage.Add(*usage)
		s.total.Usage = s.total.Usage.Add(*usage)
	}
}

func (s *state) startAttempt(rec *Record) {
	s.current = &attempt{runID: rec.RunID, n: rec.N}
	s.current.info = AttemptInfo{RunID: rec.RunID, N: rec.N, Backend: rec.Backend, Model: rec.Model, StartedAt: rec.At}
	spent := s.attempts[rec.RunID]
	if spent == nil {
		spent = &Spent{}
		s.attempts[rec.RunID] = spent
	}
	spent.Attempts++
	s.total.Attempts++
}

// endAttempt replaces what was counted by what the attempt itself says, which
// includes requests without a reply.
func (s *state) endAttempt(rec *Record) {
	a := s.current
	if a == nil || a.ended || a.runID != rec.RunID || a.n != rec.N {
		return
	}
	a.ended = true
	a.info.Ended, a.info.EndedAt = true, rec.At
	if rec.Code != nil {
		a.info.Code = *rec.Code
		s.lastCode = rec.Code
	}
	for _, sum := range []*Spent{s.attempts[a.runID], &s.total} {
		sum.Requests += max(0, rec.Requests-a.steps)
		sum.Replays += rec.Replays
		if rec.Usage != nil {
			sum.Usage = sum.Usage.Add(missing(*rec.Usage, a.usage))
		}
	}
}

// missing is what total has more than counted, never less than nothing.
func missing(total, counted message.Usage) message.Usage {
	return message.Usage{
		InputTokens:      max(0, total.InputTokens-counted.InputTokens),
		OutputTokens:     max(0, total.OutputTokens-counted.OutputTokens),
		CachedTokens:     max(0, total.CachedTokens-counted.CachedTokens),
		CacheWriteTokens: max(0, total.CacheWriteTokens-counted.CacheWriteTokens),
		ReasoningTokens:  max(0, total.ReasoningTokens-counted.ReasoningTokens),
		CostUSD:          max(0, total.CostUSD-counted.CostUSD),
	}
}

// compact drops what the summary stands for. An older summary goes too: the
// new one was made from it.
func (s *state) compact(rec *Record) {
	s.compactions++
	var kept []*entry
	if rec.Message != nil {
		kept = append(kept, &entry{seq: rec.Seq, msg: *rec.Message, summary: true})
	}
	for _, e := range s.entries {
		if !e.summary && e.seq >= rec.KeepFrom && rec.KeepFrom > 0 {
			kept = append(kept, e)
		}
	}
	s.entries = kept
}

func (s *state) note(rec *Record) {
	kind := rec.Kind
	if kind == "" {
		kind = string(rec.Type)
	}
	if len(s.notes) == maxNotes {
		s.notes = slices.Delete(s.notes, 0, 1)
	}
	s.notes = append(s.notes, Note{Seq: rec.Seq, At: rec.At, Kind: kind, Text: rec.Text})
}

// doubt marks the open calls as perhaps started: the record of it may have
// been cut off.
func (s *state) doubt() {
	if e := s.lastAssistant(); e != nil {
		for _, c := range e.calls {
			if c.result == nil && !c.started {
				c.started, c.effect = true, Unknown
			}
		}
	}
}

// find returns the newest call with the id for which ok holds; of several
// within one message the first.
func (s *state) find(id string, ok func(*call) bool) *call {
	for _, e := range slices.Backward(s.entries) {
		known := false
		for _, c := range e.calls {
			if c.part.ID != id {
				continue
			}
			known = true
			if ok(c) {
				return c
			}
		}
		if known {
			return nil // providers use an id again in a later message
		}
	}
	return nil
}

// openCall returns the call that a result with the id answers.
func (s *state) openCall(id string) *call {
	if c := s.find(id, func(c *call) bool { return c.started && c.result == nil }); c != nil {
		return c
	}
	return s.find(id, func(c *call) bool { return c.result == nil })
}

func (s *state) lastAssistant() *entry {
	for _, e := range slices.Backward(s.entries) {
		if e.msg.Role == message.Assistant {
			return e
		}
	}
	return nil
}

// pending returns the open calls of the last assistant message.
func (s *state) pending() []PendingCall {
	e := s.lastAssistant()
	if e == nil {
		return nil
	}
	var open []PendingCall
	for _, c := range e.calls {
		if c.result == nil {
			open = append(open, PendingCall{Call: c.part, Started: c.started, Effect: c.effect})
		}
	}
	return open
}

// transcript returns a copy that later records do not change.
func (s *state) transcript() *Transcript {
	t := &Transcript{
		Seq:         s.seq,
		Pending:     s.pending(),
		External:    maps.Clone(s.external),
		Total:       s.total,
		Spent:       make(map[string]Spent, len(s.attempts)),
		Notes:       slices.Clone(s.notes),
		Compactions: s.compactions,
	}
	for id, spent := range s.attempts {
		t.Spent[id] = *spent
	}
	if s.current != nil {
		info := s.current.info
		t.Last = &info
	}
	for i, e := range s.entries {
		t.Messages = append(t.Messages, e.msg)
		t.Seqs = append(t.Seqs, e.seq)
		if parts := e.results(i == len(s.entries)-1); len(parts) > 0 {
			t.Messages = append(t.Messages, message.Message{Role: message.Tool, Parts: parts})
			t.Seqs = append(t.Seqs, e.seq)
		}
	}
	return t
}

// results returns the results of e's calls in the order of the calls. A
// provider refuses a conversation that goes on while a call has no result, so
// that one which will not come is told to be missing.
func (e *entry) results(last bool) []message.Part {
	var parts []message.Part
	for _, c := range e.calls {
		switch {
		case c.result != nil:
			p := *c.result
			p.Kind, p.ID, p.Name = message.ToolResult, c.part.ID, c.part.Name
			parts = append(parts, p)
		case !last:
			parts = append(parts, PendingCall{Call: c.part, Started: c.started}.Result())
		}
	}
	return parts
}
