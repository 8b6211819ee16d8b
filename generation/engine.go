// Package generation is the turn engine: it asks a model for replies, runs the
// tools that they call, and goes on until the agent stops. What was said and
// done is in the journal before anything follows from it, so that a turn that
// dies at any instruction can be continued without losing or repeating work.
package generation

import (
	"context"
	"time"

	"agentd/provider"
	"agentd/provider/message"
	"agentd/recovery"
	"agentd/session"
	"agentd/tools"
)

// Client sends one generation request; a *provider.Client is one.
type Client interface {
	Send(ctx context.Context, r *provider.Request, preview func(provider.Event)) (*provider.Reply, error)
}

// Limits end a turn with code 82. A zero field means no limit.
type Limits struct {
	Steps   int     // replies
	Tokens  int64   // input and output together
	CostUSD float64 // by Engine.Price
}

// Engine asks for replies. It keeps no state between calls; a nil function
// field is not called.
type Engine struct {
	Client          Client
	Model           string
	System          string
	Tools           tools.Set
	MaxOutputTokens int
	Effort          string
	Recovery        recovery.Options // of each generation
	Limits          Limits
	Spent           session.Spent // by earlier attempts of the run; counts against Limits

	// Preview is shown a reply in the making. It ends with a Commit event, or
	// with a Reset event, which makes void what was shown since the last of
	// either: a reply that failed, or is asked for again.
	Preview func(provider.Event)
	// ChunkHook acts on previews outside the engine, where nothing can be taken
	// back: once it ran, the generation is not asked again. Its error ends the
	// turn with code 83.
	ChunkHook func(provider.Event) error
	// Notice is told what happens, for people.
	Notice func(Notice)
	// Price returns what usage costs in USD; false means unknown.
	Price func(message.Usage) (float64, bool)
	// Now is the clock for durations in notices; nil means time.Now.
	Now func() time.Time
}

// Commit is the kind of the event that ends the previews of a reply: it is
// complete and, in a turn, recorded.
const Commit provider.EventKind = "commit"

// noticeableWait is the least wait that is worth a notice.
const noticeableWait = 900 * time.Millisecond

// NoticeKind says what a Notice is about.
type NoticeKind string

const (
	NoticeReplay     NoticeKind = "replay"   // a failed request is repeated
	NoticeWait       NoticeKind = "wait"     // before that
	NoticeOverflow   NoticeKind = "overflow" // the conversation is made smaller
	NoticeReply      NoticeKind = "reply"    // a message of the agent is committed; Text is what it says
	NoticeToolStart  NoticeKind = "tool_start"
	NoticeToolEnd    NoticeKind = "tool"
	NoticeContinuing NoticeKind = "continue" // the agent is asked to go on: an empty or cut reply
	NoticeResumed    NoticeKind = "resumed"  // a call of a former attempt is settled
)

// Notice is one fact about a turn. Text is one line, except under NoticeReply.
type Notice struct {
	Kind  NoticeKind
	Text  string
	Fault *recovery.Fault // replay
	Wait  time.Duration   // wait
	Tool  string          // tool_start, tool, resumed
	Args  string          // the same: the JSON text of the arguments
	Took  time.Duration   // tool
	OK    bool            // tool: it did what it was asked to
}

// Journal is where a turn is recorded; a *session.Session is one. Each call
// returns once the record is durable.
type Journal interface {
	Transcript() *session.Transcript
	// Message records that something was said; usage and finish are of a reply.
	Message(m message.Message, usage message.Usage, finish string) error
	// Intent records that the body of a tool is about to start.
	Intent(call message.Part, effect session.Effect) error
	// Result records how a call ended.
	Result(result message.Part, outcome session.Outcome) error
	// Compaction puts a summary in place of the messages before a record.
	Compaction(keepFrom uint64, summary message.Message) error
	// Note records a fact for people.
	Note(kind, text string) error
}

func (e *Engine) notify(n Notice) {
	if e.Notice != nil {
		e.Notice(n)
	}
}

func (e *Engine) preview(ev provider.Event) {
	if e.Preview != nil {
		e.Preview(ev)
	}
}

func (e *Engine) now() time.Time {
	if e.Now == nil {
		return time.Now()
	}
	return e.Now()
}
