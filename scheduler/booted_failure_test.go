package scheduler

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentd/exitcodes"
	"agentd/internal/sandbox"
	"agentd/systemd"
)

// An install that fails leaves the former files, links and timers: on a full
// disk, in a read-only folder, with a unit that systemd does not take, without
// a bus.
func TestBootedFailures(t *testing.T) {
	if !sandbox.Inside() {
		sandbox.Test(t, sandbox.Options{})
		return
	}
	b := newBooted(t, systemd.System)
	dir := "/usr/local/lib/systemd/system" // systemd looks here too, and nothing else is in it
	b.target.UnitDir = dir
	b.command("mkdir", "-p", dir)
	b.command("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", dir)
	b.command("systemctl", "daemon-reload")
	apply(t, plan(t, loadIn(t, b.work, twoJobs), b.target, Options{}), b.conn)
	changed := strings.Replace(twoJobs, "*/30 9-17", "15 7", 1) + "\n[jobs.third]\nschedule = \"@daily\"\nprompt = \"x\"\n"
	ws := loadIn(t, b.work, strings.Replace(changed, "[jobs.by-hand]", "[jobs.renamed]", 1))

	dropIn := filepath.Join(dir, "agentd-my--bot-third.service.d")
	closed, err := systemd.Connect(t.Context(), systemd.System, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	for _, c := range []struct {
		name     string
		spoil    []string // a command
		repair   []string
		conn     *systemd.Conn
		code     exitcodes.Code
		says     string
		hintSays string
	}{
		{
			"full disk", []string{"sh", "-c", "! dd if=/dev/zero of=" + dir + "/fill status=none 2>&1"}, []string{"rm", dir + "/fill"},
			b.conn, exitcodes.IO, "no space left on device", "make room",
		},
		{
			"read-only folder", []string{"mount", "-o", "remount,ro", dir}, []string{"mount", "-o", "remount,rw", dir},
			b.conn, exitcodes.CannotCreate, "read-only file system", "",
		},
		{
			"bad unit", []string{"sh", "-c", "mkdir " + dropIn + " && printf '[Service]\\nRestart=always\\n' >" + dropIn + "/mine.conf"}, []string{"rm", "-r", dropIn},
			b.conn, exitcodes.Config, "agentd-my--bot-third.service is bad-setting", "drop-ins",
		},
		{"no bus", []string{"true"}, []string{"true"}, closed, exitcodes.Failure, "the system's systemd cannot", ""},
	} {
		b.command(c.spoil...)
		before, units := tree(t, dir), b.timersAndLinks()
		_, err := plan(t, ws, b.target, Options{}).Apply(t.Context(), c.conn)
		if err == nil || exitcodes.From(err) != c.code || !strings.Contains(err.Error(), c.says) || !strings.Contains(exitcodes.HintOf(err), c.hintSays) {
			t.Errorf("%s: %v (code %v, hint %q)", c.name, err, exitcodes.From(err), exitcodes.HintOf(err))
		}
		if d := cmp.Diff(before, tree(t, dir)); d != "" {
			t.Errorf("%s: files differ:\n%s", c.name, d)
		}
		if d := cmp.Diff(units, b.timersAndLinks()); d != "" {
			t.Errorf("%s: timers or links differ:\n%s", c.name, d)
		}
		b.command(c.repair...)
	}
	r := apply(t, plan(t, ws, b.target, Options{}), b.conn)
	if len(r.Started) != 2 {
		t.Errorf("with all in order it did %+v", r)
	}
}

func (b *booted) command(argv ...string) string {
	b.Helper()
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		b.Fatalf("%q: %v: %s", argv, err, out)
	}
	return string(out)
}

// timersAndLinks is what systemd has of agentd's units, and the scripts.
func (b *booted) timersAndLinks() string {
	b.Helper()
	return b.command("systemctl", "show", "--property=Id,ActiveState,SubState,UnitFileState,NextElapseUSecRealtime", "agentd-*.timer") +
		b.command("find", "/etc/systemd/system", "-name", "agentd*") +
		b.command("find", filepath.Dir(b.target.Script(systemd.JobName{Agent: "my-bot", Job: "triage"})), b.target.Data)
}
