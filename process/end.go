package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"agentd/exitcodes"
)

// maxListed bounds what is remembered of a tree that starts new processes all
// the time.
const maxListed = 50

// maxSearches is how many searches in a row that find nothing prove that there
// is nothing, if none of them is sure.
const maxSearches = 20

// Ended is a process that was ended by a signal from here.
type Ended struct {
	PID    int    `json:"pid"`
	Name   string `json:"name"`   // as the kernel knows it, 15 bytes at most
	Signal string `json:"signal"` // the last one that was sent
}

// EndMarked ends all processes that carry AGENTD_RUN_ID=runID in their
// environment, and what these have started: SIGTERM, then SIGKILL after grace.
// This process and its ancestors are spared. It returns what was ended; the
// error says what could not be, or that ctx ended first.
func EndMarked(ctx context.Context, runID string, grace time.Duration) ([]Ended, error) {
	if runID == "" || strings.ContainsRune(runID, 0) {
		return nil, exitcodes.Errorf(exitcodes.Software, "cannot end the processes of a run without an id")
	}
	m := &marked{assignment: MarkEnv + "=" + runID, known: map[key]bool{}, dead: map[key]bool{}}
	e := &ender{find: m.search}
	if err := e.run(ctx, 0, grace); err != nil {
		return e.list(), fmt.Errorf("cannot end what run %s left behind: %w", runID, err)
	}
	return e.list(), nil
}

// marked finds processes by a mark in their environment.
type marked struct {
	assignment string
	known      map[key]bool
	dead       map[key]bool // zombies seen: their environment is gone
}

func (m *marked) search() (sight, error) {
	procs, vanished, err := snapshot()
	if err != nil {
		return sight{}, err
	}
	s := sight{unsure: vanished}
	byPID := make(map[int]proc, len(procs))
	for _, p := range procs {
		byPID[p.pid] = p
	}
	spared := map[int]bool{}
	for pid := os.Getpid(); pid > 0 && !spared[pid]; pid = byPID[pid].ppid {
		spared[pid] = true
	}
	memo := map[int]bool{}
	var member func(p proc) bool
	member = func(p proc) bool {
		if spared[p.pid] || p.pid == 1 { // without init there is no machine
			return false
		}
		if is, seen := memo[p.pid]; seen {
			return is
		}
		memo[p.pid] = false // a loop of parents cannot be, but must not hang us
		parent, ok := byPID[p.ppid]
		memo[p.pid] = m.known[p.key()] || environHas(p.pid, m.assignment) || (ok && member(parent))
		return memo[p.pid]
	}
	for _, p := range procs {
		switch {
		case !p.living():
			s.unsure = s.unsure || !m.dead[p.key()]
			m.dead[p.key()] = true
		case member(p):
			m.known[p.key()] = true
			s.living = append(s.living, p)
		}
	}
	return s, nil
}

// ender ends processes until none is found any more.
type ender struct {
	find  func() (sight, error)
	group int // a process group that is signalled as a whole; 0: none
	sent  map[key]*sent
	order []key
	// grouped is the last signal that the group got.
	grouped unix.Signal
}

type sent struct {
	name   string
	signal unix.Signal
	err    error
}

// run waits settle for the processes to end by themselves, then sends SIGTERM
// and after grace SIGKILL. It returns nil when a search has found none and is
// sure of it. On a machine where processes come and go all the time a search for
// marks may never be sure; then several in a row that found none have to do.
func (e *ender) run(ctx context.Context, settle, grace time.Duration) error {
	e.sent = map[key]*sent{}
	begin := time.Now()
	pause := 2 * time.Millisecond
	for empty := 0; empty < maxSearches; {
		s, err := e.find()
		if err != nil {
			e.signalGroup(unix.SIGKILL) // the best that can be done blindly
			return err
		}
		if len(s.living) == 0 && !s.active {
			if !s.unsure {
				return nil
			}
			empty++
			continue
		}
		empty = 0
		passed := time.Since(begin) - settle
		switch {
		case passed < 0:
		case passed < grace:
			e.signal(s.living, unix.SIGTERM)
		case passed < grace+killLimit:
			e.signal(s.living, unix.SIGKILL)
		default:
			return e.survived(s.living)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
		pause = min(pause*2, 100*time.Millisecond)
	}
	return nil
}

// signal sends sig to each process, once: a second SIGTERM makes some
// programs give up their orderly stop.
func (e *ender) signal(procs []proc, sig unix.Signal) {
	first := e.grouped != sig
	e.signalGroup(sig)
	for _, p := range procs {
		s := e.sent[p.key()]
		if s == nil {
			s = &sent{name: p.name}
			e.sent[p.key()] = s
			e.order = append(e.order, p.key())
		}
		if s.signal == sig {
			continue
		}
		s.signal = sig
		if first && e.group != 0 && p.pgid == e.group {
			continue // the group's signal reached it
		}
		s.err = send(p, sig)
	}
	if sig == unix.SIGTERM {
		wake(procs)
	}
}

// signalGroup signals the whole group at once, which no fork can escape:
// SIGTERM once, SIGKILL whenever something is left.
func (e *ender) signalGroup(sig unix.Signal) {
	if e.group == 0 || e.grouped == sig && sig != unix.SIGKILL {
		return
	}
	e.grouped = sig
	_ = unix.Kill(-e.group, sig) // ESRCH: the group is empty; EPERM shows in the search
}

// wake lets stopped processes see their signal.
func wake(procs []proc) {
	for _, p := range procs {
		if p.state == 'T' {
			_ = send(p, unix.SIGCONT)
		}
	}
}

func (e *ender) list() []Ended {
	var l []Ended
	if len(e.order) == 0 && e.grouped != 0 {
		// They came and went too quickly to be seen one by one.
		l = append(l, Ended{PID: e.group, Name: "process group", Signal: SignalName(e.grouped)})
	}
	for _, k := range e.order {
		if len(l) == maxListed {
			break
		}
		s := e.sent[k]
		l = append(l, Ended{PID: k.pid, Name: s.name, Signal: SignalName(s.signal)})
	}
	return l
}

func (e *ender) survived(procs []proc) error {
	who := []string{}
	if len(procs) == 0 {
		who = append(who, "processes that start new ones and end")
	}
	var cause error
	for _, p := range procs {
		who = append(who, fmt.Sprintf("%d (%s)", p.pid, p.name))
		if s := e.sent[p.key()]; s != nil && cause == nil {
			cause = s.err
		}
	}
	slices.Sort(who)
	err := fmt.Errorf("still there after SIGKILL: %s", strings.Join(who, ", "))
	if cause != nil {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return exitcodes.Errorf(exitcodes.Failure, "%w", err)
}

// send signals exactly the process p: through a pidfd, which cannot come to
// mean another process, where the kernel has them.
func send(p proc, sig unix.Signal) error {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err == nil {
		defer unix.Close(fd)
	}
	if now, statErr := readProc(p.pid); statErr != nil || now.start != p.start {
		return nil // gone
	}
	if err == nil {
		err = unix.PidfdSendSignal(fd, sig, nil, 0)
	} else {
		err = unix.Kill(p.pid, sig)
	}
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}
