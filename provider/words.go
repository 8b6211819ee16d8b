package provider

import (
	"regexp"
	"strings"

	"agentd/recovery"
)

// wordKind returns the kind that the first known type or code stands for.
func wordKind(words []string) (recovery.Kind, bool) {
	best, found := recovery.Kind(""), false
	for _, w := range words {
		k, ok := wordKinds(strings.ToLower(w))
		if !ok {
			continue
		}
		if !found {
			best, found = k, true
		}
		// A general word (invalid_request_error) gives way to a telling one.
		if best == recovery.Invalid && k != recovery.Invalid {
			best = k
		}
	}
	return best, found
}

// wordKinds is the table of error types and codes, in lower case.
func wordKinds(w string) (recovery.Kind, bool) {
	switch w {
	case "insufficient_quota", "enforced_spend_limit_reached", "contract_spend_limit_reached", "billing_hard_limit_reached",
		"insufficient_credits", "credits_exhausted", "quota_exceeded", "billing_not_active", "exceeded_current_quota_error",
		"billing_error", "insufficient_balance", "insufficient_funds", "payment_required", "spend_limit_exceeded",
		"servicequotaexceededexception", "account_deactivated_billing":
		return recovery.Quota, true
	case "context_length_exceeded", "exceed_context_size_error", "context_window_exceeded", "request_too_large",
		"model_context_window_exceeded", "string_above_max_length", "contextwindowexceedederror", "prompt_too_long", "input_too_long":
		return recovery.Overflow, true
	case "content_filter", "content_policy_violation", "responsibleaipolicyviolation", "moderation", "invalid_prompt",
		"content_filtered", "cyber_policy", "data_inspection_failed":
		return recovery.Refused, true
	case "rate_limit_exceeded", "rate_limit_error", "rate_limited", "rate_limit", "rate_limit_reached", "too_many_requests", "tokens_limit_reached",
		"requests", "throttlingexception", "throttling", "throttled", "usage_limit_reached", "usage_not_included", "resource_exhausted",
		"ratelimiterror", "ratelimitreached", "toomanyrequestsexception", "slow_down", "engine_overloaded_rate":
		return recovery.RateLimited, true
	case "overloaded_error", "api_error", "server_error", "internal_error", "internal_server_error", "internalservererror", "overloaded",
		"server_is_overloaded", "service_unavailable", "service_unavailable_error", "serviceunavailable", "serviceunavailableexception",
		"engine_overloaded_error", "timeout_error", "timeout", "unavailable", "internal", "deadline_exceeded", "internalserverexception",
		"modeltimeoutexception", "modelstreamerrorexception", "modelnotreadyexception", "upstream_error", "provider_error", "bad_gateway",
		"gateway_timeout", "unavailable_error", "connection_error", "stream_error", "service_tier_capacity_exceeded", "vector_store_timeout",
		"provider_overloaded", "provider_unavailable", "internalerror", "capacity_exceeded":
		return recovery.Server, true
	case "authentication_error", "permission_error", "invalid_api_key", "unauthorized", "unauthenticated", "permission_denied",
		"forbidden", "accessdeniedexception", "unrecognizedclientexception", "account_deactivated", "api_key_invalid", "invalid_authentication_error",
		"expiredtokenexception", "authenticationerror", "permissiondeniederror", "missing_scope", "unsupported_country_region_territory":
		return recovery.Auth, true
	case "not_found_error", "model_not_found", "model_not_found_error", "deploymentnotfound", "notfounderror", "resourcenotfoundexception",
		"not_found", "model_decommissioned", "unknown_model", "model_not_available", "unknownoperationexception", "resource_not_found_error":
		return recovery.NotFound, true
	case "invalid_request_error", "invalid_request", "bad_request", "badrequesterror", "validationexception", "invalid_argument",
		"unsupported_parameter", "unsupported_value", "unknown_parameter", "invalid_value", "failed_precondition", "invalid_type":
		return recovery.Invalid, true
	}
	return "", false
}

// The wordings, for servers that say nothing in a structured way.
var (
	throttleWording = regexp.MustCompile(`(?i)too many (requests|tokens,? please wait)|please wait before|rate.?limit|throttl|slow down|` +
		`requests? per (minute|second|day|hour)|tokens per (minute|min|day|hour)|usage limit|quota exceeded for metric|try again in \d|resource (has been )?exhausted|over ?capacity`)
	overflowWording = regexp.MustCompile(`(?i)context.?(length|window|size|limit)|maximum context|(prompt|input|request|conversation|messages?)( \w+)? (is|are|was) too (long|large)|` +
		`(input|prompt) (length|tokens?|token count).{0,40}(exceed|larger|greater|more than|too)|exceeds? the (maximum|limit|available|model)[^.]{0,40}(token|context|length|input)|` +
		`too many (input |prompt )?tokens|maximum (prompt|input|sequence) length|max(imum)?_?(model_?len|seq(uence)?_?len)|reduce the length|` +
		`token limit|tokens? (exceeded|exceeds)|input is too long|(larger|longer) than the (maximum|context)|max_new_tokens. must be|n_ctx|request entity too large|payload too large|request too large|exceeds limit of \d+|` +
		`max_tokens.{0,60}(must be at least 1|cannot be (less|negative))`)
	quotaWording = regexp.MustCompile(`(?i)exceeded your (current |monthly |assigned )?quota|insufficient.?(quota|credit|balance|fund)|credit balance is too low|spend(ing)?.?limit|` +
		`billing (hard )?limit|out of credits?|(requires|purchase|add|buy|top up).{0,20} more credits|exhausted (your |its )?(credit|balance|spend)|not enough credits?|monthly (usage|spending) limit|` +
		`payment required|used all available credits|no credits`)
	authWording = regexp.MustCompile(`(?i)(invalid|incorrect|missing|no|expired|valid) (api|access|auth\w*)[ _-]?(key|token|credentials?)|api key (not valid|expired|is missing|not found)|unauthori[sz]ed|` +
		`authentication (fails|failed|required|error)|permission denied|not authori[sz]ed|security token`)
	refusalWording = regexp.MustCompile(`(?i)content (management|filter|policy)|content_filter|flagged|moderation|usage polic|safety (system|filter|setting)|inappropriate content|blocked by.{0,30}(filter|policy|safety)`)
	modelWording   = regexp.MustCompile(`(?i)model\b.{0,120}(not found|does not exist|not exist|not supported|is not available|decommissioned|deprecated|not a valid model|unknown)|` +
		`(unknown|invalid|no such|unsupported) model|not a valid model|no endpoints found|deployment.{0,40}(not|doesn).{0,5} exist|try pulling it`)
	serverWording = regexp.MustCompile(`(?i)internal|overload|unavailable|time.?out|timed out|upstream|bad gateway|connection|unexpected eof|server (error|had an error|is busy)|` +
		`provider returned error|temporar|try again|please retry|an error (was|has been|occurred)|engine.{0,20}(dead|died)|cuda|out of memory|runner|crash`)
	neverFits = regexp.MustCompile(`(?i)request too large.{0,200}(limit \d+,? requested \d+|must be reduced|reduce)`)
)
