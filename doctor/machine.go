package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"agentd/exitcodes"
	"agentd/lanes"
	"agentd/systemd"
)

// machine looks at what all agents share.
func (p Patient) machine(ctx context.Context) []Finding {
	list := []Finding{p.bus()}
	if p.Target.Scope == systemd.User && p.Absent == nil {
		list = append(list, p.linger())
	}
	return append(list, p.clock(), p.zone(), p.disk(), p.state())
}

func (p Patient) bus() Finding {
	switch {
	case p.Absent != nil && p.Daemon:
		return Finding{Check: "bus", Level: OK, Text: "agentd daemon runs and starts the jobs: " + p.Absent.Error()}
	case p.Absent != nil:
		return failed("bus", p.Absent)
	}
	return Finding{Check: "bus", Level: OK, Text: fmt.Sprintf("the %s's systemd answers, version %d", p.Target.Scope, p.Target.Version)}
}

func (p Patient) linger() Finding {
	on, name, err := systemd.Linger()
	switch {
	case err != nil:
		return failed("linger", err)
	case on:
		return Finding{Check: "linger", Level: OK, Text: "linger is on: jobs run without a session"}
	}
	return Finding{
		Check: "linger", Level: Warn, Text: "linger is off for this user: jobs stop at logout",
		Fix: "loginctl enable-linger " + name, repair: p.EnableLinger,
	}
}

// clock asks the kernel, which whoever sets the clock tells about it.
func (p Patient) clock() Finding {
	state, err := unix.Adjtimex(&unix.Timex{})
	switch {
	case err != nil:
		return Finding{Check: "clock", Level: Warn, Text: "cannot tell whether the clock is right: " + err.Error()}
	case state == unix.TIME_ERROR:
		return Finding{Check: "clock", Level: Warn, Text: "nothing synchronises the clock: jobs run early or late", Fix: "timedatectl set-ntp true"}
	}
	return Finding{Check: "clock", Level: OK, Text: "the clock is synchronised"}
}

// zone compares the zone that timers use with the one that the user sees.
func (p Patient) zone() Finding {
	machine := "UTC"
	if link, err := filepath.EvalSymlinks("/etc/localtime"); err == nil {
		if _, name, ok := strings.Cut(link, "/zoneinfo/"); ok {
			machine = name
		}
	}
	mine := strings.TrimPrefix(p.Getenv("TZ"), ":")
	if mine != "" && mine != machine && mine+machine != "UTCEtc/UTC" {
		return Finding{
			Check: "zone", Level: Warn, Text: "TZ is " + mine + " in your shell, but timers go by the machine's " + machine,
			Fix: `timezone = "` + mine + `" under [defaults] in agentd.toml`,
		}
	}
	return Finding{Check: "zone", Level: OK, Text: "time zone " + machine}
}

// little is the room on a disk below which runs soon fail, in bytes.
const little = 200 << 20

func (p Patient) disk() Finding {
	dir := p.Target.State
	for {
		var fs unix.Statfs_t
		err := unix.Statfs(dir, &fs)
		if errors.Is(err, unix.ENOENT) && dir != "/" {
			dir = filepath.Dir(dir)
			continue
		}
		if err != nil {
			return failed("disk", fmt.Errorf("cannot tell the room in %s: %w", dir, err))
		}
		free := fs.Bavail * uint64(fs.Bsize)
		text := fmt.Sprintf("%d MB are free for runs and sessions (%s)", free>>20, dir)
		if free < little {
			return Finding{Check: "disk", Level: Fail, Text: text, Fix: "make room there"}
		}
		return Finding{Check: "disk", Level: OK, Text: text}
	}
}

// state looks at the folder of sessions and runs, which others must not read.
func (p Patient) state() Finding {
	dir := p.Folders.State
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Finding{Check: "state", Level: OK, Text: "nothing has run yet"}
	case err != nil:
		return failed("state", err)
	case info.Mode().Perm()&0o077 != 0:
		return Finding{
			Check: "state", Level: Warn, Text: fmt.Sprintf("%s is open to other users (%o): it holds what agents read and wrote", dir, info.Mode().Perm()),
			Fix: "chmod 700 " + dir, repair: func(context.Context) error { return os.Chmod(dir, 0o700) },
		}
	case unix.Access(dir, unix.W_OK) != nil:
		return Finding{Check: "state", Level: Fail, Text: dir + " cannot be written", Fix: "give it back to yourself: chown -R $USER " + dir}
	}
	return Finding{Check: "state", Level: OK, Text: "sessions and runs are in " + dir}
}

// lanes tells of holders that died; the next to take the lane ends what they
// left behind.
func (p Patient) lanes() []Finding {
	all, err := lanes.Dir(p.Folders.Lanes()).List()
	if err != nil {
		return []Finding{failed("lanes", err)}
	}
	var list []Finding
	for _, l := range all {
		for _, o := range l.Left {
			list = append(list, Finding{
				Check: "lanes", Level: Warn,
				Text: fmt.Sprintf("lane %s: run %s of %s died while holding it; the next run ends what it left behind", l.Name, o.RunID, o.Job),
				Fix:  "agentd run " + o.Job + ", or wait for its next time",
			})
		}
	}
	return list
}

// Verdict returns the error to end with, nil if nothing fails.
func Verdict(list []Finding) error {
	n := 0
	for _, f := range list {
		if f.Level == Fail && !f.Fixed {
			n++
		}
	}
	switch n {
	case 0:
		return nil
	case 1:
		return exitcodes.Errorf(exitcodes.Config, "1 check failed")
	}
	return exitcodes.Errorf(exitcodes.Config, "%d checks failed", n)
}
