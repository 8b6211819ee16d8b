package history

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
	_ "modernc.org/sqlite" // the database driver

	"agentd/exitcodes"
)

const (
	indexFile = "agentd.db"
	staleFile = "agentd.db.stale" // there: some record is newer than the index
	schema    = 1

	rebuildLimit = 10 * time.Second // how long to wait for another process's rebuild
)

// index finds records by what people ask for. It holds no truth of its own.
type index struct {
	db   *sql.DB
	path string
	file os.FileInfo // the file that was opened
}

const createTable = `
CREATE TABLE runs (
	run_id     TEXT PRIMARY KEY,
	agent      TEXT NOT NULL,
	job        TEXT NOT NULL,
	started_at INTEGER NOT NULL, -- ms since 1970
	open       INTEGER NOT NULL,
	code       INTEGER
);
CREATE INDEX runs_job ON runs (agent, job, started_at);
CREATE INDEX runs_started ON runs (started_at);
CREATE INDEX runs_open ON runs (open) WHERE open = 1;
PRAGMA user_version = 1;`

// openIndex opens the index as it is; one without a table is an error.
func (s *Store) openIndex() (*index, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.index != nil {
		return s.index, nil
	}
	path := filepath.Join(s.dir, indexFile)
	if _, err := os.Stat(path); err != nil {
		if ix, err := s.createFirst(path); err == nil && ix != nil {
			s.index = ix
			return ix, nil
		}
		return nil, fmt.Errorf("cannot open the index: %w", err)
	}
	ix, err := openDB(path)
	if err != nil {
		return nil, err
	}
	if err := ix.check(); err != nil {
		return nil, errors.Join(err, ix.close())
	}
	s.index = ix
	return ix, nil
}

// createFirst makes the index of a state folder that is new; where there are
// runs already it has to be rebuilt, and nil is returned.
func (s *Store) createFirst(path string) (*index, error) {
	ids, err := s.ids()
	if err != nil || len(ids) > 1 { // one: the run that has just begun
		return nil, err
	}
	unlock, err := lockIndex(s.dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if _, err := os.Stat(path); err == nil {
		return nil, nil // somebody else was first
	}
	return createDB(path)
}

func createDB(path string) (*index, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	ix, err := openDB(path)
	if err != nil {
		return nil, err
	}
	if _, err := ix.db.Exec(createTable); err != nil {
		return nil, errors.Join(err, ix.close())
	}
	if err := ix.check(); err != nil {
		return nil, errors.Join(err, ix.close())
	}
	return ix, nil
}

// openDB opens the database without syncs: should a crash of the machine damage
// it, it is made anew.
func openDB(path string) (*index, error) {
	dsn := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: url.Values{
		"_txlock": {"immediate"},
		"_pragma": {"busy_timeout(5000)", "journal_mode(wal)", "synchronous(off)"},
	}.Encode()}
	db, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return &index{db: db, path: path}, nil
}

func (ix *index) close() error { return ix.db.Close() }

// check reports whether the file is a database of the right shape.
func (ix *index) check() error {
	var version int
	if err := ix.db.QueryRow("PRAGMA user_version").Scan(&version); err != nil {
		return fmt.Errorf("cannot read the index: %w", err)
	}
	if version != schema {
		return fmt.Errorf("the index has version %d, not %d", version, schema)
	}
	var err error
	ix.file, err = os.Stat(ix.path)
	return err
}

// current reports whether the file that was opened is still the index: a
// rebuild by another process puts a new one in its place.
func (ix *index) current() bool {
	now, err := os.Stat(ix.path)
	return err == nil && os.SameFile(now, ix.file)
}

func (ix *index) put(r *Run) error {
	var code any
	if r.Code != nil {
		code = int(*r.Code)
	}
	_, err := ix.db.Exec(`INSERT INTO runs (run_id, agent, job, started_at, open, code) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (run_id) DO UPDATE SET open = excluded.open, code = excluded.code`,
		r.RunID, r.Agent, r.Job, r.StartedAt.UnixMilli(), r.Open(), code)
	return err
}

func (ix *index) find(f Filter) ([]string, error) {
	var where []string
	var args []any
	add := func(cond string, arg any) {
		where = append(where, cond)
		args = append(args, arg)
	}
	if f.Agent != "" {
		add("agent = ?", f.Agent)
	}
	if f.Job != "" {
		add("job = ?", f.Job)
	}
	if !f.Since.IsZero() {
		add("started_at >= ?", f.Since.UnixMilli())
	}
	if !f.Until.IsZero() {
		add("started_at < ?", f.Until.UnixMilli())
	}
	if f.Code != nil {
		add("code = ?", int(*f.Code))
	}
	query := "SELECT run_id FROM runs"
	if len(where) > 0 {
		query += " WHERE " + strings.Join(where, " AND ")
	}
	query += " ORDER BY started_at DESC, run_id DESC"
	if f.Limit > 0 {
		query += " LIMIT ?"
		args = append(args, f.Limit)
	}
	return ix.strings(query, args...)
}

func (ix *index) open() ([]string, error) {
	return ix.strings("SELECT run_id FROM runs WHERE open = 1 ORDER BY started_at")
}

func (ix *index) strings(query string, args ...any) ([]string, error) {
	rows, err := ix.db.Query(query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, rows.Err()
}

// markStale leaves word that the index lacks something.
func markStale(dir string) {
	f, err := os.OpenFile(filepath.Join(dir, staleFile), os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_ = f.Close()
	}
}

// freshIndex returns an index that holds all runs: it is made anew if it is
// lost, damaged or lacks something.
func (s *Store) freshIndex() (*index, error) {
	_, staleErr := os.Stat(filepath.Join(s.dir, staleFile))
	if staleErr != nil {
		if ix, err := s.openIndex(); err == nil {
			return ix, nil
		}
	}
	return s.rebuild()
}

// rebuild makes the index anew from the records.
func (s *Store) rebuild() (*index, error) {
	_ = s.Close() // it is being replaced
	unlock, err := lockIndex(s.dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := s.setAside(); err != nil {
		return nil, err
	}
	// Gone first: what is written to the index from here on is in the new one.
	if err := os.Remove(filepath.Join(s.dir, staleFile)); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	ix, err := createDB(filepath.Join(s.dir, indexFile))
	if err != nil {
		return nil, err
	}
	if err := s.fill(ix); err != nil {
		return nil, errors.Join(err, ix.close())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index = ix
	return ix, nil
}

// setAside moves a former index away, so that it can be looked at.
func (s *Store) setAside() error {
	suffix := ".damaged-" + time.Now().UTC().Format("20060102T150405.000")
	for _, name := range []string{indexFile, indexFile + "-wal", indexFile + "-shm"} {
		path := filepath.Join(s.dir, name)
		if err := os.Rename(path, path+suffix); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return nil
}

func (s *Store) fill(ix *index) error {
	ids, err := s.ids()
	if err != nil {
		return err
	}
	for _, id := range ids {
		r, err := s.Read(id)
		if err != nil {
			continue // a folder without a record, or a damaged one, which `history` names
		}
		if err := ix.put(r); err != nil {
			return err
		}
	}
	return nil
}

// lockIndex makes sure that one process at a time builds the index.
func lockIndex(dir string) (unlock func(), err error) {
	l := flock.New(filepath.Join(dir, indexFile+".lock"), flock.SetPermissions(0o600))
	ctx, cancel := context.WithTimeout(context.Background(), rebuildLimit)
	defer cancel()
	if _, err := l.TryLockContext(ctx, 10*time.Millisecond); err != nil {
		return nil, exitcodes.Errorf(exitcodes.IO, "cannot lock the index for a rebuild: %w", err)
	}
	return func() { _ = l.Unlock() }, nil
}
