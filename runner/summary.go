package runner

import (
	"fmt"
	"strings"
	"time"

	"agentd/exitcodes"
)

// summary is the last line of a run.
func (w *run) summary(code exitcodes.Code) string {
	parts := []string{code.String()}
	if code != exitcodes.OK {
		parts[0] = fmt.Sprintf("%s (%d)", code, code)
	}
	if n := len(w.record.Attempts); n > 0 {
		parts[0] += "  " + plural(n, "attempt")
	}
	requests := 0
	for _, a := range w.record.Attempts {
		requests += a.Requests
	}
	if requests > 0 {
		parts = append(parts, plural(requests, "request"))
	}
	if u := w.record.Usage; u.InputTokens > 0 || u.OutputTokens > 0 {
		parts = append(parts, fmt.Sprintf("%s tokens in, %s out", thousands(u.InputTokens), thousands(u.OutputTokens)))
	}
	if c := w.record.Usage.CostUSD; c > 0 {
		parts = append(parts, fmt.Sprintf("$%.2f", c))
	}
	line := w.record.EndedAt.Local().Format(time.TimeOnly) + " done  " + strings.Join(parts, ", ")
	if w.record.ResetAt != nil && code == exitcodes.RateLimited {
		line += ", limited until " + w.record.ResetAt.Local().Format("2 Jan 15:04:05")
	}
	return line
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func thousands(n int64) string {
	if n < 10_000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%dk", (n+500)/1000)
}

// redact masks secrets in what goes into the record. Before the environment is
// read there is nothing secret to say.
func (w *run) redact(s string) string {
	if w.out == nil {
		return s
	}
	return w.out.redact.String(s)
}
