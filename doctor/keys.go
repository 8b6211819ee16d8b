package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"agentd/provider"
	"agentd/workspace"
)

// keys looks for the key of each job's provider where a run looks, and at who
// else may read it. No key is shown.
func (p Patient) keys(ws *workspace.Workspace) []Finding {
	var list []Finding
	seen := map[string]bool{} // files
	private := func(path string) {
		if f := open(ws, path); f != nil && !seen[path] {
			list = append(list, *f)
		}
		seen[path] = true
	}
	for _, job := range ws.Jobs {
		for _, file := range job.EnvFiles {
			file = strings.TrimPrefix(file, "-")
			if !filepath.IsAbs(file) {
				file = filepath.Join(ws.Dir, file)
			}
			private(file)
		}
		name, _, _ := strings.Cut(job.Model, "/")
		own := ws.Providers[name]
		if own.APIKeyFile != "" {
			private(own.APIKeyFile)
		}
		if f := p.login(ws, job); f != nil {
			list = append(list, *f)
		}
		if job.Backend != "builtin" || own.Credential != "" {
			continue // whether there is a credential, only root may know
		}
		if f := p.key(job, name, own); f != nil {
			list = append(list, *f)
		}
	}
	return list
}

// open returns a finding if others can read the file.
func open(ws *workspace.Workspace, path string) *Finding {
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o077 == 0 {
		return nil // what is missing is told with the job that needs it
	}
	return &Finding{
		Check: "keys", Level: Warn, Text: fmt.Sprintf("%s: other users can open %s (%o)", ws.Agent, path, info.Mode().Perm()),
		Fix: "chmod 600 " + path, repair: func(context.Context) error { return os.Chmod(path, 0o600) },
	}
}

// key returns a finding if a run of the job will have no key.
func (p Patient) key(job *workspace.Job, name string, own workspace.Provider) *Finding {
	if own.APIKeyFile != "" {
		if _, err := os.Stat(own.APIKeyFile); err != nil {
			return &Finding{Check: "keys", Level: Fail, Text: fmt.Sprintf("%s: cannot read the key of %s: %v", job.Address(), name, err)}
		}
		return nil
	}
	variable := own.APIKeyEnv
	if variable == "" {
		variable = provider.Presets()[name].KeyEnv
	}
	if variable == "" {
		return nil // a provider that wants none
	}
	vars, _, err := job.Variables()
	if err != nil {
		f := failed("keys", fmt.Errorf("%s: %w", job.Address(), err))
		if errors.Is(err, fs.ErrNotExist) {
			f.Fix = "make the file, or write -FILE in env_files where it may be missing"
		}
		return &f
	}
	if vars[variable] != "" {
		return nil
	}
	f := &Finding{
		Check: "keys", Level: Fail, Text: fmt.Sprintf("%s: runs have no %s, the key of %s", job.Address(), variable, name),
		Fix: fmt.Sprintf("write %s=... into %s (mode 600) and name that in env_files", variable, filepath.Join(job.Dir, ".env")),
	}
	if p.Getenv(variable) != "" {
		f.Text += ": your shell has it, timers do not"
	}
	return f
}

// login returns a finding if none of the places is there where the job's CLI
// keeps its login.
func (p Patient) login(ws *workspace.Workspace, job *workspace.Job) *Finding {
	if !job.External() {
		return nil
	}
	backend, err := ws.Backend(job.Backend)
	if err != nil || len(backend.Credentials) == 0 {
		return nil // told with its program
	}
	vars, _, err := job.Variables()
	if err != nil {
		return &Finding{Check: "keys", Level: Fail, Text: fmt.Sprintf("%s: %v", job.Address(), err)}
	}
	for _, place := range backend.Credentials {
		if variable, ok := strings.CutPrefix(place, "$"); ok {
			if vars[variable] != "" {
				return nil
			}
			continue
		}
		if rest, ok := strings.CutPrefix(place, "~/"); ok {
			place = filepath.Join(p.Getenv("HOME"), rest)
		}
		if _, err := os.Stat(place); err == nil {
			return nil
		}
	}
	return &Finding{
		Check: "keys", Level: Warn, Text: fmt.Sprintf("%s: no login of %s was found for its runs: %s", job.Address(), job.Backend, strings.Join(backend.Credentials, ", ")),
		Fix: "log in with it once as this user, or set one of the variables in env_files",
	}
}
