package jsonscan

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// value builds what the cursor reads, the way encoding/json would.
func value(c *Cursor) any {
	switch c.Kind() {
	case '{':
		m := map[string]any{}
		for key := range c.Object() {
			k := string(key)
			m[k] = value(c)
		}
		return m
	case '[':
		list := []any{}
		for range c.Array() {
			list = append(list, value(c))
		}
		return list
	case '"':
		return string(c.String())
	case '0':
		return c.Float()
	case 't':
		c.Skip()
		return true
	case 'f':
		c.Skip()
		return false
	}
	c.Skip()
	return nil
}

func read(text []byte) (any, error) {
	var c Cursor
	c.Reset(text)
	v := value(&c)
	return v, c.End()
}

func TestCursorReadsWhatEncodingJSONReads(t *testing.T) {
	for _, text := range []string{
		`{}`, `[]`, `""`, `0`, `-0.5e+3`, `true`, `false`, `null`, ` { "a" : [ 1 , "b" , { } ] } `,
		`"\"\\\/\b\f\n\r\t\u00e9\u20ac\ud83d\ude00"`, `"\ud83d"`, `"\ud83d\u0041"`, `"\ude00x"`, `"a\u0000b"`,
		`{"long":"` + strings.Repeat("é", 100) + `\n` + strings.Repeat("x", 100) + `"}`, `{"a":1,"a":2}`, `{"\u0061":1}`,
	} {
		check(t, []byte(text))
	}
}

func TestCursorRefusesWhatIsNotJSON(t *testing.T) {
	for _, text := range []string{
		``, ` `, `{`, `}`, `[`, `[1,`, `[1,]`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{a:1}`, `{"a" 1}`, `"`, `"\`, `"\u12`, `"\x"`,
		"\"\n\"", "\"\x00\"", `01`, `1.`, `1e`, `-`, `+1`, `.5`, `tru`, `nul`, `1 2`, `{} x`, `[1 2]`, "\x00", `"a"b`, `'a'`, `{"a":1 "b":2}`,
		strings.Repeat("[", 100000),
	} {
		check(t, []byte(text))
	}
}

// check compares with encoding/json.
func check(t *testing.T, text []byte) {
	t.Helper()
	got, err := read(text)
	if (err == nil) != json.Valid(text) {
		if bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) <= maxDepth {
			t.Errorf("%.80q: error is %v, valid is %t", text, err, json.Valid(text))
		}
		return
	}
	if err != nil {
		return
	}
	var want any
	if json.Unmarshal(text, &want) != nil {
		return // a number out of range
	}
	if got := normal(got); !reflect.DeepEqual(got, normal(want)) {
		t.Errorf("%.80q: got %#v, want %#v", text, got, want)
	}
	var c Cursor
	c.Reset(text)
	c.Skip()
	if err := c.End(); err != nil {
		t.Errorf("%.80q: skipping fails: %v", text, err)
	}
}

// normal replaces invalid UTF-8 as encoding/json does, byte by byte.
func normal(v any) any {
	switch v := v.(type) {
	case string:
		return string([]rune(v))
	case []any:
		for i := range v {
			v[i] = normal(v[i])
		}
	case map[string]any:
		m := map[string]any{}
		for k, e := range v {
			m[string([]rune(k))] = normal(e)
		}
		return m
	}
	return v
}

func TestCursorTellsACutFromAMistake(t *testing.T) {
	whole := `{"a":[1,"b\u00e9",{"c":-1.5e3}],"d":null}`
	for i := range len(whole) {
		if _, err := read([]byte(whole[:i])); !Cut(err) {
			t.Errorf("%q: %v is not a cut", whole[:i], err)
		}
	}
	if _, err := read([]byte(`{"a":x}`)); err == nil || Cut(err) {
		t.Errorf("error is %v, want one that is not a cut", err)
	}
}

func TestCursorSkipsWhatIsNotAskedFor(t *testing.T) {
	var c Cursor
	c.Reset([]byte(`{"skip":{"a":[1,2,{"b":"\n"}]},"n":"text","s":5,"o":[1],"l":{"x":1},"i":7.9,"end":"yes"}`))
	var n, i int64
	var end string
	var loops int
	for key := range c.Object() {
		switch string(key) {
		case "n":
			n = c.Int()
		case "s":
			if c.String() != nil {
				t.Error("a number was read as a string")
			}
		case "o":
			for range c.Object() {
				loops++
			}
		case "l":
			for range c.Array() {
				loops++
			}
		case "i":
			i = c.Int()
		case "end":
			end = string(c.String())
		}
	}
	if err := c.End(); err != nil || n != 0 || i != 7 || end != "yes" || loops != 0 {
		t.Errorf("got n=%d i=%d end=%q loops=%d err=%v", n, i, end, loops, err)
	}
}

func TestCursorGoesOnAfterABreak(t *testing.T) {
	var c Cursor
	c.Reset([]byte(`[{"a":1,"b":2},{"a":3}]`))
	var sum int64
	for range c.Array() {
		for key := range c.Object() {
			if string(key) == "a" {
				sum += c.Int()
				break
			}
		}
	}
	if err := c.End(); err != nil || sum != 4 {
		t.Errorf("sum is %d, error %v; want 4 and none", sum, err)
	}
}

func TestCursorHoldsIntegersAtTheirBounds(t *testing.T) {
	for text, want := range map[string]int64{"12": 12, "-3": -3, "1e3": 1000, "1e400": math.MaxInt64, "-1e400": math.MinInt64, "9223372036854775808": math.MaxInt64, "0.9": 0} {
		var c Cursor
		c.Reset([]byte(text))
		if got := c.Int(); got != want {
			t.Errorf("%s is %d, want %d", text, got, want)
		}
	}
}

func TestCursorReadsTheCorpus(t *testing.T) {
	files, err := filepath.Glob("../testdata/streams/*.sse")
	if err != nil || len(files) == 0 {
		t.Fatalf("no streams: %v", err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			if data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data: {")); ok {
				check(t, append([]byte("{"), data...))
			}
		}
	}
}

func FuzzCursor(f *testing.F) {
	for _, s := range []string{`{"a":[1,"b\u00e9"]}`, `"\ud83d\ude00"`, `[1,]`, `-0.5e+3`, `{"a":{"b":{}}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) { check(t, text) })
}
