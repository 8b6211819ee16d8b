package systemd

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// errNotText is why a string cannot be in a unit at all: systemd and D-Bus
// take UTF-8 without NUL only.
var errNotText = errors.New("it is not UTF-8 text")

// Command returns the value of an ExecStart=: an absolute path and arguments.
func Command(program string, args ...string) (string, error) {
	if !filepath.IsAbs(program) || strings.ContainsAny(program, "\"'\\\n") {
		// systemd takes none of these in the path of an executable, however quoted.
		return "", fmt.Errorf("cannot execute %q from a unit: it has to be an absolute path without quotes, backslashes and newlines", program)
	}
	words := []string{quoted(program, false)}
	for _, text := range append([]string{program}, args...) {
		if !utf8.ValidString(text) || strings.Contains(text, "\x00") {
			return "", fmt.Errorf("cannot put %q on a unit's command line: %w", text, errNotText)
		}
	}
	for _, a := range args {
		words = append(words, quoted(a, true))
	}
	return strings.Join(words, " "), nil
}

// Assignment returns the value of an Environment= that sets one variable.
func Assignment(name, value string) (string, error) {
	if name == "" || strings.ContainsAny(name, "= \t\n\"'\\%$") {
		return "", fmt.Errorf("cannot set the variable %q in a unit: not a name", name)
	}
	if !utf8.ValidString(value) {
		return "", fmt.Errorf("cannot set the variable %s in a unit: %w", name, errNotText)
	}
	for _, c := range value {
		if c < ' ' && c != '\t' && c != '\n' || c == 0x7f {
			return "", fmt.Errorf("cannot set the variable %s in a unit: systemd takes no control characters there", name)
		}
	}
	return quoted(name+"="+value, false), nil
}

// assignment is Assignment for NAME=VALUE.
func assignment(entry string) (string, error) {
	name, value, ok := strings.Cut(entry, "=")
	if !ok {
		return "", fmt.Errorf("cannot set the variable %q in a unit: no value", name)
	}
	return Assignment(name, value)
}

// Text returns the value of a directive that systemd does not unquote, such as
// Description=.
func Text(s string) (string, error) {
	switch {
	case !utf8.ValidString(s), strings.Contains(s, "\x00"):
		return "", fmt.Errorf("cannot write %q in a unit: %w", s, errNotText)
	case strings.ContainsAny(s, "\n\r"):
		return "", fmt.Errorf("cannot write %q in a unit: it is not one line", s)
	case strings.Trim(s, blanks) != s:
		return "", fmt.Errorf("cannot write %q in a unit: systemd drops blanks at its ends", s)
	}
	return strings.ReplaceAll(s, "%", "%%"), nil
}

// nameMax is the longest file name in bytes, NAME_MAX of Linux.
const nameMax = 255

// Directory returns the value of a WorkingDirectory=; a folder that is not
// there is no failure of the unit.
func Directory(path string) (string, error) {
	text, err := pathText(path)
	return "-" + text, err
}

// pathText returns a path for a directive that systemd does not unquote.
// Longer ones than the kernel's it drops without a word that anybody sees.
func pathText(path string) (string, error) {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return "", fmt.Errorf("cannot write %q in a unit: it is not a clean absolute path", path)
	}
	if len(path) >= unix.PathMax {
		return "", fmt.Errorf("cannot write a path of %d bytes in a unit: systemd takes at most %d", len(path), unix.PathMax-1)
	}
	for _, part := range strings.Split(path, "/") {
		if len(part) > nameMax {
			return "", fmt.Errorf("cannot write a file name of %d bytes in a unit: systemd takes at most %d", len(part), nameMax)
		}
	}
	return Text(path)
}

// plain text means itself without quotes, and is easier on the eye.
var plain = regexp.MustCompile(`^[A-Za-z0-9/._=:,@+-]+$`)

// quoted returns s between double quotes if need be, with what systemd would
// replace escaped. On a command line that includes "$".
func quoted(s string, command bool) string {
	if plain.MatchString(s) {
		return s
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '%':
			b.WriteString("%%")
		case c == '$' && command:
			b.WriteString("$$")
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
