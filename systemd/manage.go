package systemd

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	godbus "github.com/godbus/dbus/v5"

	"agentd/exitcodes"
)

// CallTimeout bounds one call whose context has no deadline of its own. A
// reload with thousands of units takes seconds.
const CallTimeout = 2 * time.Minute

func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, CallTimeout)
}

// property returns a property of the manager.
func (c *Conn) property(ctx context.Context, name string) (godbus.Variant, error) {
	var v godbus.Variant
	err := c.raw.Object("org.freedesktop.systemd1", "/org/freedesktop/systemd1").
		CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, "org.freedesktop.systemd1.Manager", name).Store(&v)
	return v, err
}

// Reload makes the manager read its unit files again.
func (c *Conn) Reload(ctx context.Context) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	return c.explain("reload its units", c.bus.ReloadContext(ctx))
}

// Enable links the units into the targets of their [Install] sections.
func (c *Conn) Enable(ctx context.Context, units ...string) error {
	if len(units) == 0 {
		return nil
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	_, _, err := c.bus.EnableUnitFilesContext(ctx, units, false, true)
	return c.explain("enable "+strings.Join(units, ", "), err)
}

// Disable takes back what Enable did. Units that are not enabled are left.
func (c *Conn) Disable(ctx context.Context, units ...string) error {
	if len(units) == 0 {
		return nil
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	_, err := c.bus.DisableUnitFilesContext(ctx, units, false)
	return c.explain("disable "+strings.Join(units, ", "), err)
}

// Start starts a unit and waits until it has started; for a service that is
// the end of its run, so see Trigger.
func (c *Conn) Start(ctx context.Context, unit string) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	result := make(chan string, 1)
	_, err := c.bus.StartUnitContext(ctx, unit, "replace", result)
	return c.explain("start "+unit, finished(ctx, err, result))
}

// Trigger starts a service and does not wait for its end.
func (c *Conn) Trigger(ctx context.Context, unit string) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	_, err := c.bus.StartUnitContext(ctx, unit, "replace", nil)
	return c.explain("start "+unit, err)
}

// Stop stops a unit and waits for its end. A unit that is not there is stopped
// already.
func (c *Conn) Stop(ctx context.Context, unit string) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	result := make(chan string, 1)
	_, err := c.bus.StopUnitContext(ctx, unit, "replace", result)
	if isNoSuchUnit(err) {
		return nil
	}
	return c.explain("stop "+unit, finished(ctx, err, result))
}

// finished waits for the job that a call has queued.
func finished(ctx context.Context, err error, result <-chan string) error {
	if err != nil {
		return err
	}
	select {
	case r := <-result:
		if r != "done" && r != "skipped" {
			return fmt.Errorf("the job ended as %q", r)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ResetFailed makes the manager forget that a unit failed, so that a removed
// unit does not stay in its lists.
func (c *Conn) ResetFailed(ctx context.Context, unit string) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	err := c.bus.ResetFailedUnitContext(ctx, unit)
	if isNoSuchUnit(err) {
		return nil
	}
	return c.explain("reset "+unit, err)
}

// Version returns the number of the running systemd's version, such as 252.
func (c *Conn) Version(ctx context.Context) (int, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	v, err := c.property(ctx, "Version")
	if err != nil {
		return 0, c.explain("tell its version", err)
	}
	text, _ := v.Value().(string)
	return parseVersion(text)
}

// parseVersion reads "252.39-1~deb12u2" and "v257~rc1" alike.
func parseVersion(text string) (int, error) {
	digits := strings.TrimLeft(text, "v")
	if end := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
		digits = digits[:end]
	}
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0, fmt.Errorf("cannot make out systemd's version from %q", text)
	}
	return n, nil
}

// UnitPath returns the folders that the manager looks for unit files in.
func (c *Conn) UnitPath(ctx context.Context) ([]string, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	v, err := c.property(ctx, "UnitPath")
	if err != nil {
		return nil, c.explain("tell where it looks for units", err)
	}
	dirs, _ := v.Value().([]string)
	return dirs, nil
}

// explain gives an error of a call its context and, where it has one, a code
// and what to do.
func (c *Conn) explain(what string, err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("the %s's systemd cannot %s: %w", c.Scope, what, err)
	if isError(err, "org.freedesktop.DBus.Error.AccessDenied") ||
		isError(err, "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired") {
		e := exitcodes.Errorf(exitcodes.NoPermission, "%w", err)
		if c.Scope == System {
			return e.WithHint("run it as root, or use your own systemd: --scope user")
		}
		return e
	}
	return err
}

func isNoSuchUnit(err error) bool {
	return isError(err, "org.freedesktop.systemd1.NoSuchUnit") || isError(err, "org.freedesktop.systemd1.UnitNotLoaded")
}

func isError(err error, name string) bool {
	e, ok := errors.AsType[godbus.Error](err)
	return ok && e.Name == name
}
