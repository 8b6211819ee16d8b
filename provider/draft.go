package provider

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"strings"

	"agentd/provider/jsonscan"
	"agentd/provider/message"
	"agentd/recovery"
)

// maxReply bounds what one reply may collect, in bytes.
const maxReply = 64 << 20

// draft collects the parts of a reply of one attempt and shows them to the
// reader of previews. Nothing of it outlives the attempt unless complete
// accepts it.
type draft struct {
	parts   []*part
	preview func(Event)
	size    int
}

// part is one part in the making.
type part struct {
	kind   message.Kind
	index  int
	text   []byte // text, reasoning, refusal; the arguments of a tool call
	id     string
	name   string
	shown  bool // the start of the tool call was shown
	open   bool // the wire marks the end of this part and has not done so yet
	whole  bool // the arguments came whole, as an object
	opaque []byte
}

// add appends a new part.
func (d *draft) add(kind message.Kind) *part {
	p := &part{kind: kind, index: len(d.parts)}
	d.parts = append(d.parts, p)
	return p
}

// write appends text to p and shows it.
func (d *draft) write(p *part, text []byte) {
	if len(text) == 0 {
		return
	}
	p.text = append(p.text, text...)
	d.size += len(text)
	if d.preview == nil {
		return
	}
	e := Event{Kind: TextDelta, Index: p.index, Text: string(text)}
	switch p.kind {
	case message.Reasoning:
		e.Kind = ReasoningDelta
	case message.ToolCall:
		e.Kind, e.ID, e.Name = ToolDelta, p.id, p.name
	}
	d.preview(e)
}

// started shows a tool call once its id and name are known.
func (d *draft) started(p *part) {
	if p.shown || p.name == "" || p.id == "" {
		return
	}
	p.shown = true
	if d.preview != nil {
		d.preview(Event{Kind: ToolStarted, Index: p.index, ID: p.id, Name: p.name})
	}
}

// tooLarge returns a fault once the reply has passed its bound.
func (d *draft) tooLarge() *recovery.Fault {
	if d.size <= maxReply {
		return nil
	}
	return &recovery.Fault{Kind: recovery.TooLarge, Message: "the reply is larger than 64 MiB"}
}

// message returns the finished message for a reply that ended with finish. A
// reply that was ended early (by the output limit, say) loses the tool calls
// whose arguments are not complete; in any other reply such a call is a fault.
func (d *draft) message(finish Finish, w Wire) (message.Message, *recovery.Fault) {
	m := message.Message{Role: message.Assistant}
	early := finish == Length || finish == Filtered || finish == Overflown
	for _, p := range d.parts {
		switch p.kind {
		case message.ToolCall:
			if early && (p.open || len(p.text) == 0 || p.check() != nil) {
				continue
			}
			if f := p.check(); f != nil {
				return message.Message{}, f
			}
			m.Parts = append(m.Parts, p.toolCall(w))
		default:
			if len(p.text) == 0 && len(p.opaque) == 0 {
				continue
			}
			m.Parts = append(m.Parts, p.prose(w))
		}
	}
	return m, nil
}

// calls reports whether a tool call was begun.
func (d *draft) calls() bool {
	for _, p := range d.parts {
		if p.kind == message.ToolCall {
			return true
		}
	}
	return false
}

func (p *part) toolCall(w Wire) message.Part {
	if p.id == "" {
		p.id = "call_" + strings.ToLower(rand.Text())
	}
	return p.sealed(message.Part{Kind: p.kind, ID: p.id, Name: p.name, Arguments: string(p.text)}, w)
}

func (p *part) prose(w Wire) message.Part {
	text := strings.ToValidUTF8(string(p.text), "\uFFFD")
	return p.sealed(message.Part{Kind: p.kind, Text: text}, w)
}

// sealed adds the wire's own form.
func (p *part) sealed(out message.Part, w Wire) message.Part {
	if len(p.opaque) > 0 {
		out.Opaque, out.Wire = p.opaque, string(w)
	}
	return out
}

// check returns a fault if p is not a tool call that may run: it has to have a
// name, and its arguments have to be one complete JSON object. No arguments at
// all, and null, stand for an empty object.
func (p *part) check() *recovery.Fault {
	switch {
	case p.name == "":
		return malformed("a tool call has no name")
	case p.open:
		return truncated("the tool call %q was not finished", p.name)
	}
	args := bytes.TrimSpace(p.text)
	if len(args) == 0 {
		return nil
	}
	err := validJSON(args)
	switch {
	case jsonscan.Cut(err):
		return truncated("the arguments of the tool call %q are cut off", p.name)
	case err != nil:
		return malformed("the arguments of the tool call %q: %v", p.name, err)
	case args[0] != '{' && string(args) != "null":
		return malformed("the arguments of the tool call %q are not an object", p.name)
	}
	return nil
}

// complete reports whether the arguments are a JSON object.
func (p *part) complete() bool {
	args := bytes.TrimSpace(p.text)
	return len(args) > 0 && args[0] == '{' && validJSON(args) == nil
}

func validJSON(text []byte) error {
	var c jsonscan.Cursor
	c.Reset(text)
	c.Skip()
	return c.End()
}

func malformed(format string, args ...any) *recovery.Fault {
	return &recovery.Fault{Kind: recovery.Malformed, Message: fmt.Sprintf(format, args...)}
}

func truncated(format string, args ...any) *recovery.Fault {
	return &recovery.Fault{Kind: recovery.Truncated, Message: fmt.Sprintf(format, args...)}
}
