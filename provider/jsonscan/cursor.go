// Package jsonscan reads JSON text in one pass, without reflection and without
// building values. It is strict about the grammar, and forgiving about types: a
// value of another type than the one asked for is skipped.
package jsonscan

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strconv"
)

// maxDepth bounds nesting.
const maxDepth = 1000

// Cursor is a position in a JSON text. The first error stops it: every call
// after that returns nothing, and End returns the error.
type Cursor struct {
	data  []byte
	pos   int
	depth int
	err   error
	str   []byte // the last decoded string that had escapes
	key   []byte // the same for keys
}

// Reset sets c to the beginning of data.
func (c *Cursor) Reset(data []byte) {
	c.data, c.pos, c.depth, c.err = data, 0, 0, nil
}

// End returns the first error, or an error if anything but space is left.
func (c *Cursor) End() error {
	if c.err == nil && c.peek() != 0 {
		c.fail("unexpected text after the value")
	}
	return c.err
}

// Cut reports whether err says that the text ended too early.
func Cut(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }

// Object yields the keys of the object that is next. The loop body reads the
// value; a value that it leaves is skipped. A key is valid until the next one.
func (c *Cursor) Object() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) { c.object(yield) }
}

func (c *Cursor) object(yield func([]byte) bool) {
	if !c.open('{') {
		return
	}
	if c.peek() == '}' {
		c.pos++
		c.depth--
		return
	}
	stopped := false
	for {
		if c.peek() != '"' {
			c.unexpected()
			return
		}
		key := c.quoted(&c.key)
		if c.err == nil && c.peek() != ':' {
			c.unexpected()
		}
		if c.err != nil {
			return
		}
		c.pos++
		at := c.pos
		if !stopped && !yield(key) {
			stopped = true
		}
		if c.pos == at {
			c.Skip()
		}
		if !c.more('}') {
			return
		}
	}
}

// Array runs the loop body once for each element, with its index. The body
// reads the element; one that it leaves is skipped.
func (c *Cursor) Array() iter.Seq[int] {
	return func(yield func(int) bool) { c.array(yield) }
}

func (c *Cursor) array(yield func(int) bool) {
	if !c.open('[') {
		return
	}
	if c.peek() == ']' {
		c.pos++
		c.depth--
		return
	}
	stopped := false
	for i := 0; ; i++ {
		at := c.pos
		if !stopped && !yield(i) {
			stopped = true
		}
		if c.pos == at {
			c.Skip()
		}
		if !c.more(']') {
			return
		}
	}
}

// open enters a container, or skips a value that is not one.
func (c *Cursor) open(b byte) bool {
	if c.err != nil {
		return false
	}
	if c.peek() != b {
		c.Skip()
		return false
	}
	if c.depth++; c.depth > maxDepth {
		c.fail("nested too deep")
		return false
	}
	c.pos++
	return true
}

// more goes past a comma and reports true, or past the end of the container and
// reports false.
func (c *Cursor) more(closing byte) bool {
	if c.err != nil {
		return false
	}
	switch c.peek() {
	case ',':
		c.pos++
		return true
	case closing:
		c.pos++
		c.depth--
		return false
	}
	c.unexpected()
	return false
}

// Kind returns the first byte of the value that is next: one of { [ " t f n,
// '0' for a number, or 0 if there is none.
func (c *Cursor) Kind() byte {
	if c.err != nil {
		return 0
	}
	b := c.peek()
	if b == '-' || b >= '0' && b <= '9' {
		return '0'
	}
	return b
}

// String returns the decoded string that is next, valid until the next call;
// nil if it is not a string.
func (c *Cursor) String() []byte {
	if c.Kind() != '"' {
		c.Skip()
		return nil
	}
	return c.quoted(&c.str)
}

// AppendString appends the decoded string that is next to dst.
func (c *Cursor) AppendString(dst []byte) []byte { return append(dst, c.String()...) }

// Int returns the number that is next, 0 if it is not one. A fraction is cut
// off, and a number that does not fit is held at the bound.
func (c *Cursor) Int() int64 {
	n := c.number()
	if n == nil {
		return 0
	}
	if i, err := strconv.ParseInt(string(n), 10, 64); err == nil {
		return i
	}
	f, err := strconv.ParseFloat(string(n), 64)
	switch {
	case err != nil && f == 0, math.IsNaN(f):
		return 0
	case f >= math.MaxInt64:
		return math.MaxInt64
	case f <= math.MinInt64:
		return math.MinInt64
	}
	return int64(f)
}

// Float returns the number that is next, 0 if it is not one.
func (c *Cursor) Float() float64 {
	n := c.number()
	if n == nil {
		return 0
	}
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil {
		return 0
	}
	return f
}

func (c *Cursor) number() []byte {
	if c.Kind() != '0' {
		c.Skip()
		return nil
	}
	return c.Raw()
}

// Raw returns the text of the value that is next. It aliases the input.
func (c *Cursor) Raw() []byte {
	c.peek()
	from := c.pos
	c.Skip()
	if c.err != nil {
		return nil
	}
	return c.data[from:c.pos:c.pos]
}

// Skip goes past the value that is next, checking its grammar.
func (c *Cursor) Skip() {
	if c.err != nil {
		return
	}
	switch b := c.peek(); b {
	case '{':
		for range c.Object() {
		}
	case '[':
		for range c.Array() {
		}
	case '"':
		c.skipQuoted()
	case 't':
		c.word("true")
	case 'f':
		c.word("false")
	case 'n':
		c.word("null")
	default:
		if b == '-' || b >= '0' && b <= '9' {
			c.skipNumber()
			return
		}
		c.unexpected()
	}
}

// peek goes past space and returns the byte there, 0 at the end.
func (c *Cursor) peek() byte {
	if c.pos < len(c.data) && c.data[c.pos] > ' ' {
		return c.data[c.pos]
	}
	return c.space()
}

// space goes past space, for peek.
func (c *Cursor) space() byte {
	for c.pos < len(c.data) {
		switch b := c.data[c.pos]; b {
		case ' ', '\t', '\n', '\r':
			c.pos++
		case 0:
			c.fail("unexpected zero byte")
			return 0
		default:
			return b
		}
	}
	return 0
}

func (c *Cursor) fail(what string) {
	if c.err == nil {
		c.err = fmt.Errorf("invalid JSON at byte %d: %s", c.pos, what)
	}
}

// unexpected fails at the current byte.
func (c *Cursor) unexpected() {
	if c.err != nil {
		return
	}
	if c.pos >= len(c.data) {
		c.err = fmt.Errorf("invalid JSON at byte %d: %w", c.pos, io.ErrUnexpectedEOF)
		return
	}
	c.fail(fmt.Sprintf("unexpected %q", c.data[c.pos]))
}

func (c *Cursor) word(w string) {
	for i := range len(w) {
		if c.pos >= len(c.data) || c.data[c.pos] != w[i] {
			c.unexpected()
			return
		}
		c.pos++
	}
}

func (c *Cursor) skipNumber() {
	if c.at() == '-' {
		c.pos++
	}
	if c.at() == '0' {
		c.pos++
	} else if !c.digits() {
		return
	}
	if c.at() == '.' {
		c.pos++
		if !c.digits() {
			return
		}
	}
	if b := c.at(); b == 'e' || b == 'E' {
		c.pos++
		if b := c.at(); b == '+' || b == '-' {
			c.pos++
		}
		c.digits()
	}
}

// digits goes past at least one digit.
func (c *Cursor) digits() bool {
	from := c.pos
	for b := c.at(); b >= '0' && b <= '9'; b = c.at() {
		c.pos++
	}
	if c.pos == from {
		c.unexpected()
		return false
	}
	return true
}

func (c *Cursor) at() byte {
	if c.pos < len(c.data) {
		return c.data[c.pos]
	}
	return 0
}
