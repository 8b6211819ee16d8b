// Package redact masks secrets in text: known values, in the forms in which
// they turn up in logs, and a few kinds of token that are recognised by their
// look.
package redact

import (
	"bytes"
	"io"
	"sync"
)

// Mask stands where a secret was.
const Mask = "[redacted]"

// minSecret is the length in bytes under which a value is not masked: it would
// be found everywhere.
const minSecret = 6

// Redactor masks secrets. It may be used by several goroutines at once.
type Redactor struct {
	values *trie
	tokens *tokens
}

// New returns a Redactor for the values, which may be empty: tokens are
// recognised anyway. Values shorter than 6 bytes are ignored.
func New(secrets []string) *Redactor {
	r := &Redactor{values: newTrie(), tokens: newTokens()}
	for _, s := range secrets {
		for _, form := range forms(s) {
			r.values.add(form)
		}
	}
	return r
}

// String returns s with all secrets masked.
func (r *Redactor) String(s string) string {
	sc := r.scanner()
	out := sc.feed([]byte(s), true)
	if string(out) == s {
		return s
	}
	return string(out)
}

// Writer returns a writer that passes on to w what is written to it, masked.
// It holds back only what could be the start of a secret; Close writes that,
// and leaves w open. Write and Close may be called by several goroutines.
func (r *Redactor) Writer(w io.Writer) io.WriteCloser {
	return &writer{to: w, scan: r.scanner()}
}

func (r *Redactor) scanner() scanner { return scanner{values: r.values, tokens: r.tokens} }

type writer struct {
	mu     sync.Mutex
	to     io.Writer
	scan   scanner
	closed bool
}

func (w *writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return 0, io.ErrClosedPipe
	}
	return len(p), w.pass(w.scan.feed(p, false))
}

func (w *writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	return w.pass(w.scan.feed(nil, true))
}

func (w *writer) pass(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	_, err := w.to.Write(p)
	return err
}

// scanner masks a stream piece by piece.
type scanner struct {
	values *trie
	tokens *tokens
	held   []byte // not decided yet
	masked int    // how many bytes of held a mask that was written covers
	before byte   // the byte before held; 0 at the start
	open   []open
}

// open is a token that reached the end of what was seen and may go on. It is
// swallowed from held[from] on, however long it is.
type open struct {
	class *class
	from  int
}

// feed takes the next piece of the stream and returns what can be told of it.
// final says that nothing will follow.
//
// Everything that a match covers is masked, also where matches overlap. A
// position is decided when no more input could change what starts there.
func (s *scanner) feed(p []byte, final bool) []byte {
	buf := append(s.held, p...)
	out := make([]byte, 0, len(buf))
	i, until := 0, s.masked
	for ; i < len(buf); i++ {
		until = max(until, s.goOn(buf, i))
		n, more := s.values.match(buf[i:])
		t := s.tokens.match(s.before, buf[i:], final)
		if (more || t.more) && !final {
			break
		}
		keep := 0
		if t.length > 0 && i+t.length == len(buf) {
			s.opened(t.class, len(buf))
		}
		if t.length > n {
			n, keep = t.length, t.keep
		}
		if n > 0 {
			if i >= until {
				out = append(out, buf[i:i+keep]...)
				out = append(out, Mask...)
			}
			until = max(until, i+n)
		}
		if i >= until {
			out = append(out, buf[i])
		}
		s.before = buf[i]
	}
	s.held = bytes.Clone(buf[i:])
	s.masked = max(until-i, 0)
	for k := range s.open {
		s.open[k].from = max(s.open[k].from-i, 0)
	}
	return out
}

// goOn returns where the open tokens that cover buf[i] reach to, and forgets
// those that have ended.
func (s *scanner) goOn(buf []byte, i int) (until int) {
	kept := s.open[:0]
	for _, o := range s.open {
		if i >= o.from {
			if !o.class[buf[i]] {
				continue
			}
			until = i + 1
		}
		kept = append(kept, o)
	}
	s.open = kept
	return until
}

func (s *scanner) opened(c *class, from int) {
	for k := range s.open {
		if s.open[k].class == c {
			s.open[k].from = from
			return
		}
	}
	s.open = append(s.open, open{c, from})
}
