package runner

import (
	"maps"
	"slices"

	"agentd/provider"
	"agentd/workspace"
)

// keyVariables lists the variables that hold a provider's key, so that no
// child is given one it was not meant to have.
func keyVariables(ws *workspace.Workspace) []string {
	names := map[string]bool{}
	for _, p := range provider.Presets() {
		names[p.KeyEnv] = true
	}
	for _, p := range ws.Providers {
		names[p.APIKeyEnv] = true
	}
	delete(names, "")
	return slices.Sorted(maps.Keys(names))
}
