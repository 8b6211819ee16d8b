package scheduler

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentd/systemd"
)

// installed returns the files that carry the mark of the agent's jobs, by job.
func (t Target) installed(agent string) (map[systemd.JobName][]string, error) {
	found := map[systemd.JobName][]string{}
	units, err := t.candidates(agent)
	if err != nil {
		return nil, fmt.Errorf("cannot look at what is installed: %w", err)
	}
	for _, c := range units {
		info, err := os.Lstat(c.path)
		if err != nil || !info.Mode().IsRegular() {
			continue // a link is not what agentd makes
		}
		text, err := os.ReadFile(c.path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot look at what is installed: %w", err)
		}
		if owner, _, ok := ownerOf(c.path, text); ok && owner == c.name {
			found[owner] = append(found[owner], c.path)
		}
	}
	return found, nil
}

type candidate struct {
	path string
	name systemd.JobName
}

// candidates returns the files whose names jobs of the agent can have.
func (t Target) candidates(agent string) ([]candidate, error) {
	var list []candidate
	scripts, err := entries(filepath.Join(t.Data, agent))
	if err != nil {
		return nil, err
	}
	for _, e := range scripts {
		name := systemd.JobName{Agent: agent, Job: e.Name()}
		if e.IsDir() {
			list = append(list, candidate{t.Script(name), name})
		}
	}
	units, err := entries(t.UnitDir)
	if err != nil {
		return nil, err
	}
	for _, e := range units {
		unit, isFolder := strings.CutSuffix(e.Name(), ".d")
		name, ok := systemd.ParseName(unit)
		if !ok || name.Agent != agent {
			continue
		}
		path := filepath.Join(t.UnitDir, e.Name())
		if !isFolder {
			list = append(list, candidate{path, name})
			continue
		}
		// Drop-ins are a person's, but for those with agentd's mark.
		dropIns, err := entries(path)
		if err != nil {
			return nil, err
		}
		for _, d := range dropIns {
			list = append(list, candidate{filepath.Join(path, d.Name()), name})
		}
	}
	return list, nil
}

func entries(dir string) ([]fs.DirEntry, error) {
	list, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return list, err
}

func sortedNames(found map[systemd.JobName][]string) []systemd.JobName {
	return slices.SortedFunc(maps.Keys(found), func(a, b systemd.JobName) int {
		return cmp.Or(cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Job, b.Job))
	})
}

// removals returns the changes that take the files away.
func removals(found map[systemd.JobName][]string, force bool) ([]JobChange, error) {
	var changes []JobChange
	for _, name := range sortedNames(found) {
		change := JobChange{Name: name}
		for _, path := range found[name] {
			f, err := removal(path, name, force)
			if err != nil {
				return nil, err
			}
			change.Files = append(change.Files, f)
		}
		changes = append(changes, change)
	}
	return changes, nil
}

func removal(path string, name systemd.JobName, force bool) (FileChange, error) {
	f := FileChange{Path: path}
	if err := f.load(); err != nil {
		return FileChange{}, err
	}
	if f.Action == Refuse {
		return f, nil
	}
	f.Action, f.Reason = Remove, obstacle(path, f.old, name, force)
	if f.Reason != "" {
		f.Action = Refuse
	}
	return f, nil
}
