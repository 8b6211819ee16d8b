package backend

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"agentd/exitcodes"
	"agentd/workspace"
)

// recorded is a row of testdata/cli-outputs/manifest.json.
type recorded struct {
	Name   string         `json:"name"`
	CLI    string         `json:"cli"`
	Did    string         `json:"provider_did"`
	Status int            `json:"status"`
	Code   exitcodes.Code `json:"code"`
	Reset  string         `json:"reset"`
}

const recordedDir = "testdata/cli-outputs"

func recordedRows(t *testing.T) []recorded {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(recordedDir, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var rows []recorded
	if err := json.Unmarshal(data, &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) < 75 {
		t.Fatalf("the manifest has %d rows, want at least 75", len(rows))
	}
	return rows
}

func (c recorded) read(t *testing.T, ext string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(recordedDir, c.Name+ext))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// recordedAt is when the outputs were made, for times of day in them.
var recordedAt = time.Date(2026, 12, 1, 5, 25, 0, 0, time.UTC)

// TestRecordedOutputs wants the right code from the output of real CLIs. A
// program that had to be stopped is judged only in TestRecordedEndings: our own
// timeout goes before all that it says.
func TestRecordedOutputs(t *testing.T) {
	t.Parallel()
	for _, row := range recordedRows(t) {
		t.Run(row.Name, func(t *testing.T) {
			t.Parallel()
			preset, err := workspace.BackendPreset(row.CLI)
			if err != nil {
				t.Fatal(err)
			}
			c, err := newClassifier(preset, func() time.Time { return recordedAt }, time.UTC)
			if err != nil {
				t.Fatal(err)
			}
			end := ending{status: row.Status}
			switch row.Status {
			case 124:
				return
			case 137, 143:
				end.signal = "SIGTERM"
			}
			r := readAll(preset.Output, row.read(t, ".out"), row.read(t, ".err"), 1<<20)
			v := c.judge(r, end, preset.Judge)
			if v.code != row.Code {
				t.Errorf("code %d (%s), want %d (%s): %s", v.code, v.code, row.Code, row.Code, v.text)
			}
			want, got := row.Reset, ""
			if !v.reset.IsZero() {
				got = v.reset.UTC().Format(time.RFC3339)
			}
			if got != want {
				t.Errorf("reset at %q, want %q", got, want)
			}
			if (v.code == exitcodes.OK) != (v.text == "") {
				t.Errorf("code %s with the reason %q", v.code, v.text)
			}
			if v.code == exitcodes.OK && (r.text != "Hello from mock" || r.session == "" || r.usage.OutputTokens == 0 || r.steps == 0) {
				t.Errorf("text %q, session %q, usage %+v, %d steps", r.text, r.session, r.usage, r.steps)
			}
		})
	}
}

// readAll lets the reader of a format read output in pieces of at most n bytes.
func readAll(name string, out, errors []byte, n int) *reading {
	var log bytes.Buffer
	r := newReading(&log, func(Event) {}, func() time.Time { return recordedAt })
	f := newFormat(name)
	lines := func() *lineWriter { return newLineWriter(&log, 1<<20) }
	var o, e closer
	if f == nil {
		o, e = &textStream{r: r, lines: lines(), touched: func() {}}, &textStream{r: r, errors: true, lines: lines(), touched: func() {}}
	} else {
		o, e = &stream{r: r, format: f, lines: lines(), touched: func() {}}, &stream{r: r, format: f, errors: true, lines: lines(), touched: func() {}}
	}
	for _, s := range []struct {
		to   closer
		data []byte
	}{{e, errors}, {o, out}} {
		for len(s.data) > 0 {
			k := min(n, len(s.data))
			_, _ = s.to.Write(s.data[:k])
			s.data = s.data[k:]
		}
		_ = s.to.close()
	}
	if f != nil {
		finish(r, f)
	}
	return r
}
