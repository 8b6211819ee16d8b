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
	block   []byte // plain lines that are still to be passed on
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
		if len(w.line) == 0 {
			if block := plainLines(p[:min(len(p), maxLine)]); len(block) > 0 {
				w.flush()
				w.put(block)
				p = p[len(block):]
			}
			if block := wholeLines(p[:min(len(p), maxTail)]); len(block) > 0 {
				w.block = appendPlain(w.block, block)
				w.flush()
				p = p[len(block):]
				continue
			}
		}
		i := lineEnd(p)
		if i < 0 {
			w.add(p)
			break
		}
		if len(w.line) == 0 && i <= maxLine {
			w.end(p[:i])
		} else {
			w.add(p[:i])
			w.endLine()
		}
		w.afterCR = p[i] == '\r' // also a progress bar: each state is a line
		p = p[i+1:]
	}
	w.flush()
	return n, w.err
}

// wholeLines returns the whole lines at the beginning of p, as far as they end
// with a line feed alone.
func wholeLines(p []byte) []byte {
	if cr := bytes.IndexByte(p, '\r'); cr >= 0 {
		p = p[:cr]
	}
	return p[:bytes.LastIndexByte(p, '\n')+1]
}

// lineEnd returns where the first line of p ends, -1 if it does not.
func lineEnd(p []byte) int {
	i := bytes.IndexByte(p, '\n')
	line := p
	if i >= 0 {
		line = p[:i]
	}
	if cr := bytes.IndexByte(line, '\r'); cr >= 0 {
		return cr
	}
	return i
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
		w.endLine()
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

// endLine ends the line that has come together.
func (w *lineWriter) endLine() {
	w.end(w.line)
	w.line = w.line[:0]
	if cap(w.line) > maxTail {
		w.line = nil
	}
}

// end takes a line; flush passes it on.
func (w *lineWriter) end(line []byte) {
	w.block = append(appendPlain(w.block, line), '\n')
	if len(w.block) > maxTail {
		w.flush()
	}
}

func (w *lineWriter) flush() {
	if len(w.block) > 0 {
		w.put(w.block)
		w.block = w.block[:0]
	}
	if cap(w.block) > 4*maxTail {
		w.block = nil
	}
}

// put takes whole lines that are plain.
func (w *lineWriter) put(lines []byte) {
	if said := bytes.TrimRight(lines, "\n"); len(said) > 0 {
		w.said.add(lines[:len(said)+1])
	}
	if w.dropped == 0 {
		fits := lines
		if room := w.limit - w.written; int64(len(lines)) > room {
			fits = lines[:bytes.LastIndexByte(lines[:max(room, 0)], '\n')+1]
		}
		if len(fits) > 0 {
			w.written += int64(len(fits))
			w.pass(fits)
		}
		lines = lines[len(fits):]
	}
	w.dropped += int64(len(lines))
	w.kept.add(lines)
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
		w.endLine()
		w.flush()
	}
	if w.dropped > 0 {
		kept := w.kept.text()
		if lost := w.dropped - int64(len(kept)); lost > 0 {
			w.pass(fmt.Appendf(nil, "[agentd: %d bytes of output left out here, after the first %d]\n", lost, w.written))
		}
		w.pass(kept)
		w.dropped, w.kept = 0, tail{max: maxTail}
	}
	return w.err
}

// last returns the last line that was not empty, shortened.
func (w *lineWriter) last() string {
	lines := w.said.lines()
	for i := len(lines) - 1; i >= 0; i-- {
		line := strings.TrimSpace(lines[i])
		if line == "" {
			continue
		}
		if len(line) > maxLast {
			cut := maxLast
			for !utf8.RuneStart(line[cut]) {
				cut--
			}
			line = line[:cut] + "..."
		}
		return line
	}
	return ""
}

// tail returns the last lines, from one that was not empty to another.
func (w *lineWriter) tail() string { return strings.TrimSpace(string(w.said.text())) }

// tail keeps the last lines of up to max bytes together, and always the last
// one as far as it fits.
type tail struct {
	max int
	buf []byte // up to twice as much, so that little is moved
	cut bool   // something stood before buf
}

// add takes whole lines.
func (t *tail) add(lines []byte) {
	if more := len(lines) - t.max - 1; more > 0 { // with the byte that tells where a line begins
		t.buf, t.cut = t.buf[:0], true
		lines = lines[more:]
	}
	t.buf = append(t.buf, lines...)
	if len(t.buf) > 2*t.max+1 {
		t.buf, t.cut = t.buf[:copy(t.buf, t.buf[len(t.buf)-t.max-1:])], true
	}
}

// text returns the lines that are kept.
func (t *tail) text() []byte {
	text, before := t.buf, !t.cut
	if more := len(text) - t.max; more > 0 {
		before = text[more-1] == '\n'
		text = text[more:]
	}
	if before {
		return text
	}
	if i := bytes.IndexByte(text, '\n'); i >= 0 && i < len(text)-1 {
		return text[i+1:]
	}
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return text
}

// lines returns them one by one, without their ends.
func (t *tail) lines() []string {
	text := strings.TrimSuffix(string(t.text()), "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}
