// Package sse decodes a server-sent event stream as the WHATWG standard says,
// and tells a stream that ended between two events from one that was cut.
package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// MaxEvent bounds one line and one event, in bytes.
const MaxEvent = 32 << 20

var (
	// ErrPartial says that the stream ended in the middle of an event. The
	// standard says to discard such an event; so does the decoder.
	ErrPartial = fmt.Errorf("the stream ended in the middle of an event: %w", io.ErrUnexpectedEOF)
	// ErrTooLarge says that an event passed MaxEvent.
	ErrTooLarge = errors.New("an event is larger than 32 MiB")
)

// Event is one dispatched event. Its slices are valid until the next call of
// Next.
type Event struct {
	Type  []byte // the event field, empty if there was none
	Data  []byte // the data fields joined with \n
	Error []byte // an error field, which llama.cpp sends instead of data
	ID    string // the last event id so far
}

// span is a range of the buffer.
type span struct{ from, to int }

// Decoder reads events. It keeps the bytes of the event it is in, and nothing
// else.
type Decoder struct {
	r   io.Reader
	max int

	buf     []byte
	start   int // where the current event begins in buf
	pos     int // where the current line begins
	scanned int // how far the current line was searched for its end
	end     int // where the read bytes end
	skipLF  bool
	begun   bool // the byte order mark has been dealt with

	id     string
	typ    span
	data   span
	fail   span
	lines  int    // data lines in the current event
	joined []byte // the data, if it has more than one line
	failed bool   // an error field is in the current event
	fields bool   // any field is in the current event
}

// NewDecoder returns a Decoder of r.
func NewDecoder(r io.Reader) *Decoder {
	return &Decoder{r: r, max: MaxEvent, buf: make([]byte, 4<<10)}
}

// Next returns the next event. The error is io.EOF after a stream that ended
// between events, ErrPartial after one that did not, ErrTooLarge, or what the
// reader returned.
func (d *Decoder) Next() (Event, error) {
	d.begin()
	for {
		line, ok := d.line()
		if !ok {
			if err := d.fill(); err != nil {
				return Event{}, d.ended(err)
			}
			continue
		}
		if line.from == line.to {
			if d.lines > 0 || d.failed {
				return d.event(), nil
			}
			d.begin()
			continue
		}
		if err := d.field(line); err != nil {
			return Event{}, err
		}
		if !d.fields {
			d.start = d.pos // a comment: nothing to keep
		}
	}
}

// begin forgets the event before.
func (d *Decoder) begin() {
	d.start = d.pos
	d.typ, d.data, d.fail = span{}, span{}, span{}
	d.lines, d.failed, d.fields = 0, false, false
	d.joined = d.joined[:0]
}

func (d *Decoder) event() Event {
	e := Event{ID: d.id, Type: d.bytes(d.typ), Data: d.bytes(d.data)}
	if d.lines > 1 {
		e.Data = d.joined
	}
	if d.failed {
		e.Error = d.bytes(d.fail)
	}
	return e
}

func (d *Decoder) bytes(s span) []byte { return d.buf[s.from:s.to:s.to] }

// line returns the next complete line without its end, and whether there is
// one in the buffer. A line ends with LF, CR or CRLF.
func (d *Decoder) line() (span, bool) {
	if !d.begun && !d.mark() {
		return span{}, false
	}
	if d.skipLF && d.pos < d.end {
		d.skipLF = false
		if d.buf[d.pos] == '\n' {
			d.pos++
			d.scanned = max(d.scanned, d.pos)
			if !d.fields {
				d.start = d.pos
			}
		}
	}
	rest := d.buf[d.scanned:d.end]
	i := bytes.IndexByte(rest, '\n')
	if i < 0 {
		i = len(rest)
	}
	if cr := bytes.IndexByte(rest[:i], '\r'); cr >= 0 {
		i = cr
	}
	if i == len(rest) {
		d.scanned = d.end
		return span{}, false
	}
	s := span{d.pos, d.scanned + i}
	d.skipLF = rest[i] == '\r'
	d.pos = s.to + 1
	d.scanned = d.pos
	return s, true
}

// mark drops a byte order mark and reports whether it can be told that there is
// none any more.
func (d *Decoder) mark() bool {
	const bom = "\xef\xbb\xbf"
	head := d.buf[:d.end]
	if len(head) < len(bom) && string(head) == bom[:len(head)] {
		return false
	}
	d.begun = true
	if bytes.HasPrefix(head, []byte(bom)) {
		d.pos, d.start, d.scanned = len(bom), len(bom), len(bom)
	}
	return true
}

// field takes one line that is not empty.
func (d *Decoder) field(line span) error {
	b := d.bytes(line)
	name, value := b, span{line.to, line.to}
	if i := bytes.IndexByte(b, ':'); i >= 0 {
		name, value.from = b[:i], line.from+i+1
		if value.from < value.to && d.buf[value.from] == ' ' {
			value.from++
		}
	}
	switch string(name) {
	case "":
		return nil // a comment
	case "data":
		return d.addData(value)
	case "event":
		d.typ = value
	case "error":
		d.fail, d.failed = value, true
	case "id":
		if v := d.bytes(value); bytes.IndexByte(v, 0) < 0 && string(v) != d.id {
			d.id = string(v)
		}
	}
	d.fields = true
	return nil
}

func (d *Decoder) addData(value span) error {
	d.fields = true
	d.lines++
	switch d.lines {
	case 1:
		d.data = value
		return nil
	case 2:
		d.joined = append(d.joined[:0], d.bytes(d.data)...)
	}
	if len(d.joined)+value.to-value.from > d.max {
		return ErrTooLarge
	}
	d.joined = append(d.joined, '\n')
	d.joined = append(d.joined, d.bytes(value)...)
	return nil
}

// fill reads more bytes, after making room by forgetting what is before the
// current event.
func (d *Decoder) fill() error {
	if d.start == d.end || d.end == len(d.buf) {
		if err := d.room(); err != nil {
			return err
		}
	}
	// A reader may return no bytes and no error, but not for ever.
	for range 100 {
		n, err := d.r.Read(d.buf[d.end:])
		d.end += n
		if n > 0 {
			return nil // the reader gives the error again
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

func (d *Decoder) room() error {
	if d.start > 0 {
		copy(d.buf, d.buf[d.start:d.end])
		d.shift(d.start)
		return nil
	}
	if d.end > d.max {
		return ErrTooLarge
	}
	d.buf = append(d.buf, make([]byte, len(d.buf))...)
	return nil
}

// shift moves every position n bytes down.
func (d *Decoder) shift(n int) {
	d.start -= n
	d.pos -= n
	d.scanned -= n
	d.end -= n
	for _, s := range []*span{&d.typ, &d.data, &d.fail} {
		if s.to > 0 {
			s.from -= n
			s.to -= n
		}
	}
}

// ended turns the reader's error into the decoder's.
func (d *Decoder) ended(err error) error {
	if err != io.EOF {
		return err
	}
	rest := d.buf[d.pos:d.end]
	if d.skipLF && len(rest) > 0 && rest[0] == '\n' {
		rest = rest[1:]
	}
	if d.fields || len(rest) > 0 && rest[0] != ':' {
		return ErrPartial
	}
	return io.EOF
}
