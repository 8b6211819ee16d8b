package session

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"agentd/atomicfile"
	"agentd/exitcodes"
)

// removedPrefix marks a folder on its way out; no session has such a name.
const removedPrefix = ".removed-"

// Remove deletes the session. It fails with a *Locked while a writer has it.
func (st Store) Remove(agent, name string) error {
	l, err := st.lockExisting(agent, name)
	if err != nil {
		return err
	}
	dir := st.dir(agent, name)
	// Out of the way first, so that nobody finds a half of it.
	gone := filepath.Join(st.Dir, agent, fmt.Sprintf("%s%s-%d-%d", removedPrefix, name, os.Getpid(), time.Now().UnixNano()))
	if err := os.Rename(dir, gone); err != nil {
		return firstError(diskError(err, "remove session %s/%s", agent, name), l.release())
	}
	err = firstError(os.RemoveAll(gone), l.release(), atomicfile.SyncDir(filepath.Dir(dir)))
	if err != nil {
		return diskError(err, "remove session %s/%s", agent, name)
	}
	_ = os.Remove(filepath.Dir(dir)) // an agent without sessions needs no folder; it fails if there are more
	return nil
}

// lockExisting takes the lock of a session that exists.
func (st Store) lockExisting(agent, name string) (*lock, error) {
	if err := checkNames(agent, name); err != nil {
		return nil, err
	}
	dir := st.dir(agent, name)
	if _, err := os.Stat(dir); err != nil {
		return nil, readError(err, agent, name)
	}
	l, err := takeLock(dir)
	if errors.Is(err, errHeld) {
		return nil, &Locked{Agent: agent, Name: name, Holder: holder(dir)}
	}
	if err != nil {
		return nil, readError(err, agent, name)
	}
	return l, nil
}

// Rename gives the session another name. It fails with a *Locked while a
// writer has it, and if the new name is taken.
func (st Store) Rename(agent, name, to string) error {
	if err := CheckName(to); err != nil {
		return err
	}
	l, err := st.lockExisting(agent, name)
	if err != nil {
		return err
	}
	err = unix.Renameat2(unix.AT_FDCWD, st.dir(agent, name), unix.AT_FDCWD, st.dir(agent, to), unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EEXIST) {
		err = exitcodes.Errorf(exitcodes.CannotCreate, "session %s/%s exists already", agent, to)
	}
	if err == nil {
		err = atomicfile.SyncDir(filepath.Join(st.Dir, agent))
	}
	if err = firstError(err, l.release()); err != nil {
		return diskError(err, "rename session %s/%s", agent, name)
	}
	return nil
}

// Find returns the session that part names: its name, AGENT/NAME, or the start
// of a name that only one session has. Without an agent all are looked at, and
// AGENT/NAME goes before the agent. The error has the code NoInput; its hint
// lists the candidates.
func (st Store) Find(agent, part string) (Info, error) {
	if a, name, ok := strings.Cut(part, "/"); ok {
		agent, part = a, name
	}
	names, err := st.names(agent)
	if err != nil {
		return Info{}, err
	}
	var exact, starts []sessionName
	for _, n := range names {
		if n.name == part {
			exact = append(exact, n)
		}
		if strings.HasPrefix(n.name, part) {
			starts = append(starts, n)
		}
	}
	found := exact
	if len(found) == 0 {
		found = starts
	}
	switch {
	case len(found) == 0 || part == "":
		return Info{}, exitcodes.Errorf(exitcodes.NoInput, "there is no session %q", part).WithHint("All sessions: agentd sessions list")
	case len(found) > 1:
		return Info{}, exitcodes.Errorf(exitcodes.NoInput, "%d sessions are meant by %q", len(found), part).WithHint("They are: " + listed(found))
	}
	return st.Info(found[0].agent, found[0].name)
}

// FindWhole is Find for what cannot be undone: the start of a name is not
// enough.
func (st Store) FindWhole(agent, part string) (Info, error) {
	info, err := st.Find(agent, part)
	if err == nil && part != info.Name && part != info.Agent+"/"+info.Name {
		return Info{}, exitcodes.Errorf(exitcodes.NoInput, "there is no session %q", part).
			WithHint("If you mean it, write the whole name: " + info.Agent + "/" + info.Name)
	}
	return info, err
}

// sessionName is where a session is.
type sessionName struct{ agent, name string }

func (n sessionName) String() string { return n.agent + "/" + n.name }

func listed(names []sessionName) string {
	const most = 5
	var out []string
	for _, n := range names[:min(len(names), most)] {
		out = append(out, n.String())
	}
	if len(names) > most {
		out = append(out, "...")
	}
	return strings.Join(out, ", ")
}

// names lists the sessions of an agent, or of all.
func (st Store) names(agent string) ([]sessionName, error) {
	agents := []string{agent}
	if agent == "" {
		var err error
		if agents, err = subfolders(st.Dir); err != nil {
			return nil, err
		}
	} else if err := CheckName(agent); err != nil {
		return nil, err
	}
	var all []sessionName
	for _, a := range agents {
		names, err := subfolders(filepath.Join(st.Dir, a))
		if err != nil {
			return nil, err
		}
		for _, n := range names {
			all = append(all, sessionName{a, n})
		}
	}
	return all, nil
}

// subfolders lists the folders in dir whose names may be used; none if there is
// no dir.
func subfolders(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, diskError(err, "list the sessions in %s", dir)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && CheckName(e.Name()) == nil {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// PruneOptions say what may go. A zero limit is none.
type PruneOptions struct {
	Agent     string        // only this agent's sessions; "": of all agents
	OlderThan time.Duration // nothing was recorded for so long
	MaxBytes  int64         // what they may take together; the longest unused go first
	Keep      []string      // AGENT/NAME of sessions that stay
	DryRun    bool          // only say what would go
	Now       func() time.Time
}

// Prune removes what the options say and returns it. A session that is in use
// stays.
func (st Store) Prune(o PruneOptions) ([]Info, error) {
	all, err := st.Of(o.Agent)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b Info) int { return a.UpdatedAt.Compare(b.UpdatedAt) })
	now := clock(o.Now)()
	var total int64
	for _, info := range all {
		total += info.Bytes
	}
	var removed []Info
	for _, info := range all {
		old := o.OlderThan > 0 && now.Sub(info.UpdatedAt) > o.OlderThan
		big := o.MaxBytes > 0 && total > o.MaxBytes
		if !old && !big || info.Locked || slices.Contains(o.Keep, info.Agent+"/"+info.Name) {
			continue
		}
		if !o.DryRun {
			err := st.Remove(info.Agent, info.Name)
			if _, held := errors.AsType[*Locked](err); held || exitcodes.From(err) == exitcodes.NoInput {
				continue // somebody was faster
			}
			if err != nil {
				return removed, err
			}
		}
		total -= info.Bytes
		removed = append(removed, info)
	}
	if !o.DryRun {
		st.sweepRemoved()
	}
	slices.SortFunc(removed, func(a, b Info) int {
		return cmp.Or(cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Name, b.Name))
	})
	return removed, nil
}

// sweepRemoved deletes what a killed Remove left.
func (st Store) sweepRemoved() {
	left, _ := filepath.Glob(filepath.Join(st.Dir, "*", removedPrefix+"*")) // the pattern is well formed
	for _, dir := range left {
		_ = os.RemoveAll(dir) // the next Prune tries again
	}
}
