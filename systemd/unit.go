package systemd

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"agentd/exitcodes"
)

// Service is what a job's service unit depends on.
type Service struct {
	Name        JobName
	Description string        // of the job; may be empty
	Workspace   string        // absolute
	Script      string        // absolute path of run.sh
	Needs       []string      // other absolute paths that a run needs
	Start       time.Duration // a whole run may take this long; 0: no limit
	Stop        time.Duration // an orderly stop may take this long
	Scope       Scope
	User        string // who runs it in the system scope; "" is root
	Version     int    // of the systemd that reads the unit; 0: unknown

	Credentials []Credential

	Hardening     bool
	NetworkOnline bool
	OnFailure     []string // unit names, specifiers allowed
	MemoryMax     string   // these as systemd writes them; "" is none
	CPUQuota      string
	TasksMax      string
	Nice          int
	IOClass       string
}

// Credential is a secret that systemd hands to a service.
type Credential struct {
	Name      string
	Path      string // absolute; "" has systemd look in its credential stores
	Encrypted bool   // for this machine, by systemd-creds
}

// Timer is what a job's timer unit depends on.
type Timer struct {
	Name      JobName
	Workspace string
	When      []Entry // OnCalendar= and the like
	CatchUp   bool    // run once after downtime
	Jitter    time.Duration
	Wake      bool
	Scope     Scope
	Version   int // of the systemd that reads the unit; 0: unknown
}

// Bytes returns the text of the service unit.
func (s Service) Bytes() ([]byte, error) {
	command, err := Command("/bin/bash", s.Script)
	if err != nil {
		return nil, err
	}
	f := &File{
		Comments: header,
		Sections: []Section{s.unit(), {Name: "Service", Entries: []Entry{
			{"Type", "oneshot"},
			{"ExecStart", command},
			{"Environment", "AGENTD_TRIGGER=" + s.Scope.trigger()},
			{"SyslogIdentifier", strings.TrimSuffix(s.Name.Service(), ".service")},
		}}},
	}
	service := f.Section("Service")
	if s.Scope == System {
		name, err := systemUser(s.User)
		if err != nil {
			return nil, err
		}
		service.add("User", name)
	}
	// The script knows the workspace by itself. So a folder that is gone is
	// for agentd to report ("-"), and one that systemd cannot express is left out.
	if dir, err := Directory(s.Workspace); err == nil {
		service.add("WorkingDirectory", dir)
	}
	service.Entries = append(service.Entries,
		Entry{"TimeoutStartSec", span(s.Start)},
		Entry{"TimeoutStopSec", span(s.Stop)},
		// run.sh passes SIGTERM on to agentd, which ends what it started.
		Entry{"KillMode", "mixed"},
		// No Restart=: agentd itself resumes what may be tried again, in the same
		// session and not before the reset. The list below is for those who add it.
		// No StateDirectory=: what agentd keeps is one for all jobs, and its own to make.
		// A run that a person stopped has not failed.
		Entry{"SuccessExitStatus", codes(exitcodes.AgainNextTime) + fmt.Sprintf(" %d %d", exitcodes.Cancelled, exitcodes.Terminated)},
		Entry{"RestartPreventExitStatus", codes(exitcodes.AgainNever, exitcodes.AgainPerson)},
	)
	for _, c := range s.Credentials {
		e, err := c.entry()
		if err != nil {
			return nil, err
		}
		service.Entries = append(service.Entries, e)
	}
	service.Entries = append(service.Entries, s.limits()...)
	if s.Hardening {
		service.Entries = append(service.Entries, s.hardening()...)
	}
	return sealed(f, s.Name, s.Workspace)
}

// systemUser returns the value of User= in a unit of the machine, root's too:
// without it there is no HOME, and so none of agentd's folders.
func systemUser(name string) (string, error) { return Text(cmp.Or(name, "root")) }

func (c Credential) entry() (Entry, error) {
	key := "LoadCredential"
	if c.Encrypted {
		key = "LoadCredentialEncrypted"
	}
	if strings.ContainsAny(c.Name, "%:/ \t\n") || c.Name == "" {
		return Entry{}, fmt.Errorf("cannot load the credential %q: not a name", c.Name)
	}
	if c.Path == "" {
		return Entry{key, c.Name}, nil
	}
	path, err := pathText(c.Path)
	if err != nil {
		return Entry{}, fmt.Errorf("cannot load the credential %s: %w", c.Name, err)
	}
	return Entry{key, c.Name + ":" + path}, nil
}

func (s Service) unit() Section {
	unit := Section{Name: "Unit", Entries: []Entry{
		{"Description", describe("agentd job "+s.Name.String(), s.Description)},
		// The timer sets the pace. systemd's own limit, five starts in ten
		// seconds, would make a failure of a job that is meant to run so often.
		{"StartLimitIntervalSec", "0"},
	}}
	if s.NetworkOnline && s.Scope == System { // user managers have no such target
		unit.add("Wants", "network-online.target")
		unit.add("After", "network-online.target")
	}
	if len(s.OnFailure) > 0 {
		unit.add("OnFailure", strings.Join(s.OnFailure, " "))
	}
	return unit
}

func (s Service) limits() []Entry {
	var entries []Entry
	for _, e := range []Entry{
		{"MemoryMax", s.MemoryMax}, {"CPUQuota", s.CPUQuota}, {"TasksMax", s.TasksMax}, {"IOSchedulingClass", s.IOClass},
	} {
		if e.Value != "" {
			entries = append(entries, e) // a "%" is one there: no specifiers
		}
	}
	if s.Nice != 0 {
		entries = append(entries, Entry{"Nice", strconv.Itoa(s.Nice)})
	}
	return entries
}

// Bytes returns the text of the timer unit. It has no Requires= on the
// service: starting a timer must not start a run.
func (t Timer) Bytes() ([]byte, error) {
	if len(t.When) == 0 {
		return nil, fmt.Errorf("cannot make a timer for %s: it has no schedule", t.Name)
	}
	timer := Section{Name: "Timer", Entries: append([]Entry(nil), t.When...)}
	// Persistent= has an effect on calendar times only.
	if len(timer.All("OnCalendar")) > 0 {
		timer.add("Persistent", yesNo(t.CatchUp))
	}
	timer.add("AccuracySec", "1s")
	if t.Jitter > 0 {
		timer.add("RandomizedDelaySec", span(t.Jitter))
		timer.add("FixedRandomDelay", "yes") // since 247
	}
	if t.Wake && (t.Scope == System || t.Version >= 254) { // before that, user managers may not
		timer.add("WakeSystem", "yes")
	}
	if t.Version >= 257 {
		// A time that passes during a run is dropped, not run at the end of it.
		timer.add("DeferReactivation", "yes")
	}
	f := &File{Comments: header, Sections: []Section{
		{"Unit", []Entry{{"Description", describe("schedule of agentd job "+t.Name.String(), "")}}},
		timer,
		{"Install", []Entry{{"WantedBy", "timers.target"}}},
	}}
	return sealed(f, t.Name, t.Workspace)
}

var header = []string{
	`Made by "agentd install" out of agentd.toml, and made anew by the next one.`,
	`To change it for good: change agentd.toml, or add a drop-in (systemctl edit).`,
}

// maxDescription bounds a Description= in runes; it is one line of a status.
const maxDescription = 120

// describe returns a one-line Description= value.
func describe(what, more string) string {
	more = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(more, "?"))
	if more = strings.Join(strings.Fields(more), " "); more != "" {
		what += ": " + more
	}
	if r := []rune(what); len(r) > maxDescription {
		what = strings.TrimSpace(string(r[:maxDescription-3])) + "..."
	}
	return strings.ReplaceAll(what, "%", "%%")
}

// codes returns the exit codes whose work may be tried again in one of the
// given ways, for a ...ExitStatus= directive.
func codes(again ...exitcodes.Again) string {
	var list []string
	for _, e := range exitcodes.Table() {
		for _, a := range again {
			if e.Again == a {
				list = append(list, strconv.Itoa(int(e.Code)))
			}
		}
	}
	return strings.Join(list, " ")
}

// span returns d for systemd; 0 is no limit. Fractions of a microsecond are
// rounded up.
func span(d time.Duration) string {
	if d <= 0 {
		return "infinity"
	}
	if d%time.Second == 0 {
		return strconv.FormatInt(int64(d/time.Second), 10) + "s"
	}
	return strconv.FormatInt(int64((d+time.Microsecond-1)/time.Microsecond), 10) + "us"
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
