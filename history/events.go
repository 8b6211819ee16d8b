package history

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Event is one fact about a run under way.
type Event struct {
	At   time.Time      `json:"at"`
	Kind string         `json:"kind"`
	Text string         `json:"text"` // one line for people
	Data map[string]any `json:"data,omitempty"`
}

// Events writes the events of one run, a line each, to events.jsonl.
type Events struct {
	file *os.File
	mask func(string) string
}

// OpenEvents opens the events of the run whose folder is runDir. Each line goes
// through mask, which takes secrets out.
func OpenEvents(runDir string, mask func(string) string) (*Events, error) {
	f, err := os.OpenFile(filepath.Join(runDir, "events.jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot keep the run's events: %w", err)
	}
	return &Events{f, mask}, nil
}

// Append adds an event in one write.
func (e *Events) Append(ev Event) error {
	line, err := json.Marshal(ev)
	if err != nil {
		return fmt.Errorf("cannot encode an event: %w", err)
	}
	_, err = e.file.WriteString(e.mask(string(line)) + "\n")
	return err
}

// Close closes the file.
func (e *Events) Close() error { return e.file.Close() }
