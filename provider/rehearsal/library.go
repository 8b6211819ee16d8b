package rehearsal

import (
	"embed"
	"errors"
	"io/fs"
	"os"
	"strings"

	"agentd/exitcodes"
)

//go:embed scenarios/*.toml
var library embed.FS

// Names returns the names of the embedded scenarios, sorted.
func Names() []string {
	entries, err := library.ReadDir("scenarios")
	if err != nil {
		return nil // an embedded folder is always readable
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".toml"))
	}
	return names
}

// Load reads an embedded scenario by its name, or a file by its path (which
// holds a slash or ends in .toml). An unknown name or missing file is an error
// with code 66, a wrong scenario one with code 78.
func Load(nameOrPath string) (*Scenario, error) {
	if strings.ContainsRune(nameOrPath, '/') || strings.HasSuffix(nameOrPath, ".toml") {
		data, err := os.ReadFile(nameOrPath)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, exitcodes.Errorf(exitcodes.NoInput, "there is no scenario file %s", nameOrPath)
		}
		if err != nil {
			return nil, exitcodes.Errorf(exitcodes.NoInput, "cannot read the scenario: %w", err)
		}
		return Parse(nameOrPath, data)
	}
	data, err := library.ReadFile("scenarios/" + nameOrPath + ".toml")
	if err != nil {
		return nil, exitcodes.Errorf(exitcodes.NoInput, "there is no scenario %q", nameOrPath).
			WithHint("the scenarios are " + strings.Join(Names(), ", "))
	}
	return Parse(nameOrPath, data)
}
