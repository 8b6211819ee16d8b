package workspace

import (
	"path/filepath"

	"agentd/exitcodes"
)

// Folders are where agentd keeps its own files. They need not exist yet; they
// are made with mode 0700.
type Folders struct {
	Config string // what the user decided
	State  string // sessions, runs, lanes
	Data   string // what install wrote
}

// FoldersFromEnv returns the folders that the XDG variables and HOME name. As
// the XDG rules have it, a variable that is not an absolute path is ignored;
// without a usable HOME the error has the code exitcodes.Config.
func FoldersFromEnv(getenv func(string) string) (Folders, error) {
	var f Folders
	for _, x := range []struct {
		to             *string
		variable, home string
	}{
		{&f.Config, "XDG_CONFIG_HOME", ".config"},
		{&f.State, "XDG_STATE_HOME", ".local/state"},
		{&f.Data, "XDG_DATA_HOME", ".local/share"},
	} {
		dir := getenv(x.variable)
		if !filepath.IsAbs(dir) {
			home := getenv("HOME")
			if !filepath.IsAbs(home) {
				reason := "HOME is not set"
				if home != "" {
					reason = "HOME is not an absolute path: " + quote(home)
				}
				return Folders{}, exitcodes.Errorf(exitcodes.Config, "cannot tell where agentd's files are: %s and %s names no absolute path", reason, x.variable).
					WithHint("Set HOME, or XDG_CONFIG_HOME, XDG_STATE_HOME and XDG_DATA_HOME, to absolute paths")
			}
			dir = filepath.Join(home, x.home)
		}
		*x.to = filepath.Join(dir, "agentd")
	}
	return f, nil
}

// Sessions holds the journals.
func (f Folders) Sessions() string { return filepath.Join(f.State, "sessions") }

// Runs holds a folder for each run.
func (f Folders) Runs() string { return filepath.Join(f.State, "runs") }

// Lanes holds the lock files.
func (f Folders) Lanes() string { return filepath.Join(f.State, "lanes") }

// DB is the path of the index of runs.
func (f Folders) DB() string { return filepath.Join(f.State, "agentd.db") }

// Agents holds a file for each registered agent.
func (f Folders) Agents() string { return filepath.Join(f.Config, "agents") }
