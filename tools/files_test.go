package tools

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestReadFile(t *testing.T) {
	o := options(t)
	s := Builtin(o)
	var lines strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&lines, "line %d\n", i+1)
	}
	write(t, o.Dir+"/many", lines.String(), 0o600)
	write(t, o.Dir+"/short", "one\ntwo\nthree", 0o600)
	write(t, o.Dir+"/empty", "", 0o600)
	write(t, o.Dir+"/secret", "key=hunter2-secret\n", 0o600)
	write(t, o.Dir+"/latin1", "sm\xf6rg\xe5sbord is a good word for this\n", 0o600)
	write(t, o.Dir+"/nul", "a\x00b", 0o600)
	write(t, o.Dir+"/image", "\x89PNG\xff\xfe\xfd\xfc\xfb\xfa\x90\x91\x92", 0o600)
	write(t, o.Dir+"/long", strings.Repeat("é", 100<<10), 0o600)
	if err := syscall.Mkfifo(o.Dir+"/pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		arguments, want string
		isError         bool
	}{
		{`{"path":"short"}`, "one\ntwo\nthree", false},
		{`{"path":"./x/../short","offset":2}`, "two\nthree", false},
		{`{"path":"short","offset":2,"limit":1}`, "two\n[lines 2 to 2; there is more: go on with offset 3]", false},
		{`{"path":"short","offset":4}`, "short has only 3 lines.", true},
		{`{"path":"` + o.Dir + `/short","limit":1}`, "one\n[lines 1 to 1; there is more: go on with offset 2]", false},
		{`{"path":"many","offset":4999}`, "line 4999\nline 5000\n", false},
		{`{"path":"many","offset":5001}`, "many has only 5000 lines.", true},
		{`{"path":"empty"}`, "(the file is empty)", false},
		{`{"path":"secret"}`, "key=[redacted]\n", false},
		{`{"path":"latin1"}`, "sm\uFFFDrg\uFFFDsbord is a good word for this\n", false},
		{`{"path":"nul"}`, "Cannot read nul: it is a binary file of 3 bytes.", true},
		{`{"path":"image"}`, "Cannot read image: it is a binary file of 13 bytes.", true},
		{`{"path":"nothing"}`, "Cannot read nothing: there is no such file.", true},
		{`{"path":"."}`, "Cannot read .: it is a folder.", true},
		{`{"path":"pipe"}`, "Cannot read pipe: it is not a regular file.", true},
	} {
		r := call(t, s, "read_file", c.arguments)
		if r.Text != c.want || r.IsError != c.isError {
			t.Errorf("%s:\n got  %q\n want %q", c.arguments, r.Text, c.want)
		}
	}
	r := call(t, s, "read_file", `{"path":"many"}`)
	if !strings.HasSuffix(r.Text, "line 2000\n[lines 1 to 2000; there is more: go on with offset 2001]") {
		t.Errorf("many: %q", r.Text[len(r.Text)-100:])
	}
	write(t, o.Dir+"/wide", strings.Repeat(strings.Repeat("x", 999)+"\n", 100)+strings.Repeat("y", 99<<10)+"\nend", 0o600)
	r = call(t, s, "read_file", `{"path":"wide"}`)
	if !strings.HasSuffix(r.Text, "xxx\n[lines 1 to 65; there is more: go on with offset 66]") {
		t.Errorf("wide: %q", r.Text[len(r.Text)-100:])
	}
	r = call(t, s, "read_file", `{"path":"wide","offset":100}`)
	if !strings.HasSuffix(r.Text, "xxx\n[lines 100 to 100; there is more: go on with offset 101]") {
		t.Errorf("wide: %q", r.Text[len(r.Text)-100:])
	}
	r = call(t, s, "read_file", `{"path":"wide","offset":102}`)
	if r.Text != "end" {
		t.Errorf("wide: %q", r.Text)
	}
	r = call(t, s, "read_file", `{"path":"long"}`)
	if len(r.Text) > outputLimit+200 || !strings.HasSuffix(r.Text, "[line 1 is cut here: it is too long to show]") {
		t.Errorf("long: %d bytes, %q", len(r.Text), r.Text[len(r.Text)-100:])
	}
}

// Nothing outside the workspace can be read or written, by whatever path.
func TestFilesStayInTheWorkspace(t *testing.T) {
	o := options(t)
	s := Builtin(o)
	outside := t.TempDir()
	write(t, outside+"/file", "old text", 0o600)
	link := func(to, name string) {
		if err := os.Symlink(to, filepath.Join(o.Dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	link(outside, "dir")
	link(outside+"/file", "abs")
	link("../"+filepath.Base(outside)+"/file", "rel")
	link("../"+filepath.Base(outside)+"/new", "dangling")
	up, err := filepath.Rel(o.Dir, outside)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{outside + "/file", outside + "/new", up + "/file", "../x", "/etc/hostname", "dir/file", "dir/new", "abs", "rel", "dangling", "a/../../x"} {
		for tool, args := range map[string]any{
			"read_file":  map[string]string{"path": path},
			"write_file": map[string]string{"path": path, "content": "evil"},
			"edit_file":  map[string]string{"path": path, "old": "old", "new": "evil"},
		} {
			r := call(t, s, tool, arg(t, args))
			if !r.IsError || !strings.Contains(r.Text, "outside the workspace") && !strings.Contains(r.Text, "no such file") {
				t.Errorf("%s %s: %+v", tool, path, r)
			}
		}
	}
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 1 || content(t, outside+"/file") != "old text" {
		t.Errorf("outside: %v, %v, %q", entries, err, content(t, outside+"/file"))
	}
}

func TestWriteFile(t *testing.T) {
	o := options(t)
	s := Builtin(o)
	old := syscall.Umask(0o022)
	defer syscall.Umask(old)
	if r := call(t, s, "write_file", `{"path":"a/b/new","content":"text\n"}`); r.IsError || r.Text != "Made a/b/new (5 bytes)." {
		t.Errorf("got %+v", r)
	}
	if info, err := os.Stat(o.Dir + "/a/b/new"); err != nil || info.Mode().Perm() != 0o644 || content(t, o.Dir+"/a/b/new") != "text\n" {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	write(t, o.Dir+"/script", "old", 0o750)
	if err := os.Symlink("script", o.Dir+"/link"); err != nil {
		t.Fatal(err)
	}
	if r := call(t, s, "write_file", `{"path":"link","content":""}`); r.IsError || r.Text != "Replaced link (0 bytes)." {
		t.Errorf("got %+v", r)
	}
	info, err := os.Stat(o.Dir + "/script")
	if err != nil || info.Mode().Perm() != 0o750 || info.Size() != 0 {
		t.Errorf("through a link: %v, %v", info, err)
	}
	if info, err := os.Lstat(o.Dir + "/link"); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info, err)
	}
	for _, args := range []string{`{"path":"a","content":"x"}`, `{"path":"script/x","content":"x"}`, `{"path":".","content":"x"}`} {
		if r := call(t, s, "write_file", args); !r.IsError {
			t.Errorf("%s: %+v", args, r)
		}
	}
	if r := call(t, s, "write_file", arg(t, map[string]string{"path": "big", "content": strings.Repeat("x", maxFile+1)})); !r.IsError {
		t.Errorf("too big: %+v", r)
	}
	noTemps(t, o.Dir)
}

// noTemps fails if a temporary file was left in the workspace.
func noTemps(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if strings.HasSuffix(path, ".tmp") {
			t.Errorf("left behind: %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestEditFile(t *testing.T) {
	o := options(t)
	s := Builtin(o)
	write(t, o.Dir+"/f", "one\ntwo\ntwo\nthree\n", 0o640)
	write(t, o.Dir+"/crlf", "one\r\ntwo\r\n", 0o600)
	for _, c := range []struct{ path, old, new, want string }{
		{"f", "four", "x", "not in f"},
		{"f", "two", "x", "in f 2 times"},
		{"f", "", "x", "is empty"},
		{"f", "one", "one", "are the same"},
		{"crlf", "one\ntwo", "x", "CRLF"},
		{"nothing", "a", "b", "no such file"},
	} {
		r := call(t, s, "edit_file", arg(t, map[string]string{"path": c.path, "old": c.old, "new": c.new}))
		if !r.IsError || !strings.Contains(r.Text, c.want) {
			t.Errorf("%+v: %+v", c, r)
		}
	}
	if got := content(t, o.Dir+"/f"); got != "one\ntwo\ntwo\nthree\n" {
		t.Errorf("changed by a mistake: %q", got)
	}
	if r := call(t, s, "edit_file", `{"path":"f","old":"two\nthree","new":"2\n3"}`); r.IsError || r.Text != "Edited f." {
		t.Errorf("got %+v", r)
	}
	if diff := cmp.Diff("one\ntwo\n2\n3\n", content(t, o.Dir+"/f")); diff != "" {
		t.Error(diff)
	}
	if info, err := os.Stat(o.Dir + "/f"); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	noTemps(t, o.Dir)
}
