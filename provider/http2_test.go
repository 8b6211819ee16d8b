package provider

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"

	"agentd/recovery"
)

// tls2 is a provider that speaks HTTP/2 frames by hand. It counts the requests
// whose body has arrived, and answers each with what end writes.
func tls2(t *testing.T, end func(f *http2.Framer, id uint32) (keep bool)) (*Client, *atomic.Int32) {
	t.Helper()
	cert := httptest.NewUnstartedServer(nil)
	cert.StartTLS()
	defer cert.Close()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: cert.TLS.Certificates, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	posts := &atomic.Int32{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serve2(c, posts, end)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	c := NewClient(Endpoint{Name: "test", Wire: Chat, BaseURL: "https://" + l.Addr().String()}, Timeouts{})
	c.http.Transport.(*http.Transport).TLSClientConfig = cert.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	t.Cleanup(c.Close)
	return c, posts
}

func serve2(c net.Conn, posts *atomic.Int32, end func(*http2.Framer, uint32) bool) {
	if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	f := http2.NewFramer(c, c)
	_ = f.WriteSettings()
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}
		if s, ok := frame.(*http2.SettingsFrame); ok && !s.IsAck() {
			_ = f.WriteSettingsAck()
		}
		if frame.Header().Type == http2.FrameData && frame.Header().Flags.Has(http2.FlagDataEndStream) {
			posts.Add(1)
			if !end(f, frame.Header().StreamID) {
				return
			}
		}
	}
}

func TestHTTP2NeverSendsTwice(t *testing.T) {
	tests := map[string]func(*http2.Framer, uint32) bool{
		"refused stream": func(f *http2.Framer, id uint32) bool {
			return f.WriteRSTStream(id, http2.ErrCodeRefusedStream) == nil
		},
		"going away before the stream": func(f *http2.Framer, _ uint32) bool {
			_ = f.WriteGoAway(0, http2.ErrCodeNo, nil)
			return false
		},
		"going away with an error": func(f *http2.Framer, id uint32) bool {
			_ = f.WriteGoAway(id, http2.ErrCodeEnhanceYourCalm, []byte("too_many_pings"))
			return false
		},
		"cancelled stream": func(f *http2.Framer, id uint32) bool {
			return f.WriteRSTStream(id, http2.ErrCodeInternal) == nil
		},
		"closed": func(*http2.Framer, uint32) bool { return false },
	}
	for name, end := range tests {
		t.Run(name, func(t *testing.T) {
			c, posts := tls2(t, end)
			for n := range int32(3) {
				f := faultIn(t, second(c.Send(t.Context(), ask(), nil)))
				if f.Kind != recovery.Transport || posts.Load() != n+1 {
					t.Fatalf("got %v after %d requests, want a transport fault after %d", f, posts.Load(), n+1)
				}
			}
		})
	}
}

func TestHTTP2CarriesAStream(t *testing.T) {
	var posts atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		posts.Add(1)
		if r.ProtoMajor != 2 {
			t.Errorf("the request came over %s", r.Proto)
		}
		if posts.Load() == 2 {
			flushed(okChat[:60])(w, r)
			panic(http.ErrAbortHandler)
		}
		stream(okChat)(w, r)
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	c := NewClient(Endpoint{Name: "test", Wire: Chat, BaseURL: s.URL}, Timeouts{})
	c.http.Transport.(*http.Transport).TLSClientConfig = s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	t.Cleanup(c.Close)
	if _, err := c.Send(t.Context(), ask(), nil); err != nil {
		t.Fatal(err)
	}
	if f := faultIn(t, second(c.Send(t.Context(), ask(), nil))); f.Kind != recovery.Truncated {
		t.Errorf("fault is %v, want a truncation", f)
	}
	if posts.Load() != 2 {
		t.Errorf("%d requests arrived, want 2", posts.Load())
	}
}
