package backend

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agentd/exitcodes"
	"agentd/provider/message"
	"agentd/workspace"
)

func TestPresetSucceeds(t *testing.T) {
	eachPreset(t, func(t *testing.T, d *cliDesk) {
		d.hello()
		o := d.run(t.Context(), "Say \"hi\" & $HOME\n'now'")
		if o.Code != exitcodes.OK || o.Text != "Hello from mock" {
			t.Fatalf("outcome %+v\n%s", o, d.out.String())
		}
		if got := d.prompt(); got != "Say \"hi\" & $HOME\n'now'" {
			t.Errorf("the program was asked %q", got)
		}
		if len(d.preset.Model) > 0 && !slices.Contains(d.args(), "some-model") {
			t.Errorf("no model in %q", d.args())
		}
		if len(d.preset.MaxSteps) > 0 && !slices.Contains(d.args(), "7") {
			t.Errorf("no max_steps in %q", d.args())
		}
		if !strings.Contains(d.out.String(), "Hello from mock") {
			t.Errorf("the log says %q", d.out.String())
		}
		tr := d.transcript()
		if n := len(tr.Messages); n != 2 || tr.Messages[0].Role != message.User || tr.Messages[1].Text() != "Hello from mock" {
			t.Errorf("the journal says %+v", tr.Messages)
		}
		if (tr.External[d.preset.Name] != "") != (d.preset.Session != "none") {
			t.Errorf("the session's id is %q", tr.External[d.preset.Name])
		}
	})
}

func TestPresetResumes(t *testing.T) {
	eachPreset(t, func(t *testing.T, d *cliDesk) {
		d.hello()
		d.run(t.Context(), "First.")
		id := d.transcript().External[d.preset.Name]
		d.resumed = true
		if o := d.run(t.Context(), "Second."); o.Code != exitcodes.OK {
			t.Fatalf("outcome %+v", o)
		}
		named := slices.ContainsFunc(d.args(), func(a string) bool { return id != "" && strings.Contains(a, id) })
		if named != (d.preset.Session != "none") {
			t.Errorf("session %q, arguments %q", id, d.args())
		}
		if d.preset.Session == "none" && !strings.Contains(d.prompt(), "Reply: Hello from mock") {
			t.Errorf("a program without sessions is not told what was before: %q", d.prompt())
		}
		if !strings.HasSuffix(d.prompt(), "Second.") {
			t.Errorf("the program was asked %q", d.prompt())
		}
	})
}

func TestPresetLosesItsSession(t *testing.T) {
	words := map[string]string{
		"claude": "No conversation found with session ID: x", "codex": "Error: thread/resume failed: no rollout found for thread id x",
		"gemini": "Error resuming session: Invalid session identifier \"x\".", "opencode": "Error: Session not found",
		"copilot": "No session found", "cursor-agent": "Chat not found", "amp": "Thread x not found",
	}
	eachPreset(t, func(t *testing.T, d *cliDesk) {
		said, ok := words[d.preset.Name]
		if !ok {
			t.Skip("it does not lose sessions, or does not say so")
		}
		d.hello()
		d.run(t.Context(), "First.")
		lost := d.transcript().External[d.preset.Name]
		d.script(`case "$(cat "$FAKE/args")" in *` + lost + `*) echo '` + said + `' >&2; exit 1;; esac
cat "$FAKE/hello"`)
		o := d.run(t.Context(), "Second.")
		if o.Code != exitcodes.OK || d.calls() != 3 {
			t.Fatalf("outcome %+v after %d calls", o, d.calls())
		}
		if p := d.prompt(); !strings.Contains(p, "Task: First.") || !strings.Contains(p, "Reply: Hello from mock") || !strings.HasSuffix(p, "Second.") {
			t.Errorf("the new session starts with %q", p)
		}
		if notes := d.transcript().Notes; len(notes) != 1 || !strings.Contains(notes[0].Text, "has lost its session "+lost) {
			t.Errorf("notes %+v", notes)
		}
	})
}

func TestPresetFails(t *testing.T) {
	for _, c := range []struct {
		name, script string
		code         exitcodes.Code
		err, reset   string
	}{
		{"silent", "exit 0", exitcodes.Failure, "ended with status 0", ""},
		{"status", "echo went wrong >&2; exit 3", exitcodes.Failure, "ended with status 3: went wrong", ""},
		{"limit", "echo \"You've hit your weekly limit · resets 10am (Asia/Seoul)\" >&2; exit 1", exitcodes.RateLimited, "You've hit your weekly limit", "2026-12-02T01:00:00Z"},
		{"login", "echo 'Error: Not logged in · Please run /login' >&2; exit 1", exitcodes.NoPermission, "Not logged in", ""},
		{"signal", "kill -SEGV $$", exitcodes.Failure, "was ended by SIGSEGV", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachPreset(t, func(t *testing.T, d *cliDesk) {
				d.script(c.script)
				o := d.run(t.Context(), "Do it.")
				if o.Code != c.code || o.Err == nil || !strings.Contains(o.Err.Error(), c.err) {
					t.Errorf("code %s, error %v", o.Code, o.Err)
				}
				if c.reset != "" && o.ResetAt.UTC().Format(time.RFC3339) != c.reset {
					t.Errorf("reset at %s, want %s", o.ResetAt, c.reset)
				}
			})
		})
	}
}

func TestPresetIsStopped(t *testing.T) {
	for _, c := range []struct {
		cause error
		code  exitcodes.Code
	}{
		{exitcodes.Errorf(exitcodes.Timeout, "the attempt's timeout of 1s passed"), exitcodes.Timeout},
		{exitcodes.Errorf(exitcodes.Terminated, "SIGTERM"), exitcodes.Terminated},
	} {
		t.Run(c.code.String(), func(t *testing.T) {
			eachPreset(t, func(t *testing.T, d *cliDesk) {
				d.script(`trap '' TERM INT; echo "$$" > "$FAKE/up"; sleep 100 & wait; exit 0`)
				d.job.Grace = 50 * time.Millisecond
				ctx, cancel := context.WithCancelCause(t.Context())
				go func() {
					for ctx.Err() == nil {
						if _, err := os.Stat(filepath.Join(d.home, "up")); err == nil {
							cancel(c.cause)
						}
						time.Sleep(5 * time.Millisecond)
					}
				}()
				o := d.run(ctx, "Do it.")
				if o.Code != c.code || o.Signal != "SIGKILL" {
					t.Errorf("outcome %+v", o)
				}
			})
		})
	}
}

func TestPresetTakesAnyPrompt(t *testing.T) {
	eachPreset(t, func(t *testing.T, d *cliDesk) {
		d.hello()
		for _, prompt := range []string{"-p --help", "--", "ünïcödé “quotes” `x` $(y)\ttab", strings.Repeat("long ", 40<<10)} {
			if o := d.run(t.Context(), prompt); o.Code != exitcodes.OK {
				t.Fatalf("%.20q: outcome %+v", prompt, o)
			}
			got := d.prompt()
			switch {
			case d.preset.PromptVia == "arg" && len(prompt) > safeArgument:
				if !strings.Contains(got, "Your task is in the file ") {
					t.Errorf("%.20q became %.60q", prompt, got)
				}
			case !strings.HasSuffix(strings.TrimSpace(got), strings.TrimSpace(prompt)):
				t.Errorf("%.20q became %.60q", prompt, got)
			}
			if d.preset.PromptVia == "arg" && strings.HasPrefix(got, "-") {
				t.Errorf("%.20q would be taken for an option", got)
			}
		}
		if o := d.run(t.Context(), "a\x00b"); o.Code != exitcodes.Config {
			t.Errorf("NUL: outcome %+v", o)
		}
		if o := d.run(t.Context(), " \n"); o.Code != exitcodes.NoInput {
			t.Errorf("empty: outcome %+v", o)
		}
	})
}

func TestPresetEnvironment(t *testing.T) {
	eachPreset(t, func(t *testing.T, d *cliDesk) {
		d.hello()
		d.env = append(d.env, "STRAY_API_KEY=stray", "OPENAI_ORGANIZATION=stray", "GH_TOKEN=kept", "NAMED_API_KEY=kept", "CLAUDECODE=1", "EXTRA=kept")
		d.job.PassEnv = []string{"NAMED_API_KEY"}
		d.run(t.Context(), "Do it.")
		env := d.got("env")
		for _, want := range []string{"GH_TOKEN=kept", "NAMED_API_KEY=kept", "EXTRA=kept", "AGENTD_RUN_ID=run", "HOME=" + d.home} {
			if !strings.Contains(env, want+"\n") {
				t.Errorf("%s is missing", want)
			}
		}
		if strings.Contains(env, "=stray") {
			t.Error("a stray key was passed")
		}
		for name := range d.preset.Env {
			if !strings.Contains(env, name+"=") {
				t.Errorf("%s is missing", name)
			}
		}
		if strings.ContainsAny(env, "{}") && strings.Contains(env, "{r") {
			t.Error("a placeholder was left")
		}
	})
}

func TestPresetIsNotThere(t *testing.T) {
	eachPreset(t, func(t *testing.T, d *cliDesk) {
		if err := os.Remove(filepath.Join(d.home, "bin", d.preset.Command[0])); err != nil {
			t.Fatal(err)
		}
		d.env = []string{"PATH=/nonexistent", "HOME=" + d.home}
		if o := d.run(t.Context(), "Do it."); o.Code != exitcodes.NotFound || exitcodes.HintOf(o.Err) == "" {
			t.Errorf("outcome %+v", o)
		}
	})
}

// What an agent reads and says is not what happened to it.
func TestQuotedErrorsChangeNothing(t *testing.T) {
	for name, event := range map[string]string{
		"claude":   `{"type":"user","message":{"content":[{"type":"tool_result","content":"429 Too Many Requests"}]}}` + "\n" + `{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"API Error: 429 Too Many Requests"}]}}`,
		"codex":    `{"type":"item.completed","item":{"type":"command_execution","command":"curl","aggregated_output":"429 Too Many Requests"}}`,
		"gemini":   `{"type":"tool_result","output":"429 Too Many Requests"}`,
		"opencode": `{"type":"tool_use","part":{"tool":"bash","state":{"output":"429 Too Many Requests"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			d := newCLIDesk(t, name, "")
			d.hello()
			lines := strings.SplitAfterN(d.got("hello"), "\n", 2)
			d.write("hello", lines[0]+event+"\n"+lines[1], 0o600)
			if o := d.run(t.Context(), "Do it."); o.Code != exitcodes.OK {
				t.Errorf("outcome %+v", o)
			}
		})
	}
}

func TestStatusGoesBeforeWords(t *testing.T) {
	t.Parallel()
	line := `{"type":"result","subtype":"success","is_error":true,"api_error_status":401,"result":"You've hit your usage limit: rate limit exceeded, 429 Too Many Requests"}`
	preset, err := workspace.BackendPreset("claude")
	if err != nil {
		t.Fatal(err)
	}
	c, err := newClassifier(preset, func() time.Time { return recordedAt }, time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	r := readAll("claude", []byte(line+"\n"), nil, 100)
	if v := c.judge(r, ending{status: 1}, false); v.code != exitcodes.NoPermission {
		t.Errorf("verdict %+v", v)
	}
}

func TestRecordedEndings(t *testing.T) {
	for _, row := range recordedRows(t) {
		if row.Status != 124 {
			continue
		}
		t.Run(row.Name, func(t *testing.T) {
			d := newCLIDesk(t, row.CLI, `cat "$FAKE/o"; cat "$FAKE/e" >&2; echo > "$FAKE/up"; exec sleep 100`)
			d.write("o", string(row.read(t, ".out")), 0o600)
			d.write("e", string(row.read(t, ".err")), 0o600)
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() {
				for ctx.Err() == nil {
					if _, err := os.Stat(filepath.Join(d.home, "up")); err == nil {
						cancel(exitcodes.Errorf(exitcodes.Timeout, "the attempt's timeout of 45s passed"))
					}
					time.Sleep(5 * time.Millisecond)
				}
			}()
			o := d.run(ctx, "say hi")
			if o.Code != row.Code {
				t.Errorf("code %s, want %s: %v", o.Code, row.Code, o.Err)
			}
			// It is told what the program was waiting for, where that was printed.
			if waited := strings.Contains(string(row.read(t, ".out")), "api_retry"); waited && !strings.Contains(o.Err.Error(), "repeating a request") {
				t.Errorf("error %v", o.Err)
			}
		})
	}
}

// However the output is cut into pieces, it is read the same.
func TestPiecesDoNotMatter(t *testing.T) {
	t.Parallel()
	for _, row := range recordedRows(t) {
		if row.Status == 124 {
			continue
		}
		preset, err := workspace.BackendPreset(row.CLI)
		if err != nil {
			t.Fatal(err)
		}
		out, errs := row.read(t, ".out"), row.read(t, ".err")
		whole, pieces := readAll(preset.Output, out, errs, 1<<20), readAll(preset.Output, out, errs, 3)
		if whole.text != pieces.text || whole.ended != pieces.ended || whole.steps != pieces.steps || whole.saidLast() != pieces.saidLast() || whole.usage != pieces.usage {
			t.Errorf("%s: %+v in pieces is %+v", row.Name, whole, pieces)
		}
	}
}

func TestExternalSharesNoState(t *testing.T) {
	d := newCLIDesk(t, "claude", "")
	d.hello()
	d.preset.StateWait = time.Millisecond
	x := &external{ExternalOptions: ExternalOptions{Backend: d.preset, Locks: d.locks, Now: time.Now}}
	held, err := x.takeState(t.Context(), Attempt{RunID: "other", Job: d.job, Env: d.env, Events: func(Event) {}})
	if err != nil {
		t.Fatal(err)
	}
	if o := d.run(t.Context(), "Do it."); o.Code != exitcodes.LaneBusy {
		t.Errorf("outcome %+v", o)
	}
	d.env = append(d.env, "CLAUDE_CONFIG_DIR="+filepath.Join(d.home, "elsewhere"))
	if o := d.run(t.Context(), "Do it."); o.Code != exitcodes.OK {
		t.Errorf("in another folder: outcome %+v", o)
	}
	if err := held.Release(); err != nil {
		t.Fatal(err)
	}
}

func TestPresetWithABadPattern(t *testing.T) {
	t.Parallel()
	_, err := NewExternal(ExternalOptions{Backend: workspace.Backend{Name: "x", Patterns: []workspace.Pattern{{Match: "^(", Code: "quota"}}}})
	if exitcodes.From(err) != exitcodes.Config {
		t.Errorf("error %v", err)
	}
}
