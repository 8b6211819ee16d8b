package process

import (
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// treeEnv marks one tree; MarkEnv marks all trees of a run.
const treeEnv = "AGENTD_TREE"

// family is what this process has as a parent. The kernel keeps one list of
// children a process, so there is one of these a process too: it tells the
// leaders that Run started from the orphans that were adopted.
var family = struct {
	sync.Mutex
	runs    int          // Runs that have started or are about to
	trees   int          // for marks
	leaders map[int]bool // pids; not reaped yet
}{leaders: map[int]bool{}}

// Subreap makes this process adopt the orphans of its descendants, so that a
// daemon cannot leave the tree. It acts once; Run calls it.
func Subreap() error { return subreap() }

var subreap = sync.OnceValue(func() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("cannot adopt orphans: %w", err)
	}
	return nil
})

// newTreeMark returns an assignment for the environment that no other tree has.
func newTreeMark() string {
	family.Lock()
	defer family.Unlock()
	family.trees++
	self := Self()
	return fmt.Sprintf("%s=%d.%d.%d", treeEnv, self.PID, self.StartTime, family.trees)
}

// tree finds the processes that a leader started, directly or not.
type tree struct {
	leader  proc
	mark    string
	self    int
	selfSID int
	known   map[key]bool // members seen; they stay members when they hide
	dead    map[key]bool // zombies seen that somebody else has to collect
}

func newTree(leader proc, mark string) *tree {
	t := &tree{leader: leader, mark: mark, self: os.Getpid(), known: map[key]bool{leader.key(): true}, dead: map[key]bool{}}
	t.selfSID, _ = unix.Getsid(0) // cannot fail for ourselves
	return t
}

// search finds the members that still run, and collects those that have died as
// adopted children of ours. Nobody else collects them, so that no death goes
// unnoticed.
func (t *tree) search() (sight, error) {
	procs, _, err := snapshot()
	if err != nil {
		return sight{}, err
	}
	var s sight
	members := t.members(procs)
	for _, p := range procs {
		switch {
		case !members[p.pid] && !t.adopted(p), p.key() == t.leader.key() && !p.living():
		case p.living() && members[p.pid]:
			t.known[p.key()] = true
			s.living = append(s.living, p)
		case !p.living():
			s.active = s.active || !t.dead[p.key()]
			t.dead[p.key()] = true
			if p.ppid == t.self && reapOrphan(p.pid) {
				delete(t.dead, p.key())
			}
		}
	}
	return s, nil
}

// members returns the pids in procs that belong to the tree. The session of
// the leader cannot be reused, because the leader is not reaped before the
// tree has ended.
func (t *tree) members(procs []proc) map[int]bool {
	children := map[int][]proc{}
	members := map[int]bool{}
	var todo []proc
	add := func(p proc) {
		if !members[p.pid] && p.pid != t.self {
			members[p.pid] = true
			todo = append(todo, p)
		}
	}
	alone := onlyRun()
	for _, p := range procs {
		children[p.ppid] = append(children[p.ppid], p)
		if p.start < t.leader.start {
			continue // older than the tree: not of it, and its environment need not be read
		}
		if p.sid == t.leader.pid || t.known[p.key()] || (alone && t.adopted(p)) || environHas(p.pid, t.mark) {
			add(p)
		}
	}
	for len(todo) > 0 {
		p := todo[0]
		todo = todo[1:]
		for _, c := range children[p.pid] {
			add(c)
		}
	}
	return members
}

// adopted reports whether p came to us as an orphan: it is our child, but in a
// session that neither we nor Run gave it.
func (t *tree) adopted(p proc) bool {
	if p.ppid != t.self || p.sid == t.selfSID || p.start < t.leader.start {
		return false
	}
	family.Lock()
	defer family.Unlock()
	return !family.leaders[p.sid] && !family.leaders[p.pid]
}

// onlyRun reports whether a single Run is active. If there are more, an orphan
// that hides its mark could be of any of them; the last one ends it.
func onlyRun() bool {
	family.Lock()
	defer family.Unlock()
	return family.runs == 1
}

// reapOrphan collects the status of a dead child that nobody waits for, and
// reports whether it did. It names the pid and never waits for just any child:
// that would steal from os/exec.
func reapOrphan(pid int) bool {
	family.Lock()
	defer family.Unlock()
	if family.leaders[pid] {
		return false
	}
	got, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
	return err == nil && got == pid
}
