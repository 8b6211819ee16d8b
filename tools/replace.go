package tools

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// replace writes a file whole inside the root: to a temporary one beside it,
// then renamed over it. A link is followed as far as it stays inside. The mode
// of a file that is there is kept. It reports whether the file was made.
func replace(root *os.Root, path string, data []byte) (made bool, err error) {
	if path, err = target(root, path); err != nil {
		return false, err
	}
	old, err := root.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		made = true
		if err := root.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return false, err
		}
	case err != nil:
		return false, err
	case old.IsDir():
		return false, syscall.EISDIR
	case !old.Mode().IsRegular():
		return false, errors.New("it is not a regular file")
	}
	temp := filepath.Join(filepath.Dir(path), ".agentd-"+rand.Text()+".tmp")
	if err := fill(root, temp, data, old); err != nil {
		_ = root.Remove(temp) // the first error is the one to tell
		return false, err
	}
	if err := root.Rename(temp, path); err != nil {
		_ = root.Remove(temp)
		return false, err
	}
	return made, syncDir(root, filepath.Dir(path))
}

// target follows links at the end of the path.
func target(root *os.Root, path string) (string, error) {
	for range 20 {
		info, err := root.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode()&fs.ModeSymlink == 0 {
			return path, nil
		}
		if err != nil {
			return "", err
		}
		to, err := root.Readlink(path)
		if err != nil {
			return "", err
		}
		if filepath.IsAbs(to) {
			return "", errOutside
		}
		path = filepath.Join(filepath.Dir(path), to)
		if !filepath.IsLocal(path) {
			return "", errOutside
		}
	}
	return "", syscall.ELOOP
}

// fill writes a new file with the owner and mode of old, if there is an old.
func fill(root *os.Root, path string, data []byte, old fs.FileInfo) error {
	f, err := root.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666) // less the umask
	if err != nil {
		return err
	}
	defer f.Close()
	if old != nil {
		if st, ok := old.Sys().(*syscall.Stat_t); ok {
			_ = f.Chown(int(st.Uid), int(st.Gid)) // only root may give files away
		}
		if err := f.Chmod(old.Mode().Perm()); err != nil {
			return err
		}
	}
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return f.Close()
}

func syncDir(root *os.Root, path string) error {
	d, err := root.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
