package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// proc is what /proc/PID/stat says about a process. The pid together with the
// start time names a process for as long as the machine runs.
type proc struct {
	pid, ppid, sid, pgid int
	start                uint64 // clock ticks after boot
	state                byte
	threads              int
	name                 string
}

type key struct {
	pid   int
	start uint64
}

func (p proc) key() key { return key{p.pid, p.start} }

// living reports whether p can still run code. A zombie with more than one
// thread is one whose first thread ended before the others.
func (p proc) living() bool {
	return (p.state != 'Z' && p.state != 'X') || p.threads > 1
}

func readProc(pid int) (proc, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return proc{}, err
	}
	return parseStat(data)
}

// parseStat reads a stat line. The name is in parentheses and may itself
// contain parentheses, spaces and newlines.
func parseStat(data []byte) (proc, error) {
	open, end := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	if open < 1 || end < open {
		return proc{}, fmt.Errorf("cannot read process status %q", data)
	}
	f := strings.Fields(string(data[end+1:]))
	if len(f) < 20 {
		return proc{}, fmt.Errorf("cannot read process status %q", data)
	}
	p := proc{name: string(data[open+1 : end]), state: f[0][0]}
	var err error
	number := func(s string) int {
		n, e := strconv.Atoi(s)
		if e != nil {
			err = fmt.Errorf("cannot read process status: %w", e)
		}
		return n
	}
	p.pid = number(strings.TrimSpace(string(data[:open])))
	p.ppid, p.pgid, p.sid = number(f[1]), number(f[2]), number(f[3])
	p.threads = number(f[17])
	start, e := strconv.ParseUint(f[19], 10, 64)
	if e != nil {
		err = fmt.Errorf("cannot read process status: %w", e)
	}
	p.start = start
	return p, err
}

// sight is what a search for processes has found.
//
// A search is not atomic: a process may fork after the pids were listed and be
// dead before its turn comes, so that neither it nor its child is seen alive.
// But such a parent leaves a trace: a zombie that was not there before, or a pid
// that has vanished.
type sight struct {
	living []proc
	active bool // some have died since the last search, and may have started others
	unsure bool // the same may be true of some that cannot be told from strangers
}

// snapshot reads all processes. vanished says that some were listed but had
// gone when they were read.
func snapshot() (procs []proc, vanished bool, err error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, false, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, false, err
	}
	for _, n := range names {
		pid, err := strconv.Atoi(n)
		if err != nil {
			continue
		}
		p, err := readProc(pid)
		if err != nil {
			vanished = true
			continue
		}
		procs = append(procs, p)
	}
	if len(procs) == 0 {
		return nil, false, fmt.Errorf("/proc shows no process")
	}
	return procs, vanished, nil
}

// environHas reports whether the process was started with the assignment
// NAME=VALUE in its environment. An environment that may not be read has none.
func environHas(pid int, assignment string) bool {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	for v := range bytes.SplitSeq(data, []byte{0}) {
		if string(v) == assignment {
			return true
		}
	}
	return false
}
