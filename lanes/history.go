package lanes

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"agentd/exitcodes"
)

// historyLimit is the size in bytes at which a lane's history is put aside; one
// older file is kept.
const historyLimit = 256 << 10

// End says how a hold ended.
type End string

const (
	Released End = "released"
	Died     End = "died" // found by the next taker: Until is when
)

// Hold is one time that somebody held a lane.
type Hold struct {
	Slot int `json:"slot"`
	Owner
	Until time.Time `json:"until"`
	End   End       `json:"end"`
}

func (d Dir) historyFile(name string) string {
	return filepath.Join(string(d), name+".history.jsonl")
}

// appendHistory adds a line with a single write, which a concurrent one cannot
// tear. A lane works without its history, so errors are of no consequence.
func (d Dir) appendHistory(name string, h Hold) {
	data, err := json.Marshal(h)
	if err != nil {
		return
	}
	path := d.historyFile(name)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	if _, err := f.Write(append(data, '\n')); err != nil {
		return
	}
	if info, err := f.Stat(); err == nil && info.Size() > historyLimit {
		// Whoever has it open still writes to it under its new name.
		_ = os.Rename(path, path+".1")
	}
}

// History returns the last n holds of a lane that have ended, the latest last;
// n of 0 means all that are kept.
func (d Dir) History(name string, n int) ([]Hold, error) {
	if !ValidName(name) {
		return nil, exitcodes.Errorf(exitcodes.Usage, "there is no lane %q", name)
	}
	var holds []Hold
	for _, path := range []string{d.historyFile(name) + ".1", d.historyFile(name)} {
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read the history of lane %s: %w", name, err)
		}
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			var h Hold
			if json.Unmarshal(lines.Bytes(), &h) == nil { // a torn line is skipped
				holds = append(holds, h)
			}
		}
		err = lines.Err()
		_ = f.Close()
		if err != nil {
			return nil, fmt.Errorf("cannot read the history of lane %s: %w", name, err)
		}
	}
	if n > 0 && len(holds) > n {
		holds = holds[len(holds)-n:]
	}
	return holds, nil
}
