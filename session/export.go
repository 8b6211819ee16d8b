package session

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"agentd/exitcodes"
	"agentd/provider/message"
)

// Format is a form that a session can be exported in.
type Format string

// The formats.
const (
	Markdown Format = "markdown"
	JSON     Format = "json"
)

// Export writes the whole session, with what a compaction hides from the model,
// to w. Large outputs are in it. What is secret must be masked by w.
func (st Store) Export(w io.Writer, agent, name string, format Format) error {
	if format != Markdown && format != JSON {
		return exitcodes.Errorf(exitcodes.Usage, "a session cannot be exported as %q", format).WithHint("Formats: markdown, json")
	}
	b := bufio.NewWriter(w)
	e := exporter{w: b, dir: st.dir(agent, name), agent: agent, name: name}
	visit := e.markdown
	if format == JSON {
		visit = e.json
	}
	if err := st.Records(agent, name, visit); err != nil {
		return err
	}
	if format == JSON {
		e.print("\n]}\n")
	}
	if e.err == nil {
		e.err = b.Flush()
	}
	return e.err
}

type exporter struct {
	w                *bufio.Writer
	dir, agent, name string
	begun            bool
	err              error // of the first write that failed
}

func (e *exporter) print(format string, args ...any) {
	if e.err == nil {
		_, e.err = fmt.Fprintf(e.w, format, args...)
	}
}

// inline puts a large output back into its record.
func (e *exporter) inline(rec *Record) {
	if rec.Type != TypeResult || rec.Blob == nil || rec.Result == nil {
		return
	}
	text, err := getBlob(e.dir, rec.Blob)
	if err != nil {
		text = lostText(rec.Blob)
	}
	rec.Result.Text, rec.Blob = text, nil
}

func (e *exporter) json(rec *Record) error {
	e.inline(rec)
	data, err := json.Marshal(rec)
	if err != nil {
		return fmt.Errorf("cannot export record %d: %w", rec.Seq, err)
	}
	if e.begun {
		e.print(",\n%s", data)
	} else {
		e.begun = true
		e.print("{\"agent\":%q,\"name\":%q,\"records\":[\n%s", e.agent, e.name, data)
	}
	return e.err
}

func (e *exporter) markdown(rec *Record) error {
	e.inline(rec)
	if !e.begun {
		e.begun = true
		e.print("# %s/%s\n\nBegun %s.\n", e.agent, e.name, stamp(rec.At))
	}
	switch rec.Type {
	case TypeMessage:
		if rec.Message != nil {
			e.message(string(rec.Message.Role), rec.At, *rec.Message)
		}
	case TypeResult:
		e.print("\n**Result of %s** (%s)\n", code(rec.Name+" "+rec.CallID), rec.Outcome)
		if rec.Result != nil {
			e.fenced("", rec.Result.Text)
		}
	case TypeAttemptStarted:
		e.print("\n---\n\n%s: attempt %d of run %s, %s\n", stamp(rec.At), rec.N, rec.RunID, strings.TrimSpace(rec.Backend+" "+rec.Model))
	case TypeAttemptEnded:
		result := "unknown"
		if rec.Code != nil {
			result = fmt.Sprintf("%s (%d)", *rec.Code, int(*rec.Code))
		}
		e.print("\n%s: attempt %d ended: %s, %d requests\n", stamp(rec.At), rec.N, result, rec.Requests)
	case TypeCompaction:
		e.print("\n---\n\n%s: the model sees this summary in place of what is older than record %d.\n", stamp(rec.At), rec.KeepFrom)
		if rec.Message != nil {
			e.message("summary", rec.At, *rec.Message)
		}
	case TypeExternalSession:
		e.print("\n%s: %s keeps this session as %s\n", stamp(rec.At), rec.Backend, code(rec.ID))
	case TypeNote, TypeSealed, TypeRepaired, TypeBlobLost:
		e.print("\n%s: %s\n", stamp(rec.At), oneLine(rec.Text))
	}
	return e.err
}

func (e *exporter) message(who string, at time.Time, m message.Message) {
	if who == "" {
		who = "unknown"
	}
	e.print("\n## %s\n\n%s\n", strings.ToUpper(who[:1])+who[1:], stamp(at))
	for _, p := range m.Parts {
		switch p.Kind {
		case message.ToolCall:
			e.print("\n**Call of %s**\n", code(p.Name+" "+p.ID))
			e.fenced("json", p.Arguments)
		case message.Reasoning:
			if p.Text != "" {
				e.print("\n> %s\n", strings.ReplaceAll(strings.TrimSpace(p.Text), "\n", "\n> "))
			}
		default:
			if p.Text != "" {
				e.print("\n%s\n", p.Text)
			}
		}
	}
}

// fenced prints text as a block that the text itself cannot end.
func (e *exporter) fenced(lang, text string) {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	e.print("\n%s%s\n%s\n%s\n", fence, lang, strings.TrimSuffix(text, "\n"), fence)
}

func code(s string) string {
	return "`" + strings.ReplaceAll(oneLine(strings.TrimSpace(s)), "`", "'") + "`"
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }
