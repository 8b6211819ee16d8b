package rehearsal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"agentd/provider/message"
)

// part says which part of a reply an event carries.
type part string

const (
	partStart     part = "start"
	partText      part = "text"
	partReasoning part = "reasoning"
	partTool      part = "tool" // announces a call or closes a block
	partArguments part = "tool_arguments"
	partFinish    part = "finish"   // why the model stopped, where that proves nothing yet
	partTerminal  part = "terminal" // proves completion
	partUsage     part = "usage"
	partDone      part = "done"
)

// frame is one SSE event as it goes out.
type frame struct {
	part part
	data []byte
}

// script is a Reply with its placeholders and ids filled in.
type script struct {
	reply     *Reply
	id, model string
	created   time.Time
	text      string
	reasoning string
	signature string // anthropic: of the thinking block
	refusal   string
	calls     []call
	finish    string // neutral word
	raw       *string
	usage     Usage
	piece     int
}

type call struct{ id, name, arguments string }

// dialect is what differs between the wires.
type dialect interface {
	// frames renders the events of a whole reply.
	frames(s *script) []frame
	// fault renders an error body; status is only told to wires that show it.
	fault(e *errorKind, text string) []byte
	// faultFrame renders the same error as an event of a stream.
	faultFrame(s *script, e *errorKind, text string) frame
	// resetHeaders says when a limit is lifted.
	resetHeaders(h http.Header, now time.Time, in time.Duration)
	// parse reads a request and fills in what it says; the error says what a
	// real provider would refuse.
	parse(body []byte, h http.Header, r *Request) error
}

func dialectOf(w Wire) dialect {
	switch w {
	case Chat:
		return chatDialect{}
	case Responses:
		return responsesDialect{}
	case Anthropic:
		return anthropicDialect{}
	case Gemini:
		return geminiDialect{}
	}
	return nil
}

// script fills in the reply for the request.
func (s *Server) script(r *Reply, seen *Request, n int) (*script, error) {
	now := s.now()
	fill := placeholders(seen, n, now)
	sc := &script{
		reply: r, id: fmt.Sprintf("rehearsal_%s_%d", s.prefix, n), model: seen.Model, created: now,
		text: fill(r.Text, false), reasoning: fill(r.Reasoning, false), refusal: fill(r.Refusal, false),
		finish: r.Finish, raw: r.RawFinish, piece: r.Piece,
	}
	if sc.piece == 0 {
		sc.piece = 12
	}
	if sc.finish == "" {
		sc.finish = "stop"
		if len(r.ToolCalls) > 0 {
			sc.finish = "tool_calls"
		}
	}
	for i, c := range r.ToolCalls {
		args, err := c.arguments(fill)
		if err != nil {
			return nil, err
		}
		id := c.ID
		if id == "" {
			id = fmt.Sprintf("call_%s_%d_%d", s.prefix, n, i+1)
		}
		sc.calls = append(sc.calls, call{id: id, name: c.Name, arguments: args})
	}
	if sc.reasoning != "" {
		sc.signature = "sig_" + sc.id
	}
	if r.Usage != nil {
		sc.usage = *r.Usage
	} else {
		sc.usage = Usage{Input: int64(len(seen.Body)/4 + 1), Output: int64(len(sc.text)+len(sc.reasoning))/4 + 1}
	}
	return sc, nil
}

// arguments returns the JSON text of the call's arguments.
func (c ToolCall) arguments(fill func(string, bool) string) (string, error) {
	switch a := c.Arguments.(type) {
	case nil:
		return "{}", nil
	case string:
		return fill(a, true), nil
	default:
		// The placeholders are filled in inside JSON strings.
		b, err := encode(a)
		if err != nil {
			return "", fmt.Errorf("cannot encode the arguments of %s: %w", c.Name, err)
		}
		return fill(string(b), true), nil
	}
}

// placeholders returns a function that fills in a text; inJSON escapes what it
// fills in for the inside of a JSON string.
func placeholders(seen *Request, n int, now time.Time) func(text string, inJSON bool) string {
	values := map[string]string{
		"{date}":        now.Format(time.DateOnly),
		"{time}":        now.Format(time.TimeOnly),
		"{request}":     fmt.Sprint(n),
		"{model}":       seen.Model,
		"{last_user}":   lastUser(seen.Messages),
		"{last_result}": lastResult(seen.Messages),
	}
	var plain, quoted []string
	for k, v := range values {
		b, err := encode(v)
		if err != nil {
			continue // a string always encodes
		}
		plain = append(plain, k, v)
		quoted = append(quoted, k, string(b[1:len(b)-1]))
	}
	p, q := strings.NewReplacer(plain...), strings.NewReplacer(quoted...)
	return func(text string, inJSON bool) string {
		if inJSON {
			return q.Replace(text)
		}
		return p.Replace(text)
	}
}

func lastUser(all []message.Message) string {
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Role == message.User {
			if t := all[i].Text(); t != "" {
				return t
			}
		}
	}
	return ""
}

func lastResult(all []message.Message) string {
	for i := len(all) - 1; i >= 0; i-- {
		for j := len(all[i].Parts) - 1; j >= 0; j-- {
			if p := all[i].Parts[j]; p.Kind == message.ToolResult {
				return p.Text
			}
		}
	}
	return ""
}

// pieces cuts text into parts of n characters, never within a character.
func pieces(text string, n int) []string {
	runes := []rune(text)
	var out []string
	for len(runes) > 0 {
		k := min(n, len(runes))
		out = append(out, string(runes[:k]))
		runes = runes[k:]
	}
	return out
}

// encode is json.Marshal without HTML escapes, as real providers write.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// object is an ad-hoc JSON object on its way out.
type object map[string]any

// event renders an SSE event; name may be empty.
func event(p part, name string, v any) frame {
	b, err := encode(v)
	if err != nil {
		b = []byte(`{"rehearsal":"cannot encode"}`) // objects of ours always encode
	}
	var out bytes.Buffer
	if name != "" {
		fmt.Fprintf(&out, "event: %s\n", name)
	}
	fmt.Fprintf(&out, "data: %s\n\n", b)
	return frame{part: p, data: out.Bytes()}
}
