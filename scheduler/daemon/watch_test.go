package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentd/workspace"
)

// folder is workspaces in a real folder, and what is said about them.
type folder struct {
	t      *testing.T
	dirs   []string
	spaces *workspaces
	engine *Engine
	mu     sync.Mutex
	said   []string
}

func newFolder(t *testing.T) *folder {
	f := &folder{t: t}
	f.engine = NewEngine(Options{Wall: time.Now, Book: nobook{}, Dispatch: func(Firing) {}, Say: f.say})
	f.spaces = &workspaces{
		list: func() ([]string, error) { return f.dirs, nil }, engine: f.engine,
		watch: func(string) {}, forget: func(string) {}, say: f.say, known: map[string]*known{},
	}
	return f
}

func (f *folder) say(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.said = append(f.said, fmt.Sprintf(format, args...))
}

func (f *folder) heard() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := strings.Join(f.said, "\n")
	f.said = nil
	return all
}

// save replaces the file of a workspace, as an editor does.
func (f *folder) save(dir, text string) {
	f.t.Helper()
	file := filepath.Join(dir, workspace.FileName)
	if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		f.t.Fatal(err)
	}
}

// jobs are the jobs that fire.
func (f *folder) jobs() []string {
	f.engine.mu.Lock()
	defer f.engine.mu.Unlock()
	var list []string
	for name := range f.engine.entries {
		list = append(list, name.String())
	}
	slices.Sort(list)
	return list
}

// agentOf is the text of a workspace whose jobs have the schedule.
func agentOf(name, schedule string, jobs ...string) string {
	s := fmt.Sprintf("[agent]\nname = %q\n[defaults]\nprompt = \"x\"\nbackend = \"command\"\ncommand = [\"true\"]\n", name)
	for _, j := range jobs {
		s += fmt.Sprintf("[jobs.%s]\nschedule = %q\n", j, schedule)
	}
	return s
}

// TestRefresh changes files, and wants to be told of each change once.
func TestRefresh(t *testing.T) {
	f := newFolder(t)
	bob, eve := t.TempDir(), t.TempDir()
	f.dirs = []string{bob, eve}
	f.save(bob, agentOf("bob", "0 0 1 1 *", "a", "b"))
	f.save(eve, "nonsense")
	steps := []struct {
		name   string
		change func()
		jobs   []string
		says   []string // in this order; "" for nothing
	}{
		{"the start", func() {}, []string{"bob/a", "bob/b"}, []string{bob + ": 2 jobs", eve + "/agentd.toml:1:", "its jobs do not run until they are mended"}},
		{"nothing", func() {}, []string{"bob/a", "bob/b"}, []string{""}},
		{"one mended", func() { f.save(eve, agentOf("eve", "@daily", "a")) }, []string{"bob/a", "bob/b", "eve/a"}, []string{eve + " is right again: 1 job"}},
		{"a job less", func() { f.save(bob, agentOf("bob", "@daily", "b")) }, []string{"bob/b", "eve/a"}, []string{bob + " has changed: 1 job"}},
		{"a mistake", func() { f.save(bob, agentOf("bob", "61 * * * *", "b", "c")) }, []string{"bob/b", "eve/a"}, []string{bob + "/agentd.toml:8:12", "minute 61", bob + "/agentd.toml:10:12", "its 1 job stays as before"}},
		{"the same mistake", func() { f.save(bob, agentOf("bob", "61 * * * *", "b", "c")) }, []string{"bob/b", "eve/a"}, []string{""}},
		{"no file", func() { _ = os.Remove(filepath.Join(bob, workspace.FileName)) }, []string{"bob/b", "eve/a"}, []string{"agentd.toml"}},
		{"the name of another", func() { f.save(bob, agentOf("eve", "@daily", "b")) }, []string{"bob/b", "eve/a"}, []string{"the agent of " + bob + " is named eve, as that of " + eve}},
		{"mended", func() { f.save(bob, agentOf("bob", "@daily", "b", "c")) }, []string{"bob/b", "bob/c", "eve/a"}, []string{"right again: 2 jobs"}},
		{"no longer registered", func() { f.dirs = f.dirs[1:] }, []string{"eve/a"}, []string{bob + " is no longer registered"}},
	}
	for _, s := range steps {
		s.change()
		_ = f.spaces.refresh(false)
		if got := f.jobs(); !slices.Equal(got, s.jobs) {
			t.Errorf("%s: jobs %v, want %v", s.name, got, s.jobs)
		}
		said := f.heard()
		if s.says[0] == "" && said != "" {
			t.Errorf("%s: said %q, want nothing", s.name, said)
		}
		rest := said
		for _, want := range s.says {
			i := strings.Index(rest, want)
			if i < 0 {
				t.Errorf("%s: said %q, want %q in it", s.name, said, want)
				break
			}
			rest = rest[i:]
		}
	}
}

// TestLoad leaves out what does not fire by itself, and files that jobs refer
// to.
func TestLoad(t *testing.T) {
	f := newFolder(t)
	dir := t.TempDir()
	f.save(dir, `[agent]
name = "bob"
[defaults]
backend = "command"
command = ["true"]
[jobs.a]
schedule = ["@daily", "@reboot"]
timezone = "Europe/Stockholm"
prompt_file = "not-there.md"
jitter = "2m"
grace = "7s"
catch_up = false
[jobs.off]
schedule = "@daily"
enabled = false
prompt = "x"
[jobs.manual]
prompt = "x"
`)
	agent, jobs, _, err := load(dir)
	if err != nil || agent != "bob" || len(jobs) != 1 {
		t.Fatalf("load = %q, %v, %v", agent, jobs, err)
	}
	j := jobs[0]
	if j.Name.String() != "bob/a" || j.Dir != dir || len(j.Schedules) != 2 || j.Schedules[0].Zone() != "Europe/Stockholm" ||
		j.CatchUp || j.Jitter != 2*time.Minute || j.Grace != 7*time.Second {
		t.Errorf("%+v", j)
	}
}

// TestWatch tells of changes, however they are made.
func TestWatch(t *testing.T) {
	f := newFolder(t)
	root := t.TempDir()
	bob := filepath.Join(root, "bob")
	agents := filepath.Join(root, "config", "agentd", "agents")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(bob, 0o700))
	must(os.Mkdir(filepath.Join(root, "config"), 0o700))
	f.save(bob, "x")
	w := newWatcher(agents, f.say)
	defer w.Close()
	w.Agents()
	w.Add(bob)
	file := filepath.Join(bob, workspace.FileName)
	for _, c := range []struct {
		name   string
		change func()
	}{
		{"replaced", func() { f.save(bob, "y") }},
		{"written in place", func() { must(os.WriteFile(file, []byte("z"), 0o600)) }},
		{"removed and made", func() { must(os.Remove(file)); must(os.WriteFile(file, []byte("z"), 0o600)) }},
		{"a mounted ConfigMap", func() { must(os.Symlink("v2", filepath.Join(bob, "..data"))) }},
		{"the first registration", func() { must(os.MkdirAll(agents, 0o700)) }},
		{"a registration", func() { must(os.WriteFile(filepath.Join(agents, "bob"), []byte(bob+"\n"), 0o600)) }},
	} {
		c.change()
		select {
		case <-w.Changed:
		case <-time.After(20 * time.Second):
			t.Fatalf("%s: nothing was told", c.name)
		}
		w.Agents() // as the daemon does
	}
	if w.matters(filepath.Join(bob, "notes.md")) || w.matters(filepath.Join(root, "config", "agentd", "other")) {
		t.Error("a file that has nothing to do with it matters")
	}
	if said := f.heard(); said != "" {
		t.Errorf("said %q", said)
	}
}
