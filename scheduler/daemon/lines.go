package daemon

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"sync"
)

// Lines is where the lines of all runs go. Each is written whole, in one write.
type Lines struct {
	mu sync.Mutex
	to io.Writer
}

// NewLines returns lines that go to w.
func NewLines(w io.Writer) *Lines { return &Lines{to: w} }

// maxLine is where a longer line is cut in two, in bytes.
const maxLine = 4 << 10

// Copy writes each line of r with prefix before it, until r ends.
func (l *Lines) Copy(prefix string, r io.Reader) {
	in := bufio.NewReaderSize(r, maxLine)
	line := make([]byte, 0, 256)
	for {
		part, err := in.ReadSlice('\n')
		if len(part) > 0 {
			line = append(line[:0], prefix...)
			if bytes.HasPrefix(part, line) { // the line says itself whose it is
				line = line[:0]
			}
			line = append(line, part...)
			if part[len(part)-1] != '\n' {
				line = append(line, '\n')
			}
			l.write(line)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// Write writes what is a line, or several.
func (l *Lines) Write(p []byte) (int, error) {
	l.write(p)
	return len(p), nil
}

// write does not care for errors: that nobody reads must not stop the runs,
// which have logs of their own.
func (l *Lines) write(p []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.to.Write(p)
}
