package workspace

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"agentd/exitcodes"
)

// Mistake is one thing that is wrong in agentd.toml.
type Mistake struct {
	File    string // as shown: the file's base name
	Line    int    // from 1
	Column  int    // from 1, in characters
	Message string // one line
}

// Position returns "agentd.toml:14:3".
func (m Mistake) Position() string {
	return fmt.Sprintf("%s:%d:%d", m.File, m.Line, m.Column)
}

func (m Mistake) String() string { return m.Position() + " " + m.Message }

// Invalid is the error of a workspace whose agentd.toml is wrong: all of its
// mistakes in the order of the file.
type Invalid struct {
	File     string // path of agentd.toml
	Mistakes []Mistake
	Warnings []Mistake // what is allowed besides, but probably not meant
}

// Error returns the first mistake and how many more there are, on one line.
func (e *Invalid) Error() string {
	if len(e.Mistakes) == 0 {
		return e.File + " is not valid"
	}
	first := e.Mistakes[0]
	s := fmt.Sprintf("%s:%d:%d %s", e.File, first.Line, first.Column, first.Message)
	switch n := len(e.Mistakes) - 1; n {
	case 0:
	case 1:
		s += " (and 1 more mistake)"
	default:
		s += fmt.Sprintf(" (and %d more mistakes)", n)
	}
	return s
}

// ExitCode returns exitcodes.Config.
func (e *Invalid) ExitCode() exitcodes.Code { return exitcodes.Config }

// Lines returns one line a mistake, with the messages under each other.
func (e *Invalid) Lines() []string { return alignMistakes(e.Mistakes) }

func alignMistakes(list []Mistake) []string {
	width := 0
	for _, m := range list {
		width = max(width, len(m.Position()))
	}
	lines := make([]string, len(list))
	for i, m := range list {
		lines[i] = fmt.Sprintf("%-*s %s", width, m.Position(), m.Message)
	}
	return lines
}

// maxMistakes bounds the report about a file that is wrong from top to bottom.
const maxMistakes = 100

// findings collects what is found in one file.
type findings struct {
	file     string
	doc      []byte
	lines    []int // offset of the first byte of each line
	mistakes []Mistake
	warnings []Mistake
	seen     map[Mistake]bool
	wrong    map[int]bool    // offsets of mistakes
	meant    map[string]bool // "jobs.triage.prompt": a key that is there, but mistyped
}

func newFindings(path string, doc []byte) *findings {
	f := &findings{
		file: filepath.Base(path), doc: doc, lines: []int{0},
		seen: map[Mistake]bool{}, wrong: map[int]bool{}, meant: map[string]bool{},
	}
	for i, c := range doc {
		if c == '\n' {
			f.lines = append(f.lines, i+1)
		}
	}
	return f
}

// mistake records what is wrong at a byte offset. The same finding at the same
// place, as two jobs have it from [defaults], counts once.
func (f *findings) mistake(offset int, format string, args ...any) {
	m := f.at(offset, fmt.Sprintf(format, args...))
	f.wrong[offset] = true
	if len(f.mistakes) < maxMistakes && !f.seen[m] {
		f.seen[m] = true
		f.mistakes = append(f.mistakes, m)
	}
}

// warn records something that is allowed but probably not what was meant.
func (f *findings) warn(offset int, format string, args ...any) {
	m := f.at(offset, fmt.Sprintf(format, args...))
	if len(f.warnings) < maxMistakes && !f.seen[m] {
		f.seen[m] = true
		f.warnings = append(f.warnings, m)
	}
}

func (f *findings) full() bool { return len(f.mistakes) >= maxMistakes }

func (f *findings) at(offset int, message string) Mistake {
	offset = min(max(offset, 0), len(f.doc))
	for offset > 0 && offset < len(f.doc) && !utf8.RuneStart(f.doc[offset]) {
		offset-- // the parser may point into a character
	}
	line, found := slices.BinarySearch(f.lines, offset)
	if !found {
		line--
	}
	column := utf8.RuneCount(f.doc[f.lines[line]:offset]) + 1
	return Mistake{File: f.file, Line: line + 1, Column: column, Message: oneLine.Replace(message)}
}

var oneLine = strings.NewReplacer("\n", " ", "\r", " ")

func inFileOrder(list []Mistake) []Mistake {
	slices.SortStableFunc(list, func(a, b Mistake) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return list
}

// err returns nil or all mistakes as one *Invalid.
func (f *findings) err(path string) error {
	if len(f.mistakes) == 0 {
		return nil
	}
	return &Invalid{File: path, Mistakes: inFileOrder(f.mistakes), Warnings: inFileOrder(f.warnings)}
}
