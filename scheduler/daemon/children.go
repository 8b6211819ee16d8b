package daemon

import (
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"agentd/exitcodes"
)

// Children starts each run as a process, in a group of its own. Its lines come
// out with the job's address before them.
type Children struct {
	argv   func(Firing) []string // the program and its arguments
	env    []string
	lines  *Lines
	null   *os.File
	reaper *reaper
	output sync.WaitGroup
}

// NewChildren returns a launcher of what argv names. The variables with which
// the service manager talks to the daemon are not handed on.
func NewChildren(argv func(Firing) []string, environ []string, lines *Lines) (*Children, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	c := &Children{argv: argv, lines: lines, null: null, reaper: newReaper()}
	for _, kv := range environ {
		name, _, _ := strings.Cut(kv, "=")
		switch name {
		case "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES":
		default:
			c.env = append(c.env, kv)
		}
	}
	return c, nil
}

// Close is called when no run goes on any more. It waits for the last lines.
func (c *Children) Close() {
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		c.output.Wait()
	}()
	select {
	case <-drained:
	case <-time.After(2 * quiet): // of something that even SIGKILL has not ended
	}
	c.reaper.close()
	_ = c.null.Close()
}

// child is a run that has been started.
type child struct {
	reaper *reaper
	pid    int
}

// Signal implements Process.
func (c child) Signal(sig syscall.Signal) { c.reaper.signal(c.pid, sig) }

// quiet is how long the output of a run that has ended may stay open, by
// something that it has left behind.
const quiet = time.Second

// Start implements Launcher.
func (c *Children) Start(f Firing, ended func(exitcodes.Code)) (Process, error) {
	var pipe [2]int
	if err := syscall.Pipe2(pipe[:], syscall.O_CLOEXEC); err != nil {
		return nil, exitcodes.Errorf(exitcodes.IO, "no pipe for its output: %w", err)
	}
	if err := syscall.SetNonblock(pipe[0], true); err != nil {
		return nil, exitcodes.Errorf(exitcodes.IO, "no pipe for its output: %w", err)
	}
	out := os.NewFile(uintptr(pipe[0]), "|0")
	argv := c.argv(f)
	drained := make(chan struct{})
	pid, err := c.reaper.start(func() (int, error) {
		return syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{
			Env:   c.env,
			Files: []uintptr{c.null.Fd(), uintptr(pipe[1]), uintptr(pipe[1])},
			Sys:   &syscall.SysProcAttr{Setpgid: true},
		})
	}, func(status syscall.WaitStatus) {
		_ = out.SetReadDeadline(time.Now().Add(quiet))
		go func() { // not in the way of the next child
			<-drained
			ended(codeOf(status))
		}()
	})
	_ = syscall.Close(pipe[1])
	if err != nil {
		_ = out.Close()
		return nil, startError(argv[0], err)
	}
	c.output.Go(func() {
		defer close(drained)
		if f.Trigger == crashed {
			_, _ = io.Copy(io.Discard, out)
		} else {
			c.lines.Copy(f.Name.String()+"  ", out)
		}
		_ = out.Close()
	})
	return child{c.reaper, pid}, nil
}

func startError(program string, err error) error {
	code := exitcodes.From(err)
	switch err {
	case syscall.ENOENT:
		code = exitcodes.NotFound
	case syscall.EACCES, syscall.ENOEXEC:
		code = exitcodes.NotExecutable
	case syscall.EAGAIN, syscall.ENOMEM:
		code = exitcodes.Unavailable
	}
	return exitcodes.Errorf(code, "%s: %w", program, err)
}

// codeOf is the code of a run that ended so: a signal means what the shell
// makes of it.
func codeOf(status syscall.WaitStatus) exitcodes.Code {
	if status.Signaled() {
		return exitcodes.Code(128 + int(status.Signal()))
	}
	return exitcodes.Code(status.ExitStatus())
}
