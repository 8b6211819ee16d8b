package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"agentd/history"
)

// logFile is the file of a run that is read, and a writer for its lines.
func (a *App) logFile(store *history.Store, o logsOptions, run *history.Run) (string, *logWriter) {
	dir := store.RunDir(run.RunID)
	if o.events {
		return filepath.Join(dir, "events.jsonl"), &logWriter{out: a.Stdout}
	}
	w := &logWriter{out: a.Stdout}
	if a.json {
		w.runID = run.RunID
	}
	return filepath.Join(dir, "output.log"), w
}

// logWriter passes a log on: as it is, or with a run's id as JSON, an object a
// line.
type logWriter struct {
	out     io.Writer
	runID   string
	partial []byte // of a line whose end has not come
}

// longLine is from how many bytes on a line is told in pieces.
const longLine = 1 << 20

// Write passes on whole lines and keeps the rest.
func (w *logWriter) Write(p []byte) (int, error) {
	if w.runID == "" {
		return w.out.Write(p)
	}
	w.partial = append(w.partial, p...)
	for {
		i := bytes.IndexByte(w.partial, '\n')
		if i < 0 && len(w.partial) < longLine {
			return len(p), nil
		}
		line, rest := w.partial, []byte(nil)
		if i >= 0 {
			line, rest = w.partial[:i], w.partial[i+1:]
		}
		if err := w.line(line); err != nil {
			return 0, err
		}
		w.partial = rest
	}
}

func (w *logWriter) line(text []byte) error {
	return json.NewEncoder(w.out).Encode(struct {
		RunID string `json:"run_id"`
		Line  string `json:"line"`
	}{w.runID, string(bytes.TrimSuffix(text, []byte("\r")))})
}

// flush passes on a last line that has no end.
func (w *logWriter) flush() error {
	if len(w.partial) == 0 {
		return nil
	}
	line := w.partial
	w.partial = nil
	return w.line(line)
}

// printLog prints what the run said, from the journal where its file is gone.
func (a *App) printLog(ctx context.Context, store *history.Store, o logsOptions, run *history.Run) error {
	path, w := a.logFile(store, o, run)
	_, err := copyLog(w, path, 0, o.lines)
	if errors.Is(err, fs.ErrNotExist) {
		if !o.events {
			_ = a.runJournal(ctx, o, run) // or else it ended before it said anything
		}
		return nil
	}
	if err != nil {
		return err
	}
	return w.flush()
}

// copyLog copies what path has after offset, or its last lines if that is not
// negative, and returns the offset after it.
func copyLog(w io.Writer, path string, offset int64, lines int) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return offset, fmt.Errorf("cannot read the run's log: %w", err)
	}
	defer f.Close()
	if lines >= 0 {
		if offset, err = lastLines(f, lines); err != nil {
			return offset, fmt.Errorf("cannot read the run's log: %w", err)
		}
	}
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return offset, fmt.Errorf("cannot read the run's log: %w", err)
	}
	n, err := io.Copy(w, f)
	return offset + n, err
}

// lastLines finds where the last n lines of f begin. A last line without an end
// is one.
func lastLines(f *os.File, n int) (int64, error) {
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil || n == 0 {
		return end, err
	}
	block := make([]byte, 64<<10)
	for at := end; at > 0; {
		size := min(at, int64(len(block)))
		at -= size
		if _, err := f.ReadAt(block[:size], at); err != nil {
			return 0, err
		}
		for i := size - 1; i >= 0; i-- {
			if block[i] != '\n' || at+i == end-1 {
				continue
			}
			if n--; n == 0 {
				return at + i + 1, nil
			}
		}
	}
	return 0, nil
}

// followEvery is how often a followed log is looked at.
const followEvery = 200 * time.Millisecond

// quietLooks is after how many looks at a log without more of it the run is
// looked at.
const quietLooks = 10

// follow prints a run's log as it grows, then the logs of the runs after it,
// until the context ends; a run that was asked for by its id until it has ended.
func (a *App) follow(ctx context.Context, store *history.Store, o logsOptions, run *history.Run, filter history.Filter) error {
	for {
		if err := a.followRun(ctx, store, o, run); err != nil || o.run != "" {
			return err
		}
		next, err := a.awaitNext(ctx, store, run, filter)
		if err != nil {
			return err
		}
		run, o.lines = next, -1
	}
}

// followRun prints one run's log until the run has ended.
func (a *App) followRun(ctx context.Context, store *history.Store, o logsOptions, run *history.Run) error {
	path, w := a.logFile(store, o, run)
	lines := o.lines
	var offset int64
	for quiet := 0; ; quiet++ {
		if quiet%quietLooks == quietLooks-1 { // its agentd may have died
			if err := a.closeCrashed(store); err != nil {
				return err
			}
		}
		current, err := store.Get(run.RunID)
		if err != nil {
			return err
		}
		end, err := copyLog(w, path, offset, lines)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err == nil {
			lines = -1
		}
		if current.EndedAt != nil && end == offset {
			return w.flush()
		}
		if end > offset {
			quiet = 0
		}
		offset = end
		if err := sleep(ctx, followEvery); err != nil {
			return err
		}
	}
}

// awaitNext waits for the run after run, of which filter finds the later ones.
func (a *App) awaitNext(ctx context.Context, store *history.Store, run *history.Run, filter history.Filter) (*history.Run, error) {
	filter.Since, filter.Limit = run.StartedAt, 0
	for {
		runs, err := store.List(filter)
		if err != nil {
			return nil, err
		}
		this := slices.IndexFunc(runs, func(r *history.Run) bool { return r.RunID == run.RunID })
		if this > 0 {
			return runs[this-1], nil
		}
		if this < 0 && len(runs) > 0 { // its record is gone
			return runs[len(runs)-1], nil
		}
		if err := sleep(ctx, followEvery); err != nil {
			return nil, err
		}
	}
}

// sleep waits for d, or for ctx to end, which is then the error.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
