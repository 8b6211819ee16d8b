package provider

import (
	"time"

	"agentd/recovery"
)

func gatewayFaults() []faultRow {
	return []faultRow{
		{"OpenRouter: credits", 402, "", `{"error":{"message":"This request requires more credits, or fewer max_tokens. You requested up to 32000 tokens, but can only afford 1200.","code":402}}`,
			recovery.Quota, 79, "more credits", 0},
		{"OpenRouter: moderation", 403, "", `{"error":{"code":403,"message":"Your chosen model requires moderation and your input was flagged","metadata":{"reasons":["violence"],"flagged_input":"...","provider_name":"OpenAI","model_slug":"x"}}}`,
			recovery.Refused, 84, "flagged", 0},
		{"OpenRouter: key", 401, "", `{"error":{"message":"No auth credentials found","code":401}}`, recovery.Auth, 77, "auth credentials", 0},
		{"OpenRouter: model", 400, "", `{"error":{"message":"x/y is not a valid model ID","code":400},"user_id":"u"}`, recovery.NotFound, 78, "x/y", 0},
		{"OpenRouter: tools", 404, "", `{"error":{"message":"No endpoints found that support tool use. Try disabling \"shell\".","code":404}}`, recovery.NotFound, 78, "tool use", 0},
		{"OpenRouter: free models per day", 429, "", `{"error":{"message":"Rate limit exceeded: free-models-per-day","code":429,"metadata":{"headers":{"X-RateLimit-Limit":"50","X-RateLimit-Remaining":"0","X-RateLimit-Reset":"1796169600000"},"provider_name":null}}}`,
			recovery.RateLimited, 75, "free-models", 15 * time.Hour},
		{"OpenRouter: upstream throttle", 429, "", `{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"z-ai/glm is temporarily rate-limited upstream. Please retry shortly, or add your own key.","provider_name":"BaseTen"}}}`,
			recovery.RateLimited, 75, "temporarily rate-limited", 0},
		{"OpenRouter: upstream error body", 400, "", `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"prompt is too long: 1284668 tokens > 1000000 maximum\"}}","provider_name":"Anthropic"}}}`,
			recovery.Overflow, 81, "1284668", 0},
		{"OpenRouter: overflow", 400, "", `{"error":{"message":"This endpoint's maximum context length is 131072 tokens. However, you requested about 145000 tokens.","code":400}}`,
			recovery.Overflow, 81, "145000", 0},
		{"Groq: tokens per minute", 429, "X-Ratelimit-Remaining-Requests: 14370\nX-Ratelimit-Reset-Requests: 2m59.56s\nX-Ratelimit-Remaining-Tokens: 0\nX-Ratelimit-Reset-Tokens: 7.66s", `{"error":{"message":"Rate limit reached for model llama on tokens per minute (TPM): Limit 6000, Used 5034, Requested 1443. Please try again in 4.77s.","type":"tokens","code":"rate_limit_exceeded"}}`,
			recovery.RateLimited, 75, "Used 5034", 7660 * time.Millisecond},
		{"Groq: wait in words only", 429, "", `{"error":{"message":"Rate limit reached for model llama on tokens per day (TPD): Limit 100000, Used 97050, Requested 3619. Please try again in 9m38.016s. Need more tokens? Upgrade.","type":"tokens","code":"rate_limit_exceeded"}}`,
			recovery.RateLimited, 75, "97050", 9*time.Minute + 38016*time.Millisecond},
		{"Groq: larger than the limit", 413, "", "{\"error\":{\"message\":\"Request too large for model `llama` in organization `o` service tier `on_demand` on tokens per minute (TPM): Limit 6000, Requested 14368, please reduce your message size and try again.\",\"type\":\"tokens\",\"code\":\"rate_limit_exceeded\"}}",
			recovery.Overflow, 81, "14368", 0},
		{"Groq: model gone", 400, "", `{"error":{"message":"The model x has been decommissioned and is no longer supported.","type":"invalid_request_error","code":"model_decommissioned"}}`,
			recovery.NotFound, 78, "decommissioned", 0},
		{"Groq: capacity", 498, "", `{"error":{"message":"Flex tier capacity exceeded","type":"capacity_exceeded"}}`, recovery.Server, 69, "capacity", 0},
		{"Gemini: minute limit", 429, "", `[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.\n* Quota exceeded for metric: generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: 10\nPlease retry in 34.074824224s.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}]}}]`,
			recovery.RateLimited, 75, "Quota exceeded for metric", 34500 * time.Millisecond},
		{"Gemini: exhausted", 429, "", `[{"error":{"code":429,"message":"Resource has been exhausted (e.g. check quota).","status":"RESOURCE_EXHAUSTED"}}]`,
			recovery.RateLimited, 75, "exhausted", 0},
		{"Gemini: wrapped in a string", 429, "", `{"error":{"message":"{\n  \"error\": {\n    \"code\": 429,\n    \"message\": \"Resource has been exhausted (e.g. check quota).\",\n    \"status\": \"RESOURCE_EXHAUSTED\"\n  }\n}\n","code":429,"status":"Too Many Requests"}}`,
			recovery.RateLimited, 75, "Resource has been", 0},
		{"Gemini: key", 400, "", `[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID","domain":"googleapis.com"}]}}]`,
			recovery.Auth, 77, "API key not valid", 0},
		{"Gemini: overflow", 400, "", `[{"error":{"code":400,"message":"The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]`,
			recovery.Overflow, 81, "1200293", 0},
		{"Gemini: overloaded", 503, "", `[{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}]`, recovery.Server, 69, "overloaded", 0},
		{"Mistral: validation", 422, "", `{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]},"type":"invalid_request_error","param":null,"code":null}`,
			recovery.Invalid, 1, "stream_options", 0},
		{"Mistral: overflow", 400, "", `{"object":"error","message":"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_prompt","code":"3051"}`,
			recovery.Overflow, 81, "40000", 0},
		{"Mistral: capacity", 429, "", `{"object":"error","message":"Service tier capacity exceeded for this model.","type":"service_tier_capacity_exceeded","param":null,"code":"3505"}`,
			recovery.RateLimited, 75, "capacity", 0},
		{"Mistral: key", 401, "", `{"detail":"Unauthorized"}`, recovery.Auth, 77, "Unauthorized", 0},
		{"xAI: key", 400, "", `{"code":"Client specified an invalid argument","error":"Incorrect API key provided: xa***yz. You can obtain an API key from https://console.x.ai."}`,
			recovery.Auth, 77, "Incorrect API key", 0},
		{"xAI: overflow", 400, "", `{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}`,
			recovery.Overflow, 81, "537812", 0},
		{"xAI: no credits", 403, "", `{"code":"The caller does not have permission to execute the specified operation","error":"Your newly created team doesn't have any credits yet."}`,
			recovery.Auth, 77, "credits", 0},
		{"DeepSeek: balance", 402, "", `{"error":{"message":"Insufficient Balance","type":"unknown_error","param":null,"code":"invalid_request_error"}}`, recovery.Quota, 79, "Balance", 0},
		{"DeepSeek: key", 401, "", `{"error":{"message":"Authentication Fails (no such user)","type":"authentication_error","param":null,"code":"invalid_request_error"}}`, recovery.Auth, 77, "Authentication Fails", 0},
		{"Together: overflow", 422, "", "{\"id\":\"o\",\"error\":{\"message\":\"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 `inputs` tokens\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":null}}",
			recovery.Overflow, 81, "8193", 0},
		{"Fireworks: overflow", 400, "", `{"error":{"object":"error","type":"invalid_request_error","code":"invalid_request_error","message":"The prompt is too long: 140000, model maximum context length: 131071"}}`,
			recovery.Overflow, 81, "140000", 0},
		{"Moonshot: quota", 429, "", `{"error":{"message":"Your account is suspended due to insufficient balance, please recharge your account","type":"exceeded_current_quota_error"}}`,
			recovery.Quota, 79, "recharge", 0},
		{"Z.ai: throttle", 429, "", `{"error":{"code":"1302","message":"High concurrency usage of this API, please reduce concurrency"}}`, recovery.RateLimited, 75, "concurrency", 0},
		{"litellm: code is null", 400, "", `{"error":{"message":"litellm.ContextWindowExceededError: too long","type":null,"param":null,"code":null}}`, recovery.Overflow, 81, "too long", 0},
		{"Cloudflare: gateway page", 502, "", "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body><center><h1>502 Bad Gateway</h1></center><hr><center>cloudflare</center></body></html>",
			recovery.Server, 69, "502 Bad Gateway", 0},
		{"Cloudflare: origin timeout", 524, "", "<!DOCTYPE html><html><head><title>api.example.com | 524: A timeout occurred</title></head><body>x</body></html>", recovery.Server, 69, "524: A timeout", 0},
		{"Cloudflare: plain", 520, "", "error code: 520", recovery.Server, 69, "520", 0},
		{"Cloudflare: challenge", 403, "", "<!DOCTYPE html><html><head><title>Just a moment...</title></head></html>", recovery.Auth, 77, "Just a moment", 0},
		{"nginx: body", 413, "", "<html><head><title>413 Request Entity Too Large</title></head></html>", recovery.Overflow, 81, "413", 0},
		{"envoy: plain text", 503, "", "upstream connect error or disconnect/reset before headers. reset reason: connection termination", recovery.Server, 69, "upstream connect", 0},
		{"request timeout", 408, "", "", recovery.Server, 69, "request timeout", 0},
		{"conflict", 409, "", `{"error":{"message":"busy"}}`, recovery.Invalid, 1, "busy", 0},
		{"empty 400", 400, "", "", recovery.Invalid, 1, "bad request", 0},
		{"too early", 425, "", "", recovery.Invalid, 1, "too early", 0},
	}
}

func localFaults() []faultRow {
	return []faultRow{
		{"vLLM: overflow", 400, "", `{"object":"error","message":"This model's maximum context length is 16384 tokens. However, you requested 122946 tokens (112946 in the messages, 10000 in the completion). Please reduce the length of the messages or completion.","type":"BadRequestError","param":null,"code":400}`,
			recovery.Overflow, 81, "122946", 0},
		{"vLLM: negative output", 400, "", `{"object":"error","message":"max_tokens must be at least 1, got -186.","type":"BadRequestError","param":null,"code":400}`, recovery.Overflow, 81, "-186", 0},
		{"vLLM: model", 404, "", "{\"object\":\"error\",\"message\":\"The model `x` does not exist.\",\"type\":\"NotFoundError\",\"param\":null,\"code\":404}", recovery.NotFound, 78, "does not exist", 0},
		{"vLLM: newer shape", 400, "", `{"error":{"message":"The decoder prompt (length 9000) is longer than the maximum model length of 8192.","type":"BadRequestError","param":"input_tokens","code":400}}`, recovery.Overflow, 81, "9000", 0},
		{"vLLM: engine dead", 500, "", `{"object":"error","message":"EngineCore encountered an issue. See stack trace (above) for the root cause.","type":"InternalServerError","param":null,"code":500}`, recovery.Server, 69, "EngineCore", 0},
		{"FastAPI: detail", 422, "", `{"detail":[{"type":"missing","loc":["body","model"],"msg":"Field required"}]}`, recovery.Invalid, 1, "Field required", 0},
		{"FastAPI: not found", 404, "", `{"detail":"Not Found"}`, recovery.NotFound, 78, "Not Found", 0},
		{"llama.cpp: overflow", 400, "", `{"error":{"code":400,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"exceed_context_size_error","n_prompt_tokens":14429,"n_ctx":8192}}`,
			recovery.Overflow, 81, "available context size", 0},
		{"llama.cpp: overflow under 500", 500, "", `{"error":{"code":500,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"server_error"}}`,
			recovery.Overflow, 81, "available context size", 0},
		{"llama.cpp: loading", 503, "", `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`, recovery.Server, 69, "Loading", 0},
		{"llama.cpp: key", 401, "", `{"error":{"message":"Invalid API Key","type":"authentication_error","code":401}}`, recovery.Auth, 77, "Invalid API Key", 0},
		{"llama-cpp-python: overflow", 500, "", `{"error":{"message":"Requested tokens (2138) exceed context window of 2048","type":"internal_server_error"}}`, recovery.Overflow, 81, "2138", 0},
		{"Ollama: model", 404, "", `{"error":"model \"x\" not found, try pulling it first"}`, recovery.NotFound, 78, "try pulling", 0},
		{"Ollama: model, compatible", 404, "", `{"error":{"message":"model 'x' not found","type":"api_error","param":null,"code":null}}`, recovery.NotFound, 78, "not found", 0},
		{"Ollama: tools", 400, "", `{"error":{"message":"registry.ollama.ai/library/x does not support tools","type":"api_error","param":null,"code":null}}`, recovery.Invalid, 1, "support tools", 0},
		{"Ollama: memory", 500, "", `{"error":"model requires more system memory (9.3 GiB) than is available (6.2 GiB)"}`, recovery.Server, 69, "system memory", 0},
		{"LM Studio: overflow", 400, "", `{"error":"Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough."}`, recovery.Overflow, 81, "4096", 0},
	}
}

// waitFaults are the forms in which a provider says when to come back.
func waitFaults() []faultRow {
	const body = `{"error":{"message":"slow down","type":"rate_limit_error"}}`
	row := func(name, header string, after time.Duration) faultRow {
		return faultRow{"wait: " + name, 429, header, body, recovery.RateLimited, 75, "slow down", after}
	}
	said := func(name, text string, after time.Duration) faultRow {
		return faultRow{"wait in words: " + name, 429, "", `{"error":{"message":"` + text + `","code":"rate_limit_exceeded"}}`, recovery.RateLimited, 75, text[:8], after}
	}
	return []faultRow{
		row("seconds", "Retry-After: 7", 7*time.Second),
		row("fraction", "Retry-After: 0.25", 250*time.Millisecond),
		row("zero", "Retry-After: 0", 0),
		row("negative", "Retry-After: -5", 0),
		row("nonsense", "Retry-After: soon", 0),
		row("enormous", "Retry-After: 99999999999999", 0),
		row("not a number", "Retry-After: NaN", 0),
		row("infinite", "Retry-After: Inf", 0),
		row("IMF-fixdate", "Retry-After: Tue, 01 Dec 2026 09:01:30 GMT", 90*time.Second),
		row("RFC 850 date", "Retry-After: Tuesday, 01-Dec-26 09:01:30 GMT", 90*time.Second),
		row("asctime date", "Retry-After: Tue Dec  1 09:01:30 2026", 90*time.Second),
		row("date in the past", "Retry-After: Tue, 01 Dec 2026 08:00:00 GMT", 0),
		row("duration", "Retry-After: 1m30s", 90*time.Second),
		row("milliseconds", "Retry-After-Ms: 1500", 1500*time.Millisecond),
		row("milliseconds win", "Retry-After: 2\nRetry-After-Ms: 1500", 1500*time.Millisecond),
		row("OpenAI counters", "X-Ratelimit-Remaining-Requests: 0\nX-Ratelimit-Reset-Requests: 6m0s\nX-Ratelimit-Remaining-Tokens: 100\nX-Ratelimit-Reset-Tokens: 12ms", 6*time.Minute),
		row("counters not used up", "X-Ratelimit-Remaining-Requests: 9\nX-Ratelimit-Reset-Requests: 6m0s\nX-Ratelimit-Remaining-Tokens: 100\nX-Ratelimit-Reset-Tokens: 12s", 12*time.Second),
		row("Anthropic counters", "Anthropic-Ratelimit-Input-Tokens-Remaining: 0\nAnthropic-Ratelimit-Input-Tokens-Reset: 2026-12-01T09:00:45Z\nAnthropic-Ratelimit-Requests-Remaining: 49\nAnthropic-Ratelimit-Requests-Reset: 2026-12-01T09:00:01Z", 45*time.Second),
		row("Unix seconds", "X-Ratelimit-Reset: 1796115630", 30*time.Second),
		row("Unix milliseconds", "X-Ratelimit-Reset: 1796115630000", 30*time.Second),
		row("seconds to the reset", "X-Ratelimit-Remaining: 0\nX-Ratelimit-Reset: 30", 30*time.Second),
		row("IETF draft", "Ratelimit-Remaining: 0\nRatelimit-Reset: 50", 50*time.Second),
		said("seconds", "Please try again in 7.66s.", 7660*time.Millisecond),
		said("milliseconds", "Please try again in 250ms.", 250*time.Millisecond),
		said("minutes", "Please try again in 1m26.4s.", 86400*time.Millisecond),
		said("hours", "Please try again in 1h2m3s.", time.Hour+2*time.Minute+3*time.Second),
		said("long words", "Please retry after 2 minutes and 5 seconds.", 125*time.Second),
		said("wait", "Too busy, please wait 30 seconds before the next request", 30*time.Second),
		said("none", "Too many requests: at most 50 per minute", 0),
	}
}

// streamFaults are errors inside a stream under 200.
func streamFaults() []faultRow {
	return []faultRow{
		{"stream, Anthropic: overloaded", 0, "", `{"type":"error","error":{"details":null,"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}`, recovery.Server, 69, "Overloaded", 0},
		{"stream, Anthropic: api error", 0, "", `{"type":"error","error":{"type":"api_error","message":"Internal server error"}}`, recovery.Server, 69, "Internal", 0},
		{"stream, Anthropic: rate", 0, "", `{"type":"error","error":{"type":"rate_limit_error","message":"Number of tokens has exceeded"}}`, recovery.RateLimited, 75, "Number", 0},
		{"stream, Anthropic: invalid", 0, "", `{"type":"error","error":{"type":"invalid_request_error","message":"bad"}}`, recovery.Invalid, 1, "bad", 0},
		{"stream, Anthropic: key", 0, "", `{"type":"error","error":{"type":"authentication_error","message":"bad key"}}`, recovery.Auth, 77, "bad key", 0},
		{"stream, OpenAI Responses: flat", 0, "", `{"type":"error","code":"rate_limit_exceeded","message":"Rate limit reached. Please try again in 6s.","param":null,"sequence_number":3}`, recovery.RateLimited, 75, "Rate limit", 6 * time.Second},
		{"stream, OpenAI Responses: server", 0, "", `{"type":"error","code":"server_error","message":"An error occurred","param":null}`, recovery.Server, 69, "error occurred", 0},
		{"stream, OpenAI Responses: failed", 0, "", `{"type":"response.failed","response":{"id":"r","object":"response","status":"failed","error":{"code":"server_error","message":"The model failed to generate a response."},"output":[]}}`, recovery.Server, 69, "failed to generate", 0},
		{"stream, OpenAI Responses: failed overflow", 0, "", `{"type":"response.failed","response":{"status":"failed","error":{"code":"context_length_exceeded","message":"Your input exceeds the context window"}}}`, recovery.Overflow, 81, "context window", 0},
		{"stream, OpenAI Responses: failed quota", 0, "", `{"type":"response.failed","response":{"status":"failed","error":{"code":"insufficient_quota","message":"No quota"}}}`, recovery.Quota, 79, "No quota", 0},
		{"stream, OpenAI Responses: failed prompt", 0, "", `{"type":"response.failed","response":{"status":"failed","error":{"code":"invalid_prompt","message":"flagged"}}}`, recovery.Refused, 84, "flagged", 0},
		{"stream, OpenRouter: upstream died", 0, "", `{"id":"g","object":"chat.completion.chunk","provider":"x","error":{"code":502,"message":"Provider disconnected"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`, recovery.Server, 69, "disconnected", 0},
		{"stream, OpenRouter: throttled", 0, "", `{"error":{"code":429,"message":"Rate limit exceeded","metadata":{"error_type":"rate_limit_exceeded"}},"choices":[]}`, recovery.RateLimited, 75, "Rate limit", 0},
		{"stream, OpenRouter: code as a word", 0, "", `{"id":"g","error":{"code":"server_error","message":"Provider disconnected unexpectedly"},"choices":[]}`, recovery.Server, 69, "unexpectedly", 0},
		{"stream, OpenRouter: overflow", 0, "", `{"error":{"code":400,"message":"prompt is too long: 1284668 tokens > 1000000 maximum"},"choices":[]}`, recovery.Overflow, 81, "1284668", 0},
		{"stream, vLLM: object", 0, "", `{"object":"error","message":"list index out of range","type":"BadRequestError","param":null,"code":400}`, recovery.Invalid, 1, "list index", 0},
		{"stream, vLLM: newer shape", 0, "", `{"error":{"message":"EngineDeadError","type":"InternalServerError","param":null,"code":500}}`, recovery.Server, 69, "EngineDead", 0},
		{"stream, FastAPI: detail", 0, "", `{"detail":"Internal Server Error"}`, recovery.Server, 69, "Internal", 0},
		{"stream, llama.cpp: error field", 0, "", `{"code":500,"message":"Invalid diff: now finding less tool calls!","type":"server_error"}`, recovery.Server, 69, "Invalid diff", 0},
		{"stream, Ollama: runner", 0, "", `{"error":"an error was encountered while running the model: unexpected EOF"}`, recovery.Server, 69, "running the model", 0},
		{"stream: code is null", 0, "", `{"error":{"message":"The server had an error","type":"server_error","code":null}}`, recovery.Server, 69, "had an error", 0},
		{"stream: nothing known", 0, "", `{"error":{"message":"zork"}}`, recovery.Invalid, 1, "zork", 0},
		{"stream: text", 0, "", "upstream connect error", recovery.Server, 69, "upstream", 0},
	}
}
