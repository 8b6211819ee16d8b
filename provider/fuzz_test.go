package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentd/provider/message"
	"agentd/recovery"
)

func FuzzChat(f *testing.F)      { fuzzWire(f, Chat) }
func FuzzAnthropic(f *testing.F) { fuzzWire(f, Anthropic) }
func FuzzResponses(f *testing.F) { fuzzWire(f, Responses) }

// fuzzWire feeds any bytes to a wire: it never panics, what it returns is a
// reply or a fault, the reading by pieces is the same, and no call comes out
// whose arguments are not a JSON object.
func fuzzWire(f *testing.F, w Wire) {
	for _, rec := range corpus(f) {
		if rec.Wire == w && len(rec.data) < 10000 {
			f.Add(rec.data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		reply, err := ReadStream(w, bytes.NewReader(data), StreamOptions{})
		again, err2 := ReadStream(w, chunked{bytes.NewReader(data), 3}, StreamOptions{Preview: func(Event) {}})
		if (err == nil) != (err2 == nil) {
			t.Fatalf("pieces change the outcome: %v and %v", err, err2)
		}
		if err != nil {
			if _, ok := errors.AsType[*recovery.Fault](err); !ok || reply != nil {
				t.Fatalf("got %v and %v, want a fault alone", reply, err)
			}
			return
		}
		if diff := cmp.Diff(idless(reply), idless(again)); diff != "" {
			t.Fatalf("pieces change the reply:\n%s", diff)
		}
		for _, c := range reply.Message.ToolCalls() {
			var m map[string]any
			if c.Arguments != "" && json.Unmarshal([]byte(c.Arguments), &m) != nil {
				t.Fatalf("a call with the arguments %q was committed", c.Arguments)
			}
			if c.ID == "" || c.Name == "" {
				t.Fatalf("a call without id or name was committed: %+v", c)
			}
		}
		if broken, _ := ReadStream(w, io.MultiReader(bytes.NewReader(data), failing{io.ErrUnexpectedEOF}), StreamOptions{}); broken != nil {
			t.Fatal("a stream that broke off gave a reply")
		}
	})
}

// idless takes out the ids of calls, which may be made up at random.
func idless(r *Reply) *Reply {
	out := *r
	out.Message.Parts = nil
	for _, p := range r.Message.Parts {
		if p.Kind == message.ToolCall {
			p.ID = ""
		}
		out.Message.Parts = append(out.Message.Parts, p)
	}
	return &out
}

// FuzzFault feeds any error body to the classifier.
func FuzzFault(f *testing.F) {
	for _, rows := range [][]faultRow{openAIFaults(), anthropicFaults(), gatewayFaults(), localFaults()} {
		for _, row := range rows {
			f.Add(row.status, row.body, "")
		}
	}
	for _, row := range waitFaults() {
		f.Add(429, row.body, row.headers().Get("Retry-After"))
	}
	f.Fuzz(func(t *testing.T, status int, body, after string) {
		row := faultRow{header: "Retry-After: " + after}
		fault := classifyResponse(status, row.headers(), []byte(body), clock())
		if fault.Kind == "" || fault.RetryAfter < 0 || fault.RetryAfter > maxWait || len(fault.Message) > 2*maxMessage {
			t.Fatalf("fault is %+v", fault)
		}
		if status == 401 && fault.Kind != recovery.Auth {
			t.Fatalf("a 401 is %s", fault.Kind)
		}
		if bytes.ContainsAny([]byte(fault.Error()), "\n\r") {
			t.Fatalf("the error is more than one line: %q", fault.Error())
		}
	})
}
