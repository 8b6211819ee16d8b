package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"unicode/utf8"

	"agentd/exitcodes"
)

// maxFile bounds agentd.toml, prompt files and env files, in bytes.
const (
	maxFile   = 4 << 20
	maxPrompt = 16 << 20
)

// Find returns the nearest folder with an agentd.toml: start itself or one
// above it. The error has the code exitcodes.NoInput when there is none.
func Find(start string) (string, error) {
	dir, err := filepath.Abs(start)
	if err != nil {
		return "", fmt.Errorf("cannot find the workspace: %w", err)
	}
	if info, err := os.Stat(dir); err != nil {
		return "", exitcodes.Errorf(exitcodes.NoInput, "cannot look for a workspace: %w", err)
	} else if !info.IsDir() {
		dir = filepath.Dir(dir)
	}
	first := dir
	for {
		_, err := os.Stat(filepath.Join(dir, FileName))
		if err == nil {
			return dir, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", exitcodes.Errorf(exitcodes.NoInput, "cannot look for a workspace: %w", err)
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", exitcodes.Errorf(exitcodes.NoInput, "there is no %s in %s or in a folder above it", FileName, first).
				WithHint("Make a workspace: agentd init DIR")
		}
		dir = parent
	}
}

// Load reads and checks the workspace in dir. The error is an *Invalid with
// every mistake, or has the code exitcodes.NoInput when there is no readable
// agentd.toml.
func Load(dir string) (*Workspace, error) {
	ws, found, err := load(dir)
	if err != nil {
		return nil, err
	}
	for _, d := range ws.drafts {
		d.checkFiles(found)
	}
	for _, k := range ws.keyFiles {
		if _, err := os.Stat(k.path); err != nil {
			found.warn(k.pos, "api_key_file %s is not there", quote(k.path))
		}
	}
	if err := found.err(ws.File); err != nil {
		return nil, err
	}
	ws.Warnings = inFileOrder(found.warnings)
	return ws.Workspace, nil
}

// LoadJob is Load for a run of one job: files that other jobs refer to are not
// looked at, so that their loss does not stop this one, and those of this one
// are left to the run. A job that is missing has the code exitcodes.NoInput.
func LoadJob(dir, name string) (*Workspace, *Job, error) {
	ws, found, err := load(dir)
	if err != nil {
		return nil, nil, err
	}
	if err := found.err(ws.File); err != nil {
		return nil, nil, err
	}
	job, err := ws.Job(name)
	if err != nil {
		return nil, nil, err
	}
	ws.Warnings = inFileOrder(found.warnings)
	return ws.Workspace, job, nil
}

// LoadJobs is Load without a look at the files that jobs refer to: for who only
// starts runs, which then tell what they lack.
func LoadJobs(dir string) (*Workspace, error) {
	ws, found, err := load(dir)
	if err != nil {
		return nil, err
	}
	if err := found.err(ws.File); err != nil {
		return nil, err
	}
	ws.Warnings = inFileOrder(found.warnings)
	return ws.Workspace, nil
}

// loaded is a workspace before the files that it refers to are checked.
type loaded struct {
	*Workspace
	drafts   []*draft
	keyFiles []keyFile
}

func load(dir string) (loaded, *findings, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return loaded{}, nil, fmt.Errorf("cannot load the workspace: %w", err)
	}
	path := filepath.Join(dir, FileName)
	doc, err := readFile(path, maxFile)
	if err != nil {
		return loaded{}, nil, err
	}
	ws, found := parse(path, doc)
	if ws.Workspace == nil {
		return loaded{}, nil, found.err(path)
	}
	return ws, found, nil
}

// parse reads the content of the agentd.toml at path, looking at no other
// file. The workspace is nil when the content is not TOML.
func parse(path string, doc []byte) (loaded, *findings) {
	found := newFindings(path, doc)
	root := parseDocument(doc, found)
	if root == nil {
		return loaded{}, found
	}
	l := loader{found: found, ws: &Workspace{
		Dir: filepath.Dir(path), File: path, Providers: map[string]Provider{}, Backends: map[string]Backend{}, LaneSlots: map[string]int{},
	}}
	l.read(root)
	if len(found.mistakes) == 0 {
		crossCheck(doc, found)
	}
	return loaded{Workspace: l.ws, drafts: l.drafts, keyFiles: l.keyFiles}, found
}

// parseDocument refuses what is not text before it is read as TOML.
func parseDocument(doc []byte, found *findings) *node {
	switch {
	case bytes.HasPrefix(doc, []byte("\xef\xbb\xbf")):
		found.mistake(0, "the file starts with a byte order mark: save it as UTF-8 without one")
	case bytes.HasPrefix(doc, []byte("\xff\xfe")), bytes.HasPrefix(doc, []byte("\xfe\xff")):
		found.mistake(0, "the file is UTF-16: save it as UTF-8")
	case !utf8.Valid(doc):
		found.mistake(invalidUTF8(doc), "the file is not UTF-8 from here on: save it as UTF-8")
	default:
		return parseTree(doc, found)
	}
	return nil
}

func invalidUTF8(doc []byte) int {
	for i := 0; i < len(doc); {
		r, size := utf8.DecodeRune(doc[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return len(doc)
}

// readFile reads a regular file of at most limit bytes. What is missing or
// cannot be read has the code exitcodes.NoInput, what is no file or too large
// exitcodes.Config.
func readFile(path string, limit int64) (_ []byte, err error) {
	info, err := os.Stat(path) // before opening: a FIFO would block
	if err == nil && info.IsDir() {
		return nil, exitcodes.Errorf(exitcodes.Config, "%s is a folder, not a file", path)
	}
	if err == nil && !info.Mode().IsRegular() {
		return nil, exitcodes.Errorf(exitcodes.Config, "%s is not a regular file", path)
	}
	if err != nil {
		return nil, unreadable(path, err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	defer func() {
		if cerr := f.Close(); err == nil && cerr != nil {
			err = unreadable(path, cerr)
		}
	}()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, unreadable(path, err)
	}
	if int64(len(data)) > limit {
		return nil, exitcodes.Errorf(exitcodes.Config, "%s is larger than %d MiB", path, limit>>20)
	}
	return data, nil
}

func unreadable(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return exitcodes.Errorf(exitcodes.NoInput, "%s does not exist%w", path, silent{err})
	case errors.Is(err, fs.ErrPermission):
		return exitcodes.Errorf(exitcodes.NoInput, "cannot read %s: permission denied%w", path, silent{err}).
			WithHint("Look at it with: ls -l " + path)
	}
	return exitcodes.Errorf(exitcodes.NoInput, "cannot read the file: %w", err)
}

// silent keeps a cause for errors.Is where the message has said it already.
type silent struct{ cause error }

func (s silent) Error() string { return "" }
func (s silent) Unwrap() error { return s.cause }
