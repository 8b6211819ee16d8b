package session

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"agentd/exitcodes"
)

// Store is the folder of all sessions: AGENT/NAME/journal.jsonl and what lies
// beside it.
type Store struct {
	Dir string

	disk disk // nil: the real one
}

// Options are what a writer says of itself.
type Options struct {
	RunID string           // told to whoever finds the session in use
	Now   func() time.Time // nil: time.Now

	segment int64 // size of a journal file; 0: segmentBytes
}

func (st Store) dir(agent, name string) string { return filepath.Join(st.Dir, agent, name) }

// Open opens the session for writing and makes it if it does not exist. The
// error is a *Locked if another writer has it, a *Damage if the journal is
// damaged anywhere but at its unfinished end.
func (st Store) Open(agent, name string, o Options) (*Session, error) {
	if err := checkNames(agent, name); err != nil {
		return nil, err
	}
	if st.disk == nil {
		st.disk = osDisk{}
	}
	if o.segment == 0 {
		o.segment = segmentBytes
	}
	l, err := st.lockDir(agent, name)
	if err != nil {
		return nil, err
	}
	s, err := st.load(agent, name, o, l)
	if err != nil {
		return nil, firstError(err, l.release())
	}
	l.sign(o.RunID, s.journal.now())
	return s, nil
}

// lockDir makes the session's folder if need be and takes its lock.
func (st Store) lockDir(agent, name string) (*lock, error) {
	dir := st.dir(agent, name)
	for try := 0; ; try++ {
		if err := st.makeDir(agent, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, diskError(err, "create the session folder %s", dir)
		}
		l, err := takeLock(dir)
		switch {
		case err == nil:
			return l, nil
		case errors.Is(err, errHeld):
			return nil, &Locked{Agent: agent, Name: name, Holder: holder(dir)}
		case errors.Is(err, fs.ErrNotExist) && try < lockTries: // removed meanwhile
		default:
			return nil, diskError(err, "lock the session in %s", dir)
		}
	}
}

func (st Store) makeDir(agent, name string) error {
	dir := st.dir(agent, name)
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := st.disk.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, d := range []string{filepath.Dir(dir), st.Dir} {
		if err := st.disk.SyncDir(d); err != nil {
			return err
		}
	}
	return nil
}

// load reads the journal and opens it for appending.
func (st Store) load(agent, name string, o Options, l *lock) (*Session, error) {
	s := &Session{agent: agent, name: name, dir: st.dir(agent, name), lock: l}
	var done scanned
	var err error
	s.state, done, err = readState(agent, name, s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, readError(err, agent, name)
	}
	s.journal, err = openJournal(st.disk, s.dir, done, journalOptions{
		limit: o.segment, now: clock(o.Now),
		wrote: func(rec *Record) { s.state.apply(rec, place{}) },
	})
	if err != nil {
		return nil, err
	}
	if _, clean := cachedInfo(s.dir); !clean && done.segments > 0 {
		sweepTemporary(s.dir)
	}
	return s, nil
}

// sweepTemporary removes what a killed writer left of files that it was about
// to write whole. Only the holder of the lock may.
func sweepTemporary(dir string) {
	for _, d := range []string{dir, filepath.Join(dir, blobFolder)} {
		names, _ := filepath.Glob(filepath.Join(d, ".agentd-*.tmp")) // the pattern is well formed
		for _, name := range names {
			_ = os.Remove(name) // the next one tries again
		}
	}
}

// readState adds up the records of the journal in dir.
func readState(agent, name, dir string) (*state, scanned, error) {
	st := newState()
	sc := scanner{agent: agent, name: name, dir: dir, visit: func(rec *Record, at place) error {
		st.apply(rec, at)
		return nil
	}}
	done, err := sc.scan()
	if err == nil {
		err = st.loadBlobs(&sc)
	}
	return st, done, err
}

// loadBlobs reads the outputs that the model sees.
func (s *state) loadBlobs(sc *scanner) error {
	for _, e := range s.entries {
		for _, c := range e.calls {
			if c.blob == nil {
				continue
			}
			text, err := getBlob(sc.dir, c.blob)
			if s.lost[c.blob.SHA256] {
				text, err = lostText(c.blob), nil
			}
			if err != nil {
				if _, ok := errors.AsType[*fs.PathError](err); ok {
					return err
				}
				return sc.damage(c.at.segment, c.at.line, c.at.offset, err.Error())
			}
			full := *c.result
			full.Text = text
			c.result, c.blob = &full, nil
		}
	}
	return nil
}

// readError gives an error of reading a session its code and its hint.
func readError(err error, agent, name string) error {
	if d, ok := errors.AsType[*Damage](err); ok {
		return damaged(d)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return exitcodes.Errorf(exitcodes.NoInput, "there is no session %s/%s", agent, name).
			WithHint("All sessions: agentd sessions list")
	}
	return diskError(err, "read session %s/%s", agent, name)
}

// Read returns the session as it stands. It takes no lock and does not hinder
// a writer: what is being written at this moment is not seen.
func (st Store) Read(agent, name string) (*Transcript, error) {
	s, _, err := st.read(agent, name)
	if err != nil {
		return nil, readError(err, agent, name)
	}
	return s.transcript(), nil
}

// readTries is how often a reader looks again at what seems to be damage: a
// writer that takes a half-written line back changes bytes under its eyes.
const readTries = 3

func (st Store) read(agent, name string) (s *state, done scanned, err error) {
	if err := checkNames(agent, name); err != nil {
		return nil, done, err
	}
	for range readTries {
		s, done, err = readState(agent, name, st.dir(agent, name))
		if _, damaged := errors.AsType[*Damage](err); !damaged {
			break
		}
	}
	return s, done, err
}

// Records calls visit with every record of the journal, those too that a
// compaction hides. rec is valid during the call.
func (st Store) Records(agent, name string, visit func(rec *Record) error) error {
	if err := checkNames(agent, name); err != nil {
		return err
	}
	sc := scanner{agent: agent, name: name, dir: st.dir(agent, name), visit: func(rec *Record, _ place) error { return visit(rec) }}
	if _, err := sc.scan(); err != nil {
		return readError(err, agent, name)
	}
	return nil
}
