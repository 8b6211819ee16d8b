package backend

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"text":                                     "text",
		"\x1b[1;31mred\x1b[0m and \x1b[Kclear":     "red and clear",
		"\x1b]0;title\x07text":                     "text",
		"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\": "link",
		"\x1b]0;no end":                            "0;no end",
		"\x1b[12":                                  "12",
		"\x1b(Btext\x1b=\x1b>":                     "text",
		"\x1bé \x1b(é":                             "é é",
		"bell\x07 back\x08space\ttab\x7f\x00":      "bell backspace\ttab",
		"C1 \u009b31m é":                           "C1 31m é",
		"bad \xff\xfe utf8 \xc3":                   "bad \uFFFD utf8 \uFFFD",
		"\x1b":                                     "",
	} {
		if got := string(plain([]byte(in))); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

func TestPlainIsAlwaysPlain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.SliceOf(rapid.SampledFrom([]byte("\x1b\x1b[]()\\;07aé\xc3\xa9\xc2\x9b\xff\x00\x07 m"))).Draw(t, "in")
		out := plain(in)
		if !utf8.Valid(out) || bytes.ContainsAny(out, "\x1b\x00\x07\u009b") {
			t.Errorf("%q becomes %q", in, out)
		}
	})
}

// TestTextLength compares the look at eight bytes at once with one at each.
func TestTextLength(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOfN(rapid.OneOf(rapid.ByteRange(' ', '~'), rapid.SampledFrom([]byte("\n\t  ~"))), 0, 40).Draw(t, "text")
		if at := rapid.IntRange(0, 60).Draw(t, "at"); at < len(text) {
			text[at] = rapid.Byte().Draw(t, "byte")
		}
		for _, high := range []byte{0, utf8.RuneSelf} {
			want := slices.IndexFunc(text, func(b byte) bool { return !printable[b] && (high == 0 || b < high) })
			if want < 0 {
				want = len(text)
			}
			if got := textLength(text, high); got != want {
				t.Errorf("%q, high %d: %d, want %d", text, high, got, want)
			}
		}
	})
}

// Lines come out the same however the output is cut into writes, and none is
// lost.
func TestLineWriterAnyCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SampledFrom([]string{"\n", "\r\n", "\r", "a", "word ", "é", "\x1b[31m", "\xff", "日本", "\x1b]0;title", "\u009b", "\x7f\t", "a longer piece of text"})
		text := strings.Join(rapid.SliceOf(piece).Draw(t, "pieces"), "")
		var out bytes.Buffer
		w := newLineWriter(&out, 1<<20)
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			if got, err := w.Write([]byte(rest[:n])); got != n || err != nil {
				t.Fatal(got, err)
			}
			rest = rest[n:]
		}
		if err := w.close(); err != nil {
			t.Fatal(err)
		}
		var want strings.Builder
		unix := strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
		for line := range strings.Lines(unix) {
			want.Write(plain([]byte(strings.TrimSuffix(line, "\n"))))
			want.WriteByte('\n')
		}
		if out.String() != want.String() {
			t.Errorf("%q\n got  %q\n want %q", text, out.String(), want.String())
		}
	})
}

func TestLineWriterLongLine(t *testing.T) {
	var out bytes.Buffer
	w := newLineWriter(&out, 100<<20)
	text := "x" + strings.Repeat("é", 3*maxLine/2)
	for i := 0; i < len(text); i += 1000 {
		if _, err := w.Write([]byte(text[i:min(i+1000, len(text))])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	if strings.ReplaceAll(out.String(), "\n", "") != text || strings.Count(out.String(), "\n") < 3 {
		t.Errorf("%d bytes in %d lines from %d", out.Len(), strings.Count(out.String(), "\n"), len(text))
	}
}

func TestLineWriterCutsAFlood(t *testing.T) {
	var out bytes.Buffer
	w := newLineWriter(&out, 1000)
	for i := range 100000 {
		fmt.Fprintf(w, "line %d\n", i)
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	s := out.String()
	if !strings.HasPrefix(s, "line 0\nline 1\n") || !strings.HasSuffix(s, "\nline 99998\nline 99999\n") || !strings.Contains(s, "\n[agentd: ") || len(s) > 1000+maxTail+200 {
		t.Errorf("%d bytes", len(s))
	}
	if w.last() != "line 99999" || !strings.HasSuffix(w.tail(), "line 99998\nline 99999") || len(w.tail()) > maxSaid {
		t.Errorf("last %q, tail of %d bytes", w.last(), len(w.tail()))
	}
	out.Reset()
	w = newLineWriter(&out, 10) // nothing is left out if the end holds it all
	fmt.Fprint(w, "line 1\nline 2\nline 3")
	if err := w.close(); err != nil || out.String() != "line 1\nline 2\nline 3\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestLineWriterLast(t *testing.T) {
	w := newLineWriter(&bytes.Buffer{}, 1000)
	if w.last() != "" || w.tail() != "" {
		t.Errorf("nothing said: %q, %q", w.last(), w.tail())
	}
	fmt.Fprint(w, "first\n  error: it broke \n\n\x1b[0m\n")
	if w.last() != "error: it broke" || w.tail() != "first\n  error: it broke" {
		t.Errorf("got %q, %q", w.last(), w.tail())
	}
	fmt.Fprint(w, strings.Repeat("é", 10000)+"\n")
	if l := w.last(); len(l) > maxLast+3 || !strings.HasSuffix(l, "é...") || !utf8.ValidString(w.tail()) {
		t.Errorf("a long line: %q", l)
	}
}

func TestLineWriterReportsTheFirstError(t *testing.T) {
	full := errors.New("disk full")
	w := newLineWriter(failing{full}, 1000)
	if n, err := w.Write([]byte("a\nb\n")); n != 4 || !errors.Is(err, full) {
		t.Errorf("Write: %d, %v", n, err)
	}
	if err := w.close(); !errors.Is(err, full) || w.last() != "b" {
		t.Errorf("close: %v, last %q", err, w.last())
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func BenchmarkLineWriter(b *testing.B) {
	text := bytes.Repeat([]byte("an ordinary line of output with \x1b[1msome\x1b[0m colour\n"), 1000)
	w := newLineWriter(&bytes.Buffer{}, 1<<20)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := w.Write(text); err != nil {
			b.Fatal(err)
		}
	}
}
