package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"agentd/exitcodes"
)

// ReadPrompt returns what the job asks of its agent: the prompt of agentd.toml
// or the content of prompt_file. A file that is missing has the code
// exitcodes.NoInput, one that is no prompt exitcodes.Config.
func (j *Job) ReadPrompt() (string, error) {
	if j.PromptFile == "" {
		return j.Prompt, nil
	}
	data, err := readFile(j.path(j.PromptFile), maxPrompt)
	if err != nil {
		return "", fmt.Errorf("cannot read the prompt of %s: %w", j.Address(), err)
	}
	if reason := j.badPrompt(data); reason != "" {
		return "", exitcodes.Errorf(exitcodes.Config, "cannot use the prompt of %s: %s %s", j.Address(), j.PromptFile, reason)
	}
	return string(data), nil
}

func (j *Job) badPrompt(data []byte) string {
	switch {
	case bytes.IndexByte(data, 0) >= 0:
		return "holds a NUL character"
	case !utf8.Valid(data):
		return "is not UTF-8 text"
	case len(bytes.TrimSpace(data)) == 0 && j.Backend != "command":
		return "is empty"
	}
	return ""
}

// path makes a path of agentd.toml absolute.
func (j *Job) path(p string) string {
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(j.Dir, p)
}

// checkFiles looks at the files that the job refers to.
func (d *draft) checkFiles(f *findings) {
	if s, ok := d.at["prompt_file"]; ok && !f.wrong[s.value] {
		d.checkPromptFile(f, s.value)
	}
	if provider, script, _ := strings.Cut(d.Model, "/"); provider == Rehearsal && strings.HasSuffix(script, ".toml") {
		if _, err := os.Stat(d.path(script)); err != nil {
			f.mistake(d.pos("model"), "model %s: the script %s does not exist", quote(d.Model), quote(script))
		}
	}
	for _, name := range d.EnvFiles {
		_, err := ReadEnvFile(d.path(name))
		switch {
		case err == nil, optionalEnvFile(name) && errors.Is(err, fs.ErrNotExist):
		case errors.Is(err, fs.ErrNotExist):
			f.warn(d.pos("env_files"), "env_files: %s is not there; a run of %s will end with 66", quote(name), d.Name)
		default:
			f.warn(d.pos("env_files"), "env_files: %v; a run of %s will end with %d", err, d.Name, exitcodes.From(err))
		}
	}
}

func (d *draft) checkPromptFile(f *findings, pos int) {
	data, err := readFile(d.path(d.PromptFile), maxPrompt)
	reason := ""
	switch {
	case err == nil:
		reason = d.badPrompt(data)
	case errors.Is(err, fs.ErrNotExist):
		reason = "does not exist" + d.similarFile()
	default:
		reason = strings.TrimPrefix(err.Error(), d.path(d.PromptFile)+" ")
	}
	if reason != "" {
		f.mistake(pos, "prompt_file %s %s", quote(d.PromptFile), reason)
	}
}

// similarFile suggests a neighbour of a prompt file that is missing.
func (d *draft) similarFile() string {
	entries, err := os.ReadDir(filepath.Dir(d.path(d.PromptFile)))
	if err != nil {
		return ""
	}
	var names []string
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, filepath.Join(filepath.Dir(d.PromptFile), e.Name()))
		}
	}
	return didYouMean(d.PromptFile, names)
}
