// Package crontab reads crontab(5) files, to make jobs of their lines. It knows
// what Vixie cron, cronie and Debian's cron understand.
package crontab

import (
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"agentd/scheduler/expr"
)

// Entry is a line that starts a command.
type Entry struct {
	Line     int    // from 1
	Comment  string // the comment right above it
	Schedule string // as written
	Timezone string // CRON_TZ, "" is the machine's
	Jitter   time.Duration
	User     string // of a system crontab's line
	Shell    string
	Command  string
	Stdin    string            // what stands behind the first %
	Env      map[string]string // set above it
}

// Note is something that a person should know about a line.
type Note struct {
	Line int // from 1
	Text string
	Lost bool // the line makes no job
}

// maxLine is the longest line that is read, in bytes; crons take about 1,000.
const maxLine = 64 << 10

// assignment is NAME = VALUE, either of them quoted where there are blanks.
var assignment = regexp.MustCompile(`^(?:"([^"]*)"|'([^']*)'|([A-Za-z_][A-Za-z0-9_]*))[ \t]*=[ \t]*(.*)$`)

// secretName matches variables whose value should not stand in agentd.toml.
var secretName = regexp.MustCompile(`(?i)(KEY|TOKEN|SECRET|PASSW(OR)?D)$`)

// Parse reads the text of a crontab; system says that its lines name a user, as
// those of /etc/crontab and /etc/cron.d do.
func Parse(text string, system bool) ([]Entry, []Note) {
	p := parser{system: system, shell: "/bin/sh", env: map[string]string{}}
	for i, line := range strings.Split(text, "\n") {
		p.line = i + 1
		p.read(strings.TrimLeft(strings.TrimSuffix(line, "\r"), " \t"))
	}
	return p.entries, p.notes
}

type parser struct {
	system  bool
	line    int
	comment string
	shell   string
	zone    string
	jitter  time.Duration
	env     map[string]string // replaced, never changed: entries share it
	entries []Entry
	notes   []Note
}

func (p *parser) note(format string, args ...any) {
	p.notes = append(p.notes, Note{Line: p.line, Text: fmt.Sprintf(format, args...)})
}

func (p *parser) lose(format string, args ...any) {
	p.notes = append(p.notes, Note{Line: p.line, Text: fmt.Sprintf(format, args...), Lost: true})
}

func (p *parser) read(line string) {
	comment := p.comment
	p.comment = ""
	switch {
	case line == "":
	case line[0] == '#':
		p.comment = p.describing(strings.TrimSpace(strings.TrimLeft(line, "# \t")))
	case len(line) > maxLine:
		p.lose("the line is longer than %d bytes", maxLine)
	case !utf8.ValidString(line) || strings.ContainsRune(line, 0):
		p.lose("the line is not text in UTF-8")
	default:
		if m := assignment.FindStringSubmatch(line); m != nil {
			p.set(m[1]+m[2]+m[3], unquoted(strings.TrimRight(m[4], " \t")))
			return
		}
		p.entry(line, comment)
	}
}

// describing returns a comment that tells about the line below it: not a line
// that was switched off, and not the usual heading of the columns.
func (p *parser) describing(comment string) string {
	off := parser{system: p.system}
	off.entry(comment, "")
	if len(off.entries) > 0 || strings.HasPrefix(strings.Join(strings.Fields(comment), " "), "m h ") {
		return ""
	}
	return comment
}

func unquoted(value string) string {
	if n := len(value); n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
		return value[1 : n-1]
	}
	return value
}

// set takes an assignment, which counts for the lines below it.
func (p *parser) set(name, value string) {
	switch name {
	case "SHELL":
		p.shell = value
	case "CRON_TZ":
		p.zone = value
	case "RANDOM_DELAY":
		minutes, err := strconv.Atoi(value)
		if err != nil || minutes < 0 || minutes > 24*60 {
			p.note("RANDOM_DELAY=%s is no number of minutes: the jobs start at their time", value)
			minutes = 0
		}
		p.jitter = time.Duration(minutes) * time.Minute
	case "MAILTO", "MAILFROM":
		if value != "" {
			p.note("%s=%s is not carried over: read a job's output with agentd logs, or set on_failure in its [unit]", name, value)
		}
	case "LOGNAME", "USER":
		p.note("%s=%s is not carried over: it is who runs the job", name, value)
	default:
		if secretName.MatchString(name) {
			p.note("%s looks like a secret: move it from env to a file in env_files", name)
		}
		p.env = maps.Clone(p.env)
		p.env[name] = value
	}
}

// entry reads a line that starts a command.
func (p *parser) entry(line, comment string) {
	line = strings.TrimPrefix(line, "-") // "do not log" in some crons
	fields := 5
	if strings.HasPrefix(line, "@") {
		fields = 1
	}
	schedule, rest := cut(line, fields)
	e := Entry{
		Line: p.line, Comment: comment, Schedule: schedule, Timezone: p.zone, Jitter: p.jitter, Shell: p.shell, Env: p.env,
	}
	if _, err := expr.Parse(schedule, p.zone); err != nil {
		p.lose("%v", err)
		return
	}
	if p.system {
		e.User, rest = cut(rest, 1)
	}
	e.Command, e.Stdin = percent(rest)
	if e.Command == "" {
		p.lose("there is no command behind the schedule")
		return
	}
	if flag, _ := cut(e.Command, 1); flag == "-n" || flag == "-q" || flag == "-s" {
		p.lose("the option %s of this cron has no counterpart", flag)
		return
	}
	p.entries = append(p.entries, e)
}

// cut splits off the first n words; what is behind them keeps its own blanks.
func cut(line string, n int) (words, rest string) {
	rest = line
	var list []string
	for range n {
		i := strings.IndexAny(rest, " \t")
		if i < 0 {
			list, rest = append(list, rest), ""
			break
		}
		list, rest = append(list, rest[:i]), strings.TrimLeft(rest[i:], " \t")
	}
	return strings.TrimRight(strings.Join(list, " "), " "), rest
}

// percent splits a command from its input: the first % that has no backslash
// before it ends the command, each further one is a newline, and \% is %.
func percent(text string) (command, stdin string) {
	var parts [2]strings.Builder
	part := 0
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\' && i+1 < len(text) && text[i+1] == '%':
			parts[part].WriteByte('%')
			i++
		case text[i] == '%' && part == 0:
			part = 1
		case text[i] == '%':
			parts[part].WriteByte('\n')
		default:
			parts[part].WriteByte(text[i])
		}
	}
	stdin = parts[1].String()
	if part == 1 {
		stdin += "\n" // which cron adds
	}
	return strings.TrimRight(parts[0].String(), " \t"), stdin
}
