package provider

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agentd/recovery"
)

// tick is a timer that has to fire in a test; hour is one that must not.
const (
	tick = 50 * time.Millisecond
	hour = time.Hour
)

func TestTimersEndARequest(t *testing.T) {
	silent := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	stalled := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			flushed(text)(w, r)
			<-r.Context().Done()
		}
	}
	dripping := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			flushed(okChat[:strings.Index(okChat, "\n\n")+2])(w, r)
			every := time.NewTicker(time.Millisecond)
			defer every.Stop()
			for {
				select {
				case <-r.Context().Done():
					return
				case <-every.C:
					_, _ = io.WriteString(w, text)
					w.(http.Flusher).Flush()
				}
			}
		}
	}
	tests := []struct {
		name   string
		answer http.HandlerFunc
		limits Timeouts
		says   string
	}{
		{"first byte", silent, Timeouts{hour, tick, hour, hour}, "no answer for"},
		{"whole request, no answer", silent, Timeouts{tick, hour, hour, hour}, "longer than"},
		{"bytes", stalled(okChat[:50]), Timeouts{hour, hour, tick, hour}, "no byte for"},
		{"events, silence", stalled(okChat[:50]), Timeouts{hour, hour, hour, tick}, "no event"},
		{"events, comments", dripping(": keepalive\n\n"), Timeouts{hour, hour, hour, tick}, "no event"},
		{"events, empty data", dripping("data:\n\n"), Timeouts{hour, hour, hour, tick}, "no event"},
		{"events, pieces of a line", dripping("data: x"), Timeouts{hour, hour, hour, tick}, "no event"},
		{"whole request, with events", dripping("data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n"), Timeouts{tick, hour, hour, hour}, "longer than"},
		{"no end after a finish", stalled(okChat[:strings.Index(okChat, "data: [DONE]")]), Timeouts{hour, hour, hour, time.Second}, "did not end"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, tt.answer)
			c := NewClient(Endpoint{Name: "test", Wire: Chat, BaseURL: s.URL}, tt.limits)
			t.Cleanup(c.Close)
			reply, err := c.Send(t.Context(), ask(), nil)
			f := faultIn(t, err)
			if reply != nil || f.Kind != recovery.Transport || !strings.Contains(f.Message, tt.says) {
				t.Errorf("got %v and %v, want a transport fault that says %q", reply, f, tt.says)
			}
			if n := s.posts.Load(); n != 1 {
				t.Errorf("%d requests arrived, want 1", n)
			}
		})
	}
}

func TestAPingOfAnthropicIsNoEvent(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		flushed(okAnthropic[:strings.Index(okAnthropic, "\n\n")+2])(w, r)
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, "event: ping\ndata: {\"type\":\"ping\"}\n\n")
			w.(http.Flusher).Flush()
		}
	})
	// Only time spent waiting counts, so the pings have to come in over time.
	c := NewClient(Endpoint{Name: "test", Wire: Anthropic, BaseURL: s.URL}, Timeouts{5 * time.Second, hour, hour, 20 * time.Millisecond})
	t.Cleanup(c.Close)
	f := faultIn(t, second(c.Send(t.Context(), ask(), nil)))
	if f.Kind != recovery.Transport {
		t.Errorf("fault is %v, want a timer's", f)
	}
}

func TestASlowReaderOfPreviewsEndsNothing(t *testing.T) {
	t.Parallel()
	s := serve(t, stream(okChat))
	c := NewClient(Endpoint{Name: "test", Wire: Chat, BaseURL: s.URL}, Timeouts{hour, hour, time.Second, time.Second})
	t.Cleanup(c.Close)
	block := make(chan struct{})
	time.AfterFunc(1500*time.Millisecond, func() { close(block) })
	if _, err := c.Send(t.Context(), ask(), func(Event) { <-block }); err != nil {
		t.Error(err)
	}
}

func TestAConnectionThatStaysOpenAfterTheLastEvent(t *testing.T) {
	for w, text := range map[Wire]string{Chat: okChat, Anthropic: okAnthropic, Responses: okResponses} {
		t.Run(string(w), func(t *testing.T) {
			t.Parallel()
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				flushed(text)(w, r)
				<-r.Context().Done()
			})
			if _, err := s.client(t, w).Send(t.Context(), ask(), nil); err != nil {
				t.Errorf("error is %v, want the reply after a moment", err)
			}
		})
	}
}

func TestNoiseAfterTheLastEventIsBounded(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		flushed(okAnthropic)(w, r)
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, ": still here\n\ndata: {}\n\n"); err != nil {
				return
			}
		}
	})
	if _, err := s.client(t, Anthropic).Send(t.Context(), ask(), nil); err != nil {
		t.Errorf("error is %v, want the reply", err)
	}
}

func TestErrorBodiesAreBounded(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(503)
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, strings.Repeat("x", 1<<16)); err != nil {
				return
			}
		}
	})
	f := faultIn(t, second(s.client(t, Chat).Send(t.Context(), ask(), nil)))
	if f.Kind != recovery.Server || len(f.Message) > 2*maxMessage {
		t.Errorf("fault is %s with %d bytes", f.Kind, len(f.Message))
	}
	s = serve(t, func(w http.ResponseWriter, r *http.Request) { // the body stalls
		w.WriteHeader(429)
		_, _ = io.WriteString(w, `{"error":{"message":"slow`)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	c := NewClient(Endpoint{Name: "test", Wire: Chat, BaseURL: s.URL}, Timeouts{hour, hour, tick, hour})
	t.Cleanup(c.Close)
	if f := faultIn(t, second(c.Send(t.Context(), ask(), nil))); f.Kind != recovery.RateLimited {
		t.Errorf("fault is %v, want the rate limit", f)
	}
}

func TestLargeResponseHeadersAreRefused(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Large", strings.Repeat("x", 2*maxHeader))
		stream(okChat)(w, r)
	})
	if f := faultIn(t, second(s.client(t, Chat).Send(t.Context(), ask(), nil))); f.Kind != recovery.TooLarge {
		t.Errorf("fault is %v, want too large", f)
	}
}

// raw is a provider that speaks HTTP/1.1 by hand, so that it can break off as it
// likes. serve gets each request's connection after its header and body.
func raw(t *testing.T, serve func(n int, c net.Conn) (keep bool)) (base string, posts *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	posts = &atomic.Int32{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			in := bufio.NewReader(c)
			for {
				r, err := http.ReadRequest(in)
				if err != nil {
					break
				}
				_, _ = io.Copy(io.Discard, r.Body)
				if !serve(int(posts.Add(1)), c) {
					break
				}
			}
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return "http://" + l.Addr().String(), posts
}

func TestAStaleConnectionIsNotUsedTwice(t *testing.T) {
	base, posts := raw(t, func(n int, c net.Conn) bool {
		if n > 1 {
			return false // the connection is closed under the second request
		}
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n%s", len(okChat), okChat)
		return true
	})
	h := http.Header{"Idempotency-Key": {"k"}, "X-Idempotency-Key": {"k"}}
	c := NewClient(Endpoint{Name: "test", Wire: Chat, BaseURL: base, Header: h}, Timeouts{})
	t.Cleanup(c.Close)
	if _, err := c.Send(t.Context(), ask(), nil); err != nil {
		t.Fatal(err)
	}
	f := faultIn(t, second(c.Send(t.Context(), ask(), nil)))
	if f.Kind != recovery.Transport || posts.Load() != 2 {
		t.Errorf("got %v after %d requests, want a transport fault after 2", f, posts.Load())
	}
}

// TestCutsOnTheWire cuts a sample of streams at a sample of bytes on a real
// connection, in the ways in which a connection ends.
func TestCutsOnTheWire(t *testing.T) {
	ways := map[string]func(c net.Conn, data []byte){
		"close":   func(c net.Conn, data []byte) { writeHead(c, ""); _, _ = c.Write(data) },
		"length":  func(c net.Conn, data []byte) { writeHead(c, "Content-Length: 1000000\r\n"); _, _ = c.Write(data) },
		"chunked": func(c net.Conn, data []byte) { writeHead(c, "Transfer-Encoding: chunked\r\n"); writeChunk(c, data) },
		"reset": func(c net.Conn, data []byte) {
			writeHead(c, "Transfer-Encoding: chunked\r\n")
			writeChunk(c, data)
			_ = c.(*net.TCPConn).SetLinger(0)
		},
		"stall": func(c net.Conn, data []byte) {
			writeHead(c, "Transfer-Encoding: chunked\r\n")
			writeChunk(c, data)
			_, _ = c.Read(make([]byte, 1)) // until the client gives up
		},
	}
	for _, rec := range corpus(t) {
		if len(rec.data) > 8000 || !strings.Contains(rec.File, "tool-0") {
			continue
		}
		for way, end := range ways {
			t.Run(rec.File+"/"+way, func(t *testing.T) { cutOnTheWire(t, rec, way, end) })
		}
	}
}

func cutOnTheWire(t *testing.T, rec recording, way string, end func(net.Conn, []byte)) {
	t.Parallel()
	var at atomic.Int64
	base, posts := raw(t, func(_ int, c net.Conn) bool { end(c, rec.data[:at.Load()]); return false })
	idle := hour
	if way == "stall" {
		idle = 100 * time.Millisecond
	}
	c := NewClient(Endpoint{Name: "test", Wire: rec.Wire, BaseURL: base}, Timeouts{hour, hour, idle, hour})
	t.Cleanup(c.Close)
	offsets := []int{0, 1, len(rec.data) / 3, rec.terminal - 1, rec.terminal, rec.terminal + 1, len(rec.data)}
	for i, n := range offsets {
		at.Store(int64(min(n, len(rec.data))))
		reply, err := c.Send(t.Context(), ask(), nil)
		if way == "close" || err == nil && way == "stall" {
			// A stall is a clean end where the last event of all was seen.
			if bad := judge(rec, int(at.Load()), reply, err); bad != nil {
				t.Errorf("at %d: %v", at.Load(), bad)
			}
		} else if f := faultIn(t, err); reply != nil || !f.Transient() {
			t.Errorf("at %d: got %v and %v, want a transient fault", at.Load(), reply, f)
		}
		if int(posts.Load()) != i+1 {
			t.Fatalf("%d requests arrived, want %d", posts.Load(), i+1)
		}
	}
}

func writeHead(c net.Conn, more string) {
	_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"+more+"\r\n")
}

func writeChunk(c net.Conn, data []byte) {
	if len(data) > 0 {
		fmt.Fprintf(c, "%x\r\n%s\r\n", len(data), data)
	}
}
