package systemd

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// DropIn is a part of a unit that a workspace brings along: what a person wrote,
// and agentd's mark under it.
type DropIn struct {
	Name      JobName
	Workspace string // absolute
	Text      []byte // as the person wrote it
}

// Bytes returns the text of the drop-in.
func (d DropIn) Bytes() ([]byte, error) {
	f, err := Parse(d.Text)
	if err != nil {
		return nil, err
	}
	if f.Section(ownerSection) != nil {
		return nil, fmt.Errorf("cannot take over a unit: [%s] is agentd's own section", ownerSection)
	}
	if continues(string(bytes.TrimRight(d.Text, "\n"))) {
		return nil, fmt.Errorf("cannot take over a unit: its last line ends with a backslash")
	}
	var b bytes.Buffer
	b.Write(bytes.TrimRight(d.Text, "\n"))
	fmt.Fprintf(&b, "\n\n[%s]\nAgent=%s\nJob=%s\nWorkspace=%s\nHash=\n", ownerSection, d.Name.Agent, d.Name.Job, strconv.QuoteToASCII(d.Workspace))
	return append(bytes.TrimSuffix(b.Bytes(), []byte("\n")), hash(b.Bytes())+"\n"...), nil
}

// SetsTimes reports whether a part of a timer says when it elapses.
func SetsTimes(text []byte) bool {
	f, err := Parse(text)
	if err != nil {
		return false
	}
	for _, s := range f.Sections {
		for _, e := range s.Entries {
			if s.Name == "Timer" && (e.Key == "OnCalendar" || strings.HasPrefix(e.Key, "On") && strings.HasSuffix(e.Key, "Sec")) {
				return true
			}
		}
	}
	return false
}
