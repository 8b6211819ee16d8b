package templates

import "embed"

// Backends holds the presets of external agent CLIs, "backends/NAME.toml" each
// with the keys of a [backends.NAME] table of agentd.toml, and the patterns
// that all of them end with, "backends/messages.toml".
//
//go:embed backends
var Backends embed.FS
