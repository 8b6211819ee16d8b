package systemd

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
)

// ownerSection is ignored by systemd because of its "X-".
const ownerSection = "X-Agentd"

// Owner is what a unit's mark says about who made it.
type Owner struct {
	Name      JobName
	Workspace string
	// Intact is false when the file was changed after agentd wrote it.
	Intact bool
}

// OwnerOf returns what the mark of a unit file says; ok is false when it has
// none, so that the unit is somebody else's.
func OwnerOf(text []byte) (owner Owner, ok bool) {
	f, err := Parse(text)
	if err != nil {
		return Owner{}, false
	}
	s := f.Section(ownerSection)
	owner.Name = JobName{s.Get("Agent"), s.Get("Job")}
	if owner.Name.Agent == "" || len(s.All("Job")) != 1 { // an empty one is the agent's own
		return Owner{}, false
	}
	// A workspace that cannot be read back only makes the message poorer.
	owner.Workspace, _ = strconv.Unquote(s.Get("Workspace"))
	sum := s.Get("Hash")
	blank := bytes.Replace(text, []byte("\nHash="+sum+"\n"), []byte("\nHash=\n"), 1)
	owner.Intact = sum == hash(blank)
	return owner, true
}

// sealed returns the text of f with a mark that says whose it is.
func sealed(f *File, name JobName, workspace string) ([]byte, error) {
	f.Sections = append(f.Sections, Section{Name: ownerSection, Entries: []Entry{
		{"Agent", name.Agent}, {"Job", name.Job}, {"Workspace", strconv.QuoteToASCII(workspace)}, {"Hash", ""},
	}})
	blank, err := f.Bytes()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return append(bytes.TrimSuffix(blank, []byte("\n")), hash(blank)+"\n"...), nil
}

func hash(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}
