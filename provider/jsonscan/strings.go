package jsonscan

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// quoted decodes the string at c.pos. The result aliases the input, or *scratch
// if the string has escapes.
func (c *Cursor) quoted(scratch *[]byte) []byte {
	c.pos++
	from := c.pos
	c.pos = plain(c.data, c.pos)
	if c.at() == '"' {
		c.pos++
		return c.data[from : c.pos-1 : c.pos-1]
	}
	out := append((*scratch)[:0], c.data[from:c.pos]...)
	for c.err == nil {
		switch c.at() {
		case '"':
			c.pos++
			*scratch = out
			return out
		case '\\':
			out = c.escape(out)
		default:
			c.unexpected()
			return nil
		}
		from = c.pos
		c.pos = plain(c.data, c.pos)
		out = append(out, c.data[from:c.pos]...)
	}
	return nil
}

func (c *Cursor) skipQuoted() {
	c.pos++
	for c.err == nil {
		c.pos = plain(c.data, c.pos)
		switch c.at() {
		case '"':
			c.pos++
			return
		case '\\':
			c.str = c.escape(c.str[:0])
		default:
			c.unexpected()
		}
	}
}

// escape decodes the escape sequence at c.pos and appends what it stands for.
func (c *Cursor) escape(dst []byte) []byte {
	c.pos++
	if c.pos >= len(c.data) {
		c.unexpected()
		return dst
	}
	const from, to = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	b := c.data[c.pos]
	for i := range len(from) {
		if b == from[i] {
			c.pos++
			return append(dst, to[i])
		}
	}
	if b != 'u' {
		c.unexpected()
		return dst
	}
	c.pos++
	r := c.hex()
	if utf16.IsSurrogate(r) {
		// A pair, or half of one, which stands for the replacement character.
		if at := c.pos; at+1 < len(c.data) && c.data[at] == '\\' && c.data[at+1] == 'u' {
			c.pos += 2
			if pair := utf16.DecodeRune(r, c.hex()); pair != utf8.RuneError {
				return utf8.AppendRune(dst, pair)
			}
			if c.err == nil {
				c.pos = at
			}
		}
		r = utf8.RuneError
	}
	return utf8.AppendRune(dst, r)
}

// hex reads four hexadecimal digits.
func (c *Cursor) hex() rune {
	var r rune
	for range 4 {
		switch b := c.at(); {
		case b >= '0' && b <= '9':
			r = r<<4 | rune(b-'0')
		case b >= 'a' && b <= 'f':
			r = r<<4 | rune(b-'a'+10)
		case b >= 'A' && b <= 'F':
			r = r<<4 | rune(b-'A'+10)
		default:
			c.unexpected()
			return utf8.RuneError
		}
		c.pos++
	}
	return r
}

// plain returns the index from i of the first byte that is not plain text in a
// string: a quote, a backslash or a control character; len(data) if none is.
// It looks at eight bytes at a time.
func plain(data []byte, i int) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(data); i += 8 {
		w := binary.LittleEndian.Uint64(data[i:])
		quote, slash := w^(ones*'"'), w^(ones*'\\')
		hit := (quote - ones) &^ quote
		hit |= (slash - ones) &^ slash
		hit |= (w - ones*0x20) &^ w
		if hit &= tops; hit != 0 {
			return i + bits.TrailingZeros64(hit)/8
		}
	}
	for ; i < len(data); i++ {
		if b := data[i]; b == '"' || b == '\\' || b < 0x20 {
			return i
		}
	}
	return len(data)
}
