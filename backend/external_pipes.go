package backend

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"agentd/exitcodes"
	"agentd/process"
	"agentd/redact"
)

// recordLimit is how many bytes of a CLI's own events are kept.
const recordLimit = 256 << 20

// pipes is where a CLI's output goes: its text to the log, its events to the
// format's reader and to a record in the run's folder.
type pipes struct {
	out, err closer
	rest     func()
	record   *record
}

type closer interface {
	io.Writer
	close() error
}

// attach connects the output of the program with the reading.
func (x *external) attach(spec *process.Spec, r *reading, a Attempt) (*pipes, error) {
	f := newFormat(x.Backend.Output)
	touched := r.watch.touched
	log := func() *lineWriter { return newLineWriter(a.Output, x.logLimit) }
	p := &pipes{rest: func() {}}
	if f == nil {
		p.out = &textStream{r: r, lines: log(), touched: touched}
		p.err = &textStream{r: r, errors: true, lines: log(), touched: touched}
	} else {
		var err error
		if p.record, err = newRecord(a, x.Backend.Name); err != nil {
			return nil, err
		}
		p.out = &stream{r: r, format: f, lines: log(), touched: touched, keep: p.record}
		p.err = &stream{r: r, format: f, errors: true, lines: log(), touched: touched}
		p.rest = func() { finish(r, f) }
	}
	spec.Stdout, spec.Stderr = p.out, p.err
	return p, nil
}

// close passes on what is left, once the program has ended.
func (p *pipes) close() error {
	first := p.out.close()
	if err := p.err.close(); err != nil && first == nil {
		first = err
	}
	p.rest()
	if p.record != nil {
		if err := p.record.close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// finish reads what stood outside of events.
func finish(r *reading, f format) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f.rest(r, strings.Join(r.errorLines(), "\n"))
}

// record keeps the raw output of an attempt, without secrets, up to a limit.
type record struct {
	mu   sync.Mutex
	file *os.File
	mask io.WriteCloser
	left int64
	err  error
}

func newRecord(a Attempt, name string) (*record, error) {
	path := filepath.Join(a.RunDir, fmt.Sprintf("%s-%d.jsonl", name, a.N))
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, exitcodes.Errorf(exitcodes.From(err), "cannot keep the output: %w", err)
	}
	_, secrets, _ := a.Job.Variables() // the runner has reported what is wrong with them
	for _, kv := range a.Env {
		if name, value, _ := strings.Cut(kv, "="); concernsProviders(name) && !strings.HasSuffix(name, "_BASE_URL") {
			secrets = append(secrets, value)
		}
	}
	return &record{file: f, mask: redact.New(secrets).Writer(f), left: recordLimit}, nil
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(p)
	if r.left <= 0 || r.err != nil {
		return n, r.err
	}
	p = p[:min(int64(len(p)), r.left)]
	r.left -= int64(len(p))
	_, r.err = r.mask.Write(p)
	return n, r.err
}

func (r *record) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, err := range []error{r.mask.Close(), r.file.Close()} {
		if err != nil && r.err == nil {
			r.err = err
		}
	}
	if r.err != nil {
		return fmt.Errorf("cannot keep the program's events: %w", r.err)
	}
	return nil
}
