package workspace

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"agentd/exitcodes"
)

const (
	agentHead = "[agent]\nname = \"bob\"\n"
	// jobHead ends on line 5.
	jobHead = agentHead + "[jobs.triage]\nmodel = \"openai/m\"\nprompt = \"p\"\n"
)

// mistakesOf returns the mistakes of a config without the file's name.
func mistakesOf(t *testing.T, config string, files ...string) []string {
	t.Helper()
	_, err := Load(workspaceOf(t, config, files...))
	if err == nil {
		return nil
	}
	invalid, ok := errors.AsType[*Invalid](err)
	if !ok {
		t.Fatalf("Load: %v, want *Invalid", err)
	}
	if exitcodes.From(err) != exitcodes.Config {
		t.Errorf("code %d, want %d", exitcodes.From(err), exitcodes.Config)
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("the error has several lines: %q", err)
	}
	var list []string
	for _, m := range invalid.Mistakes {
		list = append(list, strings.TrimPrefix(m.String(), FileName+":"))
	}
	return list
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, config string
		want         []string
	}{
		{"empty file", "", []string{"1:1 there is no [agent] table with the agent's name"}},
		{"no name", "[agent]\n", []string{"1:2 agent needs a name"}},
		{"mistyped name", "[agent]\nnane = \"bob\"", []string{`2:1 unknown key "nane" in agent: did you mean "name"?`}},
		{"bad agent name", "[agent]\nname = \"Böb Smith\"", []string{
			`2:8 name "Böb Smith": a name is made of ` + slugRule + `: try "bb-smith"`,
		}},
		{"agent is text", "agent = \"bob\"", []string{"1:1 agent must be a table: [agent]", "1:1 there is no [agent] table with the agent's name"}},
		{"unknown table", agentHead + "[job.a]", []string{`3:2 unknown table "job": did you mean "jobs"?`}},
		{"top-level key", "name = \"bob\"\n" + agentHead, []string{`1:1 unknown key "name": it belongs in [agent]`}},
		{"bad job name", agentHead + "[jobs.\"Nightly Build\"]\nprompt = \"p\"\nmodel = \"openai/m\"", []string{
			`3:7 job name "Nightly Build": a name is made of ` + slugRule + `: try "nightly-build"`,
		}},
		{"list of jobs", agentHead + "[[jobs.a]]", []string{"3:8 jobs.a must be one table: write [jobs.a] with single brackets"}},
		{"job is text", agentHead + "jobs.a = \"x\"", []string{`3:1 unknown key "jobs" in agent`}},
		{"columns are characters", agentHead + "[jobs.\"åäö\"]\nprompt = \"p\"\nmodel = \"openai/m\"\n\"ö\" = 1", []string{
			`3:7 job name "åäö": a name is made of ` + slugRule,
			`6:1 unknown key "ö" in jobs.åäö`,
		}},

		{"mistyped prompt", agentHead + "[jobs.triage]\nmodel = \"openai/m\"\n  promt = \"p\"", []string{
			`5:3 unknown key "promt" in jobs.triage: did you mean "prompt"?`,
		}},
		{"hyphen", jobHead + "catch-up = true", []string{`6:1 unknown key "catch-up" in jobs.triage: did you mean "catch_up"?`}},
		{"wrong table", jobHead + "attempts = 2", []string{`6:1 unknown key "attempts" in jobs.triage: it belongs in [jobs.triage.resume]`}},
		{"wrong table in defaults", jobHead + "[defaults]\ncooldown = \"1m\"", []string{`7:1 unknown key "cooldown" in defaults: it belongs in [defaults.resume]`}},
		{"wrong nested table", jobHead + "[jobs.triage.resume]\ntimeout = \"1m\"", []string{`7:1 unknown key "timeout" in jobs.triage.resume: it belongs in [jobs.triage]`}},
		{"nonsense", jobHead + "xyzzy = 1", []string{`6:1 unknown key "xyzzy" in jobs.triage`}},
		{"dotted key", jobHead + "resume.atempts = 1", []string{`6:8 unknown key "atempts" in jobs.triage.resume: did you mean "attempts"?`}},
		{"inline table", jobHead + "resume = { attempts = 0, x = 1 }", []string{
			"6:23 resume.attempts 0 is out of 1 to 100", `6:26 unknown key "x" in jobs.triage.resume`,
		}},

		{"nothing to do", agentHead + "[jobs.a]", []string{
			"3:7 jobs.a needs a prompt or a prompt_file", `3:7 jobs.a needs a model, such as model = "anthropic/claude-sonnet-4-5"`,
		}},
		{"empty prompt", agentHead + "[jobs.a]\nmodel = \"openai/m\"\nprompt = \" \\n\"", []string{"5:10 prompt is empty"}},
		{"NUL in prompt", agentHead + "[jobs.a]\nmodel = \"openai/m\"\nprompt = \"a\\u0000b\"", []string{"5:10 prompt must not hold a NUL character"}},
		{"two prompts", jobHead + "prompt_file = \"p.md\"", []string{
			"6:1 prompt and prompt_file exclude each other: keep one", `6:15 prompt_file "p.md" does not exist`,
		}},
		{"home", jobHead + "env_files = [\"~/x\"]", []string{
			`6:14 env_files "~/x": ~ is not expanded here: write the whole path, or one relative to the workspace`,
		}},

		{"text for number", jobHead + "max_steps = \"ten\"", []string{`6:13 max_steps must be a whole number (without quotes), not the text "ten"`}},
		{"float for number", jobHead + "max_steps = 1.5", []string{`6:13 max_steps must be a whole number (without quotes), not the number 1.5`}},
		{"number for duration", jobHead + "timeout = 30", []string{`6:11 timeout must be a duration in quotes such as "90s", "30m" or "1d", not the number 30`}},
		{"date for duration", jobHead + "timeout = 2026-12-01", []string{`6:11 timeout must be a duration in quotes such as "90s", "30m" or "1d", not a date or time`}},
		{"text for bool", jobHead + "enabled = \"no\"", []string{`6:11 enabled must be true or false (without quotes), not the text "no"`}},
		{"bool for text", jobHead + "lane = true", []string{"6:8 lane must be text in quotes, not true"}},
		{"text for list", jobHead + "pass_env = \"X\"", []string{`6:12 pass_env must be a list of texts such as ["a", "b"], not the text "X"`}},
		{"list item", jobHead + "pass_env = [\n  \"X\",\n  1,\n]", []string{"8:3 each item of pass_env must be text in quotes, not the number 1"}},
		{"list for text", jobHead + "lane = []", []string{"6:8 lane must be text in quotes, not a list"}},
		{"text for table", jobHead + "resume = \"always\"", []string{`6:10 resume must be a table: [jobs.triage.resume], not the text "always"`}},
		{"table for text", jobHead + "lane = {}", []string{"6:8 lane must be text in quotes, not a table"}},
		{"overflow", jobHead + "max_steps = 99999999999999999999", []string{"6:13 max_steps 99999999999999999999 is out of 1 to 100000"}},
		{"infinite cost", jobHead + "max_cost_usd = inf", []string{"6:16 max_cost_usd inf must be above 0 and at most 1e+06"}},
		{"nan cost", jobHead + "max_cost_usd = nan", []string{"6:16 max_cost_usd nan must be above 0 and at most 1e+06"}},
		{"no cost", jobHead + "max_cost_usd = 0", []string{"6:16 max_cost_usd 0 must be above 0 and at most 1e+06"}},

		{"no unit", jobHead + "timeout = \"30\"", []string{`6:11 timeout "30": "30" has no unit: write "30s" or "30m"`}},
		{"bad unit", jobHead + "timeout = \"30 minutes\"", []string{`6:11 timeout "30 minutes": unknown unit "minutes": use ms, s, m, h, d or w`}},
		{"no time", jobHead + "timeout = \"0s\"", []string{`6:11 timeout "0s": must be at least 1s`}},
		{"negative", jobHead + "jitter = \"-1m\"", []string{`6:10 jitter "-1m": must not be negative`}},
		{"long grace", jobHead + "grace = \"1h\"", []string{`6:9 grace "1h": must be at most 10m`}},
		{"words", jobHead + "grace = \"soon\"", []string{`6:9 grace "soon": not a duration such as "90s", "30m", "1h30m" or "1d"`}},

		{"schedule", jobHead + "  schedule = \"61 * * * *\"", []string{`6:14 schedule "61 * * * *": minute 61 is out of 0-59 (column 1)`}},
		{"one of two schedules", jobHead + "schedule = [\n  '@daily',\n  '0 25 * * *',\n]", []string{`8:3 schedule "0 25 * * *": hour 25 is out of 0-23 (column 3)`}},
		{"inherited schedule", jobHead + "[defaults]\nschedule = '0 25 * * *'", []string{`7:12 schedule "0 25 * * *": hour 25 is out of 0-23 (column 3)`}},
		{"schedule of a bad zone", jobHead + "schedule = '0 5 * * *'\ntimezone = \"utc\"", []string{`7:12 timezone "utc": unknown time zone: did you mean "UTC"?`}},
		{"number for schedule", jobHead + "schedule = 5", []string{"6:12 schedule must be text in quotes or a list of texts, not the number 5"}},
		{"zone", jobHead + "timezone = \"Europe/Stokholm\"", []string{`6:12 timezone "Europe/Stokholm": unknown time zone: did you mean "Europe/Stockholm"?`}},
		{"zone path", jobHead + "timezone = \"../../etc/passwd\"", []string{`6:12 timezone "../../etc/passwd": unknown time zone; names look like "Europe/Stockholm"`}},
		{"local zone", jobHead + "timezone = \"Local\"", []string{`6:12 timezone "Local": leave the key out for the machine's time zone`}},

		{"session", jobHead + "session = \"a/{date}\"", []string{`6:11 session "a/{date}": a session name is made of letters, digits, -, _ and . (not '/')`}},
		{"session dot", jobHead + "session = \"..\"", []string{`6:11 session "..": a session name starts with a letter or a digit`}},
		{"session placeholder", jobHead + "session = \"{dat}\"", []string{`6:11 session "{dat}": unknown placeholder {dat}: did you mean {date}?`}},
		{"session unknown", jobHead + "session = \"{hour}\"", []string{`6:11 session "{hour}": unknown placeholder {hour}: use {date}, {week} or {run}`}},
		{"session brace", jobHead + "session = \"a{date\"", []string{`6:11 session "a{date": a brace without its other half; placeholders are {date}, {week} and {run}`}},

		{"no provider", jobHead + "[defaults]\nmodel = \"gpt-5\"", []string{
			`7:9 model "gpt-5": must be provider/model, such as "anthropic/claude-sonnet-4-5"`,
		}},
		{"provider", jobHead + "[jobs.b]\nprompt = \"p\"\nmodel = \"anthropc/x\"", []string{`8:9 model "anthropc/x": unknown provider "anthropc": did you mean "anthropic"?`}},
		{"provider alone", jobHead + "[jobs.b]\nprompt = \"p\"\nmodel = \"openai\"", []string{`8:9 model "openai": names no model: write "openai/MODEL"`}},
		{"script", jobHead + "[jobs.b]\nprompt = \"p\"\nmodel = \"rehearsal/x.toml\"", []string{`8:9 model "rehearsal/x.toml": the script "x.toml" does not exist`}},

		{"backend", jobHead + "backend = \"comand\"", []string{`6:11 backend "comand": did you mean "command"? It is one of "builtin", "command", "aider", "amp", "claude", "codex", "copilot", "crush", "cursor-agent", "gemini", "goose", "gptme", "opencode" or "qwen"`}},
		{"no command", jobHead + "backend = \"command\"", []string{`6:11 jobs.triage needs a command, such as command = ["prog", "arg"]`}},
		{"empty command", jobHead + "backend = \"command\"\ncommand = []", []string{"7:11 command must name a program"}},
		{"command of builtin", jobHead + "command = [\"x\"]", []string{`6:1 command is only for backend = "command"`}},
		{"prompt_via", jobHead + "backend = \"command\"\ncommand = [\"x\"]\nprompt_via = \"stdn\"", []string{
			`8:14 prompt_via "stdn": did you mean "stdin"? It is one of "stdin", "arg" or "file"`,
		}},

		{"exit code name", jobHead + "[jobs.triage.resume]\non = [\"rate_limit\", \"ok\", \"fish\"]", []string{
			`7:7 resume.on "rate_limit": unknown exit code name: did you mean "rate_limited"?`,
			`7:21 resume.on "ok": there is nothing to continue after it`,
			`7:27 resume.on "fish": unknown exit code name; "agentd exitcodes" lists them`,
		}},
		{"env", jobHead + "[jobs.triage.env]\nPORT = 80\n\"a b\" = \"x\"\nAGENTD_RUN_ID = \"x\"", []string{
			"7:8 env.PORT must be text in quotes, not a whole number",
			`8:1 env."a b": not a variable name: letters, digits and _, starting with a letter or _`,
			`9:1 env."AGENTD_RUN_ID": agentd sets this variable itself`,
		}},
		{"unit", jobHead + "[jobs.triage.unit]\nmemory_max = \"2 GB\"\ncpu_quota = \"half\"\ntasks_max = 0\non_failure = [\"alert\"]\nio_class = \"idel\"", []string{
			`7:14 unit.memory_max "2 GB": must be a size such as "512M" or "2G", a share such as "50%", or "infinity"`,
			`8:13 unit.cpu_quota "half": must be a percentage of one processor such as "50%" or "200%"`,
			"9:13 unit.tasks_max 0 is out of 1 to 4000000",
			`10:15 unit.on_failure "alert": not a unit's name: did you mean "alert.service"?`,
			`11:12 unit.io_class "idel": did you mean "idle"? It is one of "idle", "best-effort" or "realtime"`,
		}},
		{"slots differ", jobHead + "lane_slots = 2\n[jobs.b]\nprompt = \"p\"\nmodel = \"openai/m\"", []string{
			`7:7 lane "bob" has lane_slots 1 in job b, but 2 in job triage: say it once, in [lanes.bob]`,
		}},
		{"slots differ from lane", jobHead + "lane_slots = 2\n[lanes.bob]\nslots = 3", []string{
			"6:14 lane_slots 2 of job triage differs from [lanes.bob], which has 3 slots",
		}},

		{"unknown provider table", agentHead + "[providers.house]", []string{
			`3:12 providers.house needs a base_url, because "house" is not a provider that agentd knows`,
		}},
		{"key in the open", agentHead + "[providers.openai]\napi_key = \"sk-hunter2\"", []string{
			`4:1 unknown key "api_key" in providers.openai: did you mean "api_key_env"?`,
		}},
		{"wire", agentHead + "[providers.openai]\nwire = \"cat\"", []string{
			`4:8 wire "cat": did you mean "chat"? It is one of "chat", "responses" or "anthropic"`,
		}},
		{"URL", agentHead + "[providers.openai]\nbase_url = \"localhost:80\"", []string{`4:12 base_url "localhost:80": must start with "https://" or "http://" and name a host`}},
		{"URL with password", agentHead + "[providers.openai]\nbase_url = \"https://u:hunter2@h/\"", []string{
			"4:12 base_url must not hold a user or a password: use api_key_env",
		}},
		{"two keys", agentHead + "[providers.openai]\napi_key_env = \"K\"\ncredential = \"k\"", []string{
			"5:1 providers.openai names the key twice: keep one of api_key_env, credential",
		}},
		{"key in place of its name", agentHead + "[providers.openai]\napi_key_env = \"sk-hunter2\"", []string{
			"4:15 api_key_env must be the name of a variable (letters, digits and _), not the key itself",
		}},
		{"header", agentHead + "[providers.openai]\nheaders = { \"a b\" = \"x\", B = \"hunter2\\nx\" }", []string{
			`4:13 headers."a b": not the name of a header`, "4:30 headers.B: must be one line without control characters",
		}},
		{"rehearsal", agentHead + "[providers.rehearsal]\nwire = \"chat\"", []string{
			`3:12 providers.rehearsal cannot be set: "rehearsal" is agentd's own scripted provider`,
		}},

		{"not TOML", agentHead + "[jobs.a\n", []string{"3:8 this is not TOML: expected ']' to close table name"}},
		{"no quotes", agentHead + "[jobs.a]\nprompt = hello", []string{"4:10 this is not TOML: unexpected character U+0068 'h' at start of value (text needs quotes)"}},
		{"end of file", agentHead + "[jobs.a]\nprompt =", []string{"4:8 this is not TOML: expected value, not end of input"}},
		{"twice", agentHead + "name = \"eve\"\n[jobs.a]\nmodel = \"openai/m\"\n[jobs.a]\nprompt = \"p\"\n[agent.name.x]", []string{
			`3:1 "name" is defined twice`, "6:7 table [jobs.a] is there twice: put its keys into one", `8:8 "name" is defined twice`,
		}},
		{"table over inline table", jobHead + "env = { A = \"1\" }\n[jobs.triage.env]\nB = \"2\"", []string{`7:14 "env" is defined twice`}},
		{"leading zero", jobHead + "max_steps = 010", []string{"6:13 this is not TOML: integers cannot have leading zeroes"}},
		{"control character", "[agent]\nname = \"b\x01b\"", []string{"2:10 this is not TOML: basic strings cannot have control characters"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := mistakesOf(t, tt.config); !slices.Equal(got, tt.want) {
				t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}

func TestPromptFiles(t *testing.T) {
	t.Parallel()
	head := agentHead + "[jobs.triage]\nmodel = \"openai/m\"\n"
	tests := []struct{ name, file, content, want string }{
		{"missing", "prompts/other.md", "x", `5:15 prompt_file "prompts/triage.md" does not exist`},
		{"mistyped", "prompts/tirage.md", "x", `5:15 prompt_file "prompts/triage.md" does not exist: did you mean "prompts/tirage.md"?`},
		{"empty", "prompts/triage.md", " \n", `5:15 prompt_file "prompts/triage.md" is empty`},
		{"NUL", "prompts/triage.md", "a\x00", `5:15 prompt_file "prompts/triage.md" holds a NUL character`},
		{"binary", "prompts/triage.md", "\xff\xfe", `5:15 prompt_file "prompts/triage.md" is not UTF-8 text`},
		{"folder", "prompts/triage.md/x", "", `5:15 prompt_file "prompts/triage.md" is a folder, not a file`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := mistakesOf(t, head+"prompt_file = \"prompts/triage.md\"\n", tt.file, tt.content)
			if !slices.Equal(got, []string{tt.want}) {
				t.Errorf("got %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestDefaultsAreReportedOnce(t *testing.T) {
	t.Parallel()
	config := agentHead + "[defaults]\nmodel = \"x/y\"\nprompt = \"p\"\ntimezone = \"Mars/Olympus\"\n[jobs.a]\n[jobs.b]\n"
	got := mistakesOf(t, config)
	if len(got) != 2 || !strings.HasPrefix(got[0], "4:9 ") || !strings.HasPrefix(got[1], "6:12 ") {
		t.Errorf("mistakes: %q", got)
	}
}

func TestReportIsBounded(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&b, "key%d = 1\n", i)
	}
	if got := mistakesOf(t, b.String()); len(got) != maxMistakes {
		t.Errorf("%d mistakes, want %d", len(got), maxMistakes)
	}
}

func TestInvalidIsOneLine(t *testing.T) {
	t.Parallel()
	e := &Invalid{File: "/w/agentd.toml", Mistakes: []Mistake{
		{FileName, 14, 3, "first"}, {FileName, 15, 14, "second"}, {FileName, 16, 1, "third"},
	}}
	for n, want := range map[int]string{
		0: "/w/agentd.toml is not valid",
		1: "/w/agentd.toml:14:3 first",
		2: "/w/agentd.toml:14:3 first (and 1 more mistake)",
		3: "/w/agentd.toml:14:3 first (and 2 more mistakes)",
	} {
		if got := (&Invalid{File: e.File, Mistakes: e.Mistakes[:n]}).Error(); got != want {
			t.Errorf("%d mistakes: %q, want %q", n, got, want)
		}
	}
	want := []string{"agentd.toml:14:3  first", "agentd.toml:15:14 second", "agentd.toml:16:1  third"}
	if got := e.Lines(); !slices.Equal(got, want) {
		t.Errorf("Lines() = %q, want %q", got, want)
	}
}
