package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"agentd/exitcodes"
	"agentd/provider/message"
	"agentd/redact"
	"agentd/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func options(t *testing.T) Options {
	t.Helper()
	return Options{
		Dir: t.TempDir(), RunDir: t.TempDir(), RunID: "run-1",
		Env: []string{"PATH=" + os.Getenv("PATH")}, Redact: redact.New([]string{"hunter2-secret"}),
	}
}

// call runs a tool that must not end the run.
func call(t *testing.T, s Set, name, arguments string) Result {
	t.Helper()
	tool := s.Lookup(name)
	if tool == nil {
		t.Fatalf("there is no tool %s", name)
	}
	r, err := tool.Run(t.Context(), Call{ID: "c1", Name: name, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s(%s): %v", name, arguments, err)
	}
	return r
}

func arg(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestSet(t *testing.T) {
	s := Builtin(options(t))
	effects := map[string]session.Effect{"shell": session.Unknown, "read_file": session.Read, "write_file": session.Idempotent, "edit_file": session.Unknown}
	defs := s.Definitions()
	if len(defs) != len(effects) {
		t.Errorf("%d tools, want %d", len(defs), len(effects))
	}
	for _, d := range defs {
		if e := s.Lookup(d.Name).Effect(); e != effects[d.Name] {
			t.Errorf("%s has the effect %q, want %q", d.Name, e, effects[d.Name])
		}
		var schema struct {
			Type                 string
			Properties           map[string]struct{ Type, Description string }
			Required             []string
			AdditionalProperties *bool
		}
		if err := json.Unmarshal(d.Schema, &schema); err != nil {
			t.Errorf("%s: %v", d.Name, err)
		}
		if schema.Type != "object" || len(schema.Required) == 0 || schema.AdditionalProperties == nil || *schema.AdditionalProperties || d.Description == "" {
			t.Errorf("%s: schema %s", d.Name, d.Schema)
		}
		for name, p := range schema.Properties {
			if p.Type == "" || p.Description == "" {
				t.Errorf("%s: argument %s is not described", d.Name, name)
			}
		}
	}
	if s.Lookup("nothing") != nil {
		t.Error("found a tool that is not there")
	}
}

func TestArguments(t *testing.T) {
	s := Builtin(options(t))
	for _, c := range []struct{ tool, arguments, want string }{
		{"shell", `not json`, "not JSON"},
		{"shell", `["a"]`, "must be a JSON object"},
		{"shell", `{"command":"x"`, "not complete JSON"},
		{"shell", `{"command":"x"} {}`, "something follows"},
		{"shell", ``, `"command" is missing`},
		{"shell", `{}`, `"command" is missing`},
		{"shell", `{"command":null}`, `"command" is missing`},
		{"shell", `{"command":"a","command":"b"}`, `"command" stands twice`},
		{"shell", `{"command":7}`, `"command" must be a string, not a number`},
		{"shell", `{"command":["ls"]}`, `"command" must be a string, not an array`},
		{"shell", `{"cmd":"ls"}`, `there is no argument "cmd", only command, timeout_s; "command" is missing`},
		{"shell", `{"command":"ls","timeout_s":"5"}`, `"timeout_s" must be an integer, not a string`},
		{"shell", `{"command":"ls","timeout_s":1.5}`, `"timeout_s" must be an integer, not 1.5`},
		{"shell", `{"command":"ls","timeout_s":0}`, `"timeout_s" must be at least 1`},
		{"shell", `{"command":"ls","timeout_s":1e9}`, `"timeout_s" must be at most 3600`},
		{"shell", `{"command":"ls","timeout_s":1e300}`, `"timeout_s" must be an integer`},
		{"shell", `{"command":"  "}`, "command is empty"},
		{"read_file", `{"path":""}`, "path is empty"},
		{"read_file", `{"path":"a\u0000b"}`, "not a path"},
		{"write_file", `{"path":"a"}`, `"content" is missing`},
		{"edit_file", `{"path":"a","old":"x"}`, `"new" is missing`},
	} {
		r := call(t, s, c.tool, c.arguments)
		if !r.IsError || !strings.Contains(r.Text, c.want) || r.Outcome() != session.OutcomeError {
			t.Errorf("%s %s: got %+v, want %q", c.tool, c.arguments, r, c.want)
		}
	}
	for _, ok := range []string{`{"command":"true","timeout_s":null}`, `{"command":"true","timeout_s":5.0}`, ` {"command":"true"} `} {
		if r := call(t, s, "shell", ok); r.IsError {
			t.Errorf("%s: %+v", ok, r)
		}
	}
}

type faulty struct{ value any }

func (faulty) Definition() message.Definition { return message.Definition{Name: "faulty"} }
func (faulty) Effect() session.Effect         { return session.Unknown }
func (f faulty) Run(context.Context, Call) (Result, error) {
	panic(f.value)
}

func TestPanicIsAResultAndAnError(t *testing.T) {
	for _, v := range []any{"boom", fmt.Errorf("boom")} {
		r, err := Guard(faulty{v}).Run(t.Context(), Call{Name: "faulty"})
		if !r.IsError || !strings.Contains(r.Text, "crashed") {
			t.Errorf("result %+v", r)
		}
		if exitcodes.From(err) != exitcodes.Software || !strings.Contains(err.Error(), "boom") || !strings.Contains(err.Error(), "tools_test.go:") || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v", err)
		}
	}
}

func TestClean(t *testing.T) {
	if got := clean("a\xff\xfeb\x00é"); got != "a\uFFFDb\uFFFDé" {
		t.Errorf("got %q", got)
	}
}
