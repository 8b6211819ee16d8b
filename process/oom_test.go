package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestOOMCounters(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	v2 := write("cg/user.slice/a:b/memory.events", "low 0\noom 1\noom_kill 3\noom_group_kill 0\n")
	v1 := write("cg/memory/x/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n")
	files := oomFiles(write("self", "9:name=systemd:/\n4:memory:/x\n0::/user.slice/a:b\n"), filepath.Join(dir, "cg"))
	if fmt.Sprint(files) != fmt.Sprint([]string{v1, v2}) {
		t.Errorf("files %v", files)
	}
	if a, b, c := counter(v2, "oom_kill"), counter(v1, "oom_kill"), counter(dir+"/none", "oom_kill"); a != 3 || b != 4 || c != -1 {
		t.Errorf("counters %d %d %d", a, b, c)
	}
}

// A program that needs more memory than its cgroup has, for real. It takes a
// cgroup that this user may divide.
func TestRunTellsOutOfMemory(t *testing.T) {
	cgroup := memoryCgroup(t, 48<<20)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ script, want string }{
		{"exec tail /dev/zero", "oom true, signal SIGKILL, status 137, error <nil>\n"},
		{"tail /dev/zero; exit $?", "oom true, signal , status 137, error <nil>\n"},
		{"kill -9 $$", "oom false, signal SIGKILL, status 137, error <nil>\n"},
	} {
		cmd := exec.Command(exe, cgroup, "sh", "-c", c.script)
		cmd.Env = append(env(), roleEnv+"=limited")
		out, err := cmd.CombinedOutput()
		if err != nil || string(out) != c.want {
			t.Errorf("%s: %q, %v; want %q", c.script, out, err, c.want)
		}
	}
}

// memoryCgroup makes a cgroup with a limit below our own, or skips the test.
func memoryCgroup(t *testing.T, limit int) string {
	t.Helper()
	for _, counters := range oomFiles("/proc/self/cgroup", "/sys/fs/cgroup") {
		dir := filepath.Join(filepath.Dir(counters), fmt.Sprintf("agentd-test-%d", os.Getpid()))
		if os.Mkdir(dir, 0o700) != nil {
			continue
		}
		t.Cleanup(func() { _ = os.Remove(dir) })
		name := "memory.max"
		if strings.HasSuffix(counters, "memory.oom_control") {
			name = "memory.limit_in_bytes"
		}
		if os.WriteFile(filepath.Join(dir, name), fmt.Append(nil, limit), 0o600) == nil {
			_ = os.WriteFile(filepath.Join(dir, "memory.swap.max"), []byte("0"), 0o600) // where there is swap
			return dir
		}
	}
	t.Skip("no memory cgroup can be made here")
	return ""
}
