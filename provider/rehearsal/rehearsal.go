// Package rehearsal is a scripted model provider on loopback. It speaks the
// real wires over HTTP and SSE from a scenario file, breaks off, stalls and
// refuses where the scenario says so, and checks that every request it gets is
// one that a real provider would accept.
package rehearsal

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"agentd/provider/message"
)

// maxRequest bounds the body of a request, in bytes.
const maxRequest = 64 << 20

// Request is one physical request that the server saw, accepted or not.
type Request struct {
	At       time.Time
	Method   string
	Path     string
	Wire     Wire
	Header   http.Header // without the values of keys
	Model    string
	System   string
	Messages []message.Message // without system messages
	Tools    []string          // names of the tools offered
	Body     []byte
	Reply    int    // which [[reply]] of the scenario answered it, from 1; 0: none
	Problem  string // why the request was refused, if it was
}

// Server is a running scripted provider.
type Server struct {
	URL string // http://127.0.0.1:PORT

	scenario *Scenario
	now      func() time.Time
	prefix   string // of the ids that this server makes up
	http     *http.Server
	closing  chan struct{}
	handlers sync.WaitGroup
	served   chan struct{}

	mu       sync.Mutex
	requests []Request
	next     int // index of the reply to use next
	used     int // how often that reply was used
	issued   map[string]issue
}

// issue is what a call or thinking block of ours looked like when it was sent.
type issue struct{ name, text string }

// Serve starts a server for the scenario on a free port of 127.0.0.1.
func Serve(sc *Scenario) (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot start the scripted provider: %w", err)
	}
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails, by its documentation
	s := &Server{
		URL:      "http://" + l.Addr().String(),
		scenario: sc,
		now:      sc.Now,
		next:     min(max(sc.From, 0), len(sc.Replies)),
		prefix:   hex.EncodeToString(random[:]),
		closing:  make(chan struct{}),
		served:   make(chan struct{}),
		issued:   make(map[string]issue),
	}
	if s.now == nil {
		s.now = time.Now
	}
	s.http = &http.Server{
		Handler:           http.HandlerFunc(s.serve),
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(io.Discard, "", 0), // broken connections are the purpose here
	}
	go func() {
		defer close(s.served)
		_ = s.http.Serve(l) // ends with ErrServerClosed on Close
	}()
	return s, nil
}

// BaseURL returns the base URL that a client of the wire is configured with.
func (s *Server) BaseURL(w Wire) string {
	if w == Anthropic || w == Gemini {
		return s.URL
	}
	return s.URL + "/v1"
}

// Close ends every connection and waits for the handlers.
func (s *Server) Close() error {
	s.mu.Lock()
	select {
	case <-s.closing:
		s.mu.Unlock()
		return nil
	default:
	}
	close(s.closing)
	s.mu.Unlock()
	err := s.http.Close()
	<-s.served
	s.handlers.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Used returns how many replies of the scenario are used up. A reply that
// repeats never is.
func (s *Server) Used() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next
}

// Requests returns the physical requests seen so far, in order.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Problems returns why requests were refused; empty means that every request
// was one that a real provider would accept.
func (s *Server) Problems() []string {
	var out []string
	for i, r := range s.Requests() {
		if r.Problem != "" {
			out = append(out, fmt.Sprintf("request %d: %s", i+1, r.Problem))
		}
	}
	return out
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	select {
	case <-s.closing:
		s.mu.Unlock()
		return
	default:
	}
	s.handlers.Add(1)
	s.mu.Unlock()
	defer s.handlers.Done()

	seen := Request{At: s.now(), Method: r.Method, Path: r.URL.Path, Wire: s.wireOf(r.URL.Path), Header: publicHeader(r.Header)}
	d := dialectOf(seen.Wire)
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	seen.Body = body
	switch {
	case err != nil:
		seen.Problem = fmt.Sprintf("cannot read the request: %v", err)
	case d == nil:
		seen.Problem = fmt.Sprintf("path %s belongs to no wire", r.URL.Path)
		d = chatDialect{}
	case r.Method != http.MethodPost:
		seen.Problem = "method " + r.Method + " instead of POST"
	case !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json"):
		seen.Problem = "Content-Type is not application/json"
	default:
		seen.Problem = s.check(d, r.Header, &seen)
	}
	step, n, exhausted := s.admit(&seen)
	switch {
	case s.scenario.Lenient && seen.Wire == "":
		http.NotFound(w, r)
	case seen.Problem != "" && !s.scenario.Lenient:
		s.refuse(w, d, "rehearsal_bad_request", seen.Problem)
	case exhausted:
		s.refuse(w, d, "rehearsal_exhausted", fmt.Sprintf(
			"scenario exhausted: %s has no reply for request %d", s.scenario.Name, n))
	default:
		s.answer(w, r, d, step, &seen, n)
	}
}

// admit records the request and takes the reply for it. A refused request uses
// up no reply.
func (s *Server) admit(seen *Request) (step *Reply, n int, exhausted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = len(s.requests) + 1
	answered := seen.Problem == "" || s.scenario.Lenient && seen.Wire != ""
	if answered && s.next < len(s.scenario.Replies) {
		step = &s.scenario.Replies[s.next]
		seen.Reply = s.next + 1
		s.used++
		if !step.Repeat && s.used >= max(step.Times, 1) {
			s.next, s.used = s.next+1, 0
		}
	}
	s.requests = append(s.requests, *seen)
	return step, n, step == nil
}

// wireOf chooses the wire by the end of the path, unless the scenario fixes it.
func (s *Server) wireOf(path string) Wire {
	if s.scenario.Wire != "" {
		return s.scenario.Wire
	}
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		return Chat
	case strings.HasSuffix(path, "/responses"):
		return Responses
	case strings.HasSuffix(path, "/messages"):
		return Anthropic
	case strings.HasSuffix(path, geminiMethod):
		return Gemini
	}
	return ""
}

// publicHeader copies h with the values of keys blanked out.
func publicHeader(h http.Header) http.Header {
	out := h.Clone()
	for _, k := range []string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "Cookie"} {
		if out.Get(k) != "" {
			out.Set(k, "(hidden)")
		}
	}
	return out
}
