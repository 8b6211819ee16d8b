package backend

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"
)

// printable marks the bytes that stay as they are in a line of ASCII, and the
// end of a line.
var printable = func() (ok [256]bool) {
	for b := ' '; b < 0x7f; b++ {
		ok[b] = true
	}
	ok['\t'], ok['\n'] = true, true
	return ok
}()

// plainLines returns the whole lines at the beginning of p that plain would
// leave as they are. Most output is nothing else, and needs no look at each
// line.
func plainLines(p []byte) []byte {
	i := textLength(p, 0)
	if i < len(p) && p[i] >= utf8.RuneSelf {
		i = plainUTF8(p)
	}
	return p[:bytes.LastIndexByte(p[:i], '\n')+1]
}

// textLength is how many bytes at the beginning of p are printable, or not
// below high if that is not 0.
func textLength(p []byte, high byte) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	i := 0
	for {
		// Eight at once: none below a space, none that is DEL, none with its top
		// bit set unless those are wanted.
		for ; i+8 <= len(p); i += 8 {
			x := binary.LittleEndian.Uint64(p[i:])
			del := x ^ 0x7f*ones
			odd := (x-' '*ones)&^x | (del-ones)&^del
			if high == 0 {
				odd |= x
			}
			if odd&tops != 0 {
				break
			}
		}
		for end := min(i+8, len(p)); i < end; i++ { // among them perhaps an end of line
			if !printable[p[i]] && (high == 0 || p[i] < high) {
				return i
			}
		}
		if i == len(p) {
			return i
		}
	}
}

// plainUTF8 is the length of the text at the beginning of p that is valid and
// without control characters, in whole lines at least.
func plainUTF8(p []byte) int {
	i := textLength(p, utf8.RuneSelf)
	i = bytes.LastIndexByte(p[:i], '\n') + 1
	if !utf8.Valid(p[:i]) {
		return 0
	}
	for rest := p[:i]; ; {
		at := bytes.IndexByte(rest, 0xc2)
		if at < 0 {
			return i
		}
		if rest[at+1] < 0xa0 { // U+0080 to U+009F
			return len(p[:i]) - len(rest) + at
		}
		rest = rest[at+1:]
	}
}

// plain returns the text of a line: escape sequences and control characters
// are gone, and what is not UTF-8 is replaced.
func plain(line []byte) []byte {
	return appendPlain(make([]byte, 0, len(line)+1), line)
}

// appendPlain appends what plain returns of each of some lines, with their ends.
func appendPlain(out, line []byte) []byte {
	if !utf8.Valid(line) {
		line = bytes.ToValidUTF8(line, []byte("\uFFFD"))
	}
	for i := 0; i < len(line); {
		switch b := line[i]; {
		case b == 0x1b:
			rest := line[i:]
			if end := bytes.IndexByte(rest, '\n'); end >= 0 {
				rest = rest[:end]
			}
			i += escapeLength(rest)
		case b < ' ' && b != '\t' && b != '\n' || b == 0x7f:
			i++
		case b == 0xc2 && line[i+1] < 0xa0: // the same for U+0080 to U+009F
			i += 2
		default:
			begin := i
			i += textLength(line[i:], 0)
			for i < len(line) && (line[i] >= utf8.RuneSelf && line[i] != 0xc2 || i == begin) {
				i++
			}
			out = append(out, line[begin:i]...)
		}
	}
	return out
}

// escapeLength returns the length of the terminal sequence that p starts with.
// One that does not end in this line is taken for its introducer only.
func escapeLength(p []byte) int {
	if len(p) < 2 || p[1] >= utf8.RuneSelf {
		return 1
	}
	switch p[1] {
	case '[': // parameters, then one final byte
		for i := 2; i < len(p); i++ {
			if p[i] >= 0x40 && p[i] <= 0x7e {
				return i + 1
			}
			if p[i] < 0x20 || p[i] > 0x7e {
				break
			}
		}
	case ']', 'P', '_', '^', 'X': // a string up to BEL or ESC \
		for i := 2; i < len(p); i++ {
			if p[i] == 0x07 {
				return i + 1
			}
			if p[i] == 0x1b && i+1 < len(p) && p[i+1] == '\\' {
				return i + 2
			}
		}
	case '(', ')', '*', '+', '#', '%', ' ': // one more byte
		if len(p) > 2 && p[2] < utf8.RuneSelf {
			return 3
		}
	}
	return 2
}
