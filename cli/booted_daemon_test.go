package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentd/internal/sandbox"
	"agentd/scheduler/daemon"
)

func TestBootedDaemonUser(t *testing.T) {
	if !sandbox.Inside() {
		sandbox.Test(t, sandbox.Options{User: "bob"})
		return
	}
	bootedDaemon(t, "user")
}

func TestBootedDaemonSystem(t *testing.T) {
	if !sandbox.Inside() {
		sandbox.Test(t, sandbox.Options{})
		return
	}
	bootedDaemon(t, "system")
}

// bootedDaemon has systemd run the daemon, and checks that it serves as a good
// service does: it says when it is ready, reads again on a reload, comes back
// after a crash, and leaves nothing.
func bootedDaemon(t *testing.T, scope string) {
	p := newPerson(t)
	p.write("agentd.toml", "[agent]\nname = \"bob\"\n[jobs.tick]\nschedule = \"* * * * * *\"\nbackend = \"command\"\ncommand = [\"true\"]\n")
	do := func(want string, args ...string) {
		t.Helper()
		p.mustSay(want, append(args, "--scope", scope)...)
	}
	systemctl := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("systemctl", append([]string{"--" + scope}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("systemctl %q: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	const unit = "agentd-daemon.service"
	before := systemctl("list-unit-files", "--no-legend") + p.listing()
	do("1 to add", "install", "--daemon", "--dry-run")
	do("1 added", "install", "--daemon")
	do("unchanged", "install", "--daemon")
	do("runs as a service", "doctor")
	if state := systemctl("is-active", unit); state != "active" {
		t.Errorf("it is %s", state)
	}
	p.eventually("the daemon runs the job", func() bool { return len(p.runs("tick")) > 1 })
	do("idle", "status")
	if text := systemctl("show", "--value", "-p", "StatusText", unit); !strings.HasPrefix(text, "1 job, the next fires at ") {
		t.Errorf("it says %q", text)
	}
	systemctl("reload", unit)

	pid := systemctl("show", "--value", "-p", "MainPID", unit)
	systemctl("kill", "--signal=KILL", "--kill-whom=main", unit)
	p.eventually("systemd starts it again", func() bool {
		now := systemctl("show", "--value", "-p", "MainPID", "-p", "ActiveState", unit)
		return strings.Contains(now, "active") && !strings.Contains(now, "activating") && !strings.Contains(now, pid)
	})
	ran := len(p.runs("tick"))
	p.eventually("the new daemon runs the job", func() bool { return len(p.runs("tick")) > ran })

	// A change of the unit is a new daemon.
	pid = systemctl("show", "--value", "-p", "MainPID", unit)
	t.Setenv("PATH", os.Getenv("PATH")+":"+filepath.Dir(p.agentd))
	do("1 changed", "install", "--daemon")
	if now := systemctl("show", "--value", "-p", "MainPID", unit); now == pid || now == "0" {
		t.Errorf("after a change of its unit it is process %s, as before", now)
	}
	do("1 file removed", "uninstall", "--daemon")
	do("is not installed", "uninstall", "--daemon")
	do("Nothing of agent bob", "uninstall")
	if state, _ := exec.Command("systemctl", "--"+scope, "is-active", unit).Output(); strings.TrimSpace(string(state)) != "inactive" {
		t.Errorf("after the uninstall it is %s", state)
	}
	if after := systemctl("list-unit-files", "--no-legend") + p.listing(); after != before {
		t.Errorf("left:\n%s\nbefore:\n%s", after, before)
	}

	// One that cannot start is taken back.
	p.write("agentd.toml", "[agent]\nname = \"bob\"\n[jobs.tick]\nschedule = \"* * * * * *\"\nbackend = \"command\"\ncommand = [\"true\"]\n")
	other := p.start("daemon")
	p.eventually("another daemon runs", func() bool { return daemon.Held(filepath.Join(os.Getenv("HOME"), ".local/state/agentd")) })
	if out, err := p.output("install", "--daemon", "--scope", scope); err == nil {
		t.Errorf("a second daemon: %s", out)
	}
	if _, err := os.Stat(filepath.Join(map[string]string{"user": os.Getenv("HOME") + "/.config/systemd/user", "system": "/etc/systemd/system"}[scope], unit)); err == nil {
		t.Error("the unit of a daemon that did not start is left")
	}
	if err := other.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	if err := other.Wait(); fmt.Sprint(err) != "exit status 130" {
		t.Errorf("the other daemon: %v", err)
	}
}
