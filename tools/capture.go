package tools

import (
	"fmt"
	"os"
	"path/filepath"
)

const (
	outputLimit = 64 << 10 // bytes of output that the model is shown
	fileLimit   = 64 << 20 // bytes of output that are kept in a file
)

// capture keeps the beginning and the end of an output in memory, and once it
// is longer than that, the whole in a file. It never fails: what cannot be kept
// is noted.
type capture struct {
	dir   string // where the file goes; "": nowhere
	head  []byte
	tail  []byte // a ring once it is full
	next  int    // where the ring goes on
	total int64
	file  *os.File
	path  string
	saved int64
	err   error // of the file
}

func (c *capture) Write(p []byte) (int, error) {
	n := len(p)
	if c.total+int64(n) > outputLimit {
		c.save(p)
	}
	c.total += int64(n)
	if room := outputLimit/2 - len(c.head); room > 0 {
		take := min(room, len(p))
		c.head = append(c.head, p[:take]...)
		p = p[take:]
	}
	if room := outputLimit/2 - len(c.tail); room > 0 {
		take := min(room, len(p))
		c.tail = append(c.tail, p[:take]...)
		p = p[take:]
	}
	if over := len(p) - len(c.tail); over > 0 {
		p = p[over:] // would be overwritten at once
	}
	for len(p) > 0 {
		k := copy(c.tail[c.next:], p)
		c.next = (c.next + k) % len(c.tail)
		p = p[k:]
	}
	return n, nil
}

// save writes p to the file, which is made when first needed.
func (c *capture) save(p []byte) {
	if c.dir == "" || c.err != nil {
		return
	}
	if c.file == nil {
		if c.err = os.MkdirAll(c.dir, 0o700); c.err != nil {
			return
		}
		if c.file, c.err = os.CreateTemp(c.dir, "output-*.txt"); c.err != nil {
			return
		}
		c.path, _ = filepath.Abs(c.file.Name())
		c.put(c.head)
		c.put(c.tail) // not a ring yet
	}
	c.put(p)
}

func (c *capture) put(p []byte) {
	p = p[:min(int64(len(p)), fileLimit-c.saved)]
	if len(p) == 0 || c.err != nil {
		return
	}
	n, err := c.file.Write(p)
	c.saved += int64(n)
	c.err = err
}

func (c *capture) close() {
	if c.file != nil {
		_ = c.file.Close() // a copy for convenience: not worth an error
	}
}

// text returns what the model is shown.
func (c *capture) text() string {
	end := string(c.tail[c.next:]) + string(c.tail[:c.next])
	if c.total <= outputLimit {
		return string(c.head) + end
	}
	return fmt.Sprintf("%s\n[... %d bytes left out ...]\n%s", c.head, c.total-outputLimit, end)
}

// note says what was left out and where to find it; "" if nothing was.
func (c *capture) note() string {
	if c.total <= outputLimit {
		return ""
	}
	s := fmt.Sprintf("of %d bytes of output, the first and last %d KiB are shown", c.total, outputLimit/2>>10)
	switch {
	case c.dir == "":
	case c.err != nil:
		s += fmt.Sprintf("; the rest could not be kept: %v", c.err)
	case c.saved < c.total:
		s += fmt.Sprintf("; the first %d MiB are in %s", fileLimit>>20, c.path)
	default:
		s += "; all of it is in " + c.path
	}
	return s
}
