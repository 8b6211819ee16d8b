package systemd

import (
	"fmt"
	"strings"
	"time"

	"agentd/exitcodes"
)

// Daemon names agentd's own daemon among the names of jobs; no agent is called
// so.
var Daemon = JobName{Agent: "agentd daemon"}

const daemonBase = "agentd-daemon"

// DaemonService is what the service of agentd daemon depends on.
type DaemonService struct {
	Agentd     string   // absolute path of the program
	Workspaces []string // absolute; none: those that are registered
	Env        []string // NAME=VALUE
	Scope      Scope
	User       string // who runs it in the system scope; "" is root
	Version    int    // of the systemd that reads the unit; 0: unknown
}

// The daemon pings the watchdog four times as often. Its end waits for those of
// the runs, each of which has its job's grace.
const (
	daemonWatchdog = 2 * time.Minute
	daemonStop     = 15 * time.Minute
)

// Bytes returns the text of the service unit.
func (d DaemonService) Bytes() ([]byte, error) {
	command, err := execStart(d.Agentd, append([]string{"daemon"}, d.Workspaces...)...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Daemon, err)
	}
	service := Section{Name: "Service"}
	if d.Version >= 253 {
		service.add("Type", "notify-reload")
	} else {
		service.add("Type", "notify")
		service.add("ExecReload", "/bin/kill -s HUP $MAINPID")
	}
	service.add("ExecStart", command)
	unit := Section{Name: "Unit", Entries: []Entry{{"Description", "agentd daemon, runs jobs at their times"}}}
	target := "default.target"
	if d.Scope == System {
		target = "multi-user.target"
		unit.add("Wants", "network-online.target")
		unit.add("After", "network-online.target")
		name, err := systemUser(d.User)
		if err != nil {
			return nil, err
		}
		service.add("User", name)
	}
	for _, e := range d.Env {
		value, err := assignment(e)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", Daemon, err)
		}
		service.add("Environment", value)
	}
	service.Entries = append(service.Entries,
		Entry{"SyslogIdentifier", daemonBase},
		Entry{"WatchdogSec", span(daemonWatchdog)},
		Entry{"TimeoutStopSec", span(daemonStop)},
		// SIGTERM is for the daemon, which ends its runs in good order.
		Entry{"KillMode", "mixed"},
		Entry{"Restart", "on-failure"},
		Entry{"RestartSec", "5s"},
		Entry{"SuccessExitStatus", fmt.Sprint(int(exitcodes.Terminated))}, // what it ends with after a SIGTERM
		Entry{"RestartPreventExitStatus", codes(exitcodes.AgainNever, exitcodes.AgainPerson)},
	)
	// Not more than that: jobs run in here, those too that have hardening = false.
	service.add("LockPersonality", "yes")
	service.add("RestrictRealtime", "yes")
	return sealed(&File{
		Comments: []string{`Made by "agentd install --daemon", and made anew by the next one.`, "To change it for good: add a drop-in (systemctl edit)."},
		Sections: []Section{unit, service, {"Install", []Entry{{"WantedBy", target}}}},
	}, Daemon, strings.Join(d.Workspaces, ":"))
}

// execStart is Command, but takes a program whose path a shell takes.
func execStart(program string, args ...string) (string, error) {
	command, err := Command(program, args...)
	if err != nil {
		return Command("/bin/sh", append([]string{"-c", `exec "$0" "$@"`, program}, args...)...)
	}
	return command, nil
}
