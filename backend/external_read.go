package backend

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"agentd/provider/message"
)

const (
	maxEvent    = 16 << 20 // bytes; a longer line of a structured output is left out
	maxErrors   = 32 << 10 // bytes of the last lines of text that are judged
	maxToolLine = 160      // bytes of a tool's arguments in a line for people
	maxLastSaid = 64 << 10 // bytes of the last thing said that are kept
)

// reading is what is known of a CLI's work from its output so far. The readers
// of the different formats fill it in. Its methods may be called from the two
// goroutines that bring standard output and standard error.
type reading struct {
	mu     sync.Mutex
	out    io.Writer   // plain lines for the log
	events func(Event) // progress
	now    func() time.Time
	watch  *watch // hears of what bounds the program; nil in tests

	session string // the CLI's id for it
	ended   bool   // the last event was seen, or the format has none
	said    bool   // the agent said something
	text    string // the last thing it said
	fail    *fault // the last event says that the turn failed
	limit   *fault // a limit was met, told before the end
	steps   int
	tools   int
	usage   message.Usage
	denied  []string // tools that were not permitted

	repeats    int    // in a row, without a reply
	lastRepeat string // why the CLI repeated a request last
	stderr     tail
	stdout     tail // lines that are no events
}

func newReading(out io.Writer, events func(Event), now func() time.Time) *reading {
	return &reading{out: out, events: events, now: now, stderr: tail{max: maxErrors}, stdout: tail{max: maxErrors}}
}

// failure returns what the structured output says went wrong, if it does.
func (r *reading) failure() (fault, bool) {
	switch {
	case r.fail != nil && r.limit != nil && r.fail.status != 401 && r.fail.status != 403:
		f := *r.limit
		if r.fail.text != "" {
			f.text = r.fail.text
		}
		return f, true
	case r.fail != nil:
		return *r.fail, true
	case r.limit != nil && !r.ended:
		return *r.limit, true
	}
	return fault{}, false
}

// errorLines are the last lines of text in which an error may stand: standard
// error comes last because it says more.
func (r *reading) errorLines() []string {
	var lines []string
	for _, t := range []*tail{&r.stdout, &r.stderr} {
		lines = append(lines, t.lines()...)
	}
	return lines
}

// saidLast returns ": " and the last line of text, or nothing.
func (r *reading) saidLast() string {
	for _, t := range []*tail{&r.stderr, &r.stdout} {
		for _, line := range slices.Backward(t.lines()) {
			if line := strings.TrimSpace(line); line != "" {
				return ": " + shorten(line, maxLast)
			}
		}
	}
	return ""
}

// The methods below are for the readers, which hold mu.

func (r *reading) event(kind, text string, data map[string]any) {
	r.events(Event{At: r.now(), Kind: kind, Text: text, Data: data})
}

// say takes what the agent said.
func (r *reading) say(text string) {
	text = strings.TrimSpace(string(plainText(text)))
	if text == "" {
		return
	}
	r.said, r.text, r.repeats = true, shorten(text, maxLastSaid), 0
	_, _ = io.WriteString(r.out, text+"\n") // the log's own trouble is its owner's
}

// tool takes a call of a tool.
func (r *reading) tool(name, arguments string) {
	r.tools++
	r.repeats = 0
	line := shorten(strings.Join(strings.Fields(string(plainText(arguments))), " "), maxToolLine)
	r.event("tool", strings.TrimSpace(name+"  "+line), map[string]any{"tool": name})
}

// step counts a reply of the model.
func (r *reading) step() {
	r.steps++
	r.repeats = 0
	if r.watch != nil {
		r.watch.spent(r.steps, r.usage)
	}
}

// named takes the CLI's id of the session.
func (r *reading) named(id string) {
	if id != "" && r.session != id {
		r.session = id
		if r.watch != nil {
			r.watch.session(id)
		}
	}
}

// repeat takes news of a request that the CLI is about to send again.
func (r *reading) repeat(why string) {
	r.repeats++
	r.lastRepeat = why
	r.event("replay", "repeating a request: "+shorten(why, maxLast), nil)
	if r.watch != nil {
		r.watch.repeating(r.repeats, why)
	}
}

// limited takes news of a limit that makes going on pointless.
func (r *reading) limited(f fault) {
	if r.limit == nil {
		r.limit = &f
	}
	if r.watch != nil {
		r.watch.ending()
	}
}

// failed takes the end of a turn that went wrong.
func (r *reading) failed(f fault) {
	r.fail = &f
	r.done()
}

// done takes the last event: nothing is to be waited for any more.
func (r *reading) done() {
	r.ended = true
	if r.watch != nil {
		r.watch.ending()
	}
}

// plainText is plain for a text of several lines.
func plainText(s string) []byte {
	lines := bytes.Split([]byte(s), []byte("\n"))
	for i, l := range lines {
		lines[i] = plain(l)
	}
	return bytes.Join(lines, []byte("\n"))
}

// shorten cuts s to at most n bytes, between two characters.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	cut := []byte(s[:n])
	return string(cut[:len(cut)-cutRune(cut)]) + "..."
}

// format reads the events of a CLI.
type format interface {
	// event takes a line of standard output that is a JSON object; false if it
	// is none of the format's.
	event(r *reading, line []byte) bool
	// noise takes a line of standard error, or of standard output that is no
	// event, for what can be learned from it; false keeps the line for judging.
	noise(r *reading, line string) bool
	// rest takes what stood outside of events when the program has ended.
	rest(r *reading, text string)
}

// formats by the names of workspace.Readers.
func newFormat(name string) format {
	switch name {
	case "claude":
		return &claudeFormat{}
	case "codex":
		return codexFormat{}
	case "gemini":
		return &geminiFormat{}
	case "opencode":
		return &opencodeFormat{}
	}
	return nil // plain text
}

// stream takes one output of the program in pieces and passes on whole lines.
type stream struct {
	r       *reading
	format  format
	errors  bool        // it is standard error
	lines   *lineWriter // to the log, for what are no events
	touched func()      // a sign of life
	keep    io.Writer   // the record of the raw output; nil: none

	buf     []byte
	tooLong int64
}

func (s *stream) Write(p []byte) (int, error) {
	n := len(p)
	s.touched()
	if s.keep != nil {
		_, _ = s.keep.Write(p) // its owner tells of trouble
	}
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			s.hold(p)
			break
		}
		if len(s.buf) == 0 && s.tooLong == 0 {
			s.line(p[:i])
		} else {
			s.hold(p[:i])
			s.flush()
		}
		p = p[i+1:]
	}
	return n, nil
}

func (s *stream) hold(p []byte) {
	if s.tooLong > 0 || len(s.buf)+len(p) > maxEvent {
		s.tooLong += int64(len(s.buf) + len(p))
		s.buf = nil
		return
	}
	s.buf = append(s.buf, p...)
}

func (s *stream) flush() {
	if s.tooLong > 0 {
		s.r.mu.Lock()
		s.r.event("warning", fmt.Sprintf("left out a line of %d bytes", s.tooLong), nil)
		s.r.mu.Unlock()
	} else if len(s.buf) > 0 {
		s.line(s.buf)
	}
	s.tooLong = 0
	if cap(s.buf) > maxTail {
		s.buf = nil
	}
	s.buf = s.buf[:0]
}

func (s *stream) line(line []byte) {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	if !s.errors && isEvent(line) && s.event(bytes.TrimSpace(line)) {
		return
	}
	text := append(plain(bytes.TrimSuffix(line, []byte("\r"))), '\n')
	_, _ = s.lines.Write(text)
	if len(text) == 1 || s.format.noise(s.r, string(text[:len(text)-1])) {
		return
	}
	if s.errors {
		s.r.stderr.add(text)
	} else {
		s.r.stdout.add(text)
	}
}

// decodeEvent reads an event. A field of another type than expected is left
// out, not the whole of it: versions differ.
func decodeEvent(line []byte, e any) bool {
	err := json.Unmarshal(line, e)
	_, odd := errors.AsType[*json.UnmarshalTypeError](err)
	return err == nil || odd
}

func isEvent(line []byte) bool {
	line = bytes.TrimLeft(line, " \t")
	return len(line) > 1 && (line[0] == '{' || line[0] == '[')
}

// event passes on an event, or each of a list of them.
func (s *stream) event(line []byte) bool {
	if line[0] == '{' {
		return s.format.event(s.r, line)
	}
	var list []json.RawMessage
	if json.Unmarshal(line, &list) != nil {
		return false
	}
	known := false
	for _, e := range list {
		known = s.format.event(s.r, e) || known
	}
	return known
}

// close passes on a line without an end.
func (s *stream) close() error {
	s.flush()
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	return s.lines.close()
}

// textStream takes the output of a program that prints text for people.
type textStream struct {
	r       *reading
	errors  bool
	lines   *lineWriter
	touched func()
	keep    io.Writer
}

func (s *textStream) Write(p []byte) (int, error) {
	s.touched()
	if s.keep != nil {
		_, _ = s.keep.Write(p)
	}
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	_, _ = s.lines.Write(p) // told by close
	return len(p), nil
}

func (s *textStream) close() error {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	err := s.lines.close()
	if s.errors {
		s.r.stderr = s.lines.said
		return err
	}
	s.r.stdout = s.lines.said
	s.r.text, s.r.ended = s.lines.tail(), true
	s.r.said = s.r.text != ""
	return err
}
