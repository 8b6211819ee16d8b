package runner

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"agentd/backend"
	"agentd/history"
	"agentd/redact"
)

// output is the run's one stream of plain lines: to stdout, to the run's
// output.log where no script writes it, and the events beside it. Secrets are
// masked on the way in.
type output struct {
	now    func() time.Time
	redact *redact.Redactor
	masked io.WriteCloser // masks, then writes to sink
	sink   *sink
	events *history.Events
	mu     sync.Mutex
}

// sink writes to stdout and the log. A reader of stdout that went away is no
// reason to stop the run; a log that cannot be written is remembered.
type sink struct {
	stdout io.Writer
	log    *os.File
	err    error
}

func (s *sink) Write(p []byte) (int, error) {
	if s.stdout != nil {
		if _, err := s.stdout.Write(p); err != nil {
			s.stdout = nil
		}
	}
	if s.log != nil && s.err == nil {
		if _, err := s.log.Write(p); err != nil {
			s.err = err
		}
	}
	return len(p), nil
}

func openOutput(stdout io.Writer, runDir string, keepLog bool, secrets []string, now func() time.Time) (*output, error) {
	o := &output{now: now, redact: redact.New(secrets), sink: &sink{stdout: stdout}}
	if keepLog {
		log, err := os.OpenFile(filepath.Join(runDir, "output.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, fmt.Errorf("cannot open the run's log: %w", err)
		}
		o.sink.log = log
	}
	events, err := history.OpenEvents(runDir, o.redact.String)
	if err != nil {
		return nil, errors.Join(err, o.sink.close())
	}
	o.events = events
	o.masked = o.redact.Writer(o.sink)
	return o, nil
}

func (s *sink) close() error {
	if s.log == nil {
		return s.err
	}
	return errors.Join(s.err, s.log.Close())
}

// Write takes the agent's own output.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.masked.Write(p)
}

// line writes one line of agentd's own.
func (o *output) line(format string, args ...any) {
	fmt.Fprintf(o, format+"\n", args...)
}

// timed is line with the time of day before it.
func (o *output) timed(format string, args ...any) {
	o.line(o.now().Local().Format("15:04:05")+" "+format, args...)
}

// event shows a backend's event to people and keeps it for programs.
func (o *output) event(e backend.Event) {
	if e.At.IsZero() {
		e.At = o.now()
	}
	if e.Text != "" {
		o.line("%s   %s", e.At.Local().Format("15:04:05"), e.Text)
	}
	// The record and the log tell the story without it: an event that cannot be
	// kept does not stop the run.
	_ = o.events.Append(history.Event{At: e.At, Kind: e.Kind, Text: e.Text, Data: e.Data})
}

// Close flushes what masking held back.
func (o *output) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return errors.Join(o.masked.Close(), o.sink.close(), o.events.Close())
}
