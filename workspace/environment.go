package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// Variables returns the variables that the job sets: its env files in order,
// then its env table; the later one wins. secrets are the values that came
// from files. A file that must be there and is not has the code
// exitcodes.NoInput.
func (j *Job) Variables() (vars map[string]string, secrets []string, err error) {
	vars = map[string]string{}
	for _, name := range j.EnvFiles {
		file := j.path(strings.TrimPrefix(name, "-"))
		read, err := ReadEnvFile(file)
		if errors.Is(err, fs.ErrNotExist) && optionalEnvFile(name) {
			continue
		}
		if err != nil {
			return nil, nil, fmt.Errorf("cannot read env_files of %s: %w", j.Address(), err)
		}
		for _, key := range sortedKeys(read) {
			vars[key] = read[key]
			secrets = append(secrets, read[key])
		}
	}
	maps.Copy(vars, j.Env)
	return vars, secrets, nil
}

// optionalEnvFile reports whether an env file may be missing: by a leading -,
// as in systemd, or as somebody's own .local file.
func optionalEnvFile(name string) bool {
	return strings.HasPrefix(name, "-") || strings.HasSuffix(name, ".local")
}

// passed are the variables of the caller that every program gets: what it
// needs to find programs, folders, the network and the user's language.
var passed = [...]string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "LANG", "LANGUAGE", "TERM",
	"XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR",
}

// Environment returns the complete environment for programs that the job
// starts, sorted: the basic variables and those of pass_env out of environ,
// then vars over them. Everything else of the caller stays behind.
func (j *Job) Environment(environ []string, vars map[string]string) []string {
	env := map[string]string{}
	for _, assignment := range environ {
		key, value, ok := strings.Cut(assignment, "=")
		if ok && (slices.Contains(passed[:], key) || strings.HasPrefix(key, "LC_") || slices.Contains(j.PassEnv, key)) {
			env[key] = value
		}
	}
	maps.Copy(env, vars)
	list := make([]string, 0, len(env))
	for _, key := range sortedKeys(env) {
		list = append(list, key+"="+env[key])
	}
	return list
}
