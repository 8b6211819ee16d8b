package provider

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"agentd/exitcodes"
	"agentd/recovery"
)

// faultRow is an error as a provider sends it, and what it has to become.
type faultRow struct {
	name   string // also the place it is known from
	status int    // 0: an error event in a stream under 200
	header string // "Key: value" lines
	body   string
	kind   recovery.Kind
	code   exitcodes.Code
	says   string        // a part of the provider's own words that has to survive
	after  time.Duration // RetryAfter
}

// clock is the time at which all rows are read.
func clock() time.Time { return time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC) }

func TestFaultsOfEveryKnownErrorBody(t *testing.T) {
	seen := map[string]bool{}
	for _, rows := range [][]faultRow{openAIFaults(), anthropicFaults(), gatewayFaults(), localFaults(), waitFaults(), streamFaults()} {
		for _, row := range rows {
			if seen[row.name] {
				t.Errorf("two rows are named %q", row.name)
			}
			seen[row.name] = true
			t.Run(row.name, func(t *testing.T) { row.check(t) })
		}
	}
}

func (row faultRow) check(t *testing.T) {
	var f *recovery.Fault
	if row.status == 0 {
		f = classifyEvent([]byte(row.body), clock())
	} else {
		f = classifyResponse(row.status, row.headers(), []byte(row.body), clock())
	}
	if f.Kind != row.kind {
		t.Errorf("kind is %q, want %q (%v)", f.Kind, row.kind, f)
	}
	if f.ExitCode() != row.code {
		t.Errorf("code is %d, want %d", f.ExitCode(), row.code)
	}
	if !strings.Contains(f.Message, row.says) || f.Message == "" {
		t.Errorf("message is %q, want it to hold %q", f.Message, row.says)
	}
	if strings.ContainsAny(f.Error(), "\n\r") {
		t.Errorf("the error is more than one line: %q", f.Error())
	}
	if f.RetryAfter != row.after {
		t.Errorf("retry after is %s, want %s", f.RetryAfter, row.after)
	}
	if want := clock().Add(row.after); row.after > 0 && !f.ResetAt.Equal(want) {
		t.Errorf("reset is %s, want %s", f.ResetAt, want)
	}
}

func (row faultRow) headers() http.Header {
	h := http.Header{}
	for line := range strings.Lines(row.header) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			h.Add(k, v)
		}
	}
	return h
}

func openAIFaults() []faultRow {
	return []faultRow{
		{"OpenAI: wrong key", 401, "", `{"error":{"message":"Incorrect API key provided: sk-abc***xyz. You can find your API key at https://platform.openai.com/account/api-keys.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`,
			recovery.Auth, 77, "Incorrect API key", 0},
		{"OpenAI: 401 that speaks of rate limits", 401, "", `{"error":{"message":"You have insufficient permissions; rate limit exceeded for anonymous use","type":"rate_limit_error"}}`,
			recovery.Auth, 77, "insufficient permissions", 0},
		{"OpenAI: country", 403, "", `{"error":{"code":"unsupported_country_region_territory","message":"Country, region, or territory not supported","param":null,"type":"request_forbidden"}}`,
			recovery.Auth, 77, "Country", 0},
		{"OpenAI: requests per minute", 429, "", `{"error":{"message":"Rate limit reached for gpt-4o in organization org-1 on requests per min (RPM): Limit 3, Used 3, Requested 1. Please try again in 20s. Visit https://platform.openai.com/account/rate-limits to learn more.","type":"requests","param":null,"code":"rate_limit_exceeded"}}`,
			recovery.RateLimited, 75, "Limit 3", 20 * time.Second},
		{"OpenAI: a request above the limit", 429, "", `{"error":{"message":"Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Requested 41207. The input or output tokens must be reduced in order to run successfully.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`,
			recovery.Overflow, 81, "Requested 41207", 0},
		{"OpenAI: no quota", 429, "Retry-After: 5", `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`,
			recovery.Quota, 79, "current quota", 5 * time.Second},
		{"OpenAI: spend limit enforced (codex)", 429, "", `{"error":{"message":"The spend limit of your project is reached.","type":"enforced_spend_limit_reached","code":"enforced_spend_limit_reached"}}`,
			recovery.Quota, 79, "spend limit", 0},
		{"OpenAI: contract spend limit", 429, "", `{"error":{"type":"contract_spend_limit_reached","message":"Contract limit."}}`,
			recovery.Quota, 79, "Contract", 0},
		{"OpenAI: billing hard limit", 400, "", `{"error":{"code":"billing_hard_limit_reached","message":"Billing hard limit has been reached","param":null,"type":"invalid_request_error"}}`,
			recovery.Quota, 79, "hard limit", 0},
		{"OpenAI: usage limit of a subscription (codex)", 429, "", `{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","plan_type":"plus","resets_in_seconds":7200}}`,
			recovery.RateLimited, 75, "usage limit", 2 * time.Hour},
		{"OpenAI: context length", 400, "", `{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9034 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`,
			recovery.Overflow, 81, "8192", 0},
		{"OpenAI: input too long (Responses)", 400, "", `{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}`,
			recovery.Overflow, 81, "context window", 0},
		{"OpenAI: string too long", 400, "", `{"error":{"message":"Invalid 'messages[0].content': string too long. Expected a string with maximum length 1048576, but got a string with length 2000000 instead.","type":"invalid_request_error","param":"messages[0].content","code":"string_above_max_length"}}`,
			recovery.Overflow, 81, "string too long", 0},
		{"OpenAI: model", 404, "", `{"error":{"message":"The model gpt-9 does not exist or you do not have access to it.","type":"invalid_request_error","param":null,"code":"model_not_found"}}`,
			recovery.NotFound, 78, "gpt-9", 0},
		{"OpenAI: parameter", 400, "", `{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}`,
			recovery.Invalid, 1, "max_completion_tokens", 0},
		{"OpenAI: flagged prompt", 400, "", `{"error":{"message":"Invalid prompt: your prompt was flagged as potentially violating our usage policy.","type":"invalid_request_error","param":null,"code":"invalid_prompt"}}`,
			recovery.Refused, 84, "flagged", 0},
		{"OpenAI: server error", 500, "", `{"error":{"message":"The server had an error while processing your request. Sorry about that!","type":"server_error","param":null,"code":null}}`,
			recovery.Server, 69, "had an error", 0},
		{"OpenAI: overloaded", 503, "Retry-After: 2", `{"error":{"message":"That model is currently overloaded with other requests.","type":"server_error","code":null}}`,
			recovery.Server, 69, "overloaded", 2 * time.Second},
		{"OpenAI: error is a string under 429", 429, "Retry-After: 3", `{"error":"Too Many Requests"}`,
			recovery.RateLimited, 75, "Too Many", 3 * time.Second},
		{"Azure: content filter", 400, "", `{"error":{"message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy.","type":null,"param":"prompt","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation","content_filter_result":{"hate":{"filtered":true,"severity":"high"}}}}}`,
			recovery.Refused, 84, "content management policy", 0},
		{"Azure: deployment", 404, "", `{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}`,
			recovery.NotFound, 78, "deployment", 0},
		{"Azure: throttled", 429, "Retry-After: 24\nRetry-After-Ms: 23300", `{"error":{"code":"429","message":"Requests to the ChatCompletions_Create Operation have exceeded call rate limit of your current pricing tier. Please retry after 24 seconds."}}`,
			recovery.RateLimited, 75, "call rate limit", 23300 * time.Millisecond},
		{"Azure: key", 401, "", `{"error":{"code":"401","message":"Access denied due to invalid subscription key or wrong API endpoint."}}`,
			recovery.Auth, 77, "subscription key", 0},
		{"Azure: gateway", 401, "", `{ "statusCode": 401, "message": "Unauthorized. Access token is missing, invalid, or expired." }`,
			recovery.Auth, 77, "Access token", 0},
	}
}

func anthropicFaults() []faultRow {
	return []faultRow{
		{"Anthropic: key", 401, "", `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"},"request_id":"req_1"}`,
			recovery.Auth, 77, "x-api-key", 0},
		{"Anthropic: permission", 403, "", `{"type":"error","error":{"type":"permission_error","message":"Your API key does not have permission to use the specified resource."}}`,
			recovery.Auth, 77, "permission", 0},
		{"Anthropic: model", 404, "", `{"type":"error","error":{"type":"not_found_error","message":"model: claude-9"}}`,
			recovery.NotFound, 78, "claude-9", 0},
		{"Anthropic: prompt", 400, "", `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 208310 tokens > 200000 maximum"}}`,
			recovery.Overflow, 81, "208310", 0},
		{"Anthropic: prompt and output", 400, "", "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000, decrease input length or `max_tokens` and try again\"}}",
			recovery.Overflow, 81, "190000", 0},
		{"Anthropic: output limit", 400, "", `{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens for claude-3-5-haiku-20241022"}}`,
			recovery.Invalid, 1, "8192", 0},
		{"Anthropic: body", 413, "", `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum allowed number of bytes. The maximum request size is 32 MB."}}`,
			recovery.Overflow, 81, "bytes", 0},
		{"Anthropic: rate", 429, "Retry-After: 12\nAnthropic-Ratelimit-Requests-Remaining: 0\nAnthropic-Ratelimit-Requests-Reset: 2026-12-01T09:05:00Z", `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit of 50 requests per minute."}}`,
			recovery.RateLimited, 75, "rate limit", 12 * time.Second},
		{"Anthropic: five-hour window", 429, "Anthropic-Ratelimit-Unified-Status: rejected\nAnthropic-Ratelimit-Unified-Reset: 1796133600", `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your account's rate limit. Please try again later."}}`,
			recovery.RateLimited, 75, "account", 5 * time.Hour},
		{"Anthropic: credit", 400, "", `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."}}`,
			recovery.Quota, 79, "credit balance", 0},
		{"Anthropic: billing", 402, "", `{"type":"error","error":{"type":"billing_error","message":"Billing problem"}}`,
			recovery.Quota, 79, "Billing", 0},
		{"Anthropic: overloaded", 529, "", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`,
			recovery.Server, 69, "Overloaded", 0},
		{"Anthropic: api error", 500, "", `{"type":"error","error":{"type":"api_error","message":"Internal server error"}}`,
			recovery.Server, 69, "Internal", 0},
		{"Anthropic: message order", 400, "", `{"type":"error","error":{"type":"invalid_request_error","message":"messages.2: tool_use ids were found without tool_result blocks immediately after"}}`,
			recovery.Invalid, 1, "tool_use", 0},
		{"Bedrock: throttled", 429, "X-Amzn-Errortype: ThrottlingException:http://internal.amazon.com/coral/", `{"message":"Too many tokens, please wait before trying again."}`,
			recovery.RateLimited, 75, "please wait", 0},
		{"Bedrock: throttled under 400", 400, "", `{"__type":"ThrottlingException","message":"Too many requests, please wait before trying again."}`,
			recovery.RateLimited, 75, "please wait", 0},
		{"Bedrock: throttle without a type", 400, "", `{"message":"Too many tokens, please wait before trying again."}`,
			recovery.RateLimited, 75, "please wait", 0},
		{"Bedrock: overflow", 400, "X-Amzn-Errortype: ValidationException", `{"message":"The model returned the following errors: prompt is too long: 903884 tokens > 200000 maximum"}`,
			recovery.Overflow, 81, "903884", 0},
		{"Bedrock: input", 400, "", `{"__type":"com.amazon.coral.validate#ValidationException","message":"Input is too long for requested model."}`,
			recovery.Overflow, 81, "too long", 0},
		{"Bedrock: denied", 403, "X-Amzn-Errortype: AccessDeniedException", `{"Message":"User is not authorized to perform: bedrock:InvokeModelWithResponseStream"}`,
			recovery.Auth, 77, "not authorized", 0},
		{"Bedrock: expired", 403, "", `{"message":"The security token included in the request is expired"}`,
			recovery.Auth, 77, "security token", 0},
		{"Bedrock: unknown operation", 404, "", `{"Output":{"__type":"com.amazon.coral.service#UnknownOperationException"},"Version":"1.0"}`,
			recovery.NotFound, 78, "not found", 0},
		{"Bedrock: unavailable", 503, "", `{"__type":"ServiceUnavailableException","message":"Bedrock is unable to process your request."}`,
			recovery.Server, 69, "unable", 0},
	}
}
