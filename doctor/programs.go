package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"agentd/runscript"
	"agentd/scheduler"
	"agentd/workspace"
)

// loginPath returns the login shell's PATH, "" if it cannot be told.
func (p Patient) loginPath(ctx context.Context) string {
	path, err := p.LoginPath(ctx)
	if err != nil {
		return "" // a broken profile is no trouble of the jobs
	}
	return path
}

// programs looks for the program of each job on the PATH that its units have:
// what a login shell finds, a timer may not.
func (p Patient) programs(ws *workspace.Workspace, target scheduler.Target, login string) []Finding {
	var list []Finding
	for _, job := range ws.Jobs {
		program, err := programOf(ws, job)
		if err != nil {
			list = append(list, failed("program", err))
			continue
		}
		if program == "" {
			continue
		}
		units := p.unitPath(target, job)
		if at := lookUp(program, units, ws.Dir); at != "" {
			continue
		}
		at := lookUp(program, login, ws.Dir)
		if at == "" {
			list = append(list, Finding{
				Check: "program", Level: Fail, Text: fmt.Sprintf("%s: there is no program %q on the PATH of its runs, nor on yours", job.Address(), program),
				Fix: "install it, or name its whole path in agentd.toml",
			})
			continue
		}
		list = append(list, Finding{
			Check: "program", Level: Fail,
			Text:   fmt.Sprintf("%s: %q is on your login PATH (%s) but not on that of its runs", job.Address(), program, filepath.Dir(at)),
			Fix:    "agentd doctor --fix, or agentd install from a login shell",
			repair: p.reinstall(ws, withPath(target, login), job.Name),
		})
	}
	return list
}

// programOf returns the program that the job starts, "" if it is built in.
func programOf(ws *workspace.Workspace, job *workspace.Job) (string, error) {
	if job.External() {
		backend, err := ws.Backend(job.Backend)
		if err != nil || len(backend.Command) == 0 {
			return "", err
		}
		return backend.Command[0], nil
	}
	if job.Backend == "command" && len(job.Command) > 0 {
		return job.Command[0], nil
	}
	return "", nil
}

// unitPath returns the PATH of the job's runs: what its run.sh sets, or before
// an install would set.
func (p Patient) unitPath(target scheduler.Target, job *workspace.Job) string {
	env := target.Env
	if text, err := os.ReadFile(target.Script(scheduler.NameOf(job))); err == nil {
		if exported, err := runscript.Exports(text); err == nil {
			env = exported
		}
	}
	if own, ok := job.Env["PATH"]; ok {
		return own
	}
	for _, e := range env {
		if path, ok := strings.CutPrefix(e, "PATH="); ok {
			return path
		}
	}
	return ""
}

// withPath returns the target with another PATH for run.sh.
func withPath(t scheduler.Target, path string) scheduler.Target {
	env := []string{"PATH=" + path}
	for _, e := range t.Env {
		if !strings.HasPrefix(e, "PATH=") {
			env = append(env, e)
		}
	}
	t.Env = env
	return t
}

// lookUp returns where the program is, "" if it is not there. A name with a
// slash is relative to the workspace.
func lookUp(program, path, dir string) string {
	if strings.Contains(program, "/") {
		if !filepath.IsAbs(program) {
			program = filepath.Join(dir, program)
		}
		return executable(program)
	}
	for _, d := range filepath.SplitList(path) {
		if filepath.IsAbs(d) {
			if at := executable(filepath.Join(d, program)); at != "" {
				return at
			}
		}
	}
	return ""
}

func executable(path string) string {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || unix.Access(path, unix.X_OK) != nil {
		return ""
	}
	return path
}
