package provider

import (
	"encoding/json"
	"net/http"
	"time"

	"agentd/provider/message"
)

// Wire names a protocol that a provider speaks.
type Wire string

const (
	Chat      Wire = "chat"      // OpenAI Chat Completions and all that is compatible
	Responses Wire = "responses" // OpenAI Responses
	Anthropic Wire = "anthropic" // Anthropic Messages
)

// Endpoint is where requests go.
type Endpoint struct {
	Name           string // as in "name/model"
	Wire           Wire
	BaseURL        string // without the wire's own path
	APIKey         string // secret; never printed
	Header         http.Header
	DoneIsTerminal bool // chat: `[DONE]` alone proves completion
}

// Timeouts bound one physical request. A zero field means the default.
type Timeouts struct {
	Request   time.Duration // the whole request, in flight
	FirstByte time.Duration // until the response header
	BytesIdle time.Duration // without any byte
	EventIdle time.Duration // without an event that carries meaning; comments do not count
}

// Request asks for one generation.
type Request struct {
	Model           string
	System          string
	Messages        []message.Message
	Tools           []message.Definition
	MaxOutputTokens int             // 0: the wire's default
	Effort          string          // reasoning effort, where the wire has it: low, medium, high
	Extra           json.RawMessage // object merged into the request body, for what only one provider knows
}

// EventKind says what a preview event carries.
type EventKind string

const (
	TextDelta      EventKind = "text"
	ReasoningDelta EventKind = "reasoning"
	ToolStarted    EventKind = "tool_started"   // ID and Name are known
	ToolDelta      EventKind = "tool_arguments" // Text is a piece of the arguments
	Reset          EventKind = "reset"          // all previews of this generation so far are void; Text says why
)

// Event is a preview of a reply that is not complete. Nothing may be committed
// or run because of an event.
type Event struct {
	Kind  EventKind
	Index int // which part of the reply
	ID    string
	Name  string
	Text  string
}

// Finish says why the model stopped.
type Finish string

const (
	Stop      Finish = "stop"
	ToolCalls Finish = "tool_calls"
	Length    Finish = "length"    // the output limit
	Filtered  Finish = "filtered"  // a content filter or a refusal
	Paused    Finish = "paused"    // the provider asks to be called again with the same conversation
	Overflown Finish = "overflown" // the context window is full
)

// Reply is a complete reply: its terminal event was seen and its stream was
// drained.
type Reply struct {
	ID        string
	Model     string
	Message   message.Message
	Finish    Finish
	RawFinish string // the wire's own word
	Usage     message.Usage
}
