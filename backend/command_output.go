package backend

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

const (
	maxLine = 1 << 20  // bytes; a longer line is written in pieces
	maxTail = 64 << 10 // bytes of the end of a cut output that are kept
	maxSaid = 4 << 10  // bytes of the end that count as the last thing said
	maxLast = 300      // bytes of a line in an error
)

// lineWriter turns the output of a program into plain lines: complete, valid
// UTF-8, without escape sequences. It needs little memory however much comes.
// From a limit on it keeps only the end, which close writes after a note.
//
// It is for one writing goroutine.
type lineWriter struct {
	to      io.Writer
	limit   int64
	line    []byte // the beginning of a line
	afterCR bool   // the last byte was a carriage return: it has ended a line
	written int64
	kept    tail // lines beyond the limit
	dropped int64
	said    tail // the last lines of all
	err     error
}

func newLineWriter(to io.Writer, limit int64) *lineWriter {
	return &lineWriter{to: to, limit: limit, kept: tail{max: maxTail}, said: tail{max: maxSaid}}
}

// Write takes output in whatever pieces it comes. Its error is the first one of
// the writer below; the lines are remembered in any case.
func (w *lineWriter) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		if w.afterCR && p[0] == '\n' {
			p = p[1:]
		}
		w.afterCR = false
		i := bytes.IndexAny(p, "\r\n")
		if i < 0 {
			w.add(p)
			break
		}
		w.add(p[:i])
		w.end()
		w.afterCR = p[i] == '\r' // also a progress bar: each state is a line
		p = p[i+1:]
	}
	return n, w.err
}

// add goes on with the line; what is too long is written without waiting for
// its end.
func (w *lineWriter) add(p []byte) {
	for len(w.line)+len(p) > maxLine {
		k := maxLine - len(w.line)
		w.line = append(w.line, p[:k]...)
		p = p[k:]
		whole := len(w.line) - cutRune(w.line)
		rest := bytes.Clone(w.line[whole:])
		w.line = w.line[:whole]
		w.end()
		w.line = append(w.line, rest...)
	}
	w.line = append(w.line, p...)
}

// cutRune returns how many bytes at the end of p begin a rune that is not
// complete.
func cutRune(p []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(p); n++ {
		if b := p[len(p)-n]; utf8.RuneStart(b) {
			if !utf8.FullRune(p[len(p)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

// end passes the line on.
func (w *lineWriter) end() {
	line := append(plain(w.line), '\n')
	w.line = w.line[:0]
	if cap(w.line) > maxTail {
		w.line = nil
	}
	if len(line) > 1 {
		w.said.add(line)
	}
	if w.written+int64(len(line)) > w.limit || w.dropped > 0 {
		w.dropped += int64(len(line))
		w.kept.add(line)
		return
	}
	w.written += int64(len(line))
	w.pass(line)
}

func (w *lineWriter) pass(line []byte) {
	if w.err == nil {
		_, w.err = w.to.Write(line)
	}
}

// close writes what is left: a line without an end, and the end of a cut
// output.
func (w *lineWriter) close() error {
	if len(w.line) > 0 {
		w.end()
	}
	if w.dropped > 0 {
		if lost := w.dropped - int64(w.kept.size); lost > 0 {
			w.pass(fmt.Appendf(nil, "[agentd: %d bytes of output left out here, after the first %d]\n", lost, w.written))
		}
		for _, line := range w.kept.lines {
			w.pass(line)
		}
		w.dropped, w.kept = 0, tail{max: maxTail}
	}
	return w.err
}

// last returns the last line that was not empty, shortened.
func (w *lineWriter) last() string {
	if len(w.said.lines) == 0 {
		return ""
	}
	line := strings.TrimSpace(string(w.said.lines[len(w.said.lines)-1]))
	if len(line) > maxLast {
		cut := maxLast
		for !utf8.RuneStart(line[cut]) {
			cut--
		}
		line = line[:cut] + "..."
	}
	return line
}

// tail returns the last lines that were not empty.
func (w *lineWriter) tail() string {
	return strings.TrimSpace(string(bytes.Join(w.said.lines, nil)))
}

// tail keeps the last lines of up to max bytes together, and always the last
// one as far as it fits.
type tail struct {
	max   int
	lines [][]byte
	size  int
}

func (t *tail) add(line []byte) {
	if len(line) > t.max {
		line = line[len(line)-t.max:]
		for len(line) > 0 && !utf8.RuneStart(line[0]) {
			line = line[1:]
		}
		line = bytes.Clone(line) // lets go of the long one
	}
	t.lines = append(t.lines, line)
	t.size += len(line)
	for t.size > t.max {
		t.size -= len(t.lines[0])
		t.lines[0] = nil
		t.lines = t.lines[1:]
	}
}

// plain returns the text of a line: escape sequences and control characters
// are gone, and what is not UTF-8 is replaced.
func plain(line []byte) []byte {
	line = bytes.ToValidUTF8(line, []byte("\uFFFD"))
	out := make([]byte, 0, len(line)+1)
	for i := 0; i < len(line); {
		switch b := line[i]; {
		case b == 0x1b:
			i += escapeLength(line[i:])
		case b < ' ' && b != '\t' || b == 0x7f:
			i++
		case b == 0xc2 && line[i+1] < 0xa0: // the same for U+0080 to U+009F
			i += 2
		default:
			out = append(out, b)
			i++
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
