package cli

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"agentd/exitcodes"
)

var update = flag.Bool("update", false, "rewrite the generated parts of the documentation")

// TestReadmeHasTheTable keeps the README's exit codes those of the program.
func TestReadmeHasTheTable(t *testing.T) {
	var rows strings.Builder
	for _, e := range exitcodes.Table() {
		fmt.Fprintf(&rows, "| %d | `%s` | %s |\n", e.Code, e.Name, e.Meaning)
	}
	const begin, end = "| code | name | when |\n|---|---|---|\n", "<!-- exit codes: end -->"
	path := "../README.md"
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(data), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s lacks the marks of the table", path)
	}
	want := before + begin + rows.String() + end + after
	if want == string(data) {
		return
	}
	if !*update {
		t.Fatalf("%s is stale: go test ./cli -run Readme -update", path)
	}
	if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestEveryVerbIsExplained wants a description for each verb and flag, and a
// place in the README for each verb.
func TestEveryVerbIsExplained(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range System().command().Commands() {
		if c.Short == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: the short description %q is empty or ends with a full stop", c.Name(), c.Short)
		}
		if !strings.Contains(string(readme), "agentd "+c.Name()) && !strings.Contains(string(readme), "`"+c.Name()+"`") {
			t.Errorf("the README does not mention %s", c.Name())
		}
	}
}
