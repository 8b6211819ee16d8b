package rehearsal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"agentd/exitcodes"
)

// Wire names a protocol; the names are those of package provider.
type Wire string

// The wires that the server speaks.
const (
	Chat      Wire = "chat"
	Responses Wire = "responses"
	Anthropic Wire = "anthropic"
	Gemini    Wire = "gemini" // for the Gemini CLI; the engine does not speak it
)

// Scenario is a script of replies, used in the order of physical requests.
type Scenario struct {
	Name    string  `toml:"-"`
	What    string  `toml:"what"` // which real failure it re-creates, in one line
	Wire    Wire    `toml:"wire"` // empty: chosen by the path of each request
	Replies []Reply `toml:"reply"`

	// Lenient answers model requests that the server would refuse: it is for
	// agent CLIs, which are not ours to mend. What else they ask for (lists of
	// models, counts of tokens) is not found.
	Lenient bool `toml:"lenient"`

	// From is how many replies were used up before, when a script is continued.
	From int `toml:"-"`
	// Now is the clock for placeholders and reset times; nil means time.Now.
	Now func() time.Time `toml:"-"`
}

// Reply is one answer to one physical request. Text, Reasoning and the
// arguments of ToolCalls may hold the placeholders {date}, {time}, {request},
// {model}, {last_user} and {last_result}.
type Reply struct {
	Text      string     `toml:"text"`
	Reasoning string     `toml:"reasoning"`
	Refusal   string     `toml:"refusal"`
	ToolCalls []ToolCall `toml:"tool_calls"`
	// Finish is stop, tool_calls, length, filtered, paused or overflown; empty
	// means stop, or tool_calls if there are any. RawFinish is the wire's own
	// word instead, also an empty one.
	Finish    string  `toml:"finish"`
	RawFinish *string `toml:"raw_finish"`
	Usage     *Usage  `toml:"usage"`

	Repeat bool `toml:"repeat"` // answers every request from here on
	Times  int  `toml:"times"`  // answers so many requests (default 1)

	Delay      Duration `toml:"delay"`       // before the header
	EventDelay Duration `toml:"event_delay"` // between events
	Piece      int      `toml:"piece"`       // characters of text or arguments an event (default 12)
	WriteBytes int      `toml:"write_bytes"` // bytes a write (default: one event a write)

	Status  int               `toml:"status"` // with Body or Error; alone: an empty body
	Headers map[string]string `toml:"headers"`
	Body    *string           `toml:"body"`  // sent as it is, instead of a stream
	Error   string            `toml:"error"` // an error in the wire's own form; see ErrorNames
	Message string            `toml:"message"`
	// InStream sends Error as an event in the middle of a stream under 200.
	InStream bool `toml:"in_stream"`
	// ResetIn adds the wire's headers that say when a limit is lifted.
	ResetIn Duration `toml:"reset_in"`

	// Cut ends the body early: "end" (a clean end of the body), "close" (the
	// connection closes), "reset" (TCP reset), "stall" (silence until the client
	// goes away) or "keepalive" (comments only, until the client goes away).
	// CutAt is the byte of the body, CutIn the place: headers, start, text,
	// reasoning, tool_arguments, middle, before_terminal or after_terminal.
	Cut   string `toml:"cut"`
	CutAt *int   `toml:"cut_at"`
	CutIn string `toml:"cut_in"`
	// Omit leaves events out: "terminal" (what proves completion), "done" (the
	// chat wire's [DONE]), "finish" (anthropic's message_delta), "usage".
	Omit []string `toml:"omit"`
	// Malformed cuts the JSON of one event in the middle of the stream short.
	Malformed bool `toml:"malformed"`
}

// ToolCall is a call in a reply. Arguments is a table, or a string that is sent
// as it is. Without an ID the server makes up a fresh one.
type ToolCall struct {
	ID        string `toml:"id"`
	Name      string `toml:"name"`
	Arguments any    `toml:"arguments"`
}

// Usage is what the reply says it cost, in tokens.
type Usage struct {
	Input     int64 `toml:"input"`
	Output    int64 `toml:"output"`
	Cached    int64 `toml:"cached"`
	Reasoning int64 `toml:"reasoning"`
}

// Duration is a time.Duration written as "1.5s".
type Duration time.Duration

// UnmarshalText reads the form of time.ParseDuration.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return err
	}
	*d = Duration(v)
	return nil
}

var (
	finishes  = []string{"", "stop", "tool_calls", "length", "filtered", "paused", "overflown"}
	cuts      = []string{"", "end", "close", "reset", "stall", "keepalive"}
	cutPlaces = []string{"", "headers", "start", "text", "reasoning", "tool_arguments", "middle", "before_terminal", "after_terminal"}
	omits     = []string{"terminal", "done", "finish", "usage"}
)

// Parse reads a scenario. Unknown keys, wrong types and contradictions are
// errors with code 78 that name the line or the reply.
func Parse(name string, data []byte) (*Scenario, error) {
	sc := &Scenario{Name: name}
	dec := toml.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(sc); err != nil {
		return nil, exitcodes.Errorf(exitcodes.Config, "cannot read scenario %s: %s", name, tomlReason(err))
	}
	if err := sc.validate(); err != nil {
		return nil, exitcodes.Errorf(exitcodes.Config, "scenario %s: %w", name, err)
	}
	return sc, nil
}

// tomlReason puts the decoder's multi-line report on one line.
func tomlReason(err error) string {
	if strict, ok := errors.AsType[*toml.StrictMissingError](err); ok {
		var all []string
		for _, e := range strict.Errors {
			row, _ := e.Position()
			all = append(all, fmt.Sprintf("line %d: unknown key %q", row, strings.Join(e.Key(), ".")))
		}
		return strings.Join(all, "; ")
	}
	if e, ok := errors.AsType[*toml.DecodeError](err); ok {
		row, col := e.Position()
		return fmt.Sprintf("line %d, column %d: %s", row, col, strings.TrimPrefix(e.Error(), "toml: "))
	}
	return err.Error()
}

func (sc *Scenario) validate() error {
	if !slices.Contains([]Wire{"", Chat, Responses, Anthropic, Gemini}, sc.Wire) {
		return fmt.Errorf("wire %q is not chat, responses, anthropic or gemini", sc.Wire)
	}
	if strings.TrimSpace(sc.What) == "" {
		return errors.New(`"what" is missing: say which real failure it re-creates`)
	}
	if len(sc.Replies) == 0 {
		return errors.New("there is no [[reply]]")
	}
	for i := range sc.Replies {
		if err := sc.Replies[i].validate(i == len(sc.Replies)-1); err != nil {
			return fmt.Errorf("reply %d: %w", i+1, err)
		}
	}
	return nil
}

func (r *Reply) validate(last bool) error {
	switch {
	case !slices.Contains(finishes, r.Finish):
		return fmt.Errorf("finish %q is not one of %s", r.Finish, choices(finishes))
	case !slices.Contains(cuts, r.Cut):
		return fmt.Errorf("cut %q is not one of %s", r.Cut, choices(cuts))
	case !slices.Contains(cutPlaces, r.CutIn):
		return fmt.Errorf("cut_in %q is not one of %s", r.CutIn, choices(cutPlaces))
	case r.CutAt != nil && r.CutIn != "":
		return errors.New("cut_at and cut_in exclude each other")
	case r.CutAt != nil && *r.CutAt < 0:
		return errors.New("cut_at is negative")
	case r.CutIn == "headers" && !slices.Contains([]string{"close", "reset", "stall"}, r.Cut):
		return errors.New("cut_in = \"headers\" needs cut close, reset or stall")
	case r.Error != "" && errorNamed(r.Error) == nil:
		return fmt.Errorf("error %q is not one of %s", r.Error, choices(ErrorNames()))
	case r.Error != "" && r.Body != nil:
		return errors.New("error and body exclude each other")
	case r.InStream && r.Error == "":
		return errors.New("in_stream needs error")
	case r.InStream && r.Status != 0 && r.Status != 200:
		return errors.New("in_stream goes with status 200 only")
	case r.Status != 0 && (r.Status < 200 || r.Status > 599):
		return fmt.Errorf("status %d is not between 200 and 599", r.Status)
	case r.Repeat && !last:
		return errors.New("repeat is for the last reply only")
	case r.Times < 0 || r.Piece < 0 || r.WriteBytes < 0:
		return errors.New("times, piece and write_bytes are not negative")
	case r.Delay < 0 || r.EventDelay < 0 || r.ResetIn < 0:
		return errors.New("durations are not negative")
	case !r.streams() && r.says():
		return errors.New("text, reasoning, refusal and tool_calls have no place beside status, body or error")
	}
	for _, o := range r.Omit {
		if !slices.Contains(omits, o) {
			return fmt.Errorf("omit %q is not one of %s", o, choices(omits))
		}
	}
	return r.validateCalls()
}

func (r *Reply) validateCalls() error {
	for i, c := range r.ToolCalls {
		if c.Name == "" {
			return fmt.Errorf("tool call %d has no name", i+1)
		}
		switch c.Arguments.(type) {
		case nil, string:
		case map[string]any:
			if _, err := json.Marshal(c.Arguments); err != nil {
				return fmt.Errorf("arguments of tool call %d: %w", i+1, err)
			}
		default:
			return fmt.Errorf("arguments of tool call %d are neither a table nor a string", i+1)
		}
	}
	return nil
}

// streams reports whether the reply is an event stream.
func (r *Reply) streams() bool {
	return r.InStream || (r.Error == "" && r.Body == nil && (r.Status == 0 || r.Status == 200))
}

func (r *Reply) says() bool {
	return r.Text != "" || r.Reasoning != "" || r.Refusal != "" || len(r.ToolCalls) > 0
}

// choices lists the values that are not empty.
func choices(values []string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == "" }), ", ")
}
