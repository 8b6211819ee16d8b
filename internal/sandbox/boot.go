package sandbox

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// boot starts systemd; it ends with the test, and with this process.
func (s *machine) boot(t testing.TB, o Options) {
	t.Helper()
	script := filepath.Join(s.work, "boot.sh")
	if err := os.WriteFile(script, bootScript, 0o700); err != nil {
		t.Fatal(err)
	}
	console, err := os.Create(s.console())
	if err != nil {
		t.Fatal(err)
	}
	defer console.Close()
	cmd := exec.Command("bash", append([]string{script, s.work, s.cgroup}, o.Binds...)...)
	cmd.Env = append(os.Environ(), "SANDBOX_DISK="+o.Disk)
	cmd.Stdout, cmd.Stderr = console, console
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
		Pdeathsig:  syscall.SIGKILL,
		Setsid:     true,
	}
	started, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		// The parent whose death counts is the thread.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // it is killed in the end; how it says so is of no interest
		}
	}()
	if err := <-started; err != nil {
		t.Fatalf("cannot make namespaces: %v", err)
	}
	s.init = cmd.Process.Pid
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // process 1: all others inside go with it
		<-ended
	})
}

func (s *machine) console() string { return filepath.Join(s.work, "console") }

// await waits until the boot is over.
func (s *machine) await(t testing.TB) {
	t.Helper()
	if !poll(bootTimeout, func() bool {
		out, _ := s.nsenter("systemctl", "is-system-running").Output()
		state := strings.TrimSpace(string(out))
		return state == "running" || state == "degraded"
	}) {
		console, _ := os.ReadFile(s.console())
		t.Fatalf("systemd did not come up within %v:\n%s", bootTimeout, console)
	}
}

// addUser makes a user with a running manager.
func (s *machine) addUser(t testing.TB, name string) {
	t.Helper()
	for _, argv := range [][]string{
		{"sh", "-c", `id "$1" >/dev/null 2>&1 || useradd --create-home --shell /bin/bash "$1"`, "sh", name},
		{"loginctl", "enable-linger", name},
	} {
		if out, err := s.nsenter(argv...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v: %s", argv, err, out)
		}
	}
	socket := "/run/user/" + s.id(t, name) + "/systemd/private"
	if !poll(bootTimeout, func() bool { return s.nsenter("test", "-S", socket).Run() == nil }) {
		t.Fatalf("the systemd of %s did not come up", name)
	}
}

func (s *machine) id(t testing.TB, name string) string {
	t.Helper()
	out, err := s.nsenter("id", "-u", name).Output()
	if err != nil {
		t.Fatalf("there is no user %s: %v", name, err)
	}
	return strings.TrimSpace(string(out))
}

// poll asks until the answer is yes.
func poll(limit time.Duration, done func() bool) bool {
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if done() {
			return true
		}
	}
	return false
}

// run runs a command inside.
func (s *machine) run(t testing.TB, o Options, argv ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	home := "/root"
	env := []string{inside, "PATH=" + os.Getenv("PATH"), "SHELL=/bin/bash", "LANG=C.UTF-8"}
	var enter []string
	if o.User == "" {
		env = append(env, "USER=root", "LOGNAME=root")
		enter = []string{"env", "-i"}
	} else {
		id := s.id(t, o.User)
		home = "/home/" + o.User
		env = append(env, "USER="+o.User, "LOGNAME="+o.User, "XDG_RUNTIME_DIR=/run/user/"+id,
			"DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/"+id+"/bus")
		enter = []string{"setpriv", "--reuid", o.User, "--regid", o.User, "--init-groups", "env", "-i"}
	}
	dir := o.Dir
	if dir == "" {
		dir = home
	}
	enter = append(append(enter, append(env, "HOME="+home)...), o.Env...)
	enter = append(enter, "bash", "-c", `cd -- "$1" && shift && exec "$@"`, "bash", dir)
	cmd := s.nsenter(append(enter, argv...)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := context.AfterFunc(ctx, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	err := cmd.Wait()
	stop()
	if err != nil {
		t.Fatalf("%q in the sandbox: %v (status %d)\n%s", argv, err, status(err), out.String())
	}
	return out.String()
}
