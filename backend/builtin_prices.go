package backend

import (
	"slices"
	"strings"

	"agentd/provider"
	"agentd/provider/message"
)

// price is what a million tokens of a model cost, in USD.
type price struct {
	model                          string
	input, cached, written, output float64
}

// prices are list prices of a few models whose price is simple. They are an aid
// for max_cost_usd and for reports, not an invoice: where a provider tells the
// cost itself, that is taken instead. A model that is not here has no price.
func prices() []price {
	return []price{
		{"anthropic/claude-opus-4-5", 5, 0.5, 6.25, 25},
		{"anthropic/claude-sonnet-4-5", 3, 0.3, 3.75, 15},
		{"anthropic/claude-haiku-4-5", 1, 0.1, 1.25, 5},
		{"openai/gpt-5", 1.25, 0.125, 1.25, 10},
		{"openai/gpt-5-mini", 0.25, 0.025, 0.25, 2},
		{"openai/gpt-5-nano", 0.05, 0.005, 0.05, 0.4},
	}
}

// priceOf returns the function that prices usage of a model (provider/model).
// Dated snapshots cost what their model costs; other variants are unknown.
func priceOf(w provider.Wire, model string) func(message.Usage) (float64, bool) {
	all := prices()
	i := slices.IndexFunc(all, func(p price) bool {
		rest, ok := strings.CutPrefix(model, p.model)
		return ok && (rest == "" || strings.HasPrefix(rest, "-20"))
	})
	return func(u message.Usage) (float64, bool) {
		if i < 0 {
			return 0, false
		}
		p, fresh := all[i], u.InputTokens
		if w != provider.Anthropic { // there the input does not contain these
			fresh -= u.CachedTokens + u.CacheWriteTokens
		}
		return (float64(fresh)*p.input + float64(u.CachedTokens)*p.cached +
			float64(u.CacheWriteTokens)*p.written + float64(u.OutputTokens)*p.output) / 1e6, true
	}
}
