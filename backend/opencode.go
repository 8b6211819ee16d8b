package backend

import (
	"encoding/json"
	"strings"

	"agentd/exitcodes"
	"agentd/provider/message"
)

// opencodeFormat reads the events of opencode run --format json. There is no
// last event: a step that finishes for another reason than tool calls is it.
type opencodeFormat struct{}

type opencodeEvent struct {
	Type      string `json:"type"`
	SessionID string `json:"sessionID"`
	Part      struct {
		Text   string  `json:"text"`
		Tool   string  `json:"tool"`
		Reason string  `json:"reason"`
		Cost   float64 `json:"cost"`
		State  struct {
			Input json.RawMessage `json:"input"`
		} `json:"state"`
		Tokens struct {
			Input     int64 `json:"input"`
			Output    int64 `json:"output"`
			Reasoning int64 `json:"reasoning"`
			Cache     struct {
				Read  int64 `json:"read"`
				Write int64 `json:"write"`
			} `json:"cache"`
		} `json:"tokens"`
	} `json:"part"`
	Error struct {
		Name string `json:"name"`
		Data struct {
			Message string `json:"message"`
			Status  int    `json:"statusCode"`
		} `json:"data"`
	} `json:"error"`
}

func (o *opencodeFormat) event(r *reading, line []byte) bool {
	var e opencodeEvent
	if !decodeEvent(line, &e) || e.Type == "" {
		return false
	}
	r.named(e.SessionID)
	switch e.Type {
	case "text":
		r.say(e.Part.Text)
	case "tool_use":
		r.tool(e.Part.Tool, string(e.Part.State.Input))
	case "step_finish":
		t := e.Part.Tokens
		r.usage = r.usage.Add(message.Usage{InputTokens: t.Input, OutputTokens: t.Output, ReasoningTokens: t.Reasoning,
			CachedTokens: t.Cache.Read, CacheWriteTokens: t.Cache.Write, CostUSD: e.Part.Cost})
		r.step()
		// More steps may follow one that stops, so nothing is ended for it.
		r.ended = e.Part.Reason != "tool-calls" && e.Part.Reason != ""
	case "step_start":
		r.ended = false
	case "done":
		r.done()
	case "error":
		f := fault{status: e.Error.Data.Status, text: e.Error.Data.Message}
		if f.text == "" {
			f.text = e.Error.Name
		}
		f.code = opencodeCode(e.Error.Name)
		r.failed(f)
	}
	return true
}

func opencodeCode(name string) exitcodes.Code {
	switch name {
	case "ContextOverflowError":
		return exitcodes.Overflow
	case "ProviderAuthError":
		return exitcodes.NoPermission
	case "ProviderModelNotFoundError", "ModelNotFoundError":
		return exitcodes.Config
	}
	return exitcodes.OK
}

// noise recognises errors in the program's log that it repeats requests after.
func (o *opencodeFormat) noise(r *reading, line string) bool {
	if !strings.HasPrefix(line, "ERROR ") || !strings.Contains(line, "service=llm") && !strings.Contains(line, "service=session") {
		return false
	}
	r.repeat(line)
	return false
}

func (*opencodeFormat) rest(*reading, string) {}
