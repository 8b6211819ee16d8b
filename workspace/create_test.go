package workspace

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentd/exitcodes"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// listing returns the paths below dir; a folder ends in a slash.
func listing(t *testing.T, dir string) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if e.IsDir() {
			rel += "/"
		}
		list = append(list, rel)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestCreatedWorkspace(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "agents", "Bob's agent")
	ws, err := Create(dir, CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if ws.Agent != "bobs-agent" || ws.Dir != dir || len(ws.Warnings) != 0 {
		t.Errorf("agent %q in %q, warnings %v", ws.Agent, ws.Dir, ws.Warnings)
	}
	if len(ws.Jobs) != 1 || ws.Jobs[0].Name != "hello" || ws.Jobs[0].Enabled || ws.Jobs[0].Model != "rehearsal/hello" || ws.Jobs[0].Backend != "builtin" {
		t.Errorf("jobs: %+v", ws.Jobs)
	}
	var golden strings.Builder
	for _, p := range listing(t, dir) {
		if strings.HasSuffix(p, "/") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, p))
		if err != nil {
			t.Fatal(err)
		}
		golden.WriteString("-- " + p + " --\n" + string(data))
	}
	compareGolden(t, "testdata/created.golden", golden.String())
	if got := listing(t, filepath.Dir(dir)); strings.Contains(strings.Join(got, " "), ".tmp") {
		t.Errorf("temporary files are left: %q", got)
	}
}

func compareGolden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got), rewrite it with -update:\n%s", file, diff)
	}
}

// What the comments of the skeleton propose has to work as well.
func TestCommentedLinesOfTheSkeleton(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "bob")
	if _, err := Create(dir, CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(data)) {
		code, ok := strings.CutPrefix(line, "# ")
		if !ok {
			lines = append(lines, line)
			continue
		}
		key, _, assigned := strings.Cut(code, " = ")
		if assigned && envName.MatchString(key) || strings.HasPrefix(code, "[") {
			if key == "model" { // replaces the line before
				for i, l := range lines {
					if strings.HasPrefix(l, "model =") {
						lines[i] = ""
					}
				}
			}
			lines = append(lines, code)
		}
	}
	write(t, filepath.Join(dir, FileName), strings.Join(lines, ""))
	write(t, filepath.Join(dir, ".env"), "ANTHROPIC_API_KEY=x\n")
	ws, err := Load(dir)
	if err != nil {
		t.Fatalf("%v in:\n%s", err, strings.Join(lines, ""))
	}
	j := ws.Jobs[0]
	if j.Model != "anthropic/claude-sonnet-4-5" || j.MaxSteps != 50 || j.Session != "hello-{date}" || j.Timezone != "Europe/Stockholm" || len(ws.Warnings) != 0 {
		t.Errorf("the comments made %+v, warnings %v", j, ws.Warnings)
	}
}

func TestCreateInAFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "bob")
	write(t, filepath.Join(dir, "main.go"), "package main")
	write(t, filepath.Join(dir, "journal", "old.md"), "old")
	ws, err := Create(dir, CreateOptions{Name: "eve"})
	if err != nil {
		t.Fatal(err)
	}
	if ws.Agent != "eve" {
		t.Errorf("agent %q", ws.Agent)
	}
	want := []string{
		".gitignore", "AGENTS.md", "agentd.toml", "journal/", "journal/.gitkeep", "journal/old.md", "main.go",
		"prompts/", "prompts/hello.md", "tasks/", "tasks/.gitkeep",
	}
	if diff := cmp.Diff(want, listing(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCreateOverwritesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, ".gitignore"), "mine")
	write(t, filepath.Join(dir, "prompts/hello.md"), "mine")
	before := listing(t, dir)
	_, err := Create(dir, CreateOptions{Name: "bob"})
	if exitcodes.From(err) != exitcodes.CannotCreate || !strings.HasSuffix(err.Error(), "already there: .gitignore, prompts/hello.md") || exitcodes.HintOf(err) == "" {
		t.Errorf("Create: %v (code %d)", err, exitcodes.From(err))
	}
	if diff := cmp.Diff(before, listing(t, dir)); diff != "" {
		t.Errorf("the folder changed (-before +after):\n%s", diff)
	}
}

func TestCreateUndoes(t *testing.T) {
	t.Parallel()
	t.Run("in a folder", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		write(t, filepath.Join(dir, "tasks"), "a file where a folder has to be")
		_, err := Create(dir, CreateOptions{Name: "bob"})
		if exitcodes.From(err) != exitcodes.CannotCreate || !strings.HasSuffix(err.Error(), "tasks is not a folder") {
			t.Errorf("Create: %v (code %d)", err, exitcodes.From(err))
		}
		if diff := cmp.Diff([]string{"tasks"}, listing(t, dir)); diff != "" {
			t.Errorf("left behind (-want +got):\n%s", diff)
		}
	})
	t.Run("beside a folder", func(t *testing.T) {
		t.Parallel()
		parent := t.TempDir()
		files, err := skeleton("bob")
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, skeletonFile{path: "AGENTS.md/x"}) // cannot be placed
		if err := createFolder(filepath.Join(parent, "deep", "bob"), files); exitcodes.From(err) != exitcodes.CannotCreate {
			t.Errorf("createFolder: %v", err)
		}
		if left := listing(t, parent); len(left) != 0 {
			t.Errorf("left behind: %q", left)
		}
	})
	t.Run("on a file", func(t *testing.T) {
		t.Parallel()
		file := filepath.Join(t.TempDir(), "bob")
		write(t, file, "x")
		if _, err := Create(file, CreateOptions{}); exitcodes.From(err) != exitcodes.CannotCreate {
			t.Errorf("Create: %v", err)
		}
		if _, err := Create(filepath.Join(file, "x"), CreateOptions{}); exitcodes.From(err) != exitcodes.CannotCreate {
			t.Errorf("Create below a file: %v", err)
		}
	})
}

func TestCreateChecksTheName(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "日本")
	_, err := Create(dir, CreateOptions{})
	if exitcodes.From(err) != exitcodes.Usage || !strings.Contains(exitcodes.HintOf(err), "--name") {
		t.Errorf("Create without a usable name: %v", err)
	}
	_, err = Create(dir, CreateOptions{Name: "Bob Smith"})
	if exitcodes.From(err) != exitcodes.Usage || !strings.HasSuffix(err.Error(), `try "bob-smith"`) {
		t.Errorf("Create with a bad name: %v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the folder was made all the same")
	}
}
