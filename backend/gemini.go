package backend

import (
	"encoding/json"
	"regexp"
	"strings"

	"agentd/provider/message"
)

// geminiFormat reads the stream-json output of the Gemini CLI, and its json
// output, in which a failure goes to standard error.
type geminiFormat struct {
	text string // the reply so far, which comes in pieces
}

type geminiEvent struct {
	Type      string          `json:"type"`
	SessionID string          `json:"session_id"`
	Role      string          `json:"role"`
	Content   string          `json:"content"`
	Tool      string          `json:"tool_name"`
	Params    json.RawMessage `json:"parameters"`
	Status    string          `json:"status"`
	Severity  string          `json:"severity"`
	Message   string          `json:"message"`
	Error     *geminiError    `json:"error"`
	Stats     struct {
		Input  int64 `json:"input_tokens"`
		Output int64 `json:"output_tokens"`
		Cached int64 `json:"cached"`
	} `json:"stats"`
}

type geminiError struct {
	Type    string `json:"type"`
	Message string `json:"message"`
	Code    any    `json:"code"` // a number, or the words of one
}

func (g *geminiFormat) event(r *reading, line []byte) bool {
	var e geminiEvent
	if !decodeEvent(line, &e) || e.Type == "" {
		return false
	}
	if e.Type != "message" || e.Role != "assistant" {
		g.flush(r)
	}
	switch e.Type {
	case "init":
		r.named(e.SessionID)
	case "message":
		if e.Role == "assistant" {
			if g.text == "" {
				r.step()
			}
			g.text += e.Content
		}
	case "tool_use":
		r.tool(e.Tool, string(e.Params))
	case "error":
		r.event("warning", shorten(e.Message, maxLast), nil)
	case "result":
		s := e.Stats
		r.usage = message.Usage{InputTokens: s.Input, OutputTokens: s.Output, CachedTokens: s.Cached}
		if e.Error != nil || e.Status == "error" {
			r.failed(e.Error.fault())
			return true
		}
		r.done()
	}
	return true
}

// flush says what has come together of a reply.
func (g *geminiFormat) flush(r *reading) {
	if g.text != "" {
		r.say(g.text)
		g.text = ""
	}
}

func (e *geminiError) fault() fault {
	if e == nil {
		return fault{text: "the turn failed"}
	}
	f := fault{text: e.Message}
	if n, ok := e.Code.(float64); ok && n >= 400 && n < 600 {
		f.status = int(n)
	}
	return f
}

var geminiRepeat = regexp.MustCompile(`^Attempt \d+ failed(?: with status (\d+))?[.:]`)

// noise recognises the news of a repeated request, and the stack that follows.
func (g *geminiFormat) noise(r *reading, line string) bool {
	if m := geminiRepeat.FindStringSubmatch(line); m != nil {
		why := strings.TrimSpace(line[len(m[0]):])
		if m[1] != "" {
			why = httpReason(number(m[1]), "")
		}
		r.repeat(why)
		return true
	}
	return strings.HasPrefix(line, "    at ")
}

// rest reads a document that was printed in one piece, over several lines.
func (g *geminiFormat) rest(r *reading, text string) {
	g.flush(r)
	if r.ended {
		return
	}
	for at := strings.IndexByte(text, '{'); at >= 0; {
		var doc struct {
			SessionID string       `json:"session_id"`
			Response  *string      `json:"response"`
			Error     *geminiError `json:"error"`
		}
		if json.NewDecoder(strings.NewReader(text[at:])).Decode(&doc) == nil && (doc.Response != nil || doc.Error != nil) {
			r.named(doc.SessionID)
			if doc.Error != nil {
				r.failed(doc.Error.fault())
				return
			}
			r.say(*doc.Response)
			r.step()
			r.done()
			return
		}
		next := strings.Index(text[at:], "\n{")
		if next < 0 {
			return
		}
		at += next + 1
	}
}
