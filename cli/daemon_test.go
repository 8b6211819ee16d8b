package cli

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// world is a HOME with one workspace, for a daemon as a process of its own.
type world struct {
	*testing.T
	agentd, dir string
	env         []string
	daemon      *exec.Cmd
	out, err    string // files
}

func newWorld(t *testing.T, config string) *world {
	t.Helper()
	agentd, err := exec.LookPath("agentd") // TestMain has put it there
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, agentd: agentd, dir: t.TempDir()}
	w.out, w.err = filepath.Join(w.dir, "out"), filepath.Join(w.dir, "err")
	w.env = append(os.Environ(), "HOME="+w.dir, "XDG_STATE_HOME=", "XDG_DATA_HOME=", "XDG_CONFIG_HOME=", "XDG_RUNTIME_DIR="+w.dir, "TZ=UTC")
	if err := os.Mkdir(filepath.Join(w.dir, "bob"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.write("bob/agentd.toml", "[agent]\nname = \"bob\"\n[defaults]\nbackend = \"command\"\n"+config)
	return w
}

func (w *world) write(name, text string) {
	w.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
}

func (w *world) read(name string) string {
	data, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.Fatal(err)
	}
	return string(data)
}

func (w *world) command(argv ...string) *exec.Cmd {
	c := exec.CommandContext(w.Context(), argv[0], argv[1:]...)
	c.Dir, c.Env = w.dir, w.env
	return c
}

// start starts a daemon, behind a prefix such as unshare.
func (w *world) start(prefix ...string) {
	w.Helper()
	c := w.command(append(prefix, w.agentd, "daemon", "bob")...)
	out, err := os.Create(w.out)
	if err != nil {
		w.Fatal(err)
	}
	defer out.Close()
	stderr, err := os.Create(w.err)
	if err != nil {
		w.Fatal(err)
	}
	defer stderr.Close()
	c.Stdout, c.Stderr = out, stderr
	// At the test's end it ends its runs, which would write on.
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = 20 * time.Second
	if err := c.Start(); err != nil {
		w.Fatal(err)
	}
	w.daemon = c
	w.Cleanup(func() {
		if w.daemon != nil {
			_ = c.Wait() // the context has ended
		}
	})
}

// end waits for the daemon's end and returns its status.
func (w *world) end() int {
	w.Helper()
	limit := time.AfterFunc(30*time.Second, func() { _ = w.daemon.Process.Kill() })
	defer limit.Stop()
	_ = w.daemon.Wait()
	code := w.daemon.ProcessState.ExitCode()
	w.daemon = nil
	return code
}

// until waits until ok.
func (w *world) until(what string, ok func() bool) {
	w.Helper()
	for limit := time.Now().Add(30 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			w.Fatalf("not %s; the daemon said\n%s%s", what, w.read("out"), w.read("err"))
		}
	}
}

func (w *world) agent(args ...string) string {
	w.Helper()
	out, err := w.command(append([]string{w.agentd}, args...)...).Output()
	if err != nil {
		w.Fatalf("agentd %v: %v", args, err)
	}
	return string(out)
}

// TestDaemonNotifies is what the daemon tells a service manager.
func TestDaemonNotifies(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "[jobs.a]\nschedule = \"0 0 1 1 *\"\ncommand = [\"true\"]\n")
	path := filepath.Join(w.dir, "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	w.env = append(w.env, "NOTIFY_SOCKET="+path, "WATCHDOG_USEC=600000")
	w.start()
	expect := func(want ...string) {
		t.Helper()
		buf := make([]byte, 4096)
		for {
			if err := socket.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
				t.Fatal(err)
			}
			n, err := socket.Read(buf)
			if err != nil {
				t.Fatalf("not told %q: %v", want, err)
			}
			has := true
			for _, part := range want {
				has = has && bytes.Contains(buf[:n], []byte(part))
			}
			if has {
				return
			}
		}
	}
	expect("READY=1", "STATUS=1 job, the next fires at Fri 1 Jan 00:00:00 UTC")
	expect("WATCHDOG=1")
	expect("WATCHDOG=1")
	if err := w.daemon.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	expect("RELOADING=1", "MONOTONIC_USEC=")
	expect("READY=1", "STATUS=1 job")
	if err := w.daemon.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	expect("STOPPING=1")
	if code := w.end(); code != 143 {
		t.Errorf("ended with %d, want 143", code)
	}
}

// TestDaemonAsInit has it the first process of a namespace, which collects
// whatever is orphaned there, and knows how its own runs ended.
func TestDaemonAsInit(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root makes a namespace of processes")
	}
	if err := exec.Command("unshare", "--pid", "--fork", "--mount-proc", "true").Run(); err != nil {
		t.Skipf("this machine allows no namespace of processes: %v", err)
	}
	w := newWorld(t, "[jobs.a]\nschedule = \"* * * * * *\"\ncommand = [\"sh\", \"-c\", \"exit 82\"]\n")
	w.start("unshare", "--pid", "--fork", "--mount-proc")
	w.until("run", func() bool { return strings.Contains(w.read("err"), "bob/a: ended with 82 (limit)") })
	self := strconv.Itoa(w.daemon.Process.Pid)
	children, err := os.ReadFile("/proc/" + self + "/task/" + self + "/children")
	if err != nil {
		t.Fatal(err)
	}
	first := strings.TrimSpace(string(children))
	inside := func(script string) error {
		return w.command("nsenter", "-t", first, "-p", "-m", "sh", "-c", script).Run()
	}
	if err := inside("(setsid sh -c 'echo $$ >" + w.dir + "/orphan; exec sleep 0.3' &)"); err != nil {
		t.Fatal(err)
	}
	w.until("orphaned", func() bool { return w.read("orphan") != "" })
	orphan := strings.TrimSpace(w.read("orphan"))
	if data, err := os.ReadFile("/proc/" + first + "/root/proc/" + orphan + "/status"); err == nil && !bytes.Contains(data, []byte("PPid:\t1\n")) {
		t.Errorf("the orphan is not the daemon's child:\n%s", data)
	}
	w.until("collected", func() bool { return inside("test ! -e /proc/"+orphan) == nil })
	before := strings.Count(w.read("err"), "ended with 82")
	w.until("going on", func() bool { return strings.Count(w.read("err"), "ended with 82") > before+1 })
	pid, err := strconv.Atoi(first)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := w.end(); code != 143 {
		t.Errorf("ended with %d, want 143", code)
	}
}

// TestDaemonGoesOnWithCrashed kills a run in a way that nothing can be done
// about; the daemon has it go on.
func TestDaemonGoesOnWithCrashed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `resume.attempts = 3
[jobs.work]
schedule = "* * * * * *"
command = ["sh", "-c", "if test -e finish; then echo second; else echo $PPID >first.new; mv first.new first; exec sleep 300; fi"]
`)
	w.start()
	w.until("at work", func() bool { return w.read("bob/first") != "" })
	w.write("bob/agentd.toml", strings.Replace(w.read("bob/agentd.toml"), "* * * * * *", "0 0 1 1 *", 1)) // no more firings
	w.until("changed", func() bool { return strings.Contains(w.read("err"), "has changed") })
	w.write("bob/finish", "")
	run, err := strconv.Atoi(strings.TrimSpace(w.read("bob/first")))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(run, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.until("gone on with", func() bool { return strings.Contains(w.read("out"), "second") })
	w.until("ended", func() bool {
		all := w.agent("history", "work", "--json", "-C", "bob")
		return strings.Contains(all, `"attempts":[{"n":1`) && strings.Contains(all, `"code":85`) && strings.Contains(all, `{"n":2`)
	})
}
