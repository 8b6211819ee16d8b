package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"agentd/atomicfile"
	"agentd/exitcodes"
)

// Registration says which workspace an agent's name stands for.
type Registration struct {
	Agent string
	Dir   string
}

// Register makes the agent's name stand for the workspace in dir. A name that
// already stands for another workspace that is still there is an error with
// the code exitcodes.Config.
func (f Folders) Register(agent, dir string) error {
	if err := CheckSlug(agent); err != nil {
		return exitcodes.Errorf(exitcodes.Config, "cannot register agent %s: %w", quote(agent), err)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("cannot register agent %s: %w", agent, err)
	}
	if err := os.MkdirAll(f.Agents(), 0o700); err != nil {
		return exitcodes.Errorf(exitcodes.CannotCreate, "cannot register agent %s: %w", agent, err)
	}
	file := filepath.Join(f.Agents(), agent)
	// Create decides between two that register one name at the same time.
	err = atomicfile.Create(file, []byte(dir+"\n"), 0o600)
	if err == nil || !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := f.CheckOwner(agent, dir); err != nil {
		return err
	}
	if old, err := f.Locate(agent); err == nil && old == dir {
		return nil
	}
	return atomicfile.Write(file, []byte(dir+"\n"), 0o600)
}

// CheckOwner returns nil if the agent's name may be taken to mean the workspace
// dir: it is registered for that or for none, or the registration is damaged or
// leads nowhere. Else the error has the code exitcodes.Config.
func (f Folders) CheckOwner(agent, dir string) error {
	old, err := f.Locate(agent)
	switch code := exitcodes.From(err); {
	case code == exitcodes.NoInput || code == exitcodes.Data:
		return nil
	case err != nil:
		return err
	case old == dir || !isWorkspace(old) || sameFolder(old, dir):
		return nil
	}
	return exitcodes.Errorf(exitcodes.Config, "agent %s is another one: the name already stands for the workspace %s", agent, old).
		WithHint("Give one of the two another name in its " + FileName)
}

// Locate returns the workspace folder of a registered agent. The error of a
// name that is not registered has the code exitcodes.NoInput.
func (f Folders) Locate(agent string) (string, error) {
	if !isSlug(agent) {
		return "", exitcodes.Errorf(exitcodes.NoInput, "there is no agent %s: %w", quote(agent), CheckSlug(agent))
	}
	data, err := os.ReadFile(filepath.Join(f.Agents(), agent))
	if errors.Is(err, fs.ErrNotExist) {
		return "", f.unknownAgent(agent)
	}
	if err != nil {
		return "", fmt.Errorf("cannot look up agent %s: %w", agent, err)
	}
	dir := strings.TrimSuffix(string(data), "\n")
	if !filepath.IsAbs(dir) {
		return "", exitcodes.Errorf(exitcodes.Data, "%s does not name a folder", filepath.Join(f.Agents(), agent)).
			WithHint("Register the agent again: agentd install, in its workspace")
	}
	return dir, nil
}

func (f Folders) unknownAgent(agent string) error {
	list, err := f.Registered()
	if err != nil {
		return err
	}
	names := make([]string, len(list))
	for i, r := range list {
		names[i] = r.Agent
	}
	hint := "No agent is registered yet: agentd install, in a workspace, does it"
	if len(names) > 0 {
		hint = "Agents: " + strings.Join(names, ", ")
	}
	return exitcodes.Errorf(exitcodes.NoInput, "there is no agent %q%s", agent, didYouMean(agent, names)).WithHint(hint)
}

// Registered lists the registered agents by name.
func (f Folders) Registered() ([]Registration, error) {
	entries, err := os.ReadDir(f.Agents())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list the agents: %w", err)
	}
	var list []Registration
	for _, e := range entries {
		if !isSlug(e.Name()) {
			continue // a temporary file, or not ours
		}
		dir, err := f.Locate(e.Name())
		if errors.Is(err, fs.ErrNotExist) || exitcodes.From(err) == exitcodes.NoInput {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		list = append(list, Registration{Agent: e.Name(), Dir: dir})
	}
	return list, nil
}

// Unregister forgets the agent. A name that is not registered is no error.
func (f Folders) Unregister(agent string) error {
	if !isSlug(agent) {
		return nil
	}
	err := os.Remove(filepath.Join(f.Agents(), agent))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return exitcodes.Errorf(exitcodes.CannotCreate, "cannot forget agent %s: %w", agent, err)
	}
	if err := atomicfile.SyncDir(f.Agents()); err != nil {
		return err
	}
	// The last one takes the folders along; one that is not empty stays.
	if os.Remove(f.Agents()) == nil {
		_ = os.Remove(f.Config)
	}
	return nil
}

func isWorkspace(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, FileName))
	return err == nil
}

func sameFolder(a, b string) bool {
	x, errA := os.Stat(a)
	y, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(x, y)
}
