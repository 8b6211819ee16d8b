package backend

import (
	"fmt"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"agentd/atomicfile"
	"agentd/exitcodes"
	"agentd/process"
	"agentd/workspace"
)

// safeArgument is how long a prompt may be as an argument, in bytes; a longer
// one is left in a file that the agent is told to read.
const safeArgument = 100 << 10

// call is one invocation of a CLI.
type call struct {
	spec    process.Spec
	session string // its id, if known beforehand
	resumed bool
	retries int
}

// callOf says how to call the program of b for an attempt. session is the id to
// continue if resumed, else the one for a new session, if agentd names it.
func callOf(b workspace.Backend, a Attempt, prompt, session string, resumed bool) (call, error) {
	c := call{session: session, resumed: resumed, retries: b.Retries}
	if n := a.Job.Recovery.Requests; n > 0 {
		c.retries = min(c.retries, n-1)
	}
	a.Prompt = prompt
	file, err := promptFile(a)
	if err != nil {
		return c, err
	}
	runDir, err := filepath.Abs(a.RunDir)
	if err != nil {
		return c, fmt.Errorf("cannot find the run's folder: %w", err)
	}
	words := strings.NewReplacer("{session}", session, "{model}", a.Job.Model, "{max_steps}", strconv.Itoa(a.Job.MaxSteps),
		"{max_cost}", strconv.FormatFloat(a.Job.MaxCostUSD, 'f', -1, 64), "{prompt}", argument(prompt, file), "{prompt_file}", file,
		"{retries}", strconv.Itoa(c.retries), "{run_dir}", runDir, "{dir}", a.Dir)
	if err := writeFiles(b, runDir, words); err != nil {
		return c, err
	}
	c.spec = process.Spec{Argv: arguments(b, a, words, resumed), Dir: a.Dir, Grace: a.Job.Grace, Mark: a.RunID}
	c.spec.Env = append(environmentOf(b, a, words), "AGENTD_PROMPT_FILE="+file)
	if b.PromptVia == "stdin" {
		c.spec.Stdin = strings.NewReader(prompt)
	}
	return c, nil
}

// checkPrompt refuses what no program can be asked.
func checkPrompt(a Attempt) error {
	if strings.ContainsRune(a.Prompt, 0) {
		return exitcodes.Errorf(exitcodes.Config, "the prompt of job %s contains a NUL byte", a.Job.Name).
			WithHint("save the prompt as UTF-8 text")
	}
	if strings.TrimSpace(a.Prompt) == "" {
		return exitcodes.Errorf(exitcodes.NoInput, "the prompt of job %s is empty", a.Job.Name)
	}
	return nil
}

// argument is the prompt in a form that no program takes for an option and the
// kernel does not refuse.
func argument(prompt, file string) string {
	switch {
	case len(prompt) > safeArgument:
		return "Your task is in the file " + file + " because it is long. Read all of that file and do what it says."
	case strings.HasPrefix(prompt, "-"):
		return "\n" + prompt
	}
	return prompt
}

func arguments(b workspace.Backend, a Attempt, words *strings.Replacer, resumed bool) []string {
	parts := [][]string{b.Command, b.Permissions}
	if a.Job.Model != "" {
		parts = append(parts, b.Model)
	}
	if a.Job.MaxSteps > 0 {
		parts = append(parts, b.MaxSteps)
	}
	if a.Job.MaxCostUSD > 0 {
		parts = append(parts, b.MaxCost)
	}
	parts = append(parts, nil) // for what is not a template
	session := b.New
	if resumed {
		session = b.Resume
	}
	var argv []string
	for _, part := range parts {
		for _, arg := range part {
			argv = append(argv, words.Replace(arg))
		}
	}
	argv = append(argv, a.Args...)
	for _, arg := range slices.Concat(session, b.PromptArgs) {
		argv = append(argv, words.Replace(arg))
	}
	return argv
}

func writeFiles(b workspace.Backend, runDir string, words *strings.Replacer) error {
	for name, text := range b.Files {
		if err := atomicfile.Write(filepath.Join(runDir, name), []byte(words.Replace(text)), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// environmentOf is the attempt's environment as the program of b may see it.
func environmentOf(b workspace.Backend, a Attempt, words *strings.Replacer) []string {
	own := func(name string) bool {
		_, set := a.Job.Env[name]
		return set || slices.Contains(a.Job.PassEnv, name)
	}
	var env []string
	for _, kv := range a.Env {
		name, _, _ := strings.Cut(kv, "=")
		if !matches(b.DropEnv, name) && (own(name) || matches(b.AllowEnv, name) || !concernsProviders(name)) {
			env = append(env, kv)
		}
	}
	add := func(vars map[string]string) {
		for _, name := range slices.Sorted(maps.Keys(vars)) {
			if !own(name) {
				env = append(env, name+"="+words.Replace(vars[name]))
			}
		}
	}
	add(b.Env)
	if os.Geteuid() == 0 {
		add(b.EnvAsRoot)
	}
	return asLogin(env)
}

// matches reports whether a name is in the list; * stands for any ending.
func matches(list []string, name string) bool {
	return slices.ContainsFunc(list, func(p string) bool {
		start, any := strings.CutSuffix(p, "*")
		return p == name || any && strings.HasPrefix(name, start)
	})
}

// concernsProviders reports whether a variable looks like a key or an address
// of a model provider: a stray one makes a CLI use, and pay with, another
// account than the one it is logged in with.
func concernsProviders(name string) bool {
	for _, end := range []string{"_API_KEY", "_AUTH_TOKEN", "_OAUTH_TOKEN", "_BASE_URL"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return matches([]string{"ANTHROPIC_*", "OPENAI_*", "CLAUDE_CODE_*", "CODEX_*"}, name)
}

// asLogin gives the environment what a login would have: a home folder, and at
// the end of PATH the folders of the user that CLIs are installed to.
func asLogin(env []string) []string {
	home, path := lookUp(env, "HOME"), lookUp(env, "PATH")
	if !filepath.IsAbs(home) {
		u, err := user.Current()
		if err != nil {
			return env
		}
		home = u.HomeDir
		env = append(env, "HOME="+home)
	}
	if path == "" {
		path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	}
	dirs := filepath.SplitList(path)
	for _, pattern := range []string{"bin", ".local/bin", ".npm-global/bin", ".bun/bin", ".opencode/bin", ".claude/local", ".cargo/bin", ".volta/bin", ".nvm/versions/node/*/bin", ".local/share/pnpm"} {
		found, _ := filepath.Glob(filepath.Join(home, pattern)) // a home with a bad pattern in it has none
		slices.Sort(found)
		slices.Reverse(found) // the newest node
		for _, dir := range found {
			if !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	return append(env, "PATH="+strings.Join(dirs, string(filepath.ListSeparator)))
}

// lookUp returns the value of a variable; of several the last one counts.
func lookUp(env []string, name string) string {
	for _, kv := range slices.Backward(env) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// place resolves a place of a preset: $VARIABLE, ~/path or path. It is "" for a
// variable that is not set.
func place(p string, env []string) string {
	if name, ok := strings.CutPrefix(p, "$"); ok {
		return lookUp(env, name)
	}
	if rest, ok := strings.CutPrefix(p, "~/"); ok {
		return filepath.Join(lookUp(env, "HOME"), rest)
	}
	return p
}

// stateFolder is the program's own folder.
func stateFolder(b workspace.Backend, env []string) string {
	for _, p := range b.State {
		if dir := place(p, env); dir != "" {
			return filepath.Clean(dir)
		}
	}
	return ""
}
