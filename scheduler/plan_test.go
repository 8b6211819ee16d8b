package scheduler

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentd/exitcodes"
	"agentd/systemd"
	"agentd/workspace"
)

const twoJobs = `[agent]
name = "my-bot"

[defaults]
backend = "command"
command = ["/bin/cat"]

[jobs.triage]
schedule = "*/30 9-17 * * 1-5"
timezone = "Europe/Stockholm"
prompt = "Triage new issues."

[jobs.by-hand]
prompt = "Only when asked."
`

// load returns the workspace of an agentd.toml.
func load(t testing.TB, toml string) *workspace.Workspace {
	t.Helper()
	return loadIn(t, t.TempDir(), toml)
}

func loadIn(t testing.TB, dir, toml string) *workspace.Workspace {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, workspace.FileName), []byte(toml), 0o600); err != nil {
		t.Fatal(err)
	}
	ws, err := workspace.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return ws
}

// newTarget returns a target in a home of its own.
func newTarget(t testing.TB) (target Target, home string) {
	t.Helper()
	home = t.TempDir()
	getenv := func(name string) string { return map[string]string{"HOME": home, "PATH": "/usr/bin:/bin"}[name] }
	folders, err := workspace.FoldersFromEnv(getenv)
	if err != nil {
		t.Fatal(err)
	}
	target, err = NewTarget(systemd.User, folders, "/usr/bin/agentd", getenv)
	if err != nil {
		t.Fatal(err)
	}
	return target, home
}

func plan(t testing.TB, ws *workspace.Workspace, target Target, o Options) *Plan {
	t.Helper()
	p, err := NewPlan(ws, target, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func apply(t testing.TB, p *Plan, m Manager) *Report {
	t.Helper()
	r, err := p.Apply(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// tree returns the files below dir with mode and content, but for the state,
// which outlives what is installed.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if strings.HasSuffix(path, "/.local/state") {
			return filepath.SkipDir
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		files[name] = info.Mode().String()
		if info.Mode().IsRegular() {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			files[name] += "\n" + string(text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// actions returns "action path" of every file but those that are kept.
func actions(p *Plan, home string) []string {
	var list []string
	for _, j := range p.Jobs {
		for _, f := range j.Files {
			if f.Action != Keep {
				path, _ := filepath.Rel(home, f.Path)
				list = append(list, fmt.Sprintf("%s %s", f.Action, path))
			}
		}
	}
	return list
}

func TestInstallLifeCycle(t *testing.T) {
	target, home := newTarget(t)
	if err := os.MkdirAll(filepath.Join(home, ".config"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(home, ".local/share"), 0o700); err != nil {
		t.Fatal(err)
	}
	before := tree(t, home)
	m := newFake(target)
	dir := t.TempDir()
	ws := loadIn(t, dir, twoJobs)

	p := plan(t, ws, target, Options{})
	if d := cmp.Diff(before, tree(t, home)); d != "" {
		t.Fatalf("planning changed files:\n%s", d)
	}
	want := []string{
		"add .local/share/agentd/my-bot/triage/run.sh",
		"add .config/systemd/user/agentd-my--bot-triage.service",
		"add .config/systemd/user/agentd-my--bot-triage.timer",
		"add .local/share/agentd/my-bot/by-hand/run.sh",
		"add .config/systemd/user/agentd-my--bot-by-hand.service",
		"add .config/systemd/user/agentd--arm-my-bot.service",
	}
	if d := cmp.Diff(want, actions(p, home)); d != "" {
		t.Fatal(d)
	}
	apply(t, p, m)
	if want := []string{"reload", "enable agentd-my--bot-triage.timer agentd--arm-my-bot.service", "start agentd-my--bot-triage.timer"}; !slices.Equal(m.calls, want) {
		t.Errorf("calls %q, want %q", m.calls, want)
	}

	m.calls = nil
	p = plan(t, ws, target, Options{})
	if a := actions(p, home); len(a) > 0 {
		t.Errorf("a second plan: %q", a)
	}
	if r := apply(t, p, m); len(m.calls) > 0 || len(r.Written)+len(r.Removed) > 0 {
		t.Errorf("the second apply did %q, %+v", m.calls, r)
	}

	// Another schedule: stopped while systemd learns of it, and started again.
	ws = loadIn(t, dir, strings.Replace(twoJobs, "*/30 9-17", "15 7", 1))
	p = plan(t, ws, target, Options{})
	if d := cmp.Diff([]string{"change .config/systemd/user/agentd-my--bot-triage.timer"}, actions(p, home)); d != "" {
		t.Fatal(d)
	}
	if diff := p.Jobs[0].Files[2].Diff; !strings.Contains(diff, "\n-OnCalendar=") || !strings.Contains(diff, "\n+OnCalendar=") {
		t.Errorf("diff %q", diff)
	}
	apply(t, p, m)
	timer := "agentd-my--bot-triage.timer"
	if want := []string{"stop " + timer, "reload", "start " + timer}; !slices.Equal(m.calls, want) {
		t.Errorf("calls %q, want %q", m.calls, want)
	}

	// Switched off: the timer goes, the rest stays for runs by hand.
	m.calls = nil
	ws = loadIn(t, dir, strings.Replace(twoJobs, "[jobs.triage]", "[jobs.triage]\nenabled = false", 1))
	p = plan(t, ws, target, Options{})
	if d := cmp.Diff([]string{"remove .config/systemd/user/" + timer}, actions(p, home)); d != "" {
		t.Fatal(d)
	}
	apply(t, p, m)
	if want := []string{"stop " + timer, "disable " + timer, "reload"}; !slices.Equal(m.calls, want) {
		t.Errorf("calls %q, want %q", m.calls, want)
	}

	// Gone from agentd.toml.
	ws = loadIn(t, dir, "[agent]\nname = \"my-bot\"\n")
	p = plan(t, ws, target, Options{})
	if added, changed, removed := p.Count(); added != 0 || changed != 0 || removed != 5 {
		t.Errorf("Count = %d, %d, %d", added, changed, removed)
	}
	apply(t, p, m)
	if d := cmp.Diff(before, tree(t, home)); d != "" {
		t.Errorf("left behind:\n%s", d)
	}
}

func TestUninstall(t *testing.T) {
	target, home := newTarget(t)
	for _, dir := range []string{target.UnitDir, filepath.Dir(target.Data), target.StampDir} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	foreign := filepath.Join(target.UnitDir, "agentd-my--bot-mine.service")
	sibling := load(t, strings.Replace(twoJobs, "my-bot", "my", 1))
	if err := os.WriteFile(foreign, []byte("[Service]\nExecStart=/bin/true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	apply(t, plan(t, sibling, target, Options{}), nil)
	before := tree(t, home)

	m := newFake(target)
	apply(t, plan(t, load(t, twoJobs), target, Options{}), m)
	stamp := filepath.Join(target.StampDir, "stamp-agentd-my--bot-triage.timer")
	if err := putStamp(stamp, time.Unix(1e9, 0)); err != nil {
		t.Fatal(err)
	}
	// Drop-ins: one with the mark of agentd, one of a person.
	unit, err := os.ReadFile(filepath.Join(target.UnitDir, "agentd-my--bot-triage.service"))
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(target.UnitDir, "agentd-my--bot-triage.service.d/agentd.conf"), string(unit), 0o600)
	mine := filepath.Join(target.UnitDir, "agentd-my--bot-by-hand.service.d/mine.conf")
	writeFile(t, mine, "[Service]\nNice=5\n", 0o600)
	m.active["agentd-my--bot-triage.service"] = true // a job is running
	other := systemd.Once{Name: systemd.OnceName("2"), Owner: systemd.Owner{Name: systemd.JobName{Agent: "my", Job: "triage"}}}
	m.onces = []systemd.Once{{Name: systemd.OnceName("1"), Owner: systemd.Owner{Name: systemd.JobName{Agent: "my-bot", Job: "triage"}}}, other}

	if got, err := target.Installed("my-bot"); err != nil || len(got) != 2 {
		t.Errorf("Installed = %v, %v", got, err)
	}
	p, err := NewRemoval("my-bot", target)
	if err != nil {
		t.Fatal(err)
	}
	apply(t, p, m)
	if _, err := os.Stat(mine); err != nil {
		t.Errorf("a person's drop-in went: %v", err)
	}
	if err := os.RemoveAll(filepath.Dir(mine)); err != nil { // is left
		t.Fatal(err)
	}
	after := tree(t, home)
	delete(before, ".local/share/systemd/timers") // was empty, and made for stamps
	delete(before, ".local/share/systemd")
	if d := cmp.Diff(before, after); d != "" {
		t.Errorf("left behind, or too much removed:\n%s", d)
	}
	if len(m.active) > 0 || len(m.enabled) > 0 {
		t.Errorf("still active %v, enabled %v", m.active, m.enabled)
	}
	if !slices.Equal(m.onces, []systemd.Once{other}) {
		t.Errorf("timers of pending runs: %+v", m.onces)
	}
	if p, err := NewRemoval("my-bot", target); err != nil || len(p.Jobs) > 0 {
		t.Errorf("a second removal: %+v, %v", p, err)
	}
	if _, err := NewRemoval("../my-bot", target); exitcodes.From(err) != exitcodes.Usage {
		t.Errorf("a name that leaves the folder: %v", err)
	}
	if _, err := NewRemoval("my-bot", target, "nothing"); exitcodes.From(err) != exitcodes.NoInput {
		t.Errorf("a job that is not installed: %v", err)
	}
}

func TestForeignAndEditedFiles(t *testing.T) {
	for name, c := range map[string]struct {
		file   string
		text   func(old string) string
		force  bool
		reason string // "": overwritten
	}{
		"unit of somebody else":         {"agentd-my--bot-triage.service", func(string) string { return "[Service]\n" }, true, "not made by agentd"},
		"script of somebody else":       {"run.sh", func(string) string { return "#!/bin/bash\n" }, true, "not made by agentd"},
		"edited unit":                   {"agentd-my--bot-triage.timer", func(s string) string { return s + "# mine\n" }, false, "edited by hand"},
		"edited script":                 {"run.sh", func(s string) string { return s + "# mine\n" }, false, "edited by hand"},
		"edited unit with force":        {"agentd-my--bot-triage.timer", func(s string) string { return s + "# mine\n" }, true, ""},
		"unit of another job":           {"agentd-my--bot-triage.service", func(s string) string { return strings.Replace(s, "Job=triage", "Job=other", 1) }, true, "belongs to the job my-bot/other"},
		"unit that cannot be parsed":    {"agentd-my--bot-triage.service", func(string) string { return "]" }, true, "not made by agentd"},
		"empty unit that is not agentd": {"agentd-my--bot-triage.service", func(string) string { return "" }, true, "not made by agentd"},
	} {
		t.Run(name, func(t *testing.T) {
			target, home := newTarget(t)
			ws := load(t, twoJobs)
			apply(t, plan(t, ws, target, Options{}), nil)
			path := filepath.Join(target.UnitDir, c.file)
			if c.file == "run.sh" {
				path = target.Script(systemd.JobName{Agent: "my-bot", Job: "triage"})
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(c.text(string(text))), 0o600); err != nil {
				t.Fatal(err)
			}
			before := tree(t, home)
			p := plan(t, ws, target, Options{Force: c.force})
			_, err = p.Apply(t.Context(), nil)
			if c.reason == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.reason) || !strings.Contains(err.Error(), path) || exitcodes.From(err) != exitcodes.CannotCreate {
				t.Errorf("err = %v, want %q", err, c.reason)
			}
			if d := cmp.Diff(before, tree(t, home)); d != "" {
				t.Errorf("files changed all the same:\n%s", d)
			}
		})
	}
}

// A folder that cannot be made gives the code, and nothing half-made.
func TestUnwritable(t *testing.T) {
	target, home := newTarget(t)
	if err := os.WriteFile(filepath.Join(home, ".config"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ws := load(t, twoJobs)
	if _, err := NewPlan(ws, target, Options{}); err == nil {
		t.Error("a plan although the unit folder is below a file")
	}
	target.UnitDir = filepath.Join(home, "units")
	if err := os.MkdirAll(filepath.Join(target.UnitDir, "agentd-my--bot-triage.timer.d"), 0o700); err != nil {
		t.Fatal(err)
	}
	p := plan(t, ws, target, Options{})
	before := tree(t, home)
	// The file that is in the way comes after the plan.
	if err := os.WriteFile(filepath.Join(home, ".local"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := p.Apply(t.Context(), nil)
	if exitcodes.From(err) != exitcodes.CannotCreate || strings.Contains(err.Error(), "\n") {
		t.Errorf("err = %v, code %v", err, exitcodes.From(err))
	}
	if err := os.Remove(filepath.Join(home, ".local")); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(before, tree(t, home)); d != "" {
		t.Errorf("half-made:\n%s", d)
	}
}

func TestWrongUnitFolder(t *testing.T) {
	target, home := newTarget(t)
	m := newFake(target)
	m.dir = filepath.Join(home, "elsewhere")
	_, err := plan(t, load(t, twoJobs), target, Options{}).Apply(t.Context(), m)
	if exitcodes.From(err) != exitcodes.Config || !strings.Contains(exitcodes.HintOf(err), "XDG_CONFIG_HOME") {
		t.Errorf("err = %v, hint %q", err, exitcodes.HintOf(err))
	}
}

func TestPlanOfSomeJobs(t *testing.T) {
	target, home := newTarget(t)
	ws := load(t, twoJobs)
	apply(t, plan(t, ws, target, Options{Jobs: []string{"by-hand", "my-bot/by-hand"}}), nil)
	p := plan(t, ws, target, Options{Jobs: []string{"triage"}})
	if a := actions(p, home); len(p.Jobs) != 2 || len(a) != 3 {
		t.Errorf("plan for triage: %q", a)
	}
	if _, err := NewPlan(ws, target, Options{Jobs: []string{"triag"}}); exitcodes.From(err) != exitcodes.NoInput {
		t.Errorf("unknown job: %v", err)
	}
}
