package session

import (
	"io"
	"io/fs"
	"os"

	"agentd/atomicfile"
)

// disk is what the writer does to the file system; tests put faults under it.
type disk interface {
	OpenAppend(path string, perm fs.FileMode) (file, error)
	CreateAppend(path string, perm fs.FileMode) (file, error) // fails if path exists
	WriteWhole(path string, data []byte, perm fs.FileMode) error
	MkdirAll(path string, perm fs.FileMode) error
	SyncDir(path string) error
}

// file is a journal file open for appending.
type file interface {
	io.WriteCloser
	Sync() error
	Truncate(size int64) error
}

// osDisk is the real one.
type osDisk struct{}

func (osDisk) OpenAppend(path string, perm fs.FileMode) (file, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, perm)
}

func (osDisk) CreateAppend(path string, perm fs.FileMode) (file, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, perm)
}

func (osDisk) WriteWhole(path string, data []byte, perm fs.FileMode) error {
	return atomicfile.Write(path, data, perm)
}

func (osDisk) MkdirAll(path string, perm fs.FileMode) error { return os.MkdirAll(path, perm) }

func (osDisk) SyncDir(path string) error { return atomicfile.SyncDir(path) }
