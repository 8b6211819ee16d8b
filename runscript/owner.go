package runscript

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
)

// Owner is what a script's mark says about who made it.
type Owner struct {
	Agent, Job string
	// Intact is false when the script was changed after agentd wrote it.
	Intact bool
}

func (o Owner) line(hash string) string {
	return "# X-Agentd-Agent=" + o.Agent + " X-Agentd-Job=" + o.Job + " X-Agentd-Hash=" + hash
}

var mark = regexp.MustCompile(`(?m)^# X-Agentd-Agent=([a-z0-9_-]+) X-Agentd-Job=([a-z0-9_-]+) X-Agentd-Hash=([0-9a-f]*)$`)

// OwnerOf returns what the mark in a script says; ok is false when there is no
// mark, so that the script is somebody else's.
func OwnerOf(text []byte) (owner Owner, ok bool) {
	m := mark.FindSubmatchIndex(text)
	if m == nil {
		return Owner{}, false
	}
	blank := append(bytes.Clone(text[:m[6]]), text[m[7]:]...)
	return Owner{
		Agent:  string(text[m[2]:m[3]]),
		Job:    string(text[m[4]:m[5]]),
		Intact: hash(blank) == string(text[m[6]:m[7]]),
	}, true
}

// seal writes the hash of the text, taken with no hash in it, into its mark.
func seal(text []byte) []byte {
	m := mark.FindSubmatchIndex(text)
	out := append(bytes.Clone(text[:m[6]]), hash(text)...)
	return append(out, text[m[7]:]...)
}

func hash(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}
