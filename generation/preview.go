package generation

import (
	"fmt"
	"io"
	"strings"

	"agentd/provider"
)

// Plain returns a Preview for a terminal or log that cannot take text back: it
// writes the text as it comes, and where a reply is void it says what was
// thrown away, so that nobody reads two attempts as one answer. Only the text of
// the agent is shown. Errors of w are not reported.
func Plain(w io.Writer) func(provider.Event) {
	var shown strings.Builder // of the reply in the making
	return func(ev provider.Event) {
		switch ev.Kind {
		case provider.TextDelta:
			shown.WriteString(ev.Text)
			_, _ = io.WriteString(w, ev.Text)
		case provider.Reset:
			if shown.Len() > 0 {
				_, _ = fmt.Fprintf(w, "\n[threw away the %s above: %s]\n", size(shown.Len()), oneLine(ev.Text))
			}
			shown.Reset()
		case Commit:
			if s := shown.String(); s != "" && !strings.HasSuffix(s, "\n") {
				_, _ = io.WriteString(w, "\n")
			}
			shown.Reset()
		}
	}
}
