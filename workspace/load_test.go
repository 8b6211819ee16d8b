package workspace

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentd/exitcodes"
)

// workspaceOf writes a workspace with the agentd.toml and other files.
func workspaceOf(t *testing.T, config string, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, FileName), config)
	for i := 0; i+1 < len(files); i += 2 {
		write(t, filepath.Join(dir, files[i]), files[i+1])
	}
	return dir
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

const everyKey = `
[agent]
name = "bob"
description = "Looks after the issues"

[defaults]
backend = "builtin"
model = "anthropic/claude-sonnet-4-5"
env = { A = "default", B = "default" }
resume.attempts = 5
[defaults.recovery]
requests = 7

[jobs.triage]
description = "Triage"
enabled = false
schedule = ["*/30 9-17 * * 1-5", "@every 90m"]
timezone = "Europe/Stockholm"
prompt = "Triage new issues."
lane = "shared"
lane_wait = "1h"
session = "triage-{date}"
timeout = "1h30m"
grace = "0s"
env_files = [".env", "-other.env", ".env.local"]
env = { B = "job", C = "job" }
pass_env = ["GH_TOKEN"]
catch_up = false
jitter = "2m"
max_steps = 50
max_cost_usd = 2
max_tokens = 1_000_000
[jobs.triage.recovery]
deadline = "600s"
request_timeout = "5m"
bytes_idle = "30s"
event_idle = "1m"
[jobs.triage.resume]
on = ["unavailable"]
cooldown = "0s"
max_wait = "1d"
crashed = false
[jobs.triage.unit]
memory_max = "2G"
cpu_quota = "150%"
tasks_max = 200
nice = 10
io_class = "idle"
hardening = false
network_online = true
wake = true
on_failure = "alert@%n.service"

[jobs.build]
backend = "command"
command = ["make", "-k", ""]
prompt_via = "file"
prompt_file = "prompts/build.md"
lane_slots = 2
unit = { tasks_max = "10%", on_failure = ["a.service", "b.target"] }

[lanes.shared]
slots = 3

[providers.anthropic]
api_key_env = "OTHER_KEY"
[providers.house]
wire = "chat"
base_url = "http://localhost:8080/v1"
api_key_file = "secret/key"
headers = { X-Team = "agents" }
done_is_terminal = true

[backends.house]
tried = "1.0"
command = ["house", "run"]
permissions = ["--all"]
model = ["-m", "{model}"]
model_provider = "house"
max_steps = ["--steps", "{max_steps}"]
max_cost = ["--usd", "{max_cost}"]
prompt_via = "arg"
prompt_args = ["-p", "{prompt}"]
retries = 2
session = "preset"
session_kept = "success"
session_lost = ['^session not found']
new = ["--new", "{session}"]
resume = ["--resume", "{session}"]
transcript = "~/.house/{session}.log"
state = ["$HOUSE_HOME", "~/.house"]
state_slots = 2
state_wait = "1m"
output = "codex"
judge_text = true
exit_codes = { 9 = "quota" }
patterns = [{ match = '^house limit', code = "rate_limited" }]
startup_timeout = "1m"
idle_timeout = "2m"
linger = "3s"
env = { A = "{retries}" }
env_as_root = { B = "1" }
allow_env = ["HOUSE_*"]
drop_env = ["C"]
files = { "house.json" = '{"retries":{retries}}' }
credentials = ["$HOUSE_KEY"]
version = ["--version"]
`

func TestLoadReadsEveryKey(t *testing.T) {
	t.Parallel()
	dir := workspaceOf(t, everyKey, ".env", "X=1", "secret/key", "k", "prompts/build.md", "Build it.\n")
	ws, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(ws.Jobs[0].Schedules) != 2 || len(ws.Jobs[1].Schedules) != 0 {
		t.Fatalf("schedules: %d and %d, want 2 and 0", len(ws.Jobs[0].Schedules), len(ws.Jobs[1].Schedules))
	}
	for _, j := range ws.Jobs {
		j.Schedules = nil // opaque
	}
	want := &Workspace{
		Dir: dir, File: filepath.Join(dir, FileName), Agent: "bob", Description: "Looks after the issues",
		LaneSlots: map[string]int{"shared": 3},
		Backends: map[string]Backend{"house": {
			Name: "house", Tried: "1.0", Command: []string{"house", "run"}, Permissions: []string{"--all"},
			Model: []string{"-m", "{model}"}, ModelProvider: "house", MaxSteps: []string{"--steps", "{max_steps}"}, MaxCost: []string{"--usd", "{max_cost}"},
			PromptVia: "arg", PromptArgs: []string{"-p", "{prompt}"}, Retries: 2,
			Session: "preset", SessionKept: "success", SessionLost: []string{"^session not found"},
			New: []string{"--new", "{session}"}, Resume: []string{"--resume", "{session}"}, Transcript: "~/.house/{session}.log",
			State: []string{"$HOUSE_HOME", "~/.house"}, StateSlots: 2, StateWait: time.Minute,
			Output: "codex", Judge: true, ExitCodes: map[int]string{9: "quota"}, Patterns: []Pattern{{Match: "^house limit", Code: "rate_limited"}},
			StartupTimeout: time.Minute, IdleTimeout: 2 * time.Minute, Linger: 3 * time.Second,
			Env: map[string]string{"A": "{retries}"}, EnvAsRoot: map[string]string{"B": "1"}, AllowEnv: []string{"HOUSE_*"}, DropEnv: []string{"C"},
			Files: map[string]string{"house.json": `{"retries":{retries}}`}, Credentials: []string{"$HOUSE_KEY"}, Version: []string{"--version"},
		}},
		Providers: map[string]Provider{
			"anthropic": {Name: "anthropic", APIKeyEnv: "OTHER_KEY"},
			"house": {
				Name: "house", Wire: "chat", BaseURL: "http://localhost:8080/v1", APIKeyFile: filepath.Join(dir, "secret/key"),
				Headers: map[string]string{"X-Team": "agents"}, DoneIsTerminal: true,
			},
		},
		Jobs: []*Job{{
			Agent: "bob", Name: "triage", Dir: dir, Description: "Triage", Enabled: false,
			ScheduleText: []string{"*/30 9-17 * * 1-5", "@every 90m"}, Timezone: "Europe/Stockholm", Jitter: 2 * time.Minute,
			Prompt: "Triage new issues.", Backend: "builtin", Model: "anthropic/claude-sonnet-4-5", PromptVia: "stdin",
			Lane: "shared", LaneSlots: 3, LaneWait: time.Hour, Session: "triage-{date}",
			Timeout: 90 * time.Minute, MaxSteps: 50, MaxCostUSD: 2, MaxTokens: 1_000_000,
			EnvFiles: []string{".env", "-other.env", ".env.local"}, PassEnv: []string{"GH_TOKEN"},
			Env:      map[string]string{"A": "default", "B": "job", "C": "job"},
			Recovery: Recovery{Requests: 7, Deadline: 10 * time.Minute, RequestTimeout: 5 * time.Minute, BytesIdle: 30 * time.Second, EventIdle: time.Minute},
			Resume:   Resume{Attempts: 5, On: []string{"unavailable"}, MaxWait: 24 * time.Hour},
			Unit: Unit{
				MemoryMax: "2G", CPUQuota: "150%", TasksMax: "200", Nice: 10, IOClass: "idle",
				NetworkOnline: true, Wake: true, OnFailure: []string{"alert@%n.service"},
			},
		}, {
			Agent: "bob", Name: "build", Dir: dir, Enabled: true, CatchUp: true,
			PromptFile: "prompts/build.md", Backend: "command", Model: "anthropic/claude-sonnet-4-5",
			Command: []string{"make", "-k", ""}, PromptVia: "file", Lane: "bob", LaneSlots: 2,
			Timeout: 30 * time.Minute, Grace: 30 * time.Second, MaxSteps: 100,
			EnvFiles: []string{"-.env", "-.env.local"}, Env: map[string]string{"A": "default", "B": "default"},
			Recovery: Recovery{Requests: 7, Deadline: 10 * time.Minute, RequestTimeout: 10 * time.Minute, BytesIdle: 2 * time.Minute, EventIdle: 5 * time.Minute},
			Resume:   Resume{Attempts: 5, On: []string{"rate_limited", "unavailable", "io"}, Cooldown: time.Minute, MaxWait: 10 * time.Minute, Crashed: true},
			Unit:     Unit{TasksMax: "10%", Hardening: true, OnFailure: []string{"a.service", "b.target"}},
		}},
	}
	house := want.Backends["house"]
	base, err := backendBase("house")
	if err != nil {
		t.Fatal(err)
	}
	house.Patterns = append(house.Patterns, base.Patterns...)
	want.Backends["house"] = house
	if diff := cmp.Diff(want, ws); diff != "" {
		t.Errorf("Load (-want +got):\n%s", diff)
	}
	if got := ws.Jobs[0].Address(); got != "bob/triage" {
		t.Errorf("Address() = %q", got)
	}
}

// The test above must not forget a key that the schema gains.
func TestEveryKeyIsInTheExample(t *testing.T) {
	t.Parallel()
	for _, k := range Keys() {
		switch k.Key {
		case "credential": // excludes api_key_file
			continue
		}
		if !strings.Contains(everyKey, k.Key+" = ") {
			t.Errorf("the example of every key lacks %s.%s", k.Table, k.Key)
		}
	}
}

func TestOwnProviderSpeaksChat(t *testing.T) {
	t.Parallel()
	ws, err := Load(workspaceOf(t, agentHead+"[providers.house]\nbase_url = \"http://h/v1\"\n[providers.openai]\napi_key_env = \"K\""))
	if err != nil {
		t.Fatal(err)
	}
	if got := ws.Providers["house"].Wire; got != "chat" {
		t.Errorf("wire of a provider that agentd does not know = %q", got)
	}
	if got := ws.Providers["openai"].Wire; got != "" {
		t.Errorf("wire of a preset = %q, want the preset's", got)
	}
}

func TestJobsShareNothing(t *testing.T) {
	t.Parallel()
	dir := workspaceOf(t, `
[agent]
name = "bob"
[defaults]
model = "openai/m"
prompt = "p"
env = { A = "1" }
command = ["x"]
pass_env = ["P"]
schedule = ["@daily"]
[jobs.a]
env = { A = "2" }
[jobs.b]
`)
	ws, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	a, b := ws.Jobs[0], ws.Jobs[1]
	a.Command[0], a.PassEnv[0], a.Resume.On[0], a.EnvFiles[0], a.ScheduleText[0] = "y", "y", "y", "y", "y"
	if b.Env["A"] != "1" || b.Command[0] != "x" || b.PassEnv[0] != "P" || b.Resume.On[0] == "y" || b.EnvFiles[0] == "y" || b.ScheduleText[0] != "@daily" {
		t.Errorf("a change of job a shows in job b: %+v", b)
	}
}

func TestOwnPromptReplacesTheInherited(t *testing.T) {
	t.Parallel()
	dir := workspaceOf(t, `
[agent]
name = "bob"
[defaults]
model = "openai/m"
prompt_file = "p.md"
[jobs.a]
prompt = "own"
[jobs.b]
`, "p.md", "from the file")
	ws, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"own", "from the file"} {
		if got, err := ws.Jobs[i].ReadPrompt(); err != nil || got != want {
			t.Errorf("prompt of %s = %q, %v; want %q", ws.Jobs[i].Name, got, err, want)
		}
	}
}

func TestLargePrompt(t *testing.T) {
	t.Parallel()
	prompt := strings.Repeat("words ", 1<<18)
	dir := workspaceOf(t, "[agent]\nname = \"bob\"\n[jobs.a]\nmodel = \"openai/m\"\nprompt = '''"+prompt+"'''\n")
	ws, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if ws.Jobs[0].Prompt != prompt {
		t.Errorf("a prompt of %d bytes came back with %d", len(prompt), len(ws.Jobs[0].Prompt))
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	dir := workspaceOf(t, "", "a/b/file", "")
	for _, start := range []string{"", "a", "a/b", "a/b/file"} {
		got, err := Find(filepath.Join(dir, start))
		if err != nil || got != dir {
			t.Errorf("Find(%q) = %q, %v; want %q", start, got, err, dir)
		}
	}
	empty := t.TempDir()
	_, err := Find(empty)
	if exitcodes.From(err) != exitcodes.NoInput || !strings.Contains(exitcodes.HintOf(err), "agentd init") {
		t.Errorf("Find outside a workspace: %v, hint %q", err, exitcodes.HintOf(err))
	}
	if _, err := Find(filepath.Join(empty, "gone")); exitcodes.From(err) != exitcodes.NoInput {
		t.Errorf("Find in a missing folder: %v", err)
	}
}

func TestJobByName(t *testing.T) {
	t.Parallel()
	dir := workspaceOf(t, everyKey, ".env", "", "prompts/build.md", "Build.")
	ws, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"build", "bob/build"} {
		if j, err := ws.Job(name); err != nil || j.Name != "build" {
			t.Errorf("Job(%q) = %v, %v", name, j, err)
		}
	}
	_, err = ws.Job("triag")
	want := `there is no job "triag" in agentd.toml (bob): did you mean "triage"?`
	if err == nil || err.Error() != want || exitcodes.From(err) != exitcodes.NoInput || exitcodes.HintOf(err) != "Jobs here: triage, build" {
		t.Errorf("Job: %v, hint %q", err, exitcodes.HintOf(err))
	}
	if _, err := ws.Job("eve/build"); err == nil {
		t.Error("a job of another agent was found")
	}
}

func TestLoadJobLeavesFilesToTheRun(t *testing.T) {
	t.Parallel()
	config := `
[agent]
name = "bob"
[defaults]
model = "openai/m"
[jobs.a]
prompt_file = "a.md"
[jobs.b]
prompt_file = "b.md"
`
	dir := workspaceOf(t, config, "a.md", "Do a.")
	if _, j, err := LoadJob(dir, "a"); err != nil || j.Name != "a" {
		t.Errorf("LoadJob(a): %v", err)
	}
	_, b, err := LoadJob(dir, "b")
	if err != nil {
		t.Fatalf("LoadJob(b): %v", err)
	}
	if _, err := b.ReadPrompt(); exitcodes.From(err) != exitcodes.NoInput {
		t.Errorf("ReadPrompt of b: %v, code %d", err, exitcodes.From(err))
	}
	if _, _, err := LoadJob(dir, "c"); exitcodes.From(err) != exitcodes.NoInput {
		t.Errorf("LoadJob(c): %v, code %d", err, exitcodes.From(err))
	}
	if _, err := Load(dir); exitcodes.From(err) != exitcodes.Config {
		t.Errorf("Load: %v, code %d", err, exitcodes.From(err))
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	dir := workspaceOf(t, `[agent]
name = "bob"
[jobs.a]
model = "openai/m"
prompt = "p"
env_files = ["keys.env"]
lane = "builds"
session = "s-{date}"
[jobs.b]
model = "openai/m"
prompt = "p"
session = "s-{date}"
resume.cooldown = "20m"
[lanes.build]
[providers.openai]
api_key_file = "/nowhere/key"
`)
	ws, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range ws.Warnings {
		got = append(got, m.String())
	}
	want := []string{
		`agentd.toml:6:13 env_files: "keys.env" is not there; a run of a will end with 66`,
		`agentd.toml:12:11 jobs a and b continue session "s-{date}" in different lanes: when both run, one fails`,
		`agentd.toml:13:19 resume.cooldown 20m is longer than resume.max_wait 10m: no run of b waits, each leaves a pending resume`,
		`agentd.toml:14:8 no job uses lane "build": did you mean "builds"?`,
		`agentd.toml:16:1 api_key_file "/nowhere/key" is not there`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("warnings:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
