package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestString(t *testing.T) {
	token := strings.Repeat("aB3", 14)
	r := New([]string{"hunter2!", "", "abc", "hunter2!long", "p/w\"x &<é>\\", "line one is long\nshort\n-----BEGIN KEY-----\nline three is long too\n"})
	for _, c := range []struct{ name, in, want string }{
		{"nothing", "an ordinary line", "an ordinary line"},
		{"empty", "", ""},
		{"value", "password=hunter2!\n", "password=[redacted]\n"},
		{"twice", "hunter2!hunter2!", "[redacted][redacted]"},
		{"the longer value", "hunter2!long hunter2!lo", "[redacted] [redacted]lo"},
		{"short values are ignored", "abc", "abc"},
		{"start of a value", "hunter2", "hunter2"},
		{"url", "?p=" + url.QueryEscape("p/w\"x &<é>\\"), "?p=[redacted]"},
		{"url, lower case", strings.ToLower("/p%2Fw%22x%20&%3C%C3%A9%3E%5C/"), "/[redacted]/"},
		{"json", `{"p":"p/w\"x \u0026\u003cé\u003e\\"}`, `{"p":"[redacted]"}`},
		{"json as others write it", `{"p":"p/w\"x &<é>\\"}`, `{"p":"[redacted]"}`},
		{"base64", base64.StdEncoding.EncodeToString([]byte("hunter2!")), "[redacted]"},
		{"base64, url", base64.RawURLEncoding.EncodeToString([]byte("hunter2!")), "[redacted]"},
		{"a line of many", "> line three is long too", "> [redacted]"},
		{"a short line of many", "short -----BEGIN KEY-----", "short -----BEGIN KEY-----"},
		{"openai", "key sk-" + token + ".", "key [redacted]."},
		{"not inside a word", "task-" + token, "task-" + token},
		{"too short to be a key", "sk-learn", "sk-learn"},
		{"github", "ghp_" + token, "[redacted]"},
		{"aws", "AKIAIOSFODNN7EXAMPLE", "[redacted]"},
		{"bearer", "Authorization: Bearer " + token + "==\r\n", "Authorization: Bearer [redacted]\r\n"},
		{"bearer in lower case", "authorization: bearer " + token, "authorization: bearer [redacted]"},
		{"bearer of news", "the bearer of news", "the bearer of news"},
		{"basic", "Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic [redacted]"},
		{"a value inside a token", "sk-" + token + "hunter2!", "[redacted]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := r.String(c.in); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestOverlappingValuesAreBothMasked(t *testing.T) {
	r := New([]string{"abcXYZ", "XYZdef"})
	if got := r.String("-abcXYZdef-"); got != "-[redacted]-" {
		t.Errorf("got %q", got)
	}
}

// Whatever the secret and wherever it stands in a longer base64 text, too little
// of it is left to decode.
func TestBase64InContext(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`[a-zA-Z0-9!/+-]{10,40}`).Draw(t, "secret")
		text := rapid.StringMatching(`[a-z:]{0,7}`).Draw(t, "before") + secret + rapid.StringMatching(`[a-z]{0,4}`).Draw(t, "after")
		for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding, base64.RawURLEncoding} {
			got := New([]string{secret}).String(enc.EncodeToString([]byte(text)))
			rest := len(strings.ReplaceAll(got, Mask, ""))
			if !strings.Contains(got, Mask) || rest > (len(text)-len(secret))*4/3+8 {
				t.Errorf("%q becomes %q", text, got)
			}
		}
	})
}

// In JSON any secret is masked.
func TestJSONAnySecret(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringN(8, 30, -1).Draw(t, "secret")
		if len(strings.TrimSpace(secret)) < minSecret || strings.ContainsAny(secret, "\r\n") {
			t.Skip()
		}
		data, err := json.Marshal(map[string]string{"k": secret})
		if err != nil {
			t.Fatal(err)
		}
		if got := New([]string{secret}).String(string(data)); got != `{"k":"[redacted]"}` {
			t.Errorf("%s becomes %s", data, got)
		}
	})
}

// A stream is masked exactly as the whole text is, wherever it is cut.
func TestWriterIsStringForAnyCut(t *testing.T) {
	piece := rapid.SampledFrom([]string{
		"hunter2!", "hunter", "2!", "!long", "abcXYZ", "XYZdef", "XYZ", " ", "\n", "x", "-", "_", ".", "sk-", "bearer ", "Bear", "er ", "ghp_", "AKIA",
		"authorization: ", "basic ", "aaaaaaaaaaaaaaaa", "0123456789ABCDEF", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", "aHVudGVy", "MiE=",
	})
	r := New([]string{"hunter2!", "hunter2!long", "abcXYZ", "XYZdef", "aaaaaaaaaaaaaaaa.x", "x-sk-aaaa"})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 0, 30).Draw(t, "pieces"), "")
		var out bytes.Buffer
		w := r.Writer(&out)
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			if got, err := w.Write([]byte(rest[:n])); got != n || err != nil {
				t.Fatalf("Write: %d, %v", got, err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if want := r.String(text); out.String() != want {
			t.Errorf("%q\n  got  %q\n  want %q", text, out.String(), want)
		}
		for _, secret := range []string{"hunter2!", "abcXYZ", "XYZdef"} {
			if strings.Contains(out.String(), secret) {
				t.Errorf("%q tells %q", out.String(), secret)
			}
		}
	})
}

func TestWriterHoldsBackNoMoreThanNeeded(t *testing.T) {
	var out bytes.Buffer
	w := New([]string{"hunter2!"}).Writer(&out)
	step := func(in, want string) {
		t.Helper()
		if _, err := w.Write([]byte(in)); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("after %q: %q, want %q", in, out.String(), want)
		}
	}
	step("a line\n", "a line\n")
	step("no end", "a line\nno end")
	step(" hunter", "a line\nno end ")
	step("s\n", "a line\nno end hunters\n")
	step("hunter2", "a line\nno end hunters\n")
	step("!", "a line\nno end hunters\n[redacted]")
}

func TestWriterBoundsWhatItHolds(t *testing.T) {
	var out bytes.Buffer
	r := New([]string{"hunter2!"})
	w := r.Writer(&out).(*writer)
	for range 1000 {
		if _, err := w.Write([]byte("sk-" + strings.Repeat("a", 997))); err != nil {
			t.Fatal(err)
		}
	}
	if len(w.scan.held) > 100 || len(w.scan.open) > 8 || out.String() != Mask {
		t.Errorf("holds %d bytes, %d open, wrote %d bytes", len(w.scan.held), len(w.scan.open), out.Len())
	}
	if err := w.Close(); err != nil || out.String() != Mask {
		t.Errorf("closed: %v, %d bytes", err, out.Len())
	}
	if _, err := w.Write([]byte("x")); err == nil {
		t.Error("wrote after Close")
	}
	if err := w.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func BenchmarkWriter(b *testing.B) {
	text := bytes.Repeat([]byte("12:00:01 request 3 of 11: an ordinary line of the log, with some words\n"), 500)
	r := New([]string{"a secret of some length", "another one: sk-ant-0123456789", strings.Repeat("long ", 500)})
	w := r.Writer(bytes.NewBuffer(make([]byte, 0, 1<<20)))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		w.(*writer).to.(*bytes.Buffer).Reset()
		if _, err := w.Write(text); err != nil {
			b.Fatal(err)
		}
	}
}
