package cli

import (
	"os"
	"path/filepath"
	"strings"

	"agentd/exitcodes"
	"agentd/workspace"
)

// findWorkspace returns the folder of the workspace that the user stands in or
// named with -C.
func (a *App) findWorkspace() (string, error) {
	start := a.dir
	if start == "" {
		wd, err := os.Getwd()
		if err != nil {
			return "", exitcodes.Errorf(exitcodes.NoInput, "cannot tell the current folder: %w", err)
		}
		start = wd
	}
	return workspace.Find(start)
}

// workspace loads the workspace that the user stands in or named with -C.
func (a *App) workspace() (*workspace.Workspace, error) {
	dir, err := a.findWorkspace()
	if err != nil {
		return nil, err
	}
	return workspace.Load(dir)
}

// job finds a job by "job" in the current workspace, or by "agent/job" in any
// workspace of this user.
func (a *App) job(name string) (*workspace.Workspace, *workspace.Job, error) {
	agent, _, qualified := strings.Cut(name, "/")
	if qualified && a.dir == "" {
		folders, err := a.folders()
		if err != nil {
			return nil, nil, err
		}
		if dir, err := folders.Locate(agent); err == nil {
			return workspace.LoadJob(dir, name)
		}
	}
	dir, err := a.findWorkspace()
	if err != nil {
		return nil, nil, err
	}
	return workspace.LoadJob(dir, name)
}

// shown shortens a path below the home folder for people.
func (a *App) shown(path string) string {
	home := a.Getenv("HOME")
	if home == "" || home == "/" {
		return path
	}
	if rel, err := filepath.Rel(home, path); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
		return filepath.Join("~", rel)
	}
	return path
}
