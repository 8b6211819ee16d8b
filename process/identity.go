package process

import (
	"fmt"
	"os"
	"strings"
)

// Identity names one process for good: a pid alone is used again.
type Identity struct {
	PID       int    `json:"pid"`
	StartTime uint64 `json:"start_time"` // clock ticks after boot
	BootID    string `json:"boot_id"`
}

// Self returns the identity of this process.
func Self() Identity {
	id, err := Of(os.Getpid())
	if err != nil {
		// Without /proc nobody can compare start times either.
		return Identity{PID: os.Getpid(), BootID: bootID()}
	}
	return id
}

// Of returns the identity of the process that has the pid now. The error is
// fs.ErrNotExist if there is none.
func Of(pid int) (Identity, error) {
	p, err := readProc(pid)
	if err != nil {
		return Identity{}, fmt.Errorf("cannot identify process %d: %w", pid, err)
	}
	return Identity{PID: p.pid, StartTime: p.start, BootID: bootID()}, nil
}

// Alive reports whether this very process still runs: not another one that got
// its pid, not one before a reboot, and not a zombie.
func (id Identity) Alive() bool {
	if id.PID <= 0 || id.BootID != bootID() {
		return false
	}
	p, err := readProc(id.PID)
	return err == nil && p.start == id.StartTime && p.living()
}

// bootID changes with each boot. It is empty where the kernel does not tell.
func bootID() string {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}
