package runner

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"agentd/exitcodes"
	"agentd/history"
	"agentd/provider"
	"agentd/workspace"
)

// What a drill changes in a job, so that a night's trouble passes in seconds.
const (
	drillIdle     = 2 * time.Second
	drillRequest  = 10 * time.Second
	drillDeadline = 15 * time.Second
	drillTimeout  = time.Minute
	drillCopy     = 256 << 20 // bytes of a workspace that are copied at most
	drillPrefix   = "agentd-rehearse-"
)

// Rehearse is a fire drill: it runs the job in a scratch copy of its workspace,
// with a state folder of its own, against a scenario of the scripted provider
// instead of its model. Timers are shortened, nothing is resumed.
func (r *Runner) Rehearse(ctx context.Context, ws *workspace.Workspace, job *workspace.Job, scenario string, out io.Writer) (*history.Run, error) {
	if job.Backend != "builtin" {
		return nil, exitcodes.Errorf(exitcodes.Usage, "job %s runs a program: there is no provider to rehearse with", job.Address())
	}
	scratch, err := os.MkdirTemp("", drillPrefix)
	if err != nil {
		return nil, exitcodes.Errorf(exitcodes.CannotCreate, "cannot make a scratch folder: %w", err)
	}
	defer os.RemoveAll(scratch)
	dir := filepath.Join(scratch, "workspace")
	if err := copyTree(dir, ws.Dir); err != nil {
		return nil, err
	}
	drill := &Runner{
		Folders:  workspace.Folders{Config: r.Folders.Config, State: filepath.Join(scratch, "state"), Data: r.Folders.Data},
		Environ:  r.Environ,
		Backends: r.Backends,
		Now:      r.Now,
	}
	copied, j := *ws, *job
	copied.Dir, j.Dir = dir, dir
	copied.Providers = map[string]workspace.Provider{
		workspace.Rehearsal: {Name: workspace.Rehearsal, Wire: wireOf(ws, job.Model)},
	}
	j.Model = workspace.Rehearsal + "/" + scenario
	j.Timeout, j.Resume.Attempts = min(j.Timeout, drillTimeout), 1
	j.Recovery.BytesIdle, j.Recovery.EventIdle = drillIdle, drillIdle
	j.Recovery.RequestTimeout, j.Recovery.Deadline = drillRequest, drillDeadline
	return drill.Run(ctx, Request{Workspace: &copied, Job: &j, Trigger: "manual", Output: out, KeepLog: true})
}

// wireOf returns the wire that the job's own model speaks, which is the one to
// rehearse.
func wireOf(ws *workspace.Workspace, model string) string {
	name, _, _ := strings.Cut(model, "/")
	if p, ok := ws.Providers[name]; ok && p.Wire != "" {
		return p.Wire
	}
	return string(provider.Presets()[name].Wire)
}

// copyTree copies a workspace without its git history and other drills' copies.
func copyTree(to, from string) error {
	var total int64
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch {
		case d.IsDir() && (d.Name() == ".git" || strings.HasPrefix(d.Name(), drillPrefix)): // TMPDIR may be in the workspace
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(target, 0o700)
		case d.Type()&fs.ModeSymlink != 0:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(link, target)
		case !d.Type().IsRegular():
			return nil // sockets and pipes belong to somebody
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if total += info.Size(); total > drillCopy {
			return fmt.Errorf("it holds more than %d MiB", drillCopy>>20)
		}
		return copyFile(target, path, info.Mode().Perm())
	})
	if err != nil {
		return exitcodes.Errorf(exitcodes.CannotCreate, "cannot copy the workspace for the rehearsal: %w", err)
	}
	return nil
}

func copyFile(to, from string, perm fs.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, perm|0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return firstError(err, out.Close())
}
