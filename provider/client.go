// Package provider asks a model for one reply. It knows three wires (chat,
// responses, anthropic), sends each request exactly once over a thin HTTP
// client, and returns a reply only when the wire's terminal was seen and the
// stream was drained. Everything else is a typed *recovery.Fault.
package provider

import (
	"context"
	"errors"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"agentd/exitcodes"
	"agentd/recovery"
)

// The defaults of Timeouts. They are generous: servers that load a model, and
// proxies that buffer, are silent for minutes.
const (
	defaultRequest   = 10 * time.Minute
	defaultFirstByte = 5 * time.Minute
	defaultBytesIdle = 5 * time.Minute
	defaultEventIdle = 5 * time.Minute
)

// Client sends requests to one endpoint. It is safe for concurrent use.
type Client struct {
	endpoint Endpoint
	timeouts Timeouts
	wire     wire
	http     *http.Client
	now      func() time.Time

	mu     sync.Mutex
	shapes map[string]shape // by model: what the endpoint was found not to take
}

// wire builds the requests of one protocol.
type wire interface {
	path() string
	header(h http.Header, e *Endpoint)
	body(r *Request, e *Endpoint, s shape) (fields, error)
}

// NewClient returns a Client for e.
func NewClient(e Endpoint, t Timeouts) *Client {
	setDefault(&t.Request, defaultRequest)
	setDefault(&t.FirstByte, defaultFirstByte)
	setDefault(&t.BytesIdle, defaultBytesIdle)
	setDefault(&t.EventIdle, defaultEventIdle)
	return &Client{
		endpoint: e,
		timeouts: t,
		wire:     wireOf(e.Wire),
		http: &http.Client{
			Transport:     newTransport(),
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		now:    time.Now,
		shapes: map[string]shape{},
	}
}

func setDefault(d *time.Duration, v time.Duration) {
	if *d <= 0 {
		*d = v
	}
}

func wireOf(w Wire) wire {
	switch w {
	case Anthropic:
		return anthropicWire{}
	case Responses:
		return responsesWire{}
	}
	return chatWire{}
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// maxFallbacks bounds how often one Send leaves something out and asks again.
const maxFallbacks = 4

// Send asks for one generation. preview, which may be nil, sees the reply grow;
// nothing of it counts until Send returns the reply. Each physical request is
// debited from the Budget of ctx first. A request is sent again only without a
// parameter that the endpoint has just refused by name; it remembers that.
//
// The error is a *recovery.Fault if it is of provider origin, a
// *recovery.Exhausted if the budget did not allow a request, the cause of ctx
// if that has ended, or a local error.
func (c *Client) Send(ctx context.Context, r *Request, preview func(Event)) (*Reply, error) {
	for tries := 0; ; tries++ {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		s := c.shape(r.Model)
		body, err := c.encode(r, s)
		if err != nil {
			return nil, err
		}
		if b := recovery.From(ctx); b != nil {
			if err := b.Reserve(); err != nil {
				return nil, err
			}
		}
		reply, err := c.post(ctx, body, preview)
		if err == nil {
			return reply, nil
		}
		f, ok := errors.AsType[*recovery.Fault](err)
		if !ok {
			return nil, err
		}
		c.hideKey(f)
		next, ok := s.without(f, body)
		if !ok || tries == maxFallbacks {
			return nil, f
		}
		c.remember(r.Model, next)
	}
}

func (c *Client) encode(r *Request, s shape) (fields, error) {
	body, err := c.wire.body(r, &c.endpoint, s)
	if err != nil {
		return nil, exitcodes.Errorf(exitcodes.Failure, "cannot build the request for %s: %w", c.endpoint.Name, err)
	}
	if err := body.merge(r.Extra); err != nil {
		return nil, exitcodes.Errorf(exitcodes.Config, "cannot add the extra fields to the request for %s: %w", c.endpoint.Name, err)
	}
	body.set("stream", true)
	return body, nil
}

func (c *Client) shape(model string) shape {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shapes[model]
}

func (c *Client) remember(model string, s shape) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shapes[model] = s
}

// hideKey takes the key out of what a provider says: some repeat it.
func (c *Client) hideKey(f *recovery.Fault) {
	if key := c.endpoint.APIKey; len(key) >= 4 {
		f.Message = strings.ReplaceAll(f.Message, key, "[key]")
		f.Type = strings.ReplaceAll(f.Type, key, "[key]")
	}
}

// userAgent names this program and its version.
func userAgent() string {
	version := "devel"
	if info, ok := debug.ReadBuildInfo(); ok && strings.HasPrefix(info.Main.Version, "v") {
		version = strings.TrimPrefix(info.Main.Version, "v")
	}
	return "agentd/" + version
}
