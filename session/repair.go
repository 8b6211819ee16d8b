package session

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"agentd/atomicfile"
)

// Repaired is what Repair did.
type Repaired struct {
	Agent   string   `json:"agent"`
	Name    string   `json:"name"`
	Damage  string   `json:"damage,omitempty"` // what was found; empty if the journal was good
	Kept    int      `json:"kept"`             // records that stay
	Lost    int      `json:"lost"`             // readable records that were cut off with the damage
	Bytes   int64    `json:"bytes"`            // how much was cut off
	Files   []string `json:"files,omitempty"`  // where it is now, in the session's folder
	Outputs int      `json:"outputs"`          // outputs that are gone for good
}

// Changed reports whether there was something to repair.
func (r *Repaired) Changed() bool { return r.Damage != "" || r.Outputs > 0 }

// Repair makes a damaged session usable again: it cuts the journal at the first
// damage, keeps the rest in files beside it, and records what was lost. Tool
// calls of which the rest may have told count as perhaps started. It fails with
// a *Locked while a writer has the session.
func (st Store) Repair(agent, name string, now func() time.Time) (*Repaired, error) {
	l, err := st.lockExisting(agent, name)
	if err != nil {
		return nil, err
	}
	r, err := st.repair(agent, name, clock(now))
	if err = firstError(err, l.release()); err != nil {
		return nil, diskError(err, "repair session %s/%s", agent, name)
	}
	return r, nil
}

func (st Store) repair(agent, name string, now func() time.Time) (*Repaired, error) {
	found, err := st.Verify(agent, name)
	if err != nil {
		return nil, err
	}
	r := &Repaired{Agent: agent, Name: name, Damage: found.Damage, Kept: found.Records, Lost: found.Lost, Outputs: len(found.blobs)}
	if !r.Changed() {
		return r, nil
	}
	dir, done := st.dir(agent, name), found.scanned
	if found.damage != nil {
		if err := r.cut(dir, done); err != nil {
			return nil, err
		}
		done.torn = 0
		if done.segments > 0 && done.end == 0 {
			done.segments, done.end = done.segments-1, 0 // its file is gone
			if done.segments > 0 {
				fi, err := os.Stat(segmentPath(dir, done.segments))
				if err != nil {
					return nil, err
				}
				done.end = fi.Size()
			}
		}
	}
	j, err := openJournal(osDisk{}, dir, done, journalOptions{limit: segmentBytes, now: now})
	if err != nil {
		return nil, err
	}
	for _, rec := range r.records(found) {
		if err := j.append(rec); err != nil {
			return nil, closeAfter(j.f, err)
		}
	}
	return r, j.close()
}

// records is what the journal tells of the repair.
func (r *Repaired) records(found *Report) []*Record {
	var recs []*Record
	if found.damage != nil {
		text := fmt.Sprintf("the journal was damaged and cut off: %d bytes with %d readable records are kept in %v", r.Bytes, r.Lost, r.Files)
		recs = append(recs, &Record{Type: TypeRepaired, Text: text, Lost: r.Bytes})
	}
	for _, b := range found.blobs {
		recs = append(recs, &Record{Type: TypeBlobLost, Blob: b, Text: "an output is gone from the disk"})
	}
	return recs
}

// cut moves everything behind the good records aside. Later files go first, so
// that the journal is damaged at the same place until the last step.
func (r *Repaired) cut(dir string, done scanned) error {
	tag := fmt.Sprintf("damaged-%d", done.seq+1)
	first := max(1, done.segments)
	for n := lastSegment(dir); n >= first; n-- {
		path := segmentPath(dir, n)
		fi, err := os.Stat(path)
		if errors.Is(err, os.ErrNotExist) {
			continue // the one that is missing
		}
		if err != nil {
			return err
		}
		side, err := freeName(dir, tag+"-"+filepath.Base(path))
		if err != nil {
			return err
		}
		if n > done.segments || done.end == 0 {
			r.Bytes += fi.Size()
			err = os.Rename(path, filepath.Join(dir, side))
		} else if fi.Size() > done.end {
			r.Bytes += fi.Size() - done.end
			err = moveTail(path, done.end, filepath.Join(dir, side))
		} else {
			continue // damaged only by what followed
		}
		if err != nil {
			return err
		}
		r.Files = append(r.Files, side)
	}
	return atomicfile.SyncDir(dir)
}

// freeName returns name, or name with a number if it is taken.
func freeName(dir, name string) (string, error) {
	for n := 1; ; n++ {
		try := name
		if n > 1 {
			try = fmt.Sprintf("%s.%d", name, n)
		}
		_, err := os.Lstat(filepath.Join(dir, try))
		if errors.Is(err, os.ErrNotExist) {
			return try, nil
		}
		if err != nil {
			return "", err
		}
	}
}

// moveTail moves the bytes of path from offset on into the file side.
func moveTail(path string, offset int64, side string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := copyTail(f, offset, side); err != nil {
		return closeAfter(f, err)
	}
	if err := f.Truncate(offset); err != nil {
		return closeAfter(f, err)
	}
	return closeAfter(f, f.Sync())
}

func copyTail(f *os.File, offset int64, side string) error {
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return err
	}
	out, err := os.OpenFile(side, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, f); err != nil {
		return closeAfter(out, err)
	}
	if err := out.Sync(); err != nil {
		return closeAfter(out, err)
	}
	if err := out.Close(); err != nil {
		return err
	}
	return atomicfile.SyncDir(filepath.Dir(side))
}
