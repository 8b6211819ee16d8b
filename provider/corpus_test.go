package provider

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// recording is one row of the manifest of recorded streams.
type recording struct {
	File  string `json:"file"`
	Wire  Wire   `json:"wire"`
	Bytes int    `json:"bytes"`
	Want  result `json:"want"`
	data  []byte
	// terminal is how many bytes it takes until the terminal event is whole.
	terminal int
}

// result is what the manifest says of a stream.
type result struct {
	Text         string `json:"text"`
	ToolCalls    []call `json:"tool_calls"`
	Finish       string `json:"finish"`
	InputTokens  int64  `json:"input_tokens"`
	OutputTokens int64  `json:"output_tokens"`
}

type call struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

func corpus(tb testing.TB) []recording {
	tb.Helper()
	text, err := os.ReadFile("testdata/streams/manifest.json")
	if err != nil {
		tb.Fatal(err)
	}
	var list []recording
	if err := json.Unmarshal(text, &list); err != nil {
		tb.Fatal(err)
	}
	if len(list) != 58 {
		tb.Fatalf("the manifest has %d rows, want 58", len(list))
	}
	for i := range list {
		list[i].data, err = os.ReadFile(filepath.Join("testdata/streams", list[i].File))
		if err != nil {
			tb.Fatal(err)
		}
		if len(list[i].data) != list[i].Bytes {
			tb.Fatalf("%s has %d bytes, want %d", list[i].File, len(list[i].data), list[i].Bytes)
		}
	}
	for i := range list {
		list[i].terminal = list[i].findTerminal()
	}
	return list
}

// findTerminal looks for the wire's own words, independently of the decoder.
func (rec recording) findTerminal() int {
	sign := map[Wire][]string{
		Chat:      {`"finish_reason":"stop"`, `"finish_reason":"tool_calls"`},
		Anthropic: {`"type":"message_stop"`},
		Responses: {`"type":"response.completed"`},
	}[rec.Wire]
	first := len(rec.data)
	for _, s := range sign {
		if i := bytes.Index(rec.data, []byte(s)); i >= 0 {
			first = min(first, i)
		}
	}
	return first + bytes.Index(rec.data[first:], []byte("\n\n")) + 2
}

// resultOf reduces a reply to what the manifest speaks of.
func resultOf(r *Reply) result {
	out := result{Text: r.Message.Text(), ToolCalls: []call{}, Finish: r.RawFinish, InputTokens: r.Usage.InputTokens, OutputTokens: r.Usage.OutputTokens}
	for _, p := range r.Message.ToolCalls() {
		out.ToolCalls = append(out.ToolCalls, call{p.ID, p.Name, p.Arguments})
	}
	return out
}

func TestRecordedStreamsGiveTheManifest(t *testing.T) {
	for _, rec := range corpus(t) {
		t.Run(rec.File, func(t *testing.T) {
			reply, err := ReadStream(rec.Wire, bytes.NewReader(rec.data), StreamOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(rec.Want, resultOf(reply)); diff != "" {
				t.Errorf("result differs (-want +got):\n%s", diff)
			}
		})
	}
}

// replyOf reads a recording with previews.
func replyOf(tb testing.TB, rec recording, preview func(Event)) *Reply {
	tb.Helper()
	reply, err := ReadStream(rec.Wire, bytes.NewReader(rec.data), StreamOptions{Preview: preview})
	if err != nil {
		tb.Fatalf("%s: %v", rec.File, err)
	}
	return reply
}
