package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentd/exitcodes"
	"agentd/templates"
)

// Backend is an external agent CLI as data: a preset, a [backends.NAME] table
// of agentd.toml, or that over the preset of the same name. See Keys for what
// each field means. Texts may hold the placeholders of Placeholders.
type Backend struct {
	Name  string
	Tried string // the version it was tried with; "" is never

	Command     []string
	Permissions []string
	Model       []string
	MaxSteps    []string
	MaxCost     []string
	New         []string
	Resume      []string
	PromptArgs  []string
	PromptVia   string // "stdin", "arg" or "file"

	ModelProvider string
	Session       string // "preset", "output" or "none"
	SessionKept   string // "start" or "success"
	SessionLost   []string

	Output    string // name of the reader
	Judge     bool   // the printed text is judged after status 0 too
	ExitCodes map[int]string
	Patterns  []Pattern

	Env       map[string]string
	EnvAsRoot map[string]string
	AllowEnv  []string
	DropEnv   []string
	Files     map[string]string
	Retries   int

	State       []string
	StateSlots  int
	StateWait   time.Duration
	Transcript  string
	Credentials []string
	Version     []string

	StartupTimeout time.Duration // 0: no limit
	IdleTimeout    time.Duration // 0: no limit
	Linger         time.Duration
}

// Pattern says what a line of text means.
type Pattern struct {
	Match string // a regular expression that starts with ^; case does not count
	Code  string // name of an exit code
}

// Readers names what can read the output of a CLI.
func Readers() []string { return []string{"text", "claude", "codex", "gemini", "opencode"} }

// Placeholders are the words that texts of a backend may hold in braces.
func Placeholders() []string {
	return []string{"session", "model", "max_steps", "max_cost", "prompt", "prompt_file", "retries", "run_dir", "dir"}
}

// BackendPresets names the CLIs that need no [backends.NAME] table.
func BackendPresets() []string {
	entries, err := fs.ReadDir(templates.Backends, "backends")
	if err != nil {
		return nil // an embedded folder is there
	}
	var names []string
	for _, e := range entries {
		if name := strings.TrimSuffix(e.Name(), ".toml"); name != sharedPatterns {
			names = append(names, name)
		}
	}
	return names
}

// sharedPatterns is the file with the patterns that each preset ends with.
const sharedPatterns = "messages"

// BackendPreset returns the preset of that name. The error of one that is not
// there, or not valid, has the code exitcodes.Config.
func BackendPreset(name string) (Backend, error) {
	b, err := backendBase(name)
	if err != nil {
		return b, err
	}
	return b, b.readPreset(name)
}

// backendBase is what every backend starts from.
func backendBase(name string) (Backend, error) {
	b := Backend{Name: name, StateSlots: 1}
	return b, b.readPreset(sharedPatterns)
}

func (b *Backend) readPreset(name string) error {
	file := name + ".toml"
	doc, err := templates.Backends.ReadFile(path.Join("backends", file))
	if err != nil {
		return exitcodes.Errorf(exitcodes.Config, "there is no backend %s%s", quote(name), didYouMean(name, BackendPresets()))
	}
	found := newFindings(file, doc)
	if root := parseDocument(doc, found); root != nil {
		decode(found, name, "", backendFields(), root, b, nil)
	}
	return found.err(file)
}

func backendFields() []field[Backend] {
	return slices.Concat(backendCallFields(), backendSessionFields(), backendAnswerFields(), backendPlaceFields())
}

// backendCallFields say how the program is called.
func backendCallFields() []field[Backend] {
	arguments := func(ref func(*Backend) *[]string) setter[Backend] { return texts(ref, checkPlaceholders) }
	return []field[Backend]{
		{"tried", "text", "", "the program's version that the table was tried with", text(func(b *Backend) *string { return &b.Tried }, checkLine)},
		{"command", "list of texts", "the preset's", "the program and the arguments of every call", arguments(func(b *Backend) *[]string { return &b.Command })},
		{"permissions", "list of texts", "the preset's", "arguments that say what the agent may do without asking", arguments(func(b *Backend) *[]string { return &b.Permissions })},
		{"model", "list of texts", "the preset's", "arguments for the job's {model}, left out where it has none", arguments(func(b *Backend) *[]string { return &b.Model })},
		{"model_provider", "text", "the preset's", "provider whose models it knows: anthropic/NAME is handed down as NAME; without it the model is handed down as it is", text(func(b *Backend) *string { return &b.ModelProvider }, checkLine)},
		{"max_steps", "list of texts", "the preset's", "arguments for {max_steps}; empty: agentd counts", arguments(func(b *Backend) *[]string { return &b.MaxSteps })},
		{"max_cost", "list of texts", "the preset's", "arguments for {max_cost} in US dollars, left out where the job has no limit; empty: agentd watches", arguments(func(b *Backend) *[]string { return &b.MaxCost })},
		{"prompt_via", "text", "stdin", "how the prompt goes in: stdin, arg or file ({prompt_file} in prompt_args)", text(func(b *Backend) *string { return &b.PromptVia }, oneOf("stdin", "arg", "file"))},
		{"prompt_args", "list of texts", "the preset's", "last arguments of a call, with {prompt} where the prompt is one", arguments(func(b *Backend) *[]string { return &b.PromptArgs })},
		{"retries", "whole number", "the preset's", "how often the program may repeat a request by itself, where it can be told: {retries}", integer(func(b *Backend) *int { return &b.Retries }, 0, 1000)},
	}
}

// backendSessionFields say how a conversation is named and found again.
func backendSessionFields() []field[Backend] {
	return []field[Backend]{
		{"session", "text", "none", "who names a session: preset (agentd), output (the program, in its output), none (it has no sessions)", text(func(b *Backend) *string { return &b.Session }, oneOf("preset", "output", "none"))},
		{"session_kept", "text", "start", "from when on a session can be continued: start or success", text(func(b *Backend) *string { return &b.SessionKept }, oneOf("start", "success"))},
		{"session_lost", "list of texts", "the preset's", "patterns of lines that say that a session is not there", texts(func(b *Backend) *[]string { return &b.SessionLost }, checkPattern)},
		{"new", "list of texts", "the preset's", "arguments that start a session", texts(func(b *Backend) *[]string { return &b.New }, checkPlaceholders)},
		{"resume", "list of texts", "the preset's", "arguments that continue {session}", texts(func(b *Backend) *[]string { return &b.Resume }, checkPlaceholders)},
		{"transcript", "text", "the preset's", "where the program writes {session} down, with *: growth there counts as a sign of life", text(func(b *Backend) *string { return &b.Transcript }, checkLine)},
		{"state", "list of texts", "the preset's", "the program's own folder, as $VARIABLE or path, the first that is set: runs that share it take turns", texts(func(b *Backend) *[]string { return &b.State }, checkPlace)},
		{"state_slots", "whole number", "1", "how many runs may use that folder at once", integer(func(b *Backend) *int { return &b.StateSlots }, 1, maxSlots)},
		{"state_wait", "duration", "the preset's", "how long a run waits for it; then it ends with 80", duration(func(b *Backend) *time.Duration { return &b.StateWait }, 0, day)},
	}
}

// backendAnswerFields say how the end of the program is understood.
func backendAnswerFields() []field[Backend] {
	return []field[Backend]{
		{"output", "text", "text", "what reads the output: " + strings.Join(Readers(), ", "), text(func(b *Backend) *string { return &b.Output }, oneOf(Readers()...))},
		{"judge_text", "true or false", "false", "look for errors in the last lines after status 0 too, for a program that hides them", boolean(func(b *Backend) *bool { return &b.Judge })},
		{"exit_codes", "table of texts", "the preset's", "exit status = \"name of an exit code\"; added to the preset's", setExitCodes},
		{"patterns", "list of tables", "the preset's", "{ match = '^regular expression', code = \"name\" } for lines of error text; they are tried before the preset's", setPatterns},
		{"startup_timeout", "duration", "the preset's", "the longest silence after the start; 0s: no limit", duration(func(b *Backend) *time.Duration { return &b.StartupTimeout }, 0, week)},
		{"idle_timeout", "duration", "the preset's", "the longest silence later on; 0s: no limit", duration(func(b *Backend) *time.Duration { return &b.IdleTimeout }, 0, week)},
		{"linger", "duration", "the preset's", "how long the program may stay after its last event before it is ended", duration(func(b *Backend) *time.Duration { return &b.Linger }, 0, day)},
	}
}

// backendPlaceFields say what the program finds around it.
func backendPlaceFields() []field[Backend] {
	table := func(ref func(*Backend) *map[string]string, key, value check) setter[Backend] {
		return func(f *findings, name string, n *node, b *Backend) { readTexts(f, name, n, ref(b), key, value) }
	}
	return []field[Backend]{
		{"env", "table of texts", "the preset's", "variables for the program, added to the preset's; those of the job win", table(func(b *Backend) *map[string]string { return &b.Env }, checkEnvName, checkPlaceholders)},
		{"env_as_root", "table of texts", "the preset's", "the same, only where agentd runs as root", table(func(b *Backend) *map[string]string { return &b.EnvAsRoot }, checkEnvName, anyText)},
		{"allow_env", "list of texts", "the preset's", "names, with *, of keys and addresses of model providers that the program may see; others are held back unless the job names them in env or pass_env", texts(func(b *Backend) *[]string { return &b.AllowEnv }, checkLine)},
		{"drop_env", "list of texts", "the preset's", "names, with *, of variables that the program never sees", texts(func(b *Backend) *[]string { return &b.DropEnv }, checkLine)},
		{"files", "table of texts", "the preset's", "files to write into {run_dir} before the start", table(func(b *Backend) *map[string]string { return &b.Files }, checkFileName, checkPlaceholders)},
		{"credentials", "list of texts", "the preset's", "where the program finds its login: $VARIABLE or path", texts(func(b *Backend) *[]string { return &b.Credentials }, checkPlace)},
		{"version", "list of texts", "the preset's", "arguments that make the program tell its version", texts(func(b *Backend) *[]string { return &b.Version })},
	}
}

var (
	placeholder = regexp.MustCompile(`\{[a-z_]+\}`)
	plainFile   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)
	threeWords  = regexp.MustCompile(`[A-Za-z]{3}`)
)

func checkPlaceholders(s string) error {
	for _, p := range placeholder.FindAllString(s, -1) {
		if name := strings.Trim(p, "{}"); !slices.Contains(Placeholders(), name) {
			return fmt.Errorf("unknown placeholder %s%s", p, didYouMean(name, Placeholders()))
		}
	}
	return nil
}

// checkPlace accepts $VARIABLE and paths, those in the home folder too.
func checkPlace(s string) error {
	if name, ok := strings.CutPrefix(s, "$"); ok {
		return checkEnvName(name)
	}
	if s == "" {
		return errors.New("must not be empty")
	}
	return nil
}

func checkFileName(s string) error {
	if !plainFile.MatchString(s) {
		return errors.New("must be a plain file name")
	}
	return nil
}

// checkPattern wants an expression that says where it starts and matches words:
// a bare number stands in many a harmless line.
func checkPattern(s string) error {
	if _, err := regexp.Compile("(?i)" + s); err != nil {
		return errors.New("not a regular expression")
	}
	if !strings.HasPrefix(s, "^") {
		return errors.New("must start with ^, so that it does not match inside other text")
	}
	if !threeWords.MatchString(s) {
		return errors.New("must hold a word: a bare number stands in harmless lines too")
	}
	return nil
}

// checkCodeName accepts the name of any exit code.
func checkCodeName(s string) error {
	if _, ok := exitcodes.ByName(s); ok {
		return nil
	}
	var names []string
	for _, e := range exitcodes.Table() {
		names = append(names, e.Name)
	}
	return fmt.Errorf("unknown exit code name%s", didYouMean(s, names))
}

func setExitCodes(f *findings, name string, n *node, b *Backend) {
	codes := map[string]string{}
	readTexts(f, name, n, &codes, checkStatus, checkCodeName)
	if b.ExitCodes == nil {
		b.ExitCodes = map[int]string{}
	}
	for status, code := range codes {
		if i, err := strconv.Atoi(status); err == nil {
			b.ExitCodes[i] = code
		}
	}
}

func checkStatus(s string) error {
	if i, err := strconv.Atoi(s); err != nil || i < 0 || i > 255 {
		return errors.New("must be an exit status from 0 to 255")
	}
	return nil
}

func setPatterns(f *findings, name string, n *node, b *Backend) {
	if n.kind != kindArray {
		wrongType(f, name, n, "a list of tables")
		return
	}
	fields := []field[Pattern]{
		{"match", "text", "", "", text(func(p *Pattern) *string { return &p.Match }, checkPattern)},
		{"code", "text", "", "", text(func(p *Pattern) *string { return &p.Code }, checkCodeName)},
	}
	var list []Pattern
	for _, item := range n.items {
		if item.kind != kindTable {
			wrongType(f, "each item of "+name, item, "a table with match and code")
			continue
		}
		var p Pattern
		decode(f, name, name+".", fields, item, &p, nil)
		if item.get("match") == nil || item.get("code") == nil {
			f.mistake(item.pos, "each item of %s needs match and code", name)
		}
		list = append(list, p)
	}
	b.Patterns = append(list, b.Patterns...)
}

// readBackends reads the [backends] table.
func (l *loader) readBackends(n *node) {
	for _, name := range n.names {
		e := n.keys[name]
		if !l.named(e, "backend", "backends", name) {
			continue
		}
		if name == builtinBackend || name == commandBackend {
			l.found.mistake(e.pos, "backends.%s cannot be set: %q is agentd's own", name, name)
			continue
		}
		start := backendBase
		if slices.Contains(BackendPresets(), name) {
			start = BackendPreset
		}
		b, err := start(name)
		if err != nil {
			l.found.mistake(e.pos, "the preset of backends.%s is damaged: %v", name, err)
			continue
		}
		decode(l.found, "backends."+name, "", backendFields(), e.value, &b, nil)
		if (len(b.Command) == 0 || b.Command[0] == "") && !l.found.meant["backends."+name+".command"] {
			l.found.mistake(e.pos, `backends.%s needs a command, such as command = ["prog", "arg"]%s`, name, didYouMean(name, BackendPresets()))
		}
		l.ws.Backends[name] = b
	}
}

// Backend returns the external CLI of that name: that of agentd.toml, or the
// preset.
func (w *Workspace) Backend(name string) (Backend, error) {
	if b, ok := w.Backends[name]; ok {
		return b, nil
	}
	return BackendPreset(name)
}

const (
	builtinBackend = "builtin"
	commandBackend = "command"
)

// External reports whether an agent CLI does the work of the job.
func (j *Job) External() bool { return j.Backend != builtinBackend && j.Backend != commandBackend }

// checkBackend checks that the backend's name is known.
func (l *loader) checkBackend(name string) error {
	own := []string{builtinBackend, commandBackend}
	names := append(own, BackendPresets()...)
	for _, n := range sortedKeys(l.ws.Backends) {
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return oneOf(names...)(name)
}

// checkExternal checks a job that an agent CLI works on.
func (d *draft) checkExternal(l *loader) {
	d.needsPrompt(l.found)
	d.refuseCommand(l.found)
	model, said := d.at["model"]
	b, err := l.ws.Backend(d.Backend)
	if err != nil || !said {
		return
	}
	provider, name, ok := strings.Cut(d.Model, "/")
	switch {
	case b.ModelProvider == "" || !ok:
	case provider == b.ModelProvider:
		d.Model = name
	case !slices.Contains(ProviderPresets(), provider): // a name of its own with a slash
	case model.own:
		l.found.mistake(model.value, "model %s: %s takes models of %s only", quote(d.Model), d.Backend, b.ModelProvider)
	default: // that of [defaults] is meant for other backends
		d.Model = ""
	}
}
