package cli

import (
	"os/exec"
	"strings"
	"testing"

	"agentd/internal/sandbox"
)

// Jobs are switched under a running systemd, and a disable outlasts installs.
func TestBootedSwitches(t *testing.T) {
	if !sandbox.Inside() {
		sandbox.Test(t, sandbox.Options{User: "bob"})
		return
	}
	u := newPerson(t)
	u.mustSay("12 added", "install")
	u.mustSay("bob/tick  disabled", "disable", "tick")
	u.mustSay("bob/tick  was disabled already", "disable", "bob/tick")
	u.eventuallySays("disabled since", "status", "tick") // the run of the last second may go on
	u.mustSay("stays disabled; to undo that: agentd enable tick", "install")
	u.mustSay("disabled since", "status", "tick")
	u.mustSay("bob/tick  enabled", "enable", "tick")
	u.mustSay("bob/limited  was enabled already", "enable", "--all")
	u.mustSay("idle", "status", "limited")

	u.mustSay("bob/holder  was not running", "stop", "holder")
	u.mustSay("bob/holder  started", "start", "holder")
	u.awaitFile("started")
	u.mustSay("bob/holder  was running already", "start", "holder")
	u.mustSay("running", "status", "holder")
	u.mustSay("bob/holder  stopped", "stop", "holder")
	u.await("history", "holder", "--code", "143", "--json")
	if state, err := exec.Command("systemctl", "--user", "show", "--value", "-p", "ActiveState,Result", "agentd-bob-holder.service").Output(); err != nil || strings.Join(strings.Fields(string(state)), " ") != "success inactive" {
		t.Errorf("a stopped service is %q (%v), want no failure", state, err)
	}

	for _, c := range []struct{ args, want string }{
		{"enable holder", "has no timer"},
		{"disable", "--all"},
		{"stop nobody", "no job"},
	} {
		if _, err := u.output(strings.Fields(c.args)...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("agentd %s: %v, want %q", c.args, err, c.want)
		}
	}
	u.mustSay("in order", "doctor") // linger is on for users in the sandbox
	u.mustSay("disabled", "disable", "--all")
	u.mustSay("bob/tick is disabled since", "doctor")
	u.mustSay("removed", "uninstall")
	if left := u.listing(); strings.Contains(left, "agentd-") {
		t.Errorf("left:\n%s", left)
	}
}
