package runscript

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden files anew")

func plain() Spec {
	return Spec{
		Agent: "bob", Job: "triage",
		Path:      "/home/bob/.local/share/agentd/bob/triage/run.sh",
		Agentd:    "/usr/local/bin/agentd",
		Workspace: "/home/bob/agents/bob",
		StateDir:  "/home/bob/.local/state/agentd",
		Env:       []string{"PATH=/home/bob/bin:/usr/bin:/bin", "XDG_STATE_HOME=/home/bob/.local/state"},
	}
}

func render(t *testing.T, s Spec) []byte {
	t.Helper()
	text, err := Render(s)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestGolden(t *testing.T) {
	got := render(t, plain())
	const file = "testdata/run.sh.golden"
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("run.sh differs from %s (go test -update writes it anew):\n%s", file, d)
	}
}

func TestShellcheck(t *testing.T) {
	shellcheck, err := exec.LookPath("shellcheck")
	if err != nil {
		t.Skip("shellcheck is not installed")
	}
	for _, path := range append(nastyPaths(), plain().Workspace) {
		spec := plain()
		spec.Workspace = path
		cmd := exec.Command(shellcheck, "--norc", "--shell=bash", "-")
		cmd.Stdin = bytes.NewReader(render(t, spec))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("shellcheck of a script for %q: %v\n%s", path, err, out)
		}
	}
}

func TestRenderRefuses(t *testing.T) {
	for name, change := range map[string]func(*Spec){
		"job is not a slug":       func(s *Spec) { s.Job = "a b" },
		"agent begins with -":     func(s *Spec) { s.Agent = "-x" },
		"relative program":        func(s *Spec) { s.Agentd = "agentd" },
		"relative workspace":      func(s *Spec) { s.Workspace = "" },
		"NUL in a path":           func(s *Spec) { s.Workspace = "/a\x00b" },
		"NUL in a variable":       func(s *Spec) { s.Env = []string{"A=\x00"} },
		"variable without a name": func(s *Spec) { s.Env = []string{"=x"} },
		"variable without value":  func(s *Spec) { s.Env = []string{"A"} },
		"variable that is code":   func(s *Spec) { s.Env = []string{"A;id=x"} },
	} {
		t.Run(name, func(t *testing.T) {
			s := plain()
			change(&s)
			if text, err := Render(s); err == nil {
				t.Errorf("Render gave a script:\n%s", text)
			}
		})
	}
}

func TestOwner(t *testing.T) {
	text := render(t, plain())
	if o, ok := OwnerOf(text); !ok || o != (Owner{"bob", "triage", true}) {
		t.Errorf("OwnerOf(fresh script) = %+v, %v", o, ok)
	}
	edited := bytes.Replace(text, []byte("exit \"$status\""), []byte("exit 0"), 1)
	if o, ok := OwnerOf(edited); !ok || o != (Owner{"bob", "triage", false}) {
		t.Errorf("OwnerOf(edited script) = %+v, %v", o, ok)
	}
	if o, ok := OwnerOf([]byte("#!/bin/bash\necho mine\n")); ok {
		t.Errorf("OwnerOf(somebody else's script) = %+v", o)
	}
}

// Whatever the paths are, the script parses and carries its mark once.
func TestRenderAlwaysParses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := plain()
		text := rapid.StringOf(rapid.Rune().Filter(func(r rune) bool { return r != 0 }))
		s.Workspace = "/" + text.Draw(t, "workspace")
		s.Agentd = "/" + text.Draw(t, "agentd")
		s.Path = "/" + text.Draw(t, "path")
		s.Env = []string{"PATH=" + text.Draw(t, "PATH")}
		out, err := Render(s)
		if err != nil {
			t.Fatal(err)
		}
		if o, ok := OwnerOf(out); !ok || !o.Intact {
			t.Fatalf("the mark is lost in:\n%s", out)
		}
		if n := strings.Count(string(out), "\n# X-Agentd-Agent="); n != 1 {
			t.Fatalf("%d marks in:\n%s", n, out)
		}
	})
}
