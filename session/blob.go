package session

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// maxInline is how many bytes of a tool's output stand in the journal itself.
const maxInline = 32 << 10

const blobFolder = "blobs"

func blobOf(text string) *Blob {
	sum := sha256.Sum256([]byte(text))
	return &Blob{SHA256: hex.EncodeToString(sum[:]), Bytes: int64(len(text))}
}

func (b *Blob) path(dir string) string { return filepath.Join(dir, blobFolder, b.SHA256) }

// valid keeps a damaged name from leading out of the folder.
func (b *Blob) valid() bool {
	raw, err := hex.DecodeString(b.SHA256)
	return err == nil && len(raw) == sha256.Size
}

// putBlob keeps text beside the journal. It is durable before a record speaks
// of it.
func putBlob(d disk, dir, text string) (*Blob, error) {
	b := blobOf(text)
	path := b.path(dir)
	if have, err := os.ReadFile(path); err == nil && string(have) == text {
		return b, nil
	}
	folder := filepath.Join(dir, blobFolder)
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		if err := d.MkdirAll(folder, 0o700); err != nil {
			return nil, err
		}
		if err := d.SyncDir(dir); err != nil {
			return nil, err
		}
	}
	return b, d.WriteWhole(path, []byte(text), 0o600)
}

// getBlob reads it back; an error that says what is wrong means damage.
func getBlob(dir string, b *Blob) (string, error) {
	if !b.valid() {
		return "", fmt.Errorf("the output's name %q is no SHA-256", b.SHA256)
	}
	text, err := os.ReadFile(b.path(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("the output of %d bytes is missing: %s", b.Bytes, b.path(dir))
	}
	if err != nil {
		return "", err
	}
	if got := blobOf(string(text)); *got != *b {
		return "", fmt.Errorf("the output is not what was written: %s", b.path(dir))
	}
	return string(text), nil
}

// lostText stands for an output that is gone.
func lostText(b *Blob) string {
	return fmt.Sprintf("[the output of this call, %d bytes, was lost from the disk]", b.Bytes)
}
