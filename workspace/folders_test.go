package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentd/exitcodes"
)

func TestFoldersFromEnv(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		env  map[string]string
		want Folders
		err  string
	}{
		{"home", map[string]string{"HOME": "/home/bob"}, Folders{"/home/bob/.config/agentd", "/home/bob/.local/state/agentd", "/home/bob/.local/share/agentd"}, ""},
		{"XDG", map[string]string{"XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s", "XDG_DATA_HOME": "/d"}, Folders{"/c/agentd", "/s/agentd", "/d/agentd"}, ""},
		{"relative XDG", map[string]string{"HOME": "/h", "XDG_STATE_HOME": "state"}, Folders{"/h/.config/agentd", "/h/.local/state/agentd", "/h/.local/share/agentd"}, ""},
		{"no home", nil, Folders{}, "cannot tell where agentd's files are: HOME is not set and XDG_CONFIG_HOME names no absolute path"},
		{"relative home", map[string]string{"HOME": "h", "XDG_CONFIG_HOME": "/c"}, Folders{}, `cannot tell where agentd's files are: HOME is not an absolute path: "h" and XDG_STATE_HOME names no absolute path`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := FoldersFromEnv(func(k string) string { return tt.env[k] })
			if tt.err != "" {
				if err == nil || err.Error() != tt.err || exitcodes.From(err) != exitcodes.Config || exitcodes.HintOf(err) == "" {
					t.Errorf("error %v (code %d), want %s", err, exitcodes.From(err), tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func folders(t *testing.T) Folders {
	t.Helper()
	dir := t.TempDir()
	return Folders{Config: filepath.Join(dir, "config"), State: filepath.Join(dir, "state"), Data: filepath.Join(dir, "data")}
}

func TestRegistry(t *testing.T) {
	t.Parallel()
	f := folders(t)
	one, two := workspaceOf(t, ""), workspaceOf(t, "")
	if list, err := f.Registered(); err != nil || list != nil {
		t.Errorf("before the first: %v, %v", list, err)
	}
	if _, err := f.Locate("bob"); exitcodes.From(err) != exitcodes.NoInput || exitcodes.HintOf(err) == "" {
		t.Errorf("Locate before the first: %v", err)
	}
	for range 2 { // again is no conflict
		if err := f.Register("bob", one); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := f.Locate("bob"); err != nil || got != one {
		t.Errorf("Locate = %q, %v; want %q", got, err, one)
	}
	if info, err := os.Stat(filepath.Join(f.Agents(), "bob")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
	err := f.Register("bob", two)
	if exitcodes.From(err) != exitcodes.Config || !strings.Contains(err.Error(), one) {
		t.Errorf("a second workspace: %v", err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(one, link); err != nil {
		t.Fatal(err)
	}
	if err := f.Register("bob", link); err != nil {
		t.Errorf("the same folder by another path: %v", err)
	}
	if err := os.Remove(filepath.Join(one, FileName)); err != nil {
		t.Fatal(err)
	}
	if err := f.Register("bob", two); err != nil {
		t.Errorf("after the first is gone: %v", err)
	}
	if err := f.Register("eve", one); err != nil {
		t.Error(err)
	}
	list, err := f.Registered()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Registration{{"bob", two}, {"eve", one}}, list); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, err = f.Locate("bobb")
	if err == nil || err.Error() != `there is no agent "bobb": did you mean "bob"?` || exitcodes.HintOf(err) != "Agents: bob, eve" {
		t.Errorf("Locate(bobb): %v", err)
	}
	for range 2 { // again is no error
		if err := f.Unregister("eve"); err != nil {
			t.Error(err)
		}
	}
	if _, err := f.Locate("eve"); exitcodes.From(err) != exitcodes.NoInput {
		t.Errorf("Locate after Unregister: %v", err)
	}
}

func TestRegistryRefusesPaths(t *testing.T) {
	t.Parallel()
	f := folders(t)
	for _, name := range []string{"", "../bob", "a/b", ".", ".agentd-1.tmp"} {
		if err := f.Register(name, "/w"); exitcodes.From(err) != exitcodes.Config {
			t.Errorf("Register(%q): %v", name, err)
		}
		if _, err := f.Locate(name); exitcodes.From(err) != exitcodes.NoInput {
			t.Errorf("Locate(%q): %v", name, err)
		}
	}
}

func TestDamagedRegistration(t *testing.T) {
	t.Parallel()
	f := folders(t)
	write(t, filepath.Join(f.Agents(), "bob"), "")
	if _, err := f.Locate("bob"); exitcodes.From(err) != exitcodes.Data {
		t.Errorf("Locate: %v", err)
	}
	if err := f.Register("bob", workspaceOf(t, "")); err != nil {
		t.Errorf("Register over a damaged file: %v", err)
	}
}

// Of two workspaces that register one name at the same time, one wins.
func TestRegisterTogether(t *testing.T) {
	t.Parallel()
	f := folders(t)
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		dir := workspaceOf(t, "")
		wg.Go(func() { errs[i] = f.Register("bob", dir) })
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else if exitcodes.From(err) != exitcodes.Config {
			t.Errorf("a loser got %v", err)
		}
	}
	if won != 1 {
		t.Errorf("%d workspaces won the name", won)
	}
}
