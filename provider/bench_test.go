package provider

import (
	"bytes"
	"testing"
)

// BenchmarkReadStream decodes and accumulates the whole corpus.
func BenchmarkReadStream(b *testing.B) {
	list := corpus(b)
	for _, w := range []Wire{Chat, Anthropic, Responses} {
		b.Run(string(w), func(b *testing.B) {
			var size int64
			for _, rec := range list {
				if rec.Wire == w {
					size += int64(len(rec.data))
				}
			}
			b.SetBytes(size)
			b.ReportAllocs()
			var in bytes.Reader
			for b.Loop() {
				for _, rec := range list {
					if rec.Wire != w {
						continue
					}
					in.Reset(rec.data)
					if _, err := ReadStream(w, &in, StreamOptions{}); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
