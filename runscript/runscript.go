// Package runscript renders a job's run.sh, the bash script that timers, cron
// and people run, and recognises the scripts that it made.
package runscript

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"

	"mvdan.cc/sh/v3/syntax"

	"agentd/exitcodes"
	"agentd/templates"
)

// Spec is what a run.sh depends on. The zero value of Env is allowed; all else
// is required.
type Spec struct {
	Agent, Job string   // slugs
	Path       string   // where the script will be, for its own header
	Agentd     string   // absolute path of the agentd program
	Workspace  string   // absolute path of the workspace
	StateDir   string   // absolute path of agentd's state folder
	Env        []string // NAME=VALUE to export, in this order
}

// Address returns "agent/job".
func (s Spec) Address() string { return s.Agent + "/" + s.Job }

// slug is what agents and jobs may be called; it needs no quoting anywhere.
var slug = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]*$`)

// variable is the name of an environment variable that bash can export.
var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Render returns the text of the script for s.
func Render(s Spec) ([]byte, error) {
	if err := s.validate(); err != nil {
		return nil, fmt.Errorf("cannot make a run script for %q: %w", s.Address(), err)
	}
	values := map[string]any{
		"Address":  s.Address(),
		"Agent":    s.Agent,
		"Mark":     Owner{Agent: s.Agent, Job: s.Job}.line(""),
		"NotFound": int(exitcodes.NotFound),
	}
	for name, text := range map[string]string{
		"Path": s.Path, "Agentd": s.Agentd, "Workspace": s.Workspace, "State": s.StateDir, "Job": s.Job,
	} {
		quoted, err := quote(text)
		if err != nil {
			return nil, fmt.Errorf("cannot write %q in a run script: %w", text, err)
		}
		values[name] = quoted
	}
	env, err := exports(s.Env)
	if err != nil {
		return nil, err
	}
	values["Env"] = env

	t, err := template.New("run.sh").Option("missingkey=error").Parse(templates.RunScript)
	if err != nil {
		return nil, fmt.Errorf("cannot parse the template of run.sh: %w", err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, values); err != nil {
		return nil, fmt.Errorf("cannot fill in run.sh: %w", err)
	}
	text := seal(b.Bytes())
	if err := Check(text); err != nil {
		return nil, err
	}
	return text, nil
}

func (s Spec) validate() error {
	for what, name := range map[string]string{"agent": s.Agent, "job": s.Job} {
		if !slug.MatchString(name) {
			return fmt.Errorf("the %s's name is not a slug (a-z, 0-9, - and _)", what)
		}
	}
	for what, path := range map[string]string{
		"script": s.Path, "agentd program": s.Agentd, "workspace": s.Workspace, "state folder": s.StateDir,
	} {
		if !filepath.IsAbs(path) {
			return fmt.Errorf("the path of the %s is not absolute: %q", what, path)
		}
	}
	return nil
}

// exports returns NAME=VALUE pairs with the values quoted for bash.
func exports(env []string) ([]string, error) {
	var out []string
	for _, entry := range env {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || !variable.MatchString(name) {
			return nil, fmt.Errorf("cannot export %q in a run script: not NAME=VALUE", name)
		}
		quoted, err := quote(value)
		if err != nil {
			// The value may be a secret: name it, do not show it.
			return nil, fmt.Errorf("cannot export %s in a run script: %w", name, err)
		}
		out = append(out, name+"="+quoted)
	}
	return out, nil
}

// inDoubleQuotes escapes what bash would expand between double quotes.
var inDoubleQuotes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`, "`", "\\`")

// quote returns s as one bash word.
func quote(s string) (string, error) {
	quoted, err := syntax.Quote(s, syntax.LangBash)
	if err == nil && quoted[0] == '\'' && strings.ContainsAny(s, "$`\\") {
		// Right between single quotes as well, but shellcheck suspects a mistake there.
		return `"` + inDoubleQuotes.Replace(s) + `"`, nil
	}
	return quoted, err
}

// Check reports whether text is a bash script that bash could parse.
func Check(text []byte) error {
	_, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(bytes.NewReader(text), "run.sh")
	if err != nil {
		return fmt.Errorf("cannot parse the run script: %w", err)
	}
	return nil
}
