package rehearsal

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// errorKind is one error in the words of each family of wires.
type errorKind struct {
	name           string
	status         int // of the OpenAI wires
	openAIType     string
	openAICode     string
	openAIText     string
	anthropic      int // status of the anthropic wire
	anthropicType  string
	anthropicText  string
	responsesInner string // code in response.failed
}

// errorKinds returns the errors that a scenario can name.
func errorKinds() []errorKind {
	return []errorKind{
		{"rate_limit", 429, "requests", "rate_limit_exceeded", "Rate limit reached for requests. Please try again later.",
			429, "rate_limit_error", "This request would exceed your organization's rate limit.", "rate_limit_exceeded"},
		{"usage_limit", 429, "usage_limit_reached", "usage_limit_reached", "The usage limit has been reached.",
			429, "rate_limit_error", "This request would exceed your account's usage limit.", "rate_limit_exceeded"},
		{"quota", 429, "insufficient_quota", "insufficient_quota", "You exceeded your current quota, please check your plan and billing details.",
			429, "enforced_spend_limit_reached", "The spend limit of this workspace has been reached.", "insufficient_quota"},
		{"overloaded", 503, "server_error", "overloaded", "The engine is currently overloaded, please try again later.",
			529, "overloaded_error", "Overloaded", "server_error"},
		{"server", 500, "server_error", "", "The server had an error while processing your request.",
			500, "api_error", "Internal server error", "server_error"},
		{"timeout", 408, "server_error", "", "The request timed out.",
			408, "timeout_error", "The request timed out.", "server_error"},
		{"auth", 401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided.",
			401, "authentication_error", "invalid x-api-key", "invalid_api_key"},
		{"permission", 403, "invalid_request_error", "model_not_allowed", "Your project does not have access to this model.",
			403, "permission_error", "Your API key does not have permission to use the specified resource.", "permission_denied"},
		{"not_found", 404, "invalid_request_error", "model_not_found", "The model does not exist or you do not have access to it.",
			404, "not_found_error", "model: no such model", "model_not_found"},
		{"overflow", 400, "invalid_request_error", "context_length_exceeded",
			"This model's maximum context length is 128000 tokens. However, your messages resulted in 131072 tokens. Please reduce the length of the messages.",
			400, "invalid_request_error", "prompt is too long: 210345 tokens > 200000 maximum", "context_length_exceeded"},
		{"invalid", 400, "invalid_request_error", "invalid_value", "Invalid value for a parameter.",
			400, "invalid_request_error", "a parameter has an invalid value", "invalid_prompt"},
		{"unprocessable", 422, "invalid_request_error", "", "The request could not be processed.",
			422, "invalid_request_error", "The request could not be processed.", "invalid_prompt"},
	}
}

// ErrorNames returns what `error` in a scenario may be.
func ErrorNames() []string {
	var out []string
	for _, e := range errorKinds() {
		out = append(out, e.name)
	}
	return out
}

func errorNamed(name string) *errorKind {
	all := errorKinds()
	i := slices.IndexFunc(all, func(e errorKind) bool { return e.name == name })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// seconds writes a duration for Retry-After, rounded up.
func seconds(d time.Duration) string {
	return strconv.FormatInt(int64(math.Ceil(d.Seconds())), 10)
}

// refuse answers 400 with the reason. The type names this server, so that
// nobody takes it for a provider's own words.
func (s *Server) refuse(w http.ResponseWriter, d dialect, kind, text string) {
	e := &errorKind{openAIType: "invalid_request_error", openAICode: kind, anthropicType: "invalid_request_error"}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = w.Write(d.fault(e, text)) // the client may be gone
}
