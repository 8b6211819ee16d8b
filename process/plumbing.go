package process

import (
	"context"
	"errors"
	"io"
	"os"
	"reflect"
	"time"

	"golang.org/x/sys/unix"

	"agentd/exitcodes"
)

// plumbing is the pipes between us and the leader. They are our own, so that
// a stranger who keeps one open cannot make us wait.
type plumbing struct {
	child  []*os.File // the child's stdin, stdout, stderr
	owned  []*os.File // of these, the ones to close here after the fork
	input  *feed
	output []*pump
}

func newPlumbing(spec Spec) (_ *plumbing, err error) {
	p := &plumbing{}
	defer func() {
		if err != nil {
			p.closeChildEnds()
			p.abort()
		}
	}()
	if err = p.addInput(spec.Stdin); err != nil {
		return nil, err
	}
	if err = p.addOutput(spec.Stdout); err != nil {
		return nil, err
	}
	if spec.Stdout != nil && same(spec.Stdout, spec.Stderr) {
		p.child = append(p.child, p.child[1])
		return p, nil
	}
	return p, p.addOutput(spec.Stderr)
}

func same(a, b io.Writer) bool {
	return a != nil && b != nil && reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.TypeOf(a).Comparable() && a == b
}

func (p *plumbing) own(f *os.File) {
	p.child = append(p.child, f)
	p.owned = append(p.owned, f)
}

func (p *plumbing) addInput(r io.Reader) error {
	switch r := r.(type) {
	case nil:
		f, err := os.Open(os.DevNull)
		if err != nil {
			return err
		}
		p.own(f)
		return nil
	case *os.File:
		p.child = append(p.child, r)
		return nil
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return err
	}
	p.own(theirs)
	p.input = &feed{from: r, to: ours, done: make(chan struct{})}
	return nil
}

func (p *plumbing) addOutput(w io.Writer) error {
	if w == nil {
		f, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		p.own(f)
		return nil
	}
	ours, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	p.own(theirs)
	widen(ours)
	p.output = append(p.output, &pump{from: ours, to: w, done: make(chan struct{})})
	return nil
}

// widen makes a pipe hold more, where the user does not have too many already.
func widen(pipe *os.File) {
	if c, err := pipe.SyscallConn(); err == nil {
		_ = c.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pumpBuffer) })
	}
}

func (p *plumbing) closeChildEnds() {
	for _, f := range p.owned {
		_ = f.Close()
	}
	p.owned = nil
}

// abort closes our ends when nothing was started.
func (p *plumbing) abort() {
	if p.input != nil {
		_ = p.input.to.Close()
	}
	for _, o := range p.output {
		_ = o.from.Close()
	}
}

func (p *plumbing) run() {
	if p.input != nil {
		go p.input.run()
	}
	for _, o := range p.output {
		go o.run()
	}
}

// finish is called when the tree is dead: what is in the pipes is delivered,
// and nothing more is waited for. It returns the first error of a writer.
func (p *plumbing) finish() error {
	limit, cancel := context.WithTimeout(context.Background(), drainLimit)
	defer cancel()
	if p.input != nil {
		_ = p.input.to.Close() // ends a write to a pipe that nobody reads
		select {
		case <-p.input.done:
		case <-limit.Done(): // its reader blocks, against the contract
		}
	}
	var first error
	for _, o := range p.output {
		if err := o.finish(limit.Done()); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// feed copies the input to the program.
type feed struct {
	from io.Reader
	to   *os.File
	done chan struct{}
}

func (f *feed) run() {
	defer close(f.done)
	// A program that does not want its input is not at fault.
	_, _ = io.Copy(f.to, f.from)
	_ = f.to.Close()
}

// pump copies output from the program.
type pump struct {
	from *os.File
	to   io.Writer
	err  error // the writer's
	done chan struct{}
}

// pumpBuffer is how much output a read takes, and a pipe holds, in bytes: fewer
// turns between the program and us.
const pumpBuffer = 256 << 10

// quiet is how long a pipe must have nothing to say, once the tree is dead, to
// count as drained although a stranger holds its other end.
const quiet = 100 * time.Millisecond

func (p *pump) run() {
	defer close(p.done)
	buf := make([]byte, pumpBuffer)
	draining := false
	for {
		n, err := p.from.Read(buf)
		if n > 0 && p.err == nil {
			_, p.err = p.to.Write(buf[:n])
		}
		if err != nil {
			if draining || !errors.Is(err, os.ErrDeadlineExceeded) {
				return
			}
			draining = true // finish has set a deadline
		}
		if draining {
			_ = p.from.SetReadDeadline(time.Now().Add(quiet))
		}
	}
}

func (p *pump) finish(limit <-chan struct{}) error {
	defer p.from.Close()
	_ = p.from.SetReadDeadline(time.Now())
	select {
	case <-p.done:
		return p.err
	case <-limit:
		return exitcodes.Errorf(exitcodes.IO, "cannot deliver all output: its reader is stuck")
	}
}
