package daemon

import (
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// reaper waits for all children of this process in one place, without a
// thread for each: for the runs, and for orphans where this process is the init
// of a container. Nothing else in the process may start children of its own.
type reaper struct {
	mu       sync.Mutex
	children map[int]func(syscall.WaitStatus)
	starting int                        // calls of start under way
	early    map[int]syscall.WaitStatus // children that ended before start knew them, or orphans
	sigchld  chan os.Signal
	done     chan struct{}
}

func newReaper() *reaper {
	r := &reaper{
		children: map[int]func(syscall.WaitStatus){}, early: map[int]syscall.WaitStatus{},
		sigchld: make(chan os.Signal, 1), done: make(chan struct{}),
	}
	signal.Notify(r.sigchld, syscall.SIGCHLD)
	go func() {
		defer close(r.done)
		for range r.sigchld {
			for r.collect() {
			}
		}
	}()
	return r
}

// close ends the reaper. Children that still run are nobody's from then on.
func (r *reaper) close() {
	signal.Stop(r.sigchld)
	close(r.sigchld)
	<-r.done
}

// start calls fork, which returns a new child, and has ended called with how
// that ended.
func (r *reaper) start(fork func() (pid int, err error), ended func(syscall.WaitStatus)) (int, error) {
	r.mu.Lock()
	r.starting++
	r.mu.Unlock()
	pid, err := fork()
	r.mu.Lock()
	status, gone := r.early[pid]
	if err == nil && !gone {
		r.children[pid] = ended
	}
	delete(r.early, pid)
	if r.starting--; r.starting == 0 {
		clear(r.early)
	}
	r.mu.Unlock()
	if err == nil && gone {
		ended(status)
	}
	return pid, err
}

// collect waits for a child that has ended, and reports whether there was one.
func (r *reaper) collect() bool {
	r.mu.Lock()
	var status syscall.WaitStatus
	pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
	if errors.Is(err, syscall.EINTR) {
		r.mu.Unlock()
		return true
	}
	if err != nil || pid <= 0 {
		r.mu.Unlock()
		return false
	}
	ended, ours := r.children[pid]
	delete(r.children, pid)
	if !ours && r.starting > 0 {
		r.early[pid] = status
	}
	r.mu.Unlock()
	if ours {
		ended(status)
	}
	return true
}

// signal sends sig to the process group of a child that has not ended.
func (r *reaper) signal(pid int, sig syscall.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.children[pid]; ok {
		_ = syscall.Kill(-pid, sig)
	}
}
