package provider

import (
	"errors"
	"io"
	"time"

	"agentd/provider/message"
	"agentd/provider/sse"
	"agentd/recovery"
)

// stage says how far a stream has come.
type stage int

const (
	running  stage = iota
	finished       // the terminal was seen; metadata may follow
	closed         // the terminal was seen and nothing may follow
)

// accumulator makes a Reply of one attempt's events.
type accumulator interface {
	// event takes one event and reports whether it carried meaning. The fault
	// is what the event reports or what is wrong with it.
	event(e sse.Event) (bool, *recovery.Fault)
	stage() stage
	// reply is called once, after the terminal and the end of the stream.
	reply() (*Reply, *recovery.Fault)
}

// outcome is what all accumulators collect beside the parts.
type outcome struct {
	id, model string
	finish    Finish
	raw       string
	usage     message.Usage
}

// seal makes the reply of a draft and its outcome.
func (o *outcome) seal(d *draft, w Wire) (*Reply, *recovery.Fault) {
	m, f := d.message(o.finish, w)
	if f != nil {
		return nil, f
	}
	if o.finish == ToolCalls && len(m.ToolCalls()) == 0 {
		return nil, truncated("the reply ends with tool calls, and holds none")
	}
	return &Reply{ID: o.id, Model: o.model, Message: m, Finish: o.finish, RawFinish: o.raw, Usage: o.usage}, nil
}

// StreamOptions say how to read a stream.
type StreamOptions struct {
	DoneIsTerminal bool             // see Endpoint
	Preview        func(Event)      // may be nil
	Now            func() time.Time // for reset times in error events; nil: time.Now

	progress func()      // an event carried meaning
	drain    func(stage) // the terminal was seen
}

// ReadStream reads one recorded or live event stream to its end. It returns the
// reply if the stream holds the wire's terminal and ended cleanly after it, and
// a *recovery.Fault otherwise.
func ReadStream(w Wire, r io.Reader, o StreamOptions) (*Reply, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	acc := newAccumulator(w, &o)
	dec := sse.NewDecoder(r)
	for {
		e, err := dec.Next()
		if err != nil {
			return ended(acc, err)
		}
		if acc.stage() == closed {
			continue // noise after the end
		}
		before := acc.stage()
		meant, f := acc.event(e)
		if f != nil {
			return nil, f
		}
		if meant && o.progress != nil {
			o.progress()
		}
		if s := acc.stage(); s != before && o.drain != nil {
			o.drain(s)
		}
	}
}

func newAccumulator(w Wire, o *StreamOptions) accumulator {
	switch w {
	case Anthropic:
		return newAnthropicReply(o)
	case Responses:
		return newResponsesReply(o)
	}
	return newChatReply(o)
}

// errIdleEnd is a reader's error for a connection that stays open without a
// byte after the terminal.
var errIdleEnd = errors.New("the connection stays open after the last event")

// ended returns the reply, or why there is none, once no event can follow.
func ended(acc accumulator, err error) (*Reply, error) {
	s := acc.stage()
	switch {
	case errors.Is(err, sse.ErrTooLarge):
		return nil, &recovery.Fault{Kind: recovery.TooLarge, Message: err.Error(), Err: err}
	case s == running && err == io.EOF:
		return nil, truncated("the stream ended before its last event")
	case s == running && errors.Is(err, sse.ErrPartial):
		return nil, truncated("%v", err)
	case s != running && (err == io.EOF || errors.Is(err, sse.ErrPartial)):
		// A clean end: what was left open can only be metadata.
	case s == closed && errors.Is(err, errIdleEnd):
	default:
		return nil, broken(s, err)
	}
	reply, f := acc.reply()
	if f != nil {
		return nil, f
	}
	return reply, nil
}

// broken turns a reader's error into a fault, unless it already is one or is
// local.
func broken(s stage, err error) error {
	if f, ok := errors.AsType[*recovery.Fault](err); ok {
		return f
	}
	if local, ok := errors.AsType[*localError](err); ok {
		return local.err
	}
	what := "the stream broke off: "
	if s != running {
		what = "the stream broke off after its last event, before its end: "
	}
	return &recovery.Fault{Kind: recovery.Truncated, Message: what + plainError(err), Err: err}
}
