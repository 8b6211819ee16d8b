package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"agentd/atomicfile"
	"agentd/exitcodes"
	"agentd/templates"
)

// CreateOptions say what a new workspace is like.
type CreateOptions struct {
	Name string // of the agent; "" takes it from the folder's name
}

// skeletonFile is a file of a new workspace.
type skeletonFile struct {
	path string // with slashes, relative
	data []byte
}

// Create makes a workspace in dir, which may be missing, empty or hold other
// files, and returns it. It overwrites nothing: files in its way are an error
// with the code exitcodes.CannotCreate that lists them. When it fails, what it
// made is gone again.
func Create(dir string, o CreateOptions) (*Workspace, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot create the workspace: %w", err)
	}
	name, err := agentName(dir, o.Name)
	if err != nil {
		return nil, err
	}
	files, err := skeleton(name)
	if err != nil {
		return nil, err
	}
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		err = createFolder(dir, files)
		if err != nil {
			return nil, err
		}
	case err != nil:
		return nil, cannotCreate(dir, err)
	case !info.IsDir():
		return nil, exitcodes.Errorf(exitcodes.CannotCreate, "cannot create the workspace: %s is not a folder", dir)
	default:
		if err := fillFolder(dir, files); err != nil {
			return nil, err
		}
	}
	return Load(dir)
}

func cannotCreate(dir string, err error) error {
	code := exitcodes.CannotCreate
	if exitcodes.From(err) == exitcodes.IO {
		code = exitcodes.IO
	}
	return exitcodes.Errorf(code, "cannot create the workspace in %s: %w", dir, err)
}

func agentName(dir, name string) (string, error) {
	if name != "" {
		if err := CheckSlug(name); err != nil {
			return "", exitcodes.Errorf(exitcodes.Usage, "cannot name the agent %s: %w", quote(name), err)
		}
		return name, nil
	}
	if s := Slug(filepath.Base(dir)); s != "" {
		return s, nil
	}
	return "", exitcodes.Errorf(exitcodes.Usage, "cannot make an agent's name of the folder's name %s", quote(filepath.Base(dir))).
		WithHint("Give it a name: agentd init --name NAME DIR")
}

// skeleton renders the files of a new workspace, agentd.toml last: a folder
// counts as a workspace only when the rest is there.
func skeleton(name string) ([]skeletonFile, error) {
	const root = "workspace"
	var files []skeletonFile
	err := fs.WalkDir(templates.FS, root, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		source, err := fs.ReadFile(templates.FS, p)
		if err != nil {
			return err
		}
		t, err := template.New(path.Base(p)).Option("missingkey=error").Parse(string(source))
		if err != nil {
			return err
		}
		var out bytes.Buffer
		if err := t.Execute(&out, struct{ Name string }{name}); err != nil {
			return err
		}
		files = append(files, skeletonFile{path: strings.TrimPrefix(p, root+"/"), data: out.Bytes()})
		return nil
	})
	if err != nil {
		return nil, exitcodes.Errorf(exitcodes.Software, "cannot render the workspace: %w", err)
	}
	slices.SortStableFunc(files, func(a, b skeletonFile) int {
		return boolInt(a.path == FileName) - boolInt(b.path == FileName)
	})
	return files, nil
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// createFolder builds a new workspace beside dir and then renames it.
func createFolder(dir string, files []skeletonFile) (err error) {
	var made undo
	defer func() {
		if err != nil {
			made.run()
			err = cannotCreate(dir, err)
		}
	}()
	parent := filepath.Dir(dir)
	if err := made.mkdirAll(parent); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(parent, ".agentd-*.tmp")
	if err != nil {
		return err
	}
	made.add(temp)
	built := filepath.Join(temp, "workspace") // not temp itself, whose mode ignores the umask
	if err := made.mkdirAll(built); err != nil {
		return err
	}
	if err := made.place(built, files); err != nil {
		return err
	}
	if err := os.Rename(built, dir); err != nil {
		return err
	}
	// The workspace is there: nothing that fails from here on takes it away.
	_ = os.Remove(temp)
	_ = atomicfile.SyncDir(parent)
	return nil
}

// fillFolder adds the files to a folder that exists.
func fillFolder(dir string, files []skeletonFile) error {
	var inTheWay []string
	for _, f := range files {
		if _, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(f.path))); err == nil {
			inTheWay = append(inTheWay, f.path)
		}
	}
	if len(inTheWay) > 0 {
		return exitcodes.Errorf(exitcodes.CannotCreate, "cannot create the workspace in %s: already there: %s", dir, strings.Join(inTheWay, ", ")).
			WithHint("Move them away, or choose another folder. Nothing was changed")
	}
	var made undo
	if err := made.place(dir, files); err != nil {
		made.run()
		return cannotCreate(dir, err)
	}
	return nil
}

// undo remembers what was made, in order.
type undo struct{ paths []string }

func (u *undo) add(path string) { u.paths = append(u.paths, path) }

// run removes what was made, last first. Folders that hold something else by
// now stay.
func (u *undo) run() {
	for _, p := range slices.Backward(u.paths) {
		_ = os.Remove(p) // the failure that led here is what the user needs
	}
}

// mkdirAll makes dir and the folders above it that are missing.
func (u *undo) mkdirAll(dir string) error {
	if info, err := os.Stat(dir); err == nil {
		if !info.IsDir() {
			return fmt.Errorf("%s is not a folder", dir)
		}
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := u.mkdirAll(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // the user's own folder
		return err
	}
	u.add(dir)
	return nil
}

// place writes the files below dir. None may exist.
func (u *undo) place(dir string, files []skeletonFile) error {
	for _, f := range files {
		target := filepath.Join(dir, filepath.FromSlash(f.path))
		if err := u.mkdirAll(filepath.Dir(target)); err != nil {
			return err
		}
		if err := atomicfile.Create(target, f.data, 0o644); err != nil {
			return err
		}
		u.add(target)
	}
	return nil
}
