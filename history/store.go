package history

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"agentd/atomicfile"
	"agentd/exitcodes"
)

const recordFile = "run.json"

// Store holds the records below one state folder. It may be used by many
// processes at once; a Run record has one writer, the run itself.
type Store struct {
	dir   string // the state folder
	index *index // nil until it is needed
	mu    sync.Mutex
}

// Filter chooses runs. A zero field does not restrict.
type Filter struct {
	Agent string
	Job   string
	Since time.Time // started at or after
	Until time.Time // started before
	Code  *exitcodes.Code
	Limit int
}

// Open returns the store below stateDir. It makes nothing yet: reading a store
// that is not there finds no runs.
func Open(stateDir string) (*Store, error) {
	if !filepath.IsAbs(stateDir) {
		return nil, exitcodes.Errorf(exitcodes.Config, "the state folder %q is not an absolute path", stateDir)
	}
	return &Store{dir: stateDir}, nil
}

// Close releases the index.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.index == nil {
		return nil
	}
	err := s.index.close()
	s.index = nil
	return err
}

func (s *Store) runs() string { return filepath.Join(s.dir, "runs") }

// RunDir returns the folder of a run.
func (s *Store) RunDir(id string) string { return filepath.Join(s.runs(), id) }

// Begin makes the run's folder, unless a script has made it already, and
// writes the record. Where that fails nothing may run.
func (s *Store) Begin(r *Run) error {
	if err := CheckRunID(r.RunID); err != nil {
		return err
	}
	if err := os.MkdirAll(s.RunDir(r.RunID), 0o700); err != nil {
		return unwritable(err)
	}
	r.normalize()
	data, err := encode(r)
	if err != nil {
		return err
	}
	err = atomicfile.Create(s.recordPath(r.RunID), data, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return exitcodes.Errorf(exitcodes.Usage, "run %s is in use already", r.RunID)
	}
	if err != nil {
		return unwritable(err)
	}
	s.note(r)
	return nil
}

// Save writes the record as it is now.
func (s *Store) Save(r *Run) error {
	r.normalize()
	data, err := encode(r)
	if err != nil {
		return err
	}
	if r.PendingResume != nil {
		if err := s.markPending(r.RunID); err != nil {
			return err
		}
	}
	if err := atomicfile.Write(s.recordPath(r.RunID), data, 0o600); err != nil {
		return unwritable(err)
	}
	if r.PendingResume == nil {
		if err := s.unmarkPending(r.RunID); err != nil {
			return err
		}
	}
	s.note(r)
	return nil
}

func (s *Store) recordPath(id string) string { return filepath.Join(s.RunDir(id), recordFile) }

func encode(r *Run) ([]byte, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the record of run %s: %w", r.RunID, err)
	}
	return append(data, '\n'), nil
}

func unwritable(err error) error {
	code := exitcodes.From(err)
	if code != exitcodes.IO {
		code = exitcodes.CannotCreate
	}
	return exitcodes.Errorf(code, "cannot keep the run's record: %w", err)
}

// note brings the index up to date. It is only an index: whatever is wrong
// with it must not stop a run, and the next reader makes it anew.
func (s *Store) note(r *Run) {
	ix, err := s.openIndex()
	if err == nil {
		err = ix.put(r)
	}
	if err != nil || !ix.current() {
		markStale(s.dir)
	}
}

// Read returns the record of the run with this id.
func (s *Store) Read(id string) (*Run, error) {
	data, err := os.ReadFile(s.recordPath(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, exitcodes.Errorf(exitcodes.NoInput, "there is no run %s", id).WithHint("All runs: agentd history --all")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the record of run %s: %w", id, err)
	}
	var r Run
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, exitcodes.Errorf(exitcodes.Data, "the record %s is damaged: %w", s.recordPath(id), err)
	}
	r.normalize()
	return &r, nil
}

// Get returns the run whose id is, starts or ends with part. It is an error
// with the code NoInput if there is none or more than one.
func (s *Store) Get(part string) (*Run, error) {
	if CheckRunID(part) == nil {
		return s.Read(part)
	}
	ids, err := s.ids()
	if err != nil {
		return nil, err
	}
	part = strings.ToLower(part)
	ids = slices.DeleteFunc(ids, func(id string) bool {
		return part == "" || !strings.HasPrefix(id, part) && !strings.HasSuffix(id, part)
	})
	switch len(ids) {
	case 0:
		return nil, exitcodes.Errorf(exitcodes.NoInput, "there is no run whose id starts or ends with %q", part).WithHint("All runs: agentd history --all")
	case 1:
		return s.Read(ids[0])
	}
	shown := strings.Join(ids[:min(len(ids), 5)], ", ")
	if more := len(ids) - 5; more > 0 {
		shown += fmt.Sprintf(" and %d more", more)
	}
	return nil, exitcodes.Errorf(exitcodes.NoInput, "%d runs have an id that starts or ends with %q", len(ids), part).
		WithHint("They are: " + shown)
}

// ids lists the folders of runs, the oldest first.
func (s *Store) ids() ([]string, error) {
	entries, err := os.ReadDir(s.runs())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list the runs: %w", err)
	}
	var ids []string
	for _, e := range entries {
		if CheckRunID(e.Name()) == nil {
			ids = append(ids, e.Name())
		}
	}
	return ids, nil
}

// List returns the runs that the filter chooses, the newest first.
func (s *Store) List(f Filter) ([]*Run, error) {
	ids, err := s.find(f)
	if err != nil {
		return nil, err
	}
	var runs []*Run
	for _, id := range ids {
		r, err := s.Read(id)
		if exitcodes.From(err) == exitcodes.NoInput {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	slices.SortStableFunc(runs, func(a, b *Run) int {
		return cmp.Or(b.StartedAt.Compare(a.StartedAt), strings.Compare(b.RunID, a.RunID))
	})
	return runs, nil
}

// find asks the index, and makes it anew first if it cannot be trusted.
func (s *Store) find(f Filter) ([]string, error) {
	if _, err := os.Stat(s.runs()); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for range 2 { // the second time with a new index, if the first was damaged
		ix, err := s.freshIndex()
		if err != nil {
			break
		}
		ids, err := ix.find(f)
		if err == nil {
			return ids, nil
		}
		markStale(s.dir)
	}
	// A folder that cannot be written has no index: look at every record.
	return s.scan(f)
}

// Last returns the job's latest run, or nil.
func (s *Store) Last(agent, job string) (*Run, error) {
	runs, err := s.List(Filter{Agent: agent, Job: job, Limit: 1})
	if err != nil || len(runs) == 0 {
		return nil, err
	}
	return runs[0], nil
}

// OpenRuns returns the runs whose record was not closed: those under way and
// those whose agentd died.
func (s *Store) OpenRuns() ([]*Run, error) {
	ix, err := s.freshIndex()
	if err != nil {
		return nil, nil // an index that cannot be opened cannot tell; a later run will find them
	}
	ids, err := ix.open()
	if err != nil {
		return nil, nil
	}
	var open []*Run
	for _, id := range ids {
		if r, err := s.Read(id); err == nil && r.Open() {
			open = append(open, r)
		}
	}
	return open, nil
}

// scan reads every record.
func (s *Store) scan(f Filter) ([]string, error) {
	ids, err := s.ids()
	if err != nil {
		return nil, err
	}
	var found []string
	for _, id := range slices.Backward(ids) {
		r, err := s.Read(id)
		if err != nil || !f.matches(r) {
			continue
		}
		found = append(found, id)
		if f.Limit > 0 && len(found) == f.Limit {
			break
		}
	}
	return found, nil
}

func (f Filter) matches(r *Run) bool {
	return (f.Agent == "" || r.Agent == f.Agent) &&
		(f.Job == "" || r.Job == f.Job) &&
		(f.Since.IsZero() || !r.StartedAt.Before(f.Since)) &&
		(f.Until.IsZero() || r.StartedAt.Before(f.Until)) &&
		(f.Code == nil || r.Code != nil && *r.Code == *f.Code)
}

// Discard removes the folder that a script made for a run which then did not
// begin: there is nothing in it but its log.
func (s *Store) Discard(id string) error {
	if err := CheckRunID(id); err != nil {
		return err
	}
	for _, path := range []string{filepath.Join(s.RunDir(id), "output.log"), s.RunDir(id)} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot remove the folder of run %s: %w", id, err)
		}
	}
	return nil
}
