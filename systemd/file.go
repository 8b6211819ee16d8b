// Package systemd writes the units of jobs and speaks with systemd over D-Bus.
//
// A unit file is a value here, sections of ordered entries, never a text
// template; what goes into an entry is quoted by the rules of its directive.
package systemd

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// File is a unit file.
type File struct {
	Comments []string // lines before the first section, without "# "
	Sections []Section
}

// Section is a [Name] with its entries in order.
type Section struct {
	Name    string
	Entries []Entry
}

// Entry is Key=Value, the value as the file has it: already quoted.
type Entry struct {
	Key, Value string
}

// Section returns the first section of that name, or nil.
func (f *File) Section(name string) *Section {
	for i := range f.Sections {
		if f.Sections[i].Name == name {
			return &f.Sections[i]
		}
	}
	return nil
}

// Get returns the last value of key, or "".
func (s *Section) Get(key string) string {
	if s == nil {
		return ""
	}
	for i := len(s.Entries) - 1; i >= 0; i-- {
		if s.Entries[i].Key == key {
			return s.Entries[i].Value
		}
	}
	return ""
}

// All returns every value of key.
func (s *Section) All(key string) []string {
	var values []string
	if s == nil {
		return nil
	}
	for _, e := range s.Entries {
		if e.Key == key {
			values = append(values, e.Value)
		}
	}
	return values
}

func (s *Section) add(key, value string) {
	s.Entries = append(s.Entries, Entry{key, value})
}

// Bytes returns the text of f. It refuses what would be read back as
// something else, such as a value with a newline in it.
func (f *File) Bytes() ([]byte, error) {
	var b bytes.Buffer
	for _, c := range f.Comments {
		if strings.ContainsAny(c, "\n\r\x00") || continues(c) {
			return nil, fmt.Errorf("cannot write a unit: the comment %q is not one line", c)
		}
		fmt.Fprintf(&b, "# %s\n", c)
	}
	for i, s := range f.Sections {
		if i > 0 || len(f.Comments) > 0 {
			b.WriteByte('\n')
		}
		if s.Name == "" || strings.ContainsAny(s.Name, "[]\n\r\x00") {
			return nil, fmt.Errorf("cannot write a unit: %q cannot name a section", s.Name)
		}
		fmt.Fprintf(&b, "[%s]\n", s.Name)
		for _, e := range s.Entries {
			if err := e.check(); err != nil {
				return nil, fmt.Errorf("cannot write a unit: %s= in [%s]: %w", e.Key, s.Name, err)
			}
			b.WriteString(e.Key + "=" + e.Value)
			if continues(e.Value) {
				b.WriteByte(' ') // ends the escape; the reader drops it
			}
			b.WriteByte('\n')
		}
	}
	return b.Bytes(), nil
}

// maxLine is what systemd takes as one line of a unit, in bytes.
const maxLine = 1 << 20

func (e Entry) check() error {
	for _, c := range e.Key {
		if c != '-' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return errors.New("not a key")
		}
	}
	switch {
	case e.Key == "":
		return errors.New("not a key")
	case strings.ContainsAny(e.Value, "\n\r\x00"):
		return errors.New("the value is not one line")
	case !utf8.ValidString(e.Value):
		return errors.New("the value is not UTF-8")
	case strings.Trim(e.Value, blanks) != e.Value:
		return errors.New("the value begins or ends with a blank, which systemd drops")
	case len(e.Key)+len(e.Value)+2 >= maxLine:
		return fmt.Errorf("the value is too long: %d bytes", len(e.Value))
	}
	return nil
}

// blanks are what systemd strips from both ends of a value.
const blanks = " \t\n\r"

// continues reports whether a line that ends with s goes on in the next one.
func continues(s string) bool {
	n := len(s) - len(strings.TrimRight(s, `\`))
	return n%2 == 1
}

// Parse reads a unit file by systemd's rules: comments (also in the midst of a
// continued line) are skipped, continued lines are joined with a blank.
func Parse(text []byte) (*File, error) {
	f := &File{}
	var line string
	var going bool
	for number, raw := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		part := strings.TrimLeft(raw, blanks)
		if part != "" && (part[0] == '#' || part[0] == ';') {
			if len(f.Sections) == 0 && !going {
				f.Comments = append(f.Comments, strings.TrimPrefix(part[1:], " "))
			}
			continue
		}
		if going {
			part = raw
		}
		line += part
		if going = continues(line); going {
			line = line[:len(line)-1] + " "
			continue
		}
		if err := f.line(strings.Trim(line, blanks)); err != nil {
			return nil, fmt.Errorf("cannot read a unit: line %d: %w", number+1, err)
		}
		line = ""
	}
	if going {
		if err := f.line(strings.Trim(line, blanks)); err != nil {
			return nil, fmt.Errorf("cannot read a unit: last line: %w", err)
		}
	}
	return f, nil
}

func (f *File) line(line string) error {
	if line == "" {
		return nil
	}
	if line[0] == '[' {
		if !strings.HasSuffix(line, "]") || len(line) < 3 {
			return fmt.Errorf("%q is not a section", line)
		}
		f.Sections = append(f.Sections, Section{Name: line[1 : len(line)-1]})
		return nil
	}
	key, value, ok := strings.Cut(line, "=")
	if !ok {
		return fmt.Errorf("%q is neither a section nor KEY=VALUE", line)
	}
	if len(f.Sections) == 0 {
		return fmt.Errorf("%q stands before the first section", line)
	}
	f.Sections[len(f.Sections)-1].add(strings.TrimRight(key, blanks), strings.TrimLeft(value, blanks))
	return nil
}
