package streams

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	anthropicstream "github.com/anthropics/anthropic-sdk-go/v2/packages/ssestream"
	"github.com/openai/openai-go/v3"
	openaistream "github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"

	"agentd/provider"
)

// recording is a row of the manifest of recorded streams.
type recording struct {
	File string        `json:"file"`
	Wire provider.Wire `json:"wire"`
	Want struct {
		Text string `json:"text"`
	} `json:"want"`
	data []byte
}

func corpus(tb testing.TB, w provider.Wire) (list []recording, size int64) {
	tb.Helper()
	dir := filepath.Join("..", "..", "provider", "testdata", "streams")
	text, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil {
		tb.Fatal(err)
	}
	var all []recording
	if err := json.Unmarshal(text, &all); err != nil {
		tb.Fatal(err)
	}
	for _, r := range all {
		if r.Wire != w {
			continue
		}
		if r.data, err = os.ReadFile(filepath.Join(dir, r.File)); err != nil {
			tb.Fatal(err)
		}
		size += int64(len(r.data))
		list = append(list, r)
	}
	return list, size
}

// reader decodes and accumulates one stream, and returns its text.
type reader func(data []byte) (string, error)

func ours(w provider.Wire) reader {
	return func(data []byte) (string, error) {
		r, err := provider.ReadStream(w, bytes.NewReader(data), provider.StreamOptions{})
		if err != nil {
			return "", err
		}
		return r.Message.Text(), nil
	}
}

func response(data []byte) *http.Response {
	return &http.Response{Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(bytes.NewReader(data))}
}

func openaiChat(data []byte) (string, error) {
	s := openaistream.NewStream[openai.ChatCompletionChunk](openaistream.NewDecoder(response(data)), nil)
	var acc openai.ChatCompletionAccumulator
	for s.Next() {
		acc.AddChunk(s.Current())
	}
	if len(acc.Choices) == 0 {
		return "", s.Err()
	}
	return acc.Choices[0].Message.Content, s.Err()
}

// openaiResponses has no accumulator of the SDK to use: the final event holds
// the whole response.
func openaiResponses(data []byte) (string, error) {
	s := openaistream.NewStream[responses.ResponseStreamEventUnion](openaistream.NewDecoder(response(data)), nil)
	var text string
	for s.Next() {
		if e := s.Current(); e.Type == "response.completed" {
			text = e.Response.OutputText()
		}
	}
	return text, s.Err()
}

func anthropicMessages(data []byte) (string, error) {
	s := anthropicstream.NewStream[anthropic.MessageStreamEventUnion](anthropicstream.NewDecoder(response(data)), nil)
	var m anthropic.Message
	for s.Next() {
		if err := m.Accumulate(s.Current()); err != nil {
			return "", err
		}
	}
	var text string
	for _, b := range m.Content {
		if b.Type == "text" {
			text += b.Text
		}
	}
	return text, s.Err()
}

// race is one comparison.
type race struct {
	wire  provider.Wire
	peer  string
	reads reader
}

func races() []race {
	return []race{
		{provider.Chat, "openai-go", openaiChat},
		{provider.Responses, "openai-go", openaiResponses},
		{provider.Anthropic, "anthropic-sdk-go", anthropicMessages},
	}
}

func TestBothReadTheSame(t *testing.T) {
	for _, r := range races() {
		list, _ := corpus(t, r.wire)
		for _, rec := range list {
			for name, read := range map[string]reader{"agentd": ours(r.wire), r.peer: r.reads} {
				if text, err := read(rec.data); err != nil || text != rec.Want.Text {
					t.Errorf("%s: %s reads %q (%v), want %q", rec.File, name, text, err, rec.Want.Text)
				}
			}
		}
	}
}

func BenchmarkStreams(b *testing.B) {
	for _, r := range races() {
		b.Run(string(r.wire)+"/agentd", func(b *testing.B) { bench(b, r.wire, ours(r.wire)) })
		b.Run(string(r.wire)+"/"+r.peer, func(b *testing.B) { bench(b, r.wire, r.reads) })
	}
}

func bench(b *testing.B, w provider.Wire, read reader) {
	list, size := corpus(b, w)
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		for _, rec := range list {
			if _, err := read(rec.data); err != nil {
				b.Fatal(err)
			}
		}
	}
}
