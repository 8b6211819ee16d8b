package backend

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"agentd/exitcodes"
)

// instructionsFile says who the agent is; it goes into every session.
const instructionsFile = "AGENTS.md"

// maxInstructions bounds what of it is read, in bytes.
const maxInstructions = 64 << 10

const preamble = `You are an autonomous agent. You work alone: nobody watches, and nobody answers questions until you have stopped.
Do the work with the tools; what you only say changes nothing. Paths are relative to the workspace, where commands start too.
When a result says that the outcome of a call is unknown, find out what happened before you repeat it.
When you are done, or cannot go on, say in a few sentences what you did and what is left. That ends the work.`

// systemPrompt is the preamble, the workspace's own instructions, and facts
// that hold for the whole session, so that a provider's cache can keep it.
func (b *builtin) systemPrompt(a Attempt) (string, error) {
	own, err := instructions(filepath.Join(a.Dir, instructionsFile))
	if err != nil {
		return "", err
	}
	parts := []string{preamble}
	if own != "" {
		parts = append(parts, "# "+instructionsFile+"\n\n"+own)
	}
	facts := fmt.Sprintf("# Facts\n\n- agent: %s\n- job: %s\n- workspace: %s\n- session: %s\n- date: %s",
		a.Job.Agent, a.Job.Address(), a.Dir, a.Session.Name(), b.Now().Format("Monday 2006-01-02"))
	if b.Version != "" {
		facts += "\n- run by: agentd " + b.Version
	}
	return strings.Join(append(parts, facts), "\n\n"), nil
}

// instructions reads the file at path; one that is missing says nothing.
func instructions(path string) (string, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", exitcodes.Errorf(exitcodes.NoInput, "cannot read %s: %w", instructionsFile, err)
	}
	defer f.Close() // only read
	text, err := io.ReadAll(io.LimitReader(f, maxInstructions+1))
	if err != nil {
		return "", exitcodes.Errorf(exitcodes.NoInput, "cannot read %s: %w", instructionsFile, err)
	}
	s := strings.ToValidUTF8(string(text), "\uFFFD")
	if len(text) > maxInstructions {
		cut := maxInstructions
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "\n[the rest of " + instructionsFile + " is left out: it is longer than 64 KiB]"
	}
	return strings.TrimSpace(s), nil
}

// maxSummary is how many characters of a call's arguments a line shows.
const maxSummary = 42

// summary says in one line what a call is about.
func summary(tool, args string) string {
	var known struct {
		Command string `json:"command"`
		Path    string `json:"path"`
	}
	text := args
	if json.Unmarshal([]byte(args), &known) == nil {
		switch {
		case known.Command != "":
			text = known.Command
		case known.Path != "":
			text = known.Path
		}
	}
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > maxSummary {
		text = string(r[:maxSummary-3]) + "..."
	}
	return text
}
