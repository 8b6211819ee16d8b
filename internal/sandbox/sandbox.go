// Package sandbox boots a real systemd for tests: the system's manager, D-Bus,
// logind and a user's manager, as process 1 of namespaces of its own over a
// copy-on-write view of the machine. All that is written inside is gone at the
// end, but for the folders in Options.Binds. Tests only.
package sandbox

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

//go:embed boot.sh
var bootScript []byte

// Options choose what a command in the sandbox sees.
type Options struct {
	User  string   // run as this user, made if need be, with a manager of its own; "" is root
	Binds []string // absolute paths of folders that are visible inside and writable for good
	Env   []string // NAME=VALUE besides PATH, HOME, USER and the like
	Dir   string   // working directory; "" is the home
	Disk  string   // folder that keeps what is written inside for the next boot with it; "" keeps nothing
}

// inside is set in the environment of commands in a sandbox.
const inside = "AGENTD_SANDBOX=1"

// Inside reports whether this process runs in a sandbox.
func Inside() bool { return os.Getenv("AGENTD_SANDBOX") == "1" }

// Test runs one test function of the calling test program again, inside a
// sandbox, and logs what it printed. Call it as
//
//	if !sandbox.Inside() { sandbox.Test(t, sandbox.Options{}); return }
func Test(t *testing.T, o Options) {
	t.Helper()
	out := again(t, o, "-test.v", "-test.count=1", "-test.run=^"+t.Name()+"$", "-test.timeout=5m")
	t.Logf("inside the sandbox:\n%s", out)
	if !strings.Contains(out, "--- PASS: "+t.Name()) {
		t.Errorf("%s did not run inside", t.Name())
	}
}

// Bench is Test for a benchmark, which runs once inside. What it reports there
// is reported here.
func Bench(b *testing.B, o Options) {
	b.Helper()
	out := again(b, o, "-test.run=^$", "-test.benchtime=1x", "-test.bench=^"+b.Name()+"$", "-test.timeout=10m")
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) < 4 || !strings.HasPrefix(f[0], b.Name()) {
			continue
		}
		for i := 2; i+1 < len(f); i += 2 {
			if value, err := strconv.ParseFloat(f[i], 64); err == nil {
				b.ReportMetric(value, f[i+1])
			}
		}
		return
	}
	b.Fatalf("%s did not run inside:\n%s", b.Name(), out)
}

// again runs the calling test program inside.
func again(t testing.TB, o Options, args ...string) string {
	t.Helper()
	s := start(t, o)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.work, "shared/test"), program, 0o755); err != nil {
		t.Fatal(err)
	}
	return s.run(t, o, append([]string{"/run/sandbox/test"}, args...)...)
}

// Run boots a sandbox, runs a command in it and returns its output. The test
// fails if the command does, and is skipped where no sandbox can be had.
func Run(t testing.TB, o Options, argv ...string) string {
	t.Helper()
	return start(t, o).run(t, o, argv...)
}

// Available returns why there is no sandbox here, or nil.
func Available() error {
	if Inside() {
		return errors.New("a sandbox cannot hold another")
	}
	if os.Geteuid() != 0 {
		return errors.New("booting systemd in a namespace needs root")
	}
	for _, tool := range []string{"unshare", "nsenter", "setpriv", "mount", "chroot", "hostname", "useradd", "loginctl", "dbus-daemon", "/lib/systemd/systemd"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("%s is not installed (apt-get install systemd dbus util-linux passwd)", tool)
		}
	}
	known, err := os.ReadFile("/proc/filesystems")
	if err != nil {
		return err
	}
	for _, name := range []string{"overlay", "cgroup2"} {
		if !strings.Contains(string(known), "\t"+name+"\n") {
			return fmt.Errorf("this kernel has no file system %q", name)
		}
	}
	return nil
}

// machine is a booted sandbox.
type machine struct {
	work   string
	cgroup string
	init   int // pid of its process 1, as seen from here
}

// bootTimeout is generous: a boot takes 3 s on an idle machine.
const bootTimeout = 90 * time.Second

func start(t testing.TB, o Options) *machine {
	t.Helper()
	if err := Available(); err != nil {
		t.Skipf("no systemd to test with: %v", err)
	}
	// Not below /tmp, which the sandbox hides from itself.
	work, err := os.MkdirTemp("/var/tmp", "agentd-sandbox-")
	if err != nil {
		t.Fatal(err)
	}
	s := &machine{work: work}
	t.Cleanup(func() { s.remove(t) })
	if err := s.prepare(); err != nil {
		t.Fatal(err)
	}
	s.boot(t, o)
	s.await(t)
	if o.User != "" {
		s.addUser(t, o.User)
	}
	return s
}

// prepare makes the shared folder and a control group.
func (s *machine) prepare() error {
	if err := os.Mkdir(filepath.Join(s.work, "shared"), 0o755); err != nil {
		return err
	}
	if err := os.Chmod(s.work, 0o755); err != nil { // users inside look in
		return err
	}
	root, err := unifiedRoot()
	if err != nil {
		return err
	}
	s.cgroup = filepath.Join(root, filepath.Base(s.work))
	return os.Mkdir(s.cgroup, 0o755)
}

// unifiedRoot returns where the unified control group hierarchy is mounted.
func unifiedRoot() (string, error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 2 && f[2] == "cgroup2" {
			return f[1], nil
		}
	}
	return "", errors.New("cgroup2 is not mounted")
}

// remove ends what is left inside and takes the sandbox's folders away.
func (s *machine) remove(t testing.TB) {
	if err := os.RemoveAll(s.work); err != nil {
		t.Errorf("cannot remove the sandbox: %v", err)
	}
	if s.cgroup == "" {
		return
	}
	// Control groups go from the leaves up; their files go with them.
	for deadline := time.Now().Add(10 * time.Second); ; {
		err := removeGroups(s.cgroup)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("cannot remove the sandbox's control group: %v", err)
			return
		}
		time.Sleep(20 * time.Millisecond) // the kernel is still ending processes
	}
}

func removeGroups(dir string) error {
	list, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range list {
		if e.IsDir() {
			if err := removeGroups(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return syscall.Rmdir(dir)
}

// status returns the exit status in err, or -1.
func status(err error) int {
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		return e.ExitCode()
	}
	return -1
}

func (s *machine) nsenter(argv ...string) *exec.Cmd {
	return exec.Command("nsenter", append([]string{
		"--target", strconv.Itoa(s.init), "--mount", "--pid", "--cgroup", "--uts", "--ipc", "--root", "--wd", "--",
	}, argv...)...)
}
