package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	gosse "github.com/tmaxmax/go-sse"
)

// got is an event as text.
type got struct{ Type, Data, Error, ID string }

// all decodes r to its end.
func all(r io.Reader) ([]got, error) {
	d := NewDecoder(r)
	var out []got
	for {
		e, err := d.Next()
		if err != nil {
			return out, err
		}
		out = append(out, got{string(e.Type), string(e.Data), string(e.Error), e.ID})
	}
}

// chunks reads n bytes at a time; n = 0 is a random number.
type chunks struct {
	r io.Reader
	n int
}

func (c chunks) Read(p []byte) (int, error) {
	n := c.n
	if n == 0 {
		n = 1 + rand.IntN(9)
	}
	return c.r.Read(p[:min(n, len(p))])
}

func TestDecoderFollowsTheStandard(t *testing.T) {
	long := strings.Repeat("x", 40<<10)
	tests := []struct {
		name, in string
		want     []got
		err      error
	}{
		{"nothing", "", nil, io.EOF},
		{"one", "data: a\n\n", []got{{Data: "a"}}, io.EOF},
		{"no space", "data:a\n\n", []got{{Data: "a"}}, io.EOF},
		{"one space is taken", "data:  a\n\n", []got{{Data: " a"}}, io.EOF},
		{"CRLF", "event: e\r\ndata: a\r\n\r\ndata: b\r\n\r\n", []got{{Type: "e", Data: "a"}, {Data: "b"}}, io.EOF},
		{"CR", "event: e\rdata: a\r\rdata: b\r\r", []got{{Type: "e", Data: "a"}, {Data: "b"}}, io.EOF},
		{"mixed ends", "data: a\r\ndata: b\rdata: c\n\r\n", []got{{Data: "a\nb\nc"}}, io.EOF},
		{"byte order mark", "\xef\xbb\xbfdata: a\n\n", []got{{Data: "a"}}, io.EOF},
		{"byte order mark twice", "\xef\xbb\xbf\xef\xbb\xbfdata: a\n\ndata: b\n\n", []got{{Data: "b"}}, io.EOF},
		{"comments", ": hello\n\n:\n\ndata: a\n: in between\n\n", []got{{Data: "a"}}, io.EOF},
		{"comment at the end", "data: a\n\n: bye", []got{{Data: "a"}}, io.EOF},
		{"lines", "data: a\ndata\ndata: c\n\n", []got{{Data: "a\n\nc"}}, io.EOF},
		{"empty data", "data:\n\ndata: \n\ndata\n\n", []got{{}, {}, {}}, io.EOF},
		{"type without data", "event: e\n\ndata: a\n\n", []got{{Data: "a"}}, io.EOF},
		{"type is not kept", "event: e\ndata: a\n\ndata: b\n\n", []got{{Type: "e", Data: "a"}, {Data: "b"}}, io.EOF},
		{"the last type counts", "event: e\nevent: f\ndata: a\n\n", []got{{Type: "f", Data: "a"}}, io.EOF},
		{"id is kept", "id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n", []got{{Data: "a", ID: "1"}, {Data: "b", ID: "1"}, {Data: "c"}}, io.EOF},
		{"id with a zero byte", "id: 1\x00\ndata: a\n\n", []got{{Data: "a"}}, io.EOF},
		{"unknown field", "foo: bar\nretry: 10\ndata: a\n\n", []got{{Data: "a"}}, io.EOF},
		{"field names are exact", "Data: a\ndata : b\n data: c\n\n", nil, io.EOF},
		{"colons in a value", "data: a: b\n\n", []got{{Data: "a: b"}}, io.EOF},
		{"error field", "error: {\"code\":500}\n\n", []got{{Error: `{"code":500}`}}, io.EOF},
		{"long lines", "data: " + long + "\ndata: " + long + "\n\ndata: b\n\n", []got{{Data: long + "\n" + long}, {Data: "b"}}, io.EOF},
		{"cut before the empty line", "data: a\n\ndata: b\n", []got{{Data: "a"}}, ErrPartial},
		{"cut in a line", "data: a\n\ndata: b", []got{{Data: "a"}}, ErrPartial},
		{"cut in a field name", "data: a\n\nda", []got{{Data: "a"}}, ErrPartial},
		{"cut in a CRLF", "data: a\r\n\r", []got{{Data: "a"}}, io.EOF},
		{"cut in the mark", "\xef\xbb", nil, ErrPartial},
		{"not UTF-8", "data: \xff\xfe\n\n", []got{{Data: "\xff\xfe"}}, io.EOF},
	}
	for _, tt := range tests {
		for _, n := range []int{0, 1, 2, 3, 7, 1 << 20} {
			t.Run(fmt.Sprintf("%s/%d", tt.name, n), func(t *testing.T) {
				out, err := all(chunks{strings.NewReader(tt.in), n})
				if !errors.Is(err, tt.err) {
					t.Errorf("error is %v, want %v", err, tt.err)
				}
				if diff := cmp.Diff(tt.want, out); diff != "" {
					t.Errorf("events differ (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestDecoderGivesTheReadersError(t *testing.T) {
	broken := errors.New("reset")
	out, err := all(io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) || len(out) != 1 {
		t.Errorf("got %v and %v, want the first event and the reader's error", out, err)
	}
	if _, err := all(iotest.DataErrReader(strings.NewReader("data: a\n\n"))); err != io.EOF {
		t.Errorf("error is %v, want EOF", err)
	}
	if _, err := all(stuck{}); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("error is %v, want no progress", err)
	}
}

// stuck returns nothing and no error.
type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

func TestDecoderBoundsAnEvent(t *testing.T) {
	for name, in := range map[string]io.Reader{
		"a line":            io.MultiReader(strings.NewReader("data: "), endless('x')),
		"a comment":         endless(':'),
		"many data lines":   repeated("data: 0123456789\n"),
		"many other fields": repeated("event: 0123456789\n"),
	} {
		t.Run(name, func(t *testing.T) {
			d := NewDecoder(in)
			d.max = 1 << 20
			_, err := d.Next()
			if !errors.Is(err, ErrTooLarge) {
				t.Errorf("error is %v, want %v", err, ErrTooLarge)
			}
			if len(d.buf) > 4<<20 {
				t.Errorf("the buffer has grown to %d bytes", len(d.buf))
			}
		})
	}
}

func TestDecoderKeepsNothingOfComments(t *testing.T) {
	in := io.LimitReader(repeated(": keepalive\n\n"), 8<<20)
	d := NewDecoder(in)
	d.max = 64 << 10
	if _, err := d.Next(); err != io.EOF {
		t.Errorf("error is %v, want EOF", err)
	}
	if len(d.buf) > 64<<10 {
		t.Errorf("the buffer has grown to %d bytes", len(d.buf))
	}
}

type endless byte

func (b endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(b)
	}
	return len(p), nil
}

// repeated reads s for ever.
func repeated(s string) io.Reader { return &loop{text: []byte(s)} }

type loop struct {
	text []byte
	at   int
}

func (l *loop) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = l.text[l.at%len(l.text)]
		l.at++
	}
	return len(p), nil
}

// oracle decodes with another implementation of the standard, which does not
// tell a partial event at the end.
func oracle(in []byte) []got {
	var out []got
	for e, err := range gosse.Read(bytes.NewReader(in), &gosse.ReadConfig{MaxEventSize: 1 << 20}) {
		if err != nil {
			break
		}
		out = append(out, got{Type: e.Type, Data: e.Data, ID: e.LastEventID})
	}
	return out
}

func TestDecoderAgreesWithAnotherOne(t *testing.T) {
	files, err := filepath.Glob("../testdata/streams/*.sse")
	if err != nil || len(files) != 58 {
		t.Fatalf("found %d streams, want 58 (%v)", len(files), err)
	}
	for _, f := range files {
		in, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out, err := all(bytes.NewReader(in))
		if err != io.EOF {
			t.Errorf("%s: error is %v, want EOF", f, err)
		}
		if diff := cmp.Diff(oracle(in), out); diff != "" {
			t.Errorf("%s: events differ (-theirs +ours):\n%s", f, diff)
		}
	}
}

// withData leaves out events without data: the other implementation dispatches
// one for a type alone, which the standard does not.
func withData(list []got) []got {
	var out []got
	for _, e := range list {
		if e.Data != "" {
			out = append(out, e)
		}
	}
	return out
}

func FuzzDecoder(f *testing.F) {
	for _, s := range []string{"data: a\n\n", "event: e\r\ndata: a\r\ndata\r\n\r\n", "\xef\xbb\xbfid: 1\rdata: é\r\r", ": c\n\ndata", "error: x\n\n"} {
		f.Add([]byte(s), uint8(3))
	}
	f.Fuzz(func(t *testing.T, in []byte, size uint8) {
		whole, werr := all(bytes.NewReader(in))
		parts, perr := all(chunks{bytes.NewReader(in), 1 + int(size)%16})
		if diff := cmp.Diff(whole, parts); diff != "" || werr != perr {
			t.Fatalf("chunks change the events (%v, %v):\n%s", werr, perr, diff)
		}
		if werr != io.EOF && werr != ErrPartial {
			t.Fatalf("error is %v", werr)
		}
		// The other implementation cannot be compared where it deviates: an error
		// field is our addition, and it treats zero bytes in its own way.
		if bytes.Contains(in, []byte("error")) || bytes.IndexByte(in, 0) >= 0 || werr != io.EOF {
			return
		}
		if diff := cmp.Diff(withData(oracle(in)), withData(whole)); diff != "" {
			t.Fatalf("events differ (-theirs +ours):\n%s", diff)
		}
	})
}
