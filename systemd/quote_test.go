package systemd

import (
	"strings"
	"testing"
)

func TestCommand(t *testing.T) {
	for _, c := range []struct{ arg, want string }{
		{"plain", `plain`}, {"/a/b-c_d.sh", `/a/b-c_d.sh`}, {"é", `"é"`},
		{"", `""`},
		{";", `";"`},
		{"a b", `"a b"`},
		{`"'`, `"\"'"`},
		{`\`, `"\\"`},
		{"100% $HOME ${x}", `"100%% $$HOME $${x}"`},
		{"new\nline\ttab\r\x01\x7f", `"new\nline\ttab\x0d\x01\x7f"`},
		{"naïve 日本", `"naïve 日本"`},
	} {
		got, err := Command("/bin/bash", c.arg)
		if want := `/bin/bash ` + c.want; err != nil || got != want {
			t.Errorf("Command(%q) = %s, %v, want %s", c.arg, got, err, want)
		}
	}
	for _, argv := range [][]string{{"bash"}, {`/a"b`}, {`/a\b`}, {"/a\nb"}, {"/bin/bash", "\xff"}, {"/bin/bash", "a\x00"}} {
		if got, err := Command(argv[0], argv[1:]...); err == nil {
			t.Errorf("Command(%q) = %s", argv, got)
		}
	}
}

func TestAssignment(t *testing.T) {
	if got, err := Assignment("PATH", "/a b:$HOME%\n\"\\"); err != nil || got != `"PATH=/a b:$HOME%%\n\"\\"` {
		t.Errorf("Assignment = %s, %v", got, err)
	}
	for _, c := range [][2]string{{"", "x"}, {"A B", "x"}, {"A=", "x"}, {"A", "\x01"}, {"A", "\xff"}, {"A", "\x00"}} {
		if got, err := Assignment(c[0], c[1]); err == nil {
			t.Errorf("Assignment(%q) = %s", c, got)
		}
	}
}

func TestDirectory(t *testing.T) {
	if got, err := Directory(`/50% "of" $x \`); err != nil || got != `-/50%% "of" $x \` {
		t.Errorf("Directory = %s, %v", got, err)
	}
	for _, s := range []string{"", "a", "/a/", "/a/../b", "/a ", "/a\nb", "/" + strings.Repeat("x", 256), strings.Repeat("/xxxxxxx", 512)} {
		if got, err := Directory(s); err == nil {
			t.Errorf("Directory(%.20q) = %.20s", s, got)
		}
	}
}

func TestText(t *testing.T) {
	if got, err := Text(`50% "of" $x \`); err != nil || got != `50%% "of" $x \` {
		t.Errorf("Text = %s, %v", got, err)
	}
	for _, s := range []string{"a\nb", " a", "a ", "\xff", "\x00"} {
		if got, err := Text(s); err == nil {
			t.Errorf("Text(%q) = %s", s, got)
		}
	}
}
