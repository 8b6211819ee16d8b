package process

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"agentd/exitcodes"
)

// defaultPath is searched if the environment has no PATH.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// resolve checks the spec and returns the path of its program.
func (s Spec) resolve() (string, error) {
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return "", exitcodes.Errorf(exitcodes.Config, "cannot start a program: the command is empty")
	}
	for i, a := range s.Argv {
		if strings.ContainsRune(a, 0) {
			return "", exitcodes.Errorf(exitcodes.Config, "cannot start %q: argument %d contains a NUL byte", s.Argv[0], i)
		}
	}
	for _, v := range s.Env {
		if name, _, ok := strings.Cut(v, "="); !ok || name == "" || strings.ContainsRune(v, 0) {
			// The value may be a secret: name only.
			return "", exitcodes.Errorf(exitcodes.Config, "cannot start %s: bad environment variable %q", s.Argv[0], name)
		}
	}
	if err := s.checkDir(); err != nil {
		return "", err
	}
	return s.lookUp()
}

func (s Spec) checkDir() error {
	if s.Dir == "" {
		return nil
	}
	info, err := os.Stat(s.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return exitcodes.Errorf(exitcodes.NoInput, "cannot start %s: there is no folder %s", s.Argv[0], s.Dir)
	case err != nil:
		return exitcodes.Errorf(exitcodes.NoInput, "cannot start %s: %w", s.Argv[0], err)
	case !info.IsDir():
		return exitcodes.Errorf(exitcodes.NoInput, "cannot start %s: %s is not a folder", s.Argv[0], s.Dir)
	}
	if err := unix.Access(s.Dir, unix.X_OK); err != nil {
		return exitcodes.Errorf(exitcodes.NoInput, "cannot start %s: cannot enter the folder %s: %w", s.Argv[0], s.Dir, err)
	}
	return nil
}

// lookUp finds the program as a shell with the child's environment would.
func (s Spec) lookUp() (string, error) {
	name := s.Argv[0]
	if strings.Contains(name, "/") {
		return name, nil
	}
	path, set := defaultPath, false
	for _, v := range s.Env {
		if p, ok := strings.CutPrefix(v, "PATH="); ok {
			path, set = p, true
		}
	}
	var denied error
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue // what lies in the working folder must not pose as a system program
		}
		file := filepath.Join(dir, name)
		info, err := os.Stat(file)
		if err != nil || info.IsDir() {
			continue
		}
		if err := unix.Access(file, unix.X_OK); err != nil {
			denied = fmt.Errorf("%s: %w", file, err)
			continue
		}
		return file, nil
	}
	if denied != nil {
		return "", exitcodes.Errorf(exitcodes.NotExecutable, "cannot start %s: %w", name, denied).
			WithHint("chmod +x it, or name another program")
	}
	where := "PATH (" + path + ")"
	if !set {
		where = defaultPath + " (PATH is not set)"
	}
	return "", exitcodes.Errorf(exitcodes.NotFound, "cannot find the program %q in %s", name, where).
		WithHint("name it by its full path, or set PATH for the job")
}

// startError gives an error of fork or exec its code and a reason that helps.
func startError(s Spec, path string, err error) error {
	name := s.Argv[0]
	file := path
	if !filepath.IsAbs(file) {
		file = filepath.Join(s.Dir, file)
	}
	switch {
	case errors.Is(err, syscall.ENOENT):
		if _, statErr := os.Stat(file); statErr == nil {
			return exitcodes.Errorf(exitcodes.NotFound, "cannot start %s: %s", name, missingPart(file))
		}
		return exitcodes.Errorf(exitcodes.NotFound, "cannot find the program %s", file)
	case errors.Is(err, syscall.ENOTDIR):
		return exitcodes.Errorf(exitcodes.NotFound, "cannot find the program %s: %w", file, syscall.ENOTDIR)
	case errors.Is(err, syscall.ENOEXEC):
		return exitcodes.Errorf(exitcodes.NotExecutable, "cannot start %s: the file is not a program for this machine", name).
			WithHint("a script needs a first line such as #!/bin/sh")
	case errors.Is(err, syscall.E2BIG):
		return exitcodes.Errorf(exitcodes.NotExecutable,
			"cannot start %s: its arguments and environment (%d bytes) are more than the kernel takes", name, size(s)).
			WithHint("one argument may have 128 KiB: pass long text on standard input or in a file")
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		if info, statErr := os.Stat(file); statErr == nil && info.IsDir() {
			return exitcodes.Errorf(exitcodes.NotExecutable, "cannot start %s: it is a folder", name)
		}
		return exitcodes.Errorf(exitcodes.NotExecutable, "cannot start %s: permission denied", name).
			WithHint("chmod +x it, or check that its file system is not mounted noexec")
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.ENOMEM), errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return exitcodes.Errorf(exitcodes.IO, "cannot start %s: %w", name, err).
			WithHint("the limit of processes, memory or open files is reached")
	}
	return exitcodes.Errorf(exitcodes.NotExecutable, "cannot start %s: %w", name, err)
}

// missingPart says what a file that exists lacks: its interpreter, or the
// loader of a dynamic program.
func missingPart(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return "its interpreter is missing"
	}
	defer f.Close()
	head := make([]byte, 256)
	n, _ := f.Read(head)
	line, _, _ := bytes.Cut(head[:n], []byte{'\n'})
	if interpreter, ok := bytes.CutPrefix(line, []byte("#!")); ok {
		return fmt.Sprintf("its interpreter %q is missing", bytes.TrimSpace(interpreter))
	}
	return "the loader of this program is missing"
}

func size(s Spec) int {
	n := 0
	for _, v := range slices.Concat(s.Argv, s.Env) {
		n += len(v) + 1
	}
	return n
}
