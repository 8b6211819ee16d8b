package workspace

import (
	"fmt"
	"strings"

	"agentd/exitcodes"
)

// EnvFileError is a line of an env file that cannot be read. It shows no
// value: values are secrets.
type EnvFileError struct {
	File   string
	Line   int // from 1
	Reason string
}

func (e *EnvFileError) Error() string { return fmt.Sprintf("%s:%d %s", e.File, e.Line, e.Reason) }

// ExitCode returns exitcodes.Config.
func (e *EnvFileError) ExitCode() exitcodes.Code { return exitcodes.Config }

// ReadEnvFile reads a file of KEY=VALUE lines as data: nothing in it is run and
// no $ is expanded. A line may start with "export ". A value may stand in
// single quotes, where everything is literal, or in double quotes, where \n,
// \r, \t, \", \\, \$ and \` are escapes; both may span lines. An unquoted value
// ends at the line's end or at " #". The last of two equal keys wins.
func ReadEnvFile(path string) (map[string]string, error) {
	data, err := readFile(path, maxFile)
	if err != nil {
		return nil, err
	}
	return parseEnv(path, string(data))
}

func parseEnv(file, content string) (map[string]string, error) {
	p := &envParser{rest: strings.TrimPrefix(content, "\ufeff"), line: 1}
	vars := map[string]string{}
	for {
		key, value, ok, err := p.next()
		if err != nil {
			return nil, &EnvFileError{File: file, Line: p.line, Reason: err.Error()}
		}
		if !ok {
			return vars, nil
		}
		vars[key] = value
	}
}

type envParser struct {
	rest string
	line int // where rest starts
}

// next reads one assignment; ok is false at the end.
func (p *envParser) next() (key, value string, ok bool, err error) {
	for {
		p.rest = strings.TrimLeft(p.rest, " \t")
		switch {
		case p.rest == "":
			return "", "", false, nil
		case p.rest[0] == '#' || p.rest[0] == '\n' || strings.HasPrefix(p.rest, "\r\n"):
			p.skipLine()
			continue
		}
		break
	}
	line, _, _ := strings.Cut(p.rest, "\n")
	name, _, found := strings.Cut(line, "=")
	if !found {
		return "", "", false, fmt.Errorf("no = in the line: write KEY=VALUE")
	}
	key = strings.Trim(name, " \t")
	if word, after, cut := strings.Cut(strings.ReplaceAll(key, "\t", " "), " "); cut && word == "export" {
		key = strings.TrimLeft(after, " ")
	}
	if !envName.MatchString(key) {
		return "", "", false, fmt.Errorf("what stands before = is not a variable name: letters, digits and _, starting with a letter or _")
	}
	if err := checkEnvName(key); err != nil {
		return "", "", false, fmt.Errorf("%s: %w", key, err)
	}
	p.rest = strings.TrimLeft(p.rest[len(name)+1:], " \t")
	start := p.line
	value, err = p.value()
	if err == nil && strings.ContainsRune(value, 0) {
		p.line = start
		err = fmt.Errorf("the value of %s holds a NUL character", key)
	}
	return key, value, true, err
}

func (p *envParser) skipLine() {
	_, after, found := strings.Cut(p.rest, "\n")
	p.rest = after
	if found {
		p.line++
	}
}

func (p *envParser) value() (string, error) {
	if p.rest != "" && (p.rest[0] == '"' || p.rest[0] == '\'') {
		return p.quoted(p.rest[0])
	}
	line, _, _ := strings.Cut(p.rest, "\n")
	p.skipLine()
	if strings.HasPrefix(line, "#") {
		return "", nil
	}
	for i := 1; i < len(line); i++ {
		if line[i] == '#' && (line[i-1] == ' ' || line[i-1] == '\t') {
			line = line[:i]
			break
		}
	}
	return strings.TrimRight(line, " \t\r"), nil
}

// quoted reads to the closing quote and the rest of that line.
func (p *envParser) quoted(quote byte) (string, error) {
	var b strings.Builder
	for i := 1; i < len(p.rest); i++ {
		c := p.rest[i]
		switch {
		case c == quote:
			text := strings.ReplaceAll(p.rest[:i], "\r\n", "\n")
			p.rest, p.line = p.rest[i+1:], p.line+strings.Count(text, "\n")
			return b.String(), p.endOfLine()
		case c == '\r' && i+1 < len(p.rest) && p.rest[i+1] == '\n':
			// The newline follows.
		case c == '\\' && quote == '"' && i+1 < len(p.rest):
			i++
			b.WriteString(unescape(p.rest[i]))
		default:
			b.WriteByte(c)
		}
	}
	return "", fmt.Errorf("a quote (%c) is not closed", quote)
}

func unescape(c byte) string {
	switch c {
	case 'n':
		return "\n"
	case 'r':
		return "\r"
	case 't':
		return "\t"
	case '"', '\\', '$', '`':
		return string(rune(c))
	}
	return string([]byte{'\\', c}) // no escape: as the shell has it
}

func (p *envParser) endOfLine() error {
	line, _, _ := strings.Cut(p.rest, "\n")
	if line = strings.Trim(line, " \t\r"); line != "" && line[0] != '#' {
		return fmt.Errorf("text after the closing quote: put all of the value between the quotes")
	}
	p.skipLine()
	return nil
}
