// Package templates holds the text that agentd writes into other people's
// folders: the skeleton of a workspace and the run script.
package templates

import "embed"

// FS holds the skeleton of a workspace under "workspace/". Its files are
// text/template sources with the field .Name, the agent's name.
//
//go:embed all:workspace
var FS embed.FS
