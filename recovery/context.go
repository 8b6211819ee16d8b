package recovery

import "context"

type (
	budgetKey   struct{}
	noReplayKey struct{}
)

// With returns a context that carries b to everything below.
func With(ctx context.Context, b *Budget) context.Context {
	return context.WithValue(ctx, budgetKey{}, b)
}

// From returns the Budget of ctx, or nil if it has none.
func From(ctx context.Context) *Budget {
	b, _ := ctx.Value(budgetKey{}).(*Budget)
	return b
}

// Ensure returns the Budget of ctx, or a new one and a context that carries it.
// Nested scopes thereby share one allowance and one deadline.
func Ensure(ctx context.Context, o Options) (context.Context, *Budget) {
	if b := From(ctx); b != nil {
		return ctx, b
	}
	b := New(o)
	return With(ctx, b), b
}

// WithoutReplay returns a context under which no Budget admits a replay, for
// readers that cannot take a preview back. Requests are still counted.
func WithoutReplay(ctx context.Context, why string) context.Context {
	return context.WithValue(ctx, noReplayKey{}, why)
}
