package backend

import (
	"strings"

	"agentd/provider/message"
)

// codexFormat reads the events of codex exec --json.
type codexFormat struct{}

type codexEvent struct {
	Type     string `json:"type"`
	ThreadID string `json:"thread_id"`
	Message  string `json:"message"`
	Error    struct {
		Message string `json:"message"`
	} `json:"error"`
	Item struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Command string `json:"command"`
		Server  string `json:"server"`
		Tool    string `json:"tool"`
		Query   string `json:"query"`
		Message string `json:"message"`
		Changes []struct {
			Path string `json:"path"`
		} `json:"changes"`
	} `json:"item"`
	Usage struct {
		Input      int64 `json:"input_tokens"`
		Cached     int64 `json:"cached_input_tokens"`
		CacheWrite int64 `json:"cache_write_input_tokens"`
		Output     int64 `json:"output_tokens"`
		Reasoning  int64 `json:"reasoning_output_tokens"`
	} `json:"usage"`
}

func (codexFormat) event(r *reading, line []byte) bool {
	var e codexEvent
	if !decodeEvent(line, &e) || e.Type == "" {
		return false
	}
	switch e.Type {
	case "thread.started":
		r.named(e.ThreadID)
	case "item.completed":
		codexItem(r, e)
	case "error":
		// Also what goes before turn.failed; only that is the end.
		if strings.HasPrefix(e.Message, "Reconnecting...") {
			_, why, _ := strings.Cut(e.Message, "(")
			r.repeat(strings.TrimSuffix(why, ")"))
		}
	case "turn.failed":
		r.failed(fault{text: e.Error.Message})
	case "turn.completed":
		u := e.Usage
		r.usage = r.usage.Add(message.Usage{InputTokens: u.Input, OutputTokens: u.Output, CachedTokens: u.Cached,
			CacheWriteTokens: u.CacheWrite, ReasoningTokens: u.Reasoning})
		r.done()
	}
	return true
}

func codexItem(r *reading, e codexEvent) {
	switch i := e.Item; i.Type {
	case "agent_message":
		r.say(i.Text)
		r.step()
	case "command_execution":
		r.tool("shell", i.Command)
		r.step()
	case "mcp_tool_call":
		r.tool(i.Server+"__"+i.Tool, "")
		r.step()
	case "web_search":
		r.tool("web_search", i.Query)
	case "file_change":
		var paths []string
		for _, c := range i.Changes {
			paths = append(paths, c.Path)
		}
		r.tool("edit", strings.Join(paths, " "))
		r.step()
	case "error":
		r.event("warning", shorten(i.Message, maxLast), nil)
	}
}

func (codexFormat) noise(_ *reading, line string) bool {
	return line == "Reading additional input from stdin..." || line == "Reading prompt from stdin..."
}

func (codexFormat) rest(*reading, string) {}
