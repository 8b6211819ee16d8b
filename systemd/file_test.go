package systemd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	const text = "# first\n;second\n\n[Unit]\nDescription = a  b \n" +
		"# between\n[Service]\nExecStart=/bin/x \\\n# within\n  \"y z\"\nEnvironment=\nA=1\nA=2\n[X-Mine]\nPath=c:\\\\\n"
	want := &File{
		Comments: []string{"first", "second"},
		Sections: []Section{
			{"Unit", []Entry{{"Description", "a  b"}}},
			{"Service", []Entry{{"ExecStart", `/bin/x    "y z"`}, {"Environment", ""}, {"A", "1"}, {"A", "2"}}},
			{"X-Mine", []Entry{{"Path", `c:\\`}}},
		},
	}
	got, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if s := got.Section("Service"); s.Get("A") != "2" || len(s.All("A")) != 2 || got.Section("None").Get("A") != "" {
		t.Errorf("Get and All disagree: %q, %q", s.Get("A"), s.All("A"))
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"A=1\n", "[Unit]\nno equals sign\n", "[Unit\n", "[]\n"} {
		if f, err := Parse([]byte(text)); err == nil {
			t.Errorf("Parse(%q) = %+v", text, f)
		}
	}
}

func TestBytesRefuses(t *testing.T) {
	for name, f := range map[string]File{
		"newline in a value":   {Sections: []Section{{"Unit", []Entry{{"A", "b\n[Service]\nExecStart=/bin/evil"}}}}},
		"NUL in a value":       {Sections: []Section{{"Unit", []Entry{{"A", "b\x00"}}}}},
		"not UTF-8":            {Sections: []Section{{"Unit", []Entry{{"A", "\xff"}}}}},
		"blank before a value": {Sections: []Section{{"Unit", []Entry{{"A", " b"}}}}},
		"blank after a value":  {Sections: []Section{{"Unit", []Entry{{"A", "b\t"}}}}},
		"1 MiB":                {Sections: []Section{{"Unit", []Entry{{"A", strings.Repeat("x", 1<<20)}}}}},
		"key with =":           {Sections: []Section{{"Unit", []Entry{{"A=B", "c"}}}}},
		"no key":               {Sections: []Section{{"Unit", []Entry{{"", "c"}}}}},
		"section with ]":       {Sections: []Section{{Name: "Unit]\n[Service"}}},
		"comment with newline": {Comments: []string{"a\n[Unit]"}},
		"comment that goes on": {Comments: []string{`a\`}},
	} {
		if text, err := f.Bytes(); err == nil {
			t.Errorf("%s: Bytes gave %.80q", name, text)
		}
	}
}

// What is written is read back the same, or it is refused.
func TestFileRoundTrip(t *testing.T) {
	line := rapid.StringMatching(`[^\n]*`)
	key := rapid.StringMatching(`[A-Za-z][A-Za-z0-9-]{0,8}`)
	rapid.Check(t, func(t *rapid.T) {
		entry := rapid.Custom(func(t *rapid.T) Entry { return Entry{key.Draw(t, "key"), line.Draw(t, "value")} })
		section := rapid.Custom(func(t *rapid.T) Section {
			return Section{rapid.StringMatching(`[A-Za-z-]{1,6}`).Draw(t, "name"), rapid.SliceOfN(entry, 0, 5).Draw(t, "entries")}
		})
		f := &File{Sections: rapid.SliceOfN(section, 1, 4).Draw(t, "sections")}
		text, err := f.Bytes()
		if err != nil {
			t.Skip(err)
		}
		back, err := Parse(text)
		if err != nil {
			t.Fatalf("%v in %q", err, text)
		}
		if d := cmp.Diff(f, back, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("%q:\n%s", text, d)
		}
	})
}
