package systemd

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
	godbus "github.com/godbus/dbus/v5"
)

// OnceTimer is a timer that starts a unit one single time. systemd keeps it in
// memory only: a reboot forgets it.
type OnceTimer struct {
	Name        string    // of the timer, without ".timer"; OncePrefix in front
	At          time.Time // a time that has passed means at once
	Unit        string    // the unit it starts, such as JobName.Service()
	Description string    // may be empty
	Workspace   string    // whose it is; may be empty
}

// OncePrefix begins the names of the timers that let a run go on later.
const OncePrefix = "agentd-resume-"

// OnceName returns the name of the timer that lets a run go on.
func OnceName(runID string) string { return OncePrefix + runID }

// soon is how near a time must be to be counted in seconds from now: a calendar
// time that passes before systemd has loaded the timer would never come.
const soon = 5 * time.Second

// StartOnce starts the timer. A timer of that name that still waits is left as
// it is.
//
// A transient timer can start only the service that is named like it, so one
// comes along, which does nothing but want the unit.
func (c *Conn) StartOnce(ctx context.Context, t OnceTimer) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	if err := checkUnitName(t.Name + ".timer"); err != nil {
		return err
	}
	if err := checkUnitName(t.Unit); err != nil {
		return err
	}
	about := describe("agentd starts "+t.Unit+" once", t.Description)
	common := []dbus.Property{
		property("Description", strings.ReplaceAll(about, "%%", "%")), // no specifiers over D-Bus
		property("CollectMode", "inactive-or-failed"),
	}
	timer := append([]dbus.Property{
		t.when(time.Now()),
		property("AccuracyUSec", uint64(time.Second/time.Microsecond)),
		property("RemainAfterElapse", false),
	}, common...)
	service := append([]dbus.Property{
		property("Type", "oneshot"),
		dbus.PropExecStart([]string{"/bin/true"}, false),
		property("Wants", []string{t.Unit}),
		property("Environment", []string{onceMark + t.Workspace}),
	}, common...)
	aux := []dbus.PropertyCollection{{Name: t.Name + ".service", Properties: service}}
	result := make(chan string, 1)
	_, err := c.bus.StartTransientUnitAux(ctx, t.Name+".timer", "replace", timer, aux, result)
	if isError(err, "org.freedesktop.systemd1.UnitExists") {
		return nil
	}
	return c.explain("start the timer "+t.Name, finished(ctx, err, result))
}

// onceMark names the workspace in the service that comes along with a timer.
const onceMark = "AGENTD_WORKSPACE="

func (t OnceTimer) when(now time.Time) dbus.Property {
	type monotonic struct {
		Base string
		USec uint64
	}
	type calendar struct {
		Base, Spec string
	}
	if wait := t.At.Sub(now); wait < soon {
		return property("TimersMonotonic", []monotonic{{"OnActiveSec", uint64(max(wait, 0) / time.Microsecond)}})
	}
	at := t.At.Add(time.Second - 1).Truncate(time.Second) // never early
	return property("TimersCalendar", []calendar{{"OnCalendar", at.UTC().Format("2006-01-02 15:04:05 UTC")}})
}

// CancelOnce takes back what StartOnce did; name is OnceTimer.Name. A timer
// that is not there is no error: it may have fired.
func (c *Conn) CancelOnce(ctx context.Context, name string) error {
	return c.Stop(ctx, name+".timer")
}

// Onces returns the timers of StartOnce that still wait, with a question for
// the list and two for each.
func (c *Conn) Onces(ctx context.Context) ([]OnceTimer, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	list, err := c.bus.ListUnitsByPatternsContext(ctx, []string{"active"}, []string{OncePrefix + "*.timer"})
	if err != nil {
		return nil, c.explain("list units", err)
	}
	var out []OnceTimer
	for _, u := range list {
		t := OnceTimer{Name: strings.TrimSuffix(u.Name, ".timer"), Description: u.Description}
		p, err := c.bus.GetAllPropertiesContext(ctx, t.Name+".service")
		if err != nil {
			return nil, c.explain("describe "+t.Name, err)
		}
		wants, _ := p["Wants"].([]string)
		environment, _ := p["Environment"].([]string)
		if transient, _ := p["Transient"].(bool); !transient || len(wants) == 0 || len(environment) == 0 {
			continue // a job's, of an agent called "resume"
		}
		t.Unit, t.Workspace = wants[0], strings.TrimPrefix(environment[0], onceMark)
		p, err = c.bus.GetUnitTypePropertiesContext(ctx, u.Name, "Timer")
		if err != nil {
			return nil, c.explain("describe "+u.Name, err)
		}
		t.At = nextElapse(p)
		out = append(out, t)
	}
	return out, nil
}

func property(name string, value any) dbus.Property {
	return dbus.Property{Name: name, Value: godbus.MakeVariant(value)}
}

// checkUnitName refuses what systemd takes for no name of a unit, or for a
// template.
func checkUnitName(unit string) error {
	dot := strings.LastIndexByte(unit, '.')
	for _, r := range unit {
		if r != ':' && r != '-' && r != '_' && r != '.' && r != '\\' && r != '@' &&
			(r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') {
			return fmt.Errorf("cannot start %q: not the name of a unit", unit)
		}
	}
	if dot <= 0 || dot == len(unit)-1 || len(unit) > nameMax {
		return fmt.Errorf("cannot start %q: not the name of a unit", unit)
	}
	return nil
}
