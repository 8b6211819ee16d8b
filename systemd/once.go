package systemd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"agentd/atomicfile"
	"agentd/exitcodes"
)

// OnceTimer is a timer that starts a job's service one single time. It is a
// file in a folder that a reboot empties: systemd's own transient timers cannot
// start a unit of another name.
type OnceTimer struct {
	Name        string    // of the timer, without ".timer": see OnceName
	At          time.Time // a time that has passed means at once
	Unit        string    // the unit it starts: JobName.Service()
	Description string    // may be empty
	Workspace   string    // whose it is; may be empty
}

// OncePrefix begins the names of the timers that let a run go on later. No unit
// of a job begins so.
const OncePrefix = "agentd--resume-"

// OnceName returns the name of the timer that lets a run go on.
func OnceName(runID string) string { return OncePrefix + runID }

// soon is how near a time must be to be counted in seconds from now: a calendar
// time that passes before systemd has loaded the timer would never come.
const soon = 5 * time.Second

// StartOnce starts the timer. One of that name that still waits is left as it
// is; one that has fired starts anew.
func (c *Conn) StartOnce(ctx context.Context, t OnceTimer) error {
	text, err := t.bytes(time.Now())
	if err != nil {
		return err
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	unit := t.Name + ".timer"
	list, err := c.bus.ListUnitsByNamesContext(ctx, []string{unit})
	if err != nil {
		return c.explain("list units", err)
	}
	known := len(list) == 1 && list[0].LoadState == "loaded"
	if known && list[0].SubState == "waiting" {
		return nil
	}
	if known { // it is what started the run that asks for the next
		if err := c.Stop(ctx, unit); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(c.passing, 0o755); err != nil {
		return exitcodes.Errorf(exitcodes.CannotCreate, "cannot make a folder for the timer: %w", err)
	}
	if err := atomicfile.Write(filepath.Join(c.passing, unit), text, 0o644); err != nil {
		return err
	}
	if known { // systemd finds new units by itself, and changed ones only so
		if err := c.Reload(ctx); err != nil {
			return err
		}
	}
	return c.Start(ctx, unit)
}

func (t OnceTimer) bytes(now time.Time) ([]byte, error) {
	name, ok := ParseName(t.Unit)
	if !ok || t.Unit != name.Service() {
		return nil, fmt.Errorf("cannot start %q later: not the service of a job", t.Unit)
	}
	if err := checkOnceName(t.Name); err != nil {
		return nil, err
	}
	return sealed(&File{Sections: []Section{
		{"Unit", []Entry{{"Description", describe("agentd job "+name.String()+" goes on", t.Description)}}},
		{"Timer", []Entry{t.when(now), {"AccuracySec", "1s"}, {"RemainAfterElapse", "no"}, {"Unit", t.Unit}}},
	}}, name, t.Workspace)
}

func (t OnceTimer) when(now time.Time) Entry {
	if wait := t.At.Sub(now); wait < soon {
		// 0 would be no timer at all.
		return Entry{"OnActiveSec", span(max(wait, time.Microsecond))}
	}
	at := t.At.Add(time.Second - 1).Truncate(time.Second) // never early
	return Entry{"OnCalendar", at.UTC().Format("2006-01-02 15:04:05 UTC")}
}

// CancelOnce takes back what StartOnce did; name is OnceTimer.Name. A timer
// that is not there is no error: it may have fired.
func (c *Conn) CancelOnce(ctx context.Context, name string) error {
	if err := checkOnceName(name); err != nil {
		return err
	}
	unit := name + ".timer"
	if err := c.Stop(ctx, unit); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(c.passing, unit)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot take back a timer: %w", err)
	}
	return nil
}

// Once is a timer of StartOnce that has not been taken back.
type Once struct {
	Name  string // OnceTimer.Name
	Owner Owner
}

// Onces returns the timers of StartOnce, those that have fired included.
func (c *Conn) Onces() ([]Once, error) {
	files, err := os.ReadDir(c.passing)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot look for timers: %w", err)
	}
	var list []Once
	for _, f := range files {
		name, isTimer := strings.CutSuffix(f.Name(), ".timer")
		if !isTimer || !strings.HasPrefix(name, OncePrefix) || !f.Type().IsRegular() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(c.passing, f.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // taken back meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("cannot look for timers: %w", err)
		}
		if owner, ok := OwnerOf(text); ok {
			list = append(list, Once{name, owner})
		}
	}
	return list, nil
}

// checkOnceName refuses what is no such timer, and what would lead out of its
// folder.
func checkOnceName(name string) error {
	rest, ok := strings.CutPrefix(name, OncePrefix)
	for _, r := range rest {
		ok = ok && (r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z')
	}
	if !ok || rest == "" || len(name)+len(".timer") > nameMax {
		return fmt.Errorf("cannot make the timer %q: its name is not %sRUN", name, OncePrefix)
	}
	return nil
}
