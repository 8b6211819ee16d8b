package process

import "testing"

func BenchmarkRunTrue(b *testing.B) {
	for b.Loop() {
		if _, err := Run(b.Context(), Spec{Argv: []string{"true"}, Env: env()}); err != nil {
			b.Fatal(err)
		}
	}
}
