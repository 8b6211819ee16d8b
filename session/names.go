package session

import (
	"strings"

	"agentd/exitcodes"
)

const maxName = 128

// CheckName refuses what is not the name of an agent or a session: 1 to 128
// letters, digits, '.', '_' and '-', not beginning with '.'.
func CheckName(name string) error {
	reason := ""
	switch {
	case name == "":
		reason = "it is empty"
	case len(name) > maxName:
		reason = "it is longer than 128 characters"
	case name[0] == '.':
		reason = "it begins with a dot"
	case strings.ContainsFunc(name, func(r rune) bool { return !nameRune(r) }):
		reason = "only letters, digits, '.', '_' and '-' may be in it"
	default:
		return nil
	}
	return exitcodes.Errorf(exitcodes.Usage, "%q cannot name a session: %s", name, reason)
}

func nameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-'
}

func checkNames(names ...string) error {
	for _, n := range names {
		if err := CheckName(n); err != nil {
			return err
		}
	}
	return nil
}
