package backend

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"agentd/process"
)

// BenchmarkPump measures how fast the output of a program gets into a log, and
// tee beside it, on the same text.
func BenchmarkPump(b *testing.B) {
	dir := b.TempDir()
	const size, times = 64 << 20, 8
	for _, text := range []struct{ name, line string }{
		{"ascii", "2026-12-01 12:00:00 INFO an ordinary line of output, number 4711\n"},
		{"utf8", "2026-12-01 12:00:00 INFO une ligne de sortie très ordinaire – numéro 4711 ✓\n"},
		{"colour", "2026-12-01 12:00:00 \x1b[32mINFO\x1b[0m an ordinary line of output, number 4711\n"},
	} {
		file := filepath.Join(dir, text.name)
		if err := os.WriteFile(file, bytes.Repeat([]byte(text.line), size/len(text.line)), 0o600); err != nil {
			b.Fatal(err)
		}
		script := fmt.Sprintf("for i in $(seq %d); do cat %q; done", times, file)
		sink := func(b *testing.B) *os.File {
			log, err := os.Create(filepath.Join(dir, "log"))
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = log.Close() })
			return log
		}
		b.Run(text.name+"/agentd", func(b *testing.B) {
			b.SetBytes(size * times)
			for b.Loop() {
				log := sink(b)
				w := newLineWriter(log, size*times*2)
				if _, err := process.Run(b.Context(), process.Spec{Argv: []string{"sh", "-c", script}, Env: os.Environ(), Stdout: w}); err != nil {
					b.Fatal(err)
				}
				if err := w.close(); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(text.name+"/tee", func(b *testing.B) {
			b.SetBytes(size * times)
			for b.Loop() {
				log := sink(b)
				cmd := exec.Command("bash", "-c", "("+script+") | tee "+log.Name()+" >/dev/null")
				if err := cmd.Run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
