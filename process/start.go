package process

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// child is the leader of a tree. It stays a zombie until reap, so that its pid
// names its session and group for as long as the tree is looked for.
type child struct {
	id     proc
	proc   *os.Process
	exited chan struct{} // closed when the leader has ended; it is not reaped yet
}

// start forks the program on a thread that lives as long as the child: the
// parent-death signal is sent when the thread that forked ends, not when the
// process does.
func start(path string, spec Spec, mark string, files []*os.File) (*child, error) {
	c := &child{exited: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.fork(path, spec, mark, files)
		started <- err
		if err != nil {
			return
		}
		defer close(c.exited)
		for {
			err := unix.Waitid(unix.P_PID, c.id.pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
			if !errors.Is(err, unix.EINTR) {
				return
			}
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}

func (c *child) fork(path string, spec Spec, mark string, files []*os.File) error {
	attr := &os.ProcAttr{
		Dir:   spec.Dir,
		Env:   environment(spec.Env, spec.Mark, mark),
		Files: files,
		Sys: &syscall.SysProcAttr{
			// A session of its own is a process group of its own, and it has no
			// terminal: whoever wants to ask a person gets an error at once instead
			// of being stopped by SIGTTIN for ever.
			Setsid: true,
			// Certain, where the program might sit out a SIGTERM. What it started
			// itself is ended by whoever takes the lane next.
			Pdeathsig: syscall.SIGKILL,
		},
	}
	// Under the lock nobody can take the new child for an orphan before it is
	// known as a leader.
	family.Lock()
	defer family.Unlock()
	var err error
	c.proc, err = os.StartProcess(path, spec.Argv, attr)
	for try := 0; errors.Is(err, syscall.ETXTBSY) && try < 5; try++ {
		// Another thread forked while the program was being written, and that
		// child has not closed its copy yet.
		time.Sleep(10 * time.Millisecond << try)
		c.proc, err = os.StartProcess(path, spec.Argv, attr)
	}
	if err != nil {
		return err
	}
	family.runs++
	family.leaders[c.proc.Pid] = true
	c.id, err = readProc(c.proc.Pid)
	if err != nil {
		// No /proc: the group can still be signalled.
		c.id = proc{pid: c.proc.Pid, pgid: c.proc.Pid, sid: c.proc.Pid}
	}
	return nil
}

// reap collects the leader's status. A leader that even SIGKILL has not ended
// is collected whenever it does end.
func (c *child) reap() (*os.ProcessState, error) {
	collect := func() (*os.ProcessState, error) {
		family.Lock()
		defer family.Unlock()
		family.runs--
		delete(family.leaders, c.id.pid)
		return c.proc.Wait()
	}
	limit := time.NewTimer(killLimit)
	defer limit.Stop()
	select {
	case <-c.exited:
		return collect()
	case <-limit.C:
		go func() {
			<-c.exited
			_, _ = collect() // nobody is left to tell
		}()
		return nil, fmt.Errorf("process %d does not end", c.id.pid)
	}
}

// environment returns env with the marks set; of several assignments to one
// name the last counts.
func environment(env []string, runID, treeMark string) []string {
	out := slices.Clone(env)
	if runID != "" {
		out = append(out, MarkEnv+"="+runID)
	}
	out = append(out, treeMark)
	last := map[string]int{}
	name := func(v string) string { n, _, _ := strings.Cut(v, "="); return n }
	for i, v := range out {
		last[name(v)] = i
	}
	kept := out[:0]
	for i, v := range out {
		if last[name(v)] == i {
			kept = append(kept, v)
		}
	}
	return kept
}
