package session

import (
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"time"

	"agentd/exitcodes"
)

// segmentBytes is how large a file of the journal grows before the next one is
// begun.
const segmentBytes = 64 << 20

// journal appends records. Everything that Append has returned for is in the
// file; everything that sync has returned for is on the disk.
type journal struct {
	disk    disk
	dir     string
	f       file
	segment int
	limit   int64 // of a segment's size
	size    int64 // whole lines in the file
	synced  int64 // of these, how many bytes are on the disk
	seq     uint64
	now     func() time.Time
	broken  error         // why nothing more is written
	wrote   func(*Record) // is told of each record in the file
}

type journalOptions struct {
	limit int64
	now   func() time.Time
	wrote func(*Record)
}

// openJournal opens the file that done says was read last, or makes the first.
// A torn last line is moved aside first.
func openJournal(d disk, dir string, done scanned, o journalOptions) (*journal, error) {
	j := &journal{disk: d, dir: dir, limit: o.limit, now: o.now, wrote: o.wrote, seq: done.seq}
	if done.segments == 0 {
		if err := j.begin(1); err != nil {
			if j.f != nil {
				_ = j.f.Close() // the cause is what counts
			}
			return nil, err
		}
		return j, nil
	}
	j.segment, j.size = done.segments, done.end
	side, err := j.keepTorn(done)
	if err != nil {
		return nil, diskError(err, "seal the torn end of %s", j.path())
	}
	f, err := d.OpenAppend(j.path(), 0o600)
	if err != nil {
		return nil, diskError(err, "open the journal %s", j.path())
	}
	j.f = f
	if err := j.seal(done, side); err != nil {
		return nil, closeAfter(f, err)
	}
	return j, nil
}

func (j *journal) path() string { return segmentPath(j.dir, j.segment) }

// keepTorn copies the torn bytes to a file beside the journal and returns its
// name; "" if there are none. If a former writer did that and died before it
// could say so, it is that file.
func (j *journal) keepTorn(done scanned) (string, error) {
	if done.torn == 0 {
		names, err := filepath.Glob(filepath.Join(j.dir, fmt.Sprintf("torn-%d-*", done.seq+1)))
		if err != nil || len(names) == 0 {
			return "", err
		}
		return filepath.Base(names[0]), nil
	}
	f, err := os.Open(j.path())
	if err != nil {
		return "", err
	}
	defer f.Close() // only read
	torn := make([]byte, done.torn)
	if _, err := f.ReadAt(torn, done.end); err != nil && err != io.EOF {
		return "", err
	}
	// The name follows from the content, so that a crash before the cut does not
	// leave a second copy.
	name := fmt.Sprintf("torn-%d-%08x", done.seq+1, crc32.Checksum(torn, castagnoli))
	return name, j.disk.WriteWhole(filepath.Join(j.dir, name), torn, 0o600)
}

const sealedText = "the last line of the journal was not whole; it was moved to "

// seal cuts the torn line off, makes what is left durable, and says so.
func (j *journal) seal(done scanned, side string) error {
	if done.torn > 0 {
		if err := j.f.Truncate(j.size); err != nil {
			return diskError(err, "cut the torn end of %s", j.path())
		}
	}
	// What a killed writer left in the page cache counts from now on.
	if err := j.f.Sync(); err != nil {
		return diskError(err, "sync the journal %s", j.path())
	}
	j.synced = j.size
	if j.size == 0 {
		if err := j.head(); err != nil {
			return err
		}
	}
	if side == "" {
		return nil
	}
	rec := &Record{Type: TypeSealed, File: side, Lost: done.torn, Text: sealedText + side}
	if err := j.append(rec); err != nil {
		return err
	}
	return j.sync()
}

// begin makes the n-th file.
func (j *journal) begin(n int) error {
	f, err := j.disk.CreateAppend(segmentPath(j.dir, n), 0o600)
	if err != nil {
		return diskError(err, "create the journal %s", segmentPath(j.dir, n))
	}
	old := j.f
	j.f, j.segment, j.size, j.synced = f, n, 0, 0
	if old != nil {
		_ = old.Close() // it was synced
	}
	if err := j.disk.SyncDir(j.dir); err != nil {
		return diskError(err, "create the journal %s", j.path())
	}
	return j.head()
}

// head writes the first record of a file.
func (j *journal) head() error {
	if err := j.write(&Record{Type: TypeSegment, Version: formatVersion, Segment: j.segment}); err != nil {
		return err
	}
	return j.sync()
}

// append writes rec, with its number and time filled in.
func (j *journal) append(rec *Record) error {
	if j.broken == nil && j.size >= j.limit {
		if err := j.rotate(); err != nil {
			j.broken = err
		}
	}
	return j.write(rec)
}

func (j *journal) rotate() error {
	if err := j.sync(); err != nil {
		return err
	}
	return j.begin(j.segment + 1)
}

func (j *journal) write(rec *Record) error {
	if j.broken != nil {
		return j.broken
	}
	rec.Seq, rec.At = j.seq+1, j.now().UTC()
	line, err := encode(rec)
	if err != nil {
		return exitcodes.Errorf(exitcodes.Data, "%w", err) // nothing was written
	}
	n, err := j.f.Write(line)
	if err == nil && n < len(line) {
		err = io.ErrShortWrite
	}
	if err != nil {
		j.fail(diskError(err, "write the journal %s", j.path()), j.size)
		return j.broken
	}
	j.seq++
	j.size += int64(len(line))
	if j.wrote != nil {
		j.wrote(rec)
	}
	return nil
}

// sync makes all that was written durable.
func (j *journal) sync() error {
	if j.broken != nil {
		return j.broken
	}
	if j.synced == j.size {
		return nil
	}
	if err := j.f.Sync(); err != nil {
		// After a failed fsync nobody knows which pages reached the disk, and the
		// next fsync would not tell: what was not durable is taken back.
		j.fail(diskError(err, "sync the journal %s", j.path()), j.synced)
		return j.broken
	}
	j.synced = j.size
	return nil
}

// fail ends all writing. The file is cut back to size, so that it ends with a
// whole line; if that fails too, the next open seals it.
func (j *journal) fail(err error, size int64) {
	j.broken = err
	if cutErr := j.f.Truncate(size); cutErr == nil {
		_ = j.f.Sync() // the cause is what counts
	}
}

func (j *journal) close() error {
	err := j.sync()
	if j.broken != nil {
		err = nil // it was reported when it happened
	}
	return closeAfter(j.f, err)
}

// closeAfter closes f and returns err, or else the error of closing.
func closeAfter(f io.Closer, err error) error {
	if closeErr := f.Close(); err == nil {
		return closeErr
	}
	return err
}
