package doctor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentd/exitcodes"
	"agentd/scheduler"
	"agentd/systemd"
	"agentd/workspace"
)

const config = `[agent]
name = "bob"
[defaults]
backend = "command"
command = ["/bin/cat"]
prompt = "x"
[jobs.triage]
schedule = "0 7 * * *"
`

// ward is a home with one installed agent.
type ward struct {
	*testing.T
	patient Patient
	home    string
	work    string
}

func newWard(t *testing.T, toml string) *ward {
	t.Helper()
	w := &ward{T: t, home: t.TempDir(), work: t.TempDir()}
	env := map[string]string{"HOME": w.home, "PATH": "/usr/bin:/bin"}
	getenv := func(name string) string { return env[name] }
	folders, err := workspace.FoldersFromEnv(getenv)
	if err != nil {
		t.Fatal(err)
	}
	target, err := scheduler.NewTarget(systemd.User, folders, "/usr/bin/agentd", getenv)
	if err != nil {
		t.Fatal(err)
	}
	w.patient = Patient{
		Target: target, Folders: folders, Absent: errors.New("none in a test"), Getenv: getenv, Now: time.Now(),
		LoginPath:    func(context.Context) (string, error) { return filepath.Join(w.home, "bin"), nil },
		EnableLinger: func(context.Context) error { return nil },
		UserOf:       func(string) (string, error) { return "", nil },
	}
	w.write(filepath.Join(w.work, workspace.FileName), toml, 0o600)
	if err := folders.Register("bob", w.work); err != nil {
		t.Fatal(err)
	}
	w.install()
	return w
}

func (w *ward) write(path, text string, mode os.FileMode) {
	w.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		w.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		w.Fatal(err)
	}
}

func (w *ward) install() {
	w.Helper()
	ws, err := workspace.Load(w.work)
	if err != nil {
		w.Fatal(err)
	}
	plan, err := scheduler.NewPlan(ws, w.patient.Target, scheduler.Options{})
	if err != nil {
		w.Fatal(err)
	}
	if _, err := plan.Apply(w.Context(), nil); err != nil {
		w.Fatal(err)
	}
}

// found returns the finding whose text contains all words, or nil.
func (w *ward) found(words ...string) *Finding {
	w.Helper()
	list := w.patient.Examine(w.Context())
	for i := range list {
		if containsAll(list[i].Text, words) {
			return &list[i]
		}
	}
	return nil
}

func containsAll(text string, words []string) bool {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

func TestHealthy(t *testing.T) {
	w := newWard(t, config)
	for _, f := range w.patient.Examine(t.Context()) {
		if f.Level != OK && f.Check != "bus" && f.Check != "clock" {
			t.Errorf("%+v", f)
		}
	}
	if f := w.found("bob", "in order"); f == nil {
		t.Error("a healthy agent is not told of")
	}
}

// Each trouble is found, and what can be mended is gone after the repair.
func TestTroubles(t *testing.T) {
	for name, c := range map[string]struct {
		config string
		spoil  func(w *ward)
		words  []string
		level  Level
		mends  bool
	}{
		"others read the env file": {
			config: config + "env_files = [\".env\"]\n",
			spoil:  func(w *ward) { w.write(filepath.Join(w.work, ".env"), "A=b\n", 0o644) },
			words:  []string{"other users can open", ".env (644)"}, level: Warn, mends: true,
		},
		"others read the state": {
			spoil: func(w *ward) {
				if err := os.MkdirAll(w.patient.Folders.State, 0o755); err != nil {
					w.Fatal(err)
				}
				w.write(filepath.Join(w.patient.Folders.State, "x"), "", 0o600)
				if err := os.Chmod(w.patient.Folders.State, 0o755); err != nil {
					w.Fatal(err)
				}
			},
			words: []string{"open to other users (755)"}, level: Warn, mends: true,
		},
		"the program is on the login PATH only": {
			config: config + "command = [\"onlylogin\"]\n",
			spoil:  func(w *ward) { w.write(filepath.Join(w.home, "bin/onlylogin"), "#!/bin/sh\n", 0o755) },
			words:  []string{`bob/triage: "onlylogin" is on your login PATH`}, level: Fail, mends: true,
		},
		"there is no program": {
			config: config + "command = [\"nowhere\"]\n",
			words:  []string{`there is no program "nowhere"`}, level: Fail,
		},
		"there is no program of that path": {
			config: config + "command = [\"./nowhere\"]\n",
			words:  []string{`there is no program "./nowhere"`}, level: Fail,
		},
		"there is no key": {
			config: config + "backend = \"builtin\"\nmodel = \"anthropic/x\"\n",
			words:  []string{"bob/triage: runs have no ANTHROPIC_API_KEY"}, level: Fail,
		},
		"the CLI has no login": {
			config: config + "backend = \"mine\"\n[backends.mine]\ncommand = [\"/bin/cat\"]\ncredentials = [\"$MY_KEY\", \"~/.mine/login\"]\n",
			words:  []string{"bob/triage: no login of mine was found"}, level: Warn,
		},
		"agentd.toml changed": {
			spoil: func(w *ward) {
				w.write(filepath.Join(w.work, workspace.FileName), strings.Replace(config, "0 7", "0 8", 1), 0o600)
			},
			words: []string{"not what agentd.toml says now: 0 to add, 1 to change, 0 to remove"}, level: Warn, mends: true,
		},
		"a unit was edited": {
			spoil: func(w *ward) {
				path := filepath.Join(w.patient.Target.UnitDir, "agentd-bob-triage.service")
				text, err := os.ReadFile(path)
				if err != nil {
					w.Fatal(err)
				}
				w.write(path, string(text)+"# mine\n", 0o644)
			},
			words: []string{"edited by hand"}, level: Warn,
		},
		"agentd.toml is wrong": {
			spoil: func(w *ward) { w.write(filepath.Join(w.work, workspace.FileName), "[agent]\nnam = 1\n", 0o600) },
			words: []string{"agentd.toml:2:1"}, level: Fail,
		},
		"the workspace is gone": {
			spoil: func(w *ward) {
				if err := os.RemoveAll(w.work); err != nil {
					w.Fatal(err)
				}
			},
			words: []string{"bob: its workspace", "is gone"}, level: Fail, mends: true,
		},
		"units of nobody": {
			spoil: func(w *ward) {
				if err := errors.Join(os.RemoveAll(w.work), w.patient.Folders.Unregister("bob")); err != nil {
					w.Fatal(err)
				}
			},
			words: []string{"bob has units, but its workspace", "is gone"}, level: Fail, mends: true,
		},
		"all times are past": {
			config: strings.Replace(config, "0 7 * * *", "at 2020-01-01 09:00", 1),
			words:  []string{"bob/triage never runs again"}, level: Warn,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.config == "" {
				c.config = config
			}
			w := newWard(t, c.config)
			if c.spoil != nil {
				c.spoil(w)
			}
			f := w.found(c.words...)
			if f == nil {
				t.Fatalf("not found in %+v", w.patient.Examine(t.Context()))
			}
			if f.Level != c.level || f.Repairable() != c.mends || strings.Contains(f.Text, "\n") {
				t.Errorf("%+v, repairable %v", f, f.Repairable())
			}
			if err := f.Repair(t.Context()); err != nil || f.Fixed != c.mends {
				t.Errorf("repair: %v, fixed %v", err, f.Fixed)
			}
			if f := w.found(c.words...); (f == nil) != c.mends {
				t.Errorf("after the repair: %+v", f)
			}
		})
	}
}

// Any of the places of a login will do.
func TestLogin(t *testing.T) {
	const cli = "backend = \"mine\"\n[backends.mine]\ncommand = [\"/bin/cat\"]\ncredentials = [\"$MY_KEY\", \"~/.mine/login\"]\n"
	w := newWard(t, config+cli)
	w.write(filepath.Join(w.home, ".mine/login"), "", 0o600)
	if f := w.found("no login"); f != nil {
		t.Errorf("%+v", f)
	}
	w = newWard(t, config+"env = {MY_KEY = \"x\"}\n"+cli)
	if f := w.found("no login"); f != nil {
		t.Errorf("%+v", f)
	}
}

// Another PATH in this shell than at the install is no stale unit.
func TestOtherShell(t *testing.T) {
	w := newWard(t, config)
	w.patient.Target = withPath(w.patient.Target, "/somewhere/else:/bin")
	if f := w.found("not what agentd.toml says"); f != nil {
		t.Errorf("%+v", f)
	}
}

func TestBeforeAgentd(t *testing.T) {
	for _, c := range []struct {
		status systemd.JobStatus
		want   string
	}{
		{systemd.JobStatus{Result: "success"}, ""},
		{systemd.JobStatus{Result: "exit-code", Status: 75}, ""},
		{systemd.JobStatus{Result: "exit-code", Status: 243}, "credential"},
		{systemd.JobStatus{Result: "exit-code", Status: 227}, "systemd.exec"},
	} {
		if got := beforeAgentd(c.status); (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%+v: %q", c.status, got)
		}
	}
}

func TestVerdict(t *testing.T) {
	list := []Finding{{Level: OK}, {Level: Warn}, {Level: Fail, Fixed: true}}
	if err := Verdict(list); err != nil {
		t.Error(err)
	}
	if err := Verdict(append(list, Finding{Level: Fail})); exitcodes.From(err) != exitcodes.Config {
		t.Error(err)
	}
}
