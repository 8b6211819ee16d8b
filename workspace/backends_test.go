package workspace

import (
	"slices"
	"strings"
	"testing"
)

func TestPresetsAreValid(t *testing.T) {
	t.Parallel()
	names := BackendPresets()
	for _, want := range []string{"aider", "amp", "claude", "codex", "copilot", "crush", "cursor-agent", "gemini", "goose", "gptme", "opencode", "qwen"} {
		if !slices.Contains(names, want) {
			t.Errorf("there is no preset %s", want)
		}
	}
	for _, name := range names {
		b, err := BackendPreset(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(b.Command) == 0 || len(b.Patterns) < 20 || b.Output == "" || len(b.State) == 0 || len(b.Credentials) == 0 {
			t.Errorf("%s lacks something: %+v", name, b)
		}
		if b.Session == "preset" && (len(b.New) == 0 || len(b.Resume) == 0) {
			t.Errorf("%s names sessions, but not how", name)
		}
		if b.PromptVia == "arg" && !slices.Contains(b.PromptArgs, "{prompt}") {
			t.Errorf("%s does not pass the prompt", name)
		}
	}
}

func TestBackendsTable(t *testing.T) {
	t.Parallel()
	dir := workspaceOf(t, `
[agent]
name = "bob"
[defaults]
model = "openai/gpt-5"
[jobs.a]
prompt = "p"
backend = "claude"
[jobs.b]
prompt = "p"
backend = "mine"
model = "anything goes"
[jobs.c]
prompt = "p"
backend = "claude"
model = "anthropic/claude-opus-4-8"
[backends.claude]
command = ["/opt/claude", "-p"]
env = { EXTRA = "1" }
exit_codes = { 9 = "refused" }
patterns = [{ match = '^house rule', code = "refused" }]
[backends.mine]
command = ["mine", "{prompt_file}"]
`)
	ws, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	b := ws.Backends["claude"]
	preset, err := BackendPreset("claude")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Join(b.Command, " ") != "/opt/claude -p" || b.Env["EXTRA"] != "1" || b.Env["DISABLE_AUTOUPDATER"] != "1" || b.ExitCodes[9] != "refused" ||
		b.Patterns[0].Code != "refused" || len(b.Patterns) != len(preset.Patterns)+1 || b.Output != "claude" {
		t.Errorf("the table does not lie over the preset: %+v", b)
	}
	if got := []string{ws.Jobs[0].Model, ws.Jobs[1].Model, ws.Jobs[2].Model}; !slices.Equal(got, []string{"", "anything goes", "claude-opus-4-8"}) {
		t.Errorf("models are %q", got)
	}
}

func TestBackendMistakes(t *testing.T) {
	t.Parallel()
	head := "[agent]\nname = \"bob\"\n[backends.x]\n"
	tests := []struct{ name, text, want string }{
		{"no command", "output = \"text\"", `backends.x needs a command`},
		{"placeholder", "command = [\"x\", \"{promt}\"]", `unknown placeholder {promt}: did you mean "prompt"?`},
		{"pattern", "command = [\"x\"]\npatterns = [{ match = '429', code = \"rate_limited\" }]", "must start with ^"},
		{"number", "command = [\"x\"]\npatterns = [{ match = '^429', code = \"rate_limited\" }]", "must hold a word"},
		{"code", "command = [\"x\"]\npatterns = [{ match = '^limit', code = \"rate_limit\" }]", `unknown exit code name: did you mean "rate_limited"?`},
		{"half a pattern", "command = [\"x\"]\npatterns = [{ match = '^limit' }]", "needs match and code"},
		{"status", "command = [\"x\"]\nexit_codes = { 300 = \"quota\" }", "must be an exit status from 0 to 255"},
		{"reader", "command = [\"x\"]\noutput = \"claud\"", `did you mean "claude"?`},
		{"own", "command = [\"x\"]\n[backends.builtin]\ncommand = [\"x\"]", `"builtin" is agentd's own`},
		{"backend", "command = [\"x\"]\n[jobs.a]\nprompt = \"p\"\nbackend = \"claud\"", `backend "claud": did you mean "claude"?`},
		{"model", "command = [\"x\"]\n[jobs.a]\nprompt = \"p\"\nbackend = \"claude\"\nmodel = \"openai/gpt-5\"", `claude takes models of anthropic only`},
		{"prompt", "command = [\"x\"]\n[jobs.a]\nbackend = \"claude\"", "jobs.a needs a prompt or a prompt_file"},
		{"command", "command = [\"x\"]\n[jobs.a]\nprompt = \"p\"\nbackend = \"claude\"\ncommand = [\"y\"]", `command is only for backend = "command"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := Load(workspaceOf(t, head+tt.text))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
