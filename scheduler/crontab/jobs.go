package crontab

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"agentd/scheduler/expr"
	"agentd/workspace"
)

// Job is the tables of agentd.toml for an entry.
type Job struct {
	Name  string
	Entry Entry
	TOML  string
}

// unlimited is the timeout of an imported job: cron has none.
const unlimited = 24 * time.Hour

// table holds the keys of a job in their order.
type table struct {
	Description string            `toml:"description,omitempty"`
	Schedule    string            `toml:"schedule"`
	Timezone    string            `toml:"timezone,omitempty"`
	Jitter      string            `toml:"jitter,omitempty"`
	CatchUp     bool              `toml:"catch_up"`
	Backend     string            `toml:"backend"`
	Command     []string          `toml:"command"`
	Prompt      string            `toml:"prompt,multiline,omitempty"`
	Lane        string            `toml:"lane"`
	Timeout     string            `toml:"timeout"`
	Env         map[string]string `toml:"env,inline,omitempty"`
}

// Jobs makes a job of each entry, with names that are neither in taken nor
// twice. The jobs do what cron did: each has a lane of its own, so that none
// waits for another, starts in the home folder, and makes up for nothing that
// was missed. The notes tell what is different, in the year after now too.
func Jobs(entries []Entry, taken func(name string) bool, now time.Time) ([]Job, []Note, error) {
	var jobs []Job
	var notes []Note
	used := map[string]bool{}
	for _, e := range entries {
		name := nameOf(e)
		for base, n := name, 2; used[name] || taken(name); n++ {
			name = fmt.Sprintf("%s-%d", base, n)
		}
		used[name] = true
		body, err := toml.Marshal(tableOf(name, e))
		if err != nil {
			return nil, nil, fmt.Errorf("cannot write the job of line %d: %w", e.Line, err)
		}
		jobs = append(jobs, Job{Name: name, Entry: e, TOML: fmt.Sprintf("[jobs.%s]\n%s", name, body)})
		notes = append(notes, notesOn(e, now)...)
	}
	return jobs, notes, nil
}

func tableOf(name string, e Entry) table {
	t := table{
		Description: e.Comment, Schedule: e.Schedule, Timezone: e.Timezone,
		Backend: "command", Command: []string{e.Shell, "-c", "cd; " + e.Command}, Prompt: e.Stdin,
		Lane: name, Timeout: workspace.FormatDuration(unlimited), Env: e.Env,
	}
	if e.Jitter > 0 {
		t.Jitter = workspace.FormatDuration(e.Jitter)
	}
	return t
}

func notesOn(e Entry, now time.Time) (notes []Note) {
	note := func(format string, args ...any) {
		notes = append(notes, Note{Line: e.Line, Text: fmt.Sprintf(format, args...)})
	}
	if e.User != "" {
		note("cron ran it as %s: install its workspace as that user", e.User)
	}
	if s, err := expr.Parse(e.Schedule, e.Timezone); err == nil {
		for _, w := range s.Warnings(now) {
			note("%s", w)
		}
	}
	return notes
}

// wrappers are words before the program that a line is about.
var wrappers = []string{"cd", "test", "[", "exec", "env", "nice", "ionice", "nohup", "sudo", "flock", "timeout", "chronic", "sh", "bash", "command"}

// nameOf makes a job's name of the program that the line runs.
func nameOf(e Entry) string {
	words := strings.FieldsFunc(e.Command, func(r rune) bool { return strings.ContainsRune(" \t;&|(){}<>\"'`", r) })
	skip := false
	for _, w := range words {
		base := path.Base(w)
		switch {
		case strings.HasPrefix(w, "-") || strings.ContainsAny(w, "=$"):
			continue
		case skip:
			skip = false
			continue
		case slices.Contains(wrappers, base):
			skip = base == "cd" || base == "flock" || base == "timeout"
			continue
		}
		if slug := workspace.Slug(strings.TrimSuffix(base, path.Ext(base))); slug != "" && slug[0] >= 'a' {
			return slug
		}
	}
	return fmt.Sprintf("line-%d", e.Line)
}
