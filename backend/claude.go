package backend

import (
	"encoding/json"
	"strings"

	"agentd/exitcodes"
	"agentd/provider/message"
)

// claudeFormat reads the stream-json output of Claude Code, and of the CLIs
// that have taken it over.
type claudeFormat struct {
	reply string // the id of the last reply
	class string // of the error that the last reply stands for
}

type claudeEvent struct {
	Type      string `json:"type"`
	Subtype   string `json:"subtype"`
	SessionID string `json:"session_id"`
	Parent    string `json:"parent_tool_use_id"`
	Message   struct {
		ID      string          `json:"id"`
		Content json.RawMessage `json:"content"`
	} `json:"message"`
	// Error is the class of an error, in a reply that stands for one; in the
	// last event of Qwen Code it is an object with a message.
	Error any `json:"error"`

	// system/api_retry
	ErrorStatus int `json:"error_status"`

	RateLimit struct {
		Status   string  `json:"status"`
		ResetsAt float64 `json:"resetsAt"`
		Type     string  `json:"rateLimitType"`
		Overage  bool    `json:"isUsingOverage"`
	} `json:"rate_limit_info"`

	claudeResult
}

// claudeResult is the last event. Its subtype is "success" for failed requests
// too.
type claudeResult struct {
	IsError  bool                        `json:"is_error"`
	Status   int                         `json:"api_error_status"`
	Reason   string                      `json:"terminal_reason"`
	Result   string                      `json:"result"`
	Errors   []string                    `json:"errors"`
	NumTurns int                         `json:"num_turns"`
	Cost     float64                     `json:"total_cost_usd"`
	Usage    claudeUsage                 `json:"usage"`
	Models   map[string]claudeModelUsage `json:"modelUsage"`
	Denials  []struct {
		Tool string `json:"tool_name"`
	} `json:"permission_denials"`
}

type claudeUsage struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
}

type claudeModelUsage struct {
	Input      int64 `json:"inputTokens"`
	Output     int64 `json:"outputTokens"`
	CacheRead  int64 `json:"cacheReadInputTokens"`
	CacheWrite int64 `json:"cacheCreationInputTokens"`
}

func (c *claudeFormat) event(r *reading, line []byte) bool {
	var e claudeEvent
	if !decodeEvent(line, &e) || e.Type == "" {
		return false
	}
	switch e.Type {
	case "system":
		if e.Subtype == "init" {
			r.named(e.SessionID)
		}
		if e.Subtype == "api_retry" {
			class, _ := e.Error.(string)
			r.repeat(httpReason(e.ErrorStatus, class))
		}
	case "rate_limit_event":
		if info := e.RateLimit; info.Status == "rejected" && !info.Overage {
			f := fault{code: exitcodes.RateLimited, text: "the " + strings.ReplaceAll(info.Type, "_", " ") + " limit is reached"}
			if info.ResetsAt > 0 {
				f.reset = unixTime(int64(info.ResetsAt))
			}
			r.limited(f)
		}
	case "assistant":
		c.assistant(r, e)
	case "result":
		r.named(e.SessionID)
		c.result(r, e)
	}
	return true
}

func (c *claudeFormat) assistant(r *reading, e claudeEvent) {
	c.class, _ = e.Error.(string)
	if c.class != "" {
		return // the last event repeats its text
	}
	if id := e.Message.ID; e.Parent == "" && (id == "" || id != c.reply) {
		c.reply = id
		r.step()
	}
	var parts []struct {
		Type  string          `json:"type"`
		Text  string          `json:"text"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
	if json.Unmarshal(e.Message.Content, &parts) != nil {
		return
	}
	for _, p := range parts {
		switch {
		case p.Type == "text" && e.Parent == "":
			r.say(p.Text)
		case p.Type == "tool_use":
			r.tool(p.Name, string(p.Input))
			c.reply = "" // the next reply is another one, even under the same id
		}
	}
}

func (c *claudeFormat) result(r *reading, e claudeEvent) {
	r.usage = e.usage()
	if e.NumTurns > r.steps {
		r.steps = e.NumTurns
	}
	for _, d := range e.Denials {
		r.denied = append(r.denied, d.Tool)
	}
	if !e.IsError && !strings.HasPrefix(e.Subtype, "error") {
		if e.Result != "" {
			r.said = true
			r.text = shorten(strings.TrimSpace(string(plainText(e.Result))), maxLastSaid)
		}
		r.done()
		return
	}
	f := fault{status: e.Status, text: e.Result}
	if f.text == "" {
		f.text = strings.Join(e.Errors, "; ")
	}
	if said, ok := e.Error.(map[string]any); ok && f.text == "" {
		f.text, _ = said["message"].(string)
	}
	f.code = e.endCode(c.class)
	r.failed(f)
}

// endCode is what the fields of a failed end say, where no HTTP status does.
func (e claudeEvent) endCode(class string) exitcodes.Code {
	switch {
	case e.Reason == "prompt_too_long", e.Reason == "blocking_limit":
		return exitcodes.Overflow
	case e.Reason == "max_turns", e.Reason == "max_budget", e.Subtype == "error_max_turns", e.Subtype == "error_max_budget_usd":
		return exitcodes.Limit
	case e.Status != 0:
		return exitcodes.OK // it decides
	}
	switch class {
	case "authentication_failed":
		return exitcodes.NoPermission
	case "billing_error":
		return exitcodes.Quota
	case "model_not_found":
		return exitcodes.Config
	case "overloaded", "server_error":
		return exitcodes.Unavailable
	case "rate_limit":
		return exitcodes.RateLimited
	}
	return exitcodes.OK
}

// usage sums up the models; the total of the last event leaves some out.
func (e claudeEvent) usage() message.Usage {
	u := message.Usage{CostUSD: e.Cost}
	for _, m := range e.Models {
		u = u.Add(message.Usage{InputTokens: m.Input, OutputTokens: m.Output, CachedTokens: m.CacheRead, CacheWriteTokens: m.CacheWrite})
	}
	if len(e.Models) == 0 {
		t := e.Usage
		u = u.Add(message.Usage{InputTokens: t.Input, OutputTokens: t.Output, CachedTokens: t.CacheRead, CacheWriteTokens: t.CacheWrite})
	}
	return u
}

func (*claudeFormat) noise(*reading, string) bool { return false }
func (*claudeFormat) rest(*reading, string)       {}
