package systemd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
	godbus "github.com/godbus/dbus/v5"

	"agentd/exitcodes"
)

// Conn is a connection to one manager: the system's or a user's.
type Conn struct {
	Scope Scope
	bus   *dbus.Conn
	raw   *godbus.Conn // one of bus's own two, for calls it lacks; closed with it

	passing string // folder of units that a reboot takes away
}

// NoManager is the error of Connect where there is no systemd to speak to.
type NoManager struct {
	Scope  Scope
	Reason string
	Fix    string
	Err    error
}

func (e *NoManager) Error() string {
	text := fmt.Sprintf("cannot reach the %s's systemd: %s", e.Scope, e.Reason)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *NoManager) Unwrap() error { return e.Err }

// ExitCode makes the error end agentd with exitcodes.Unavailable.
func (e *NoManager) ExitCode() exitcodes.Code { return exitcodes.Unavailable }

// ConnectTimeout bounds dialling and the handshake; a local socket answers in
// milliseconds or is stuck.
const ConnectTimeout = 10 * time.Second

// Connect connects to the manager of the scope. getenv is os.Getenv outside
// tests. The error is a *NoManager that says what to do, within an error with
// that hint.
func Connect(ctx context.Context, scope Scope, getenv func(string) string) (*Conn, error) {
	sockets, missing := socketsOf(scope, getenv, os.Geteuid())
	if missing != nil {
		return nil, hinted(missing.unbooted(booted))
	}
	var last error
	for _, s := range sockets {
		c, err := connect(ctx, scope, s)
		if err == nil {
			return c, nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("cannot reach the %s's systemd: %w", scope, ctx.Err())
		}
		if last == nil || !errors.Is(err, fs.ErrNotExist) {
			last = err
		}
	}
	return nil, hinted(noAnswer(scope, getenv, os.Geteuid(), last).unbooted(booted))
}

// booted is the folder that systemd makes where it runs the machine: see
// sd_booted(3).
const booted = "/run/systemd/system"

const withoutSystemd = "without systemd, use cron or: agentd daemon"

// unbooted gives the plainer reason, and what to do then, where systemd does
// not run the machine, as in most containers.
func (e *NoManager) unbooted(folder string) *NoManager {
	if _, err := os.Lstat(folder); errors.Is(err, fs.ErrNotExist) && e.Err == nil {
		e.Reason, e.Fix = "systemd does not run this machine", withoutSystemd
	}
	return e
}

func hinted(e *NoManager) error {
	return &exitcodes.Error{Code: exitcodes.Unavailable, Err: e, Hint: e.Fix}
}

// socket is a place where a manager listens.
type socket struct {
	path    string
	hello   bool   // a message bus, which wants a greeting
	passing string // see Conn
}

// socketsOf returns where to look for the manager, the private socket first:
// it works without a message bus, as in an initial ramdisk or a container.
func socketsOf(scope Scope, getenv func(string) string, uid int) ([]socket, *NoManager) {
	if scope == System {
		const passing = booted // which is where such units are, too
		bus := []socket{{"/run/dbus/system_bus_socket", true, passing}}
		if uid == 0 {
			return append([]socket{{"/run/systemd/private", false, passing}}, bus...), nil
		}
		return bus, nil
	}
	dir, err := runtimeDir(getenv, uid)
	if err != nil {
		return nil, err
	}
	passing := filepath.Join(dir, "systemd/user")
	return []socket{
		{filepath.Join(dir, "systemd/private"), false, passing},
		{filepath.Join(dir, "bus"), true, passing},
	}, nil
}

// runtimeDir returns the user's folder of sockets. Under su, sudo and cron the
// variable is missing or somebody else's, so the usual place is tried as well.
func runtimeDir(getenv func(string) string, uid int) (string, *NoManager) {
	usual := filepath.Join("/run/user", strconv.Itoa(uid))
	for _, dir := range []string{getenv("XDG_RUNTIME_DIR"), usual} {
		if dir != "" && ownedBy(dir, uid) {
			return dir, nil
		}
	}
	e := &NoManager{Scope: User, Reason: "there is no " + usual, Fix: lingerFix(uid)}
	if _, err := os.Stat(usual); err == nil {
		e.Reason = usual + " belongs to another user"
	}
	if uid == 0 && getenv("SUDO_USER") != "" {
		e.Reason += " (under sudo you are root, who has no session)"
		e.Fix = "run it without sudo, or install for the machine: agentd install --scope system"
	}
	return "", e
}

func ownedBy(path string, uid int) bool {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == uid
}

func lingerFix(uid int) string {
	if uid == 0 {
		return "loginctl enable-linger root, or install for the machine: agentd install --scope system"
	}
	name := ""
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		name = " " + u.Username
	}
	return "let your systemd run without a session (as root, if you may not): loginctl enable-linger" + name
}

// noAnswer explains why no socket worked.
func noAnswer(scope Scope, getenv func(string) string, uid int, err error) *NoManager {
	e := &NoManager{Scope: scope, Reason: "it does not answer", Err: err}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		e.Reason, e.Err = "it is not running", nil
	}
	switch {
	case scope == System:
		e.Fix = withoutSystemd
	case uid == 0 && getenv("SUDO_USER") != "":
		e.Fix = "run it without sudo, or install for the machine: agentd install --scope system"
	default:
		e.Fix = lingerFix(uid) + "; " + withoutSystemd
	}
	return e
}

func connect(ctx context.Context, scope Scope, s socket) (*Conn, error) {
	c := &Conn{Scope: scope, passing: s.passing}
	bus, err := dbus.NewConnection(func() (*godbus.Conn, error) {
		raw, err := dial(ctx, s)
		c.raw = raw
		return raw, err
	})
	if err != nil {
		return nil, err
	}
	c.bus = bus
	return c, nil
}

// dial connects by itself: the library's way may start a bus of its own, and
// its handshake knows no deadline.
func dial(ctx context.Context, s socket) (*godbus.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, ConnectTimeout)
	defer cancel()
	transport, err := (&net.Dialer{}).DialContext(ctx, "unix", s.path)
	if err != nil {
		return nil, err
	}
	deadline, _ := ctx.Deadline()
	_ = transport.SetDeadline(deadline) // a socket that takes none still ends with ctx
	stop := context.AfterFunc(ctx, func() { _ = transport.Close() })
	conn, err := shake(transport, s.hello)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = transport.Close()
		return nil, fmt.Errorf("cannot speak D-Bus on %s: %w", s.path, err)
	}
	_ = transport.SetDeadline(time.Time{})
	return conn, nil
}

func shake(transport net.Conn, hello bool) (*godbus.Conn, error) {
	conn, err := godbus.NewConn(transport)
	if err != nil {
		return nil, err
	}
	uid := strconv.Itoa(os.Geteuid())
	err = conn.Auth([]godbus.Auth{godbus.AuthExternal(uid)})
	if err == nil && hello {
		err = conn.Hello()
	}
	if err != nil {
		_ = conn.Close() // closes the transport too; the cause is what matters
		return nil, err
	}
	return conn, nil
}

// Close ends the connection.
func (c *Conn) Close() { c.bus.Close() }
