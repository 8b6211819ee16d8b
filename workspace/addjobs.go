package workspace

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"agentd/atomicfile"
	"agentd/exitcodes"
)

// AddJobs puts tables of TOML at the end of the workspace's agentd.toml. It
// checks what comes of it first, and changes nothing where that is an error:
// then it returns the *Invalid.
func AddJobs(dir, tables string) error {
	path := filepath.Join(dir, FileName)
	doc, err := readFile(path, maxFile)
	if err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(path) // a link stays one
	if err != nil {
		return unreadable(path, err)
	}
	info, err := os.Stat(real)
	if err != nil {
		return unreadable(path, err)
	}
	var out bytes.Buffer
	out.Write(doc)
	if n := len(doc); n > 0 && doc[n-1] != '\n' {
		out.WriteByte('\n')
	}
	fmt.Fprintf(&out, "\n%s", tables)
	_, found := parse(path, out.Bytes())
	if err := found.err(path); err != nil {
		return err
	}
	if err := atomicfile.Write(real, out.Bytes(), info.Mode().Perm()); err != nil {
		return exitcodes.Errorf(exitcodes.CannotCreate, "cannot add to %s: %w", path, err)
	}
	return nil
}
