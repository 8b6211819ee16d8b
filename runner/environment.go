package runner

import (
	"slices"
	"strconv"
	"strings"

	"agentd/process"
	"agentd/workspace"
)

// environment is what a run knows of the outside: all that agentd was started
// with under the job's env files, to look keys up in; children get a part.
type environment struct {
	outside []string
	job     *workspace.Job
	vars    map[string]string // the job's env files and env table
	keys    []string          // variables that hold a provider's key
	secrets []string          // what the output must not show
}

// readEnvironment reads the job's env files. On an error the environment still
// knows the secrets found so far.
func readEnvironment(outside []string, ws *workspace.Workspace, job *workspace.Job) (environment, error) {
	e := environment{outside: outside, job: job, keys: keyVariables(ws)}
	var err error
	e.vars, e.secrets, err = job.Variables()
	for _, name := range e.keys {
		if value := e.get(name); value != "" {
			e.secrets = append(e.secrets, value)
		}
	}
	return e, err
}

// get returns the value of a variable, "" if it is unset.
func (e environment) get(name string) string {
	if value, ok := e.vars[name]; ok {
		return value
	}
	value := ""
	for _, kv := range e.outside { // the last one counts
		if n, v, ok := strings.Cut(kv, "="); ok && n == name {
			value = v
		}
	}
	return value
}

// child is the environment of a program that attempt n starts. A provider's
// key is not in it, unless the job asks for it by name.
func (e environment) child(w *run, n int) []string {
	env := slices.DeleteFunc(e.job.Environment(e.outside, e.vars), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		_, own := e.job.Env[name]
		return slices.Contains(e.keys, name) && !own && !slices.Contains(e.job.PassEnv, name)
	})
	return append(env,
		process.MarkEnv+"="+w.record.RunID,
		"AGENTD_AGENT="+w.job.Agent,
		"AGENTD_JOB="+w.job.Name,
		"AGENTD_SESSION="+w.record.Session,
		"AGENTD_ATTEMPT="+strconv.Itoa(n),
		"AGENTD_TRIGGER="+w.record.Trigger,
		"AGENTD_WORKSPACE="+w.req.Workspace.Dir,
		"AGENTD_RUN_DIR="+w.store.RunDir(w.record.RunID),
	)
}
