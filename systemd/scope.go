package systemd

import "fmt"

// Scope says whose units are meant.
type Scope string

// The scopes.
const (
	User   Scope = "user"   // the user's own manager
	System Scope = "system" // the machine's
)

// ParseScope returns the scope with that name.
func ParseScope(text string) (Scope, error) {
	switch s := Scope(text); s {
	case User, System:
		return s, nil
	}
	return "", fmt.Errorf("there is no scope %q: it is %q or %q", text, User, System)
}
