package provider

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"agentd/exitcodes"
	"agentd/recovery"
)

const (
	maxHeader    = 256 << 10 // of a response, in bytes
	maxErrorBody = 1 << 20   // of a response, in bytes
)

// newTransport returns a transport on which one request is one physical send:
// nothing is compressed behind our back, and with no GetBody and no
// Idempotency-Key net/http has no way to send a body twice.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout:    15 * time.Second,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeader,
		MaxIdleConnsPerHost:    4,
		IdleConnTimeout:        90 * time.Second,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
	}
}

// post makes one physical request and reads its stream to the end.
func (c *Client) post(ctx context.Context, body fields, preview func(Event)) (*Reply, error) {
	text, err := body.encode()
	if err != nil {
		return nil, exitcodes.Errorf(exitcodes.Failure, "cannot encode the request for %s: %w", c.endpoint.Name, err)
	}
	w := newWatch(ctx, c.timeouts)
	defer w.stop()
	req, err := c.request(w.ctx, text)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	w.answered()
	if err != nil {
		return nil, c.unanswered(w, err)
	}
	defer resp.Body.Close()
	w.body = resp.Body
	reply, err := c.read(w, resp, preview)
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause // cancellation commits nothing
	}
	return reply, err
}

func (c *Client) request(ctx context.Context, body []byte) (*http.Request, error) {
	target, err := c.endpoint.url(c.wire.path())
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return nil, exitcodes.Errorf(exitcodes.Config, "provider %s: base_url cannot be used", c.endpoint.Name)
	}
	req.GetBody = nil
	h := req.Header
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "text/event-stream")
	h.Set("Accept-Encoding", "identity")
	h.Set("User-Agent", userAgent())
	c.wire.header(h, &c.endpoint)
	for k, v := range c.endpoint.Header {
		h[http.CanonicalHeaderKey(k)] = v
	}
	h.Del("Idempotency-Key") // net/http takes it as leave to send again
	h.Del("X-Idempotency-Key")
	return req, nil
}

// url joins the wire's path to the base URL; a base that already ends with it,
// or with a part of it, is not given it twice.
func (e *Endpoint) url(path string) (string, error) {
	u, err := url.Parse(e.BaseURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", exitcodes.Errorf(exitcodes.Config, "provider %s: base_url %q is not an http or https URL", e.Name, redactURL(e.BaseURL))
	}
	base := strings.TrimRight(u.Path, "/")
	tail, _ := strings.CutPrefix(path, "/v1")
	switch {
	case strings.HasSuffix(base, tail):
		u.Path = base
	case strings.HasSuffix(base, "/v1"):
		u.Path = base + tail
	default:
		u.Path = base + path
	}
	u.RawPath, u.Fragment = "", ""
	return u.String(), nil
}

// redactURL drops what may be secret in a URL.
func redactURL(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return "(not readable)"
	}
	u.RawQuery, u.Fragment, u.User = "", "", nil
	return u.String()
}

// unanswered makes the error for a request that got no response.
func (c *Client) unanswered(w *watch, err error) error {
	if cause := w.cause(); cause != nil {
		if local, ok := errors.AsType[*localError](cause); ok {
			return local.err
		}
		return cause
	}
	msg := plainError(err)
	if strings.Contains(msg, "invalid header field") {
		return exitcodes.Errorf(exitcodes.Config, "provider %s: the key or a header holds a character that HTTP does not allow", c.endpoint.Name)
	}
	if strings.Contains(msg, "server response headers exceeded") {
		return &recovery.Fault{Kind: recovery.TooLarge, Message: "the response header is larger than 256 KiB"}
	}
	return &recovery.Fault{Kind: recovery.Transport, Message: "no answer from " + c.host() + ": " + msg, Err: innerError(err)}
}

func (c *Client) host() string {
	if u, err := url.Parse(c.endpoint.BaseURL); err == nil {
		return u.Host
	}
	return c.endpoint.Name
}

// innerError drops the URL that net/http wraps errors with: it may hold a key.
func innerError(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

func plainError(err error) string {
	err = innerError(err)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return "the connection was closed"
	}
	return oneLine(err.Error())
}

// read reads the response of a request.
func (c *Client) read(w *watch, resp *http.Response, preview func(Event)) (*Reply, error) {
	switch status := resp.StatusCode; {
	case status >= 300 && status < 400:
		return nil, &recovery.Fault{Kind: recovery.Malformed, Status: status,
			Message: "the provider redirects to " + redactURL(resp.Header.Get("Location")) + "; redirects are not followed: set base_url to the address that answers"}
	case status >= 400:
		body, err := w.errorBody()
		if err != nil {
			return nil, err
		}
		return nil, classifyResponse(status, resp.Header, body, c.now())
	case status != http.StatusOK && status != http.StatusNoContent:
		return nil, &recovery.Fault{Kind: recovery.Malformed, Status: status, Message: "the provider answered with a status that no wire knows"}
	}
	if e := resp.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return nil, malformed("the provider compressed its answer (%s), which it was asked not to do", oneLine(e))
	}
	in, ok := streamOf(resp.Header.Get("Content-Type"), w)
	if !ok {
		return nil, c.notStream(w, resp, in)
	}
	return ReadStream(c.endpoint.Wire, in, StreamOptions{
		DoneIsTerminal: c.endpoint.DoneIsTerminal,
		Preview:        preview,
		Now:            c.now,
		progress:       w.progress,
		drain:          w.drain,
	})
}

// streamOf decides whether a body under 200 is an event stream: by its type, or,
// since some servers do not set it, by how it begins. An empty body is a stream
// that was cut.
func streamOf(contentType string, body io.Reader) (io.Reader, bool) {
	media, _, err := mime.ParseMediaType(contentType)
	if err == nil && media == "text/event-stream" {
		return body, true
	}
	in := bufio.NewReader(body)
	if media == "text/html" {
		return in, false
	}
	head, _ := in.Peek(16)
	if len(head) == 0 {
		return in, true // ReadStream reports why
	}
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), "\r\n")
	for _, field := range []string{"data:", "event:", "id:", "retry:", ":"} {
		if bytes.HasPrefix(head, []byte(field)) {
			return in, true
		}
	}
	return in, false
}

// notStream makes the fault for a body under 200 that is not a stream: a JSON
// error counts by its type, and anything else breaks the protocol.
func (c *Client) notStream(w *watch, resp *http.Response, in io.Reader) error {
	body, err := w.bounded(in)
	if err != nil {
		return err
	}
	r := readReport(body, c.now())
	if r.json {
		f := classify(r.status, r, c.now())
		f.RetryAfter, f.ResetAt = whenAgain(f.Kind, resp.Header, r, c.now())
		if f.Message == "" {
			f.Message = "the provider answered with an error: " + excerpt(body)
		}
		return f
	}
	media := resp.Header.Get("Content-Type")
	if media == "" {
		media = "a body of unknown type"
	}
	return malformed("the provider answered with %s instead of an event stream: %s", oneLine(media), oneLine(excerpt(body)))
}
