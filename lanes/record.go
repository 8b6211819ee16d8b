package lanes

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"agentd/atomicfile"
)

// maxFormers bounds what a chain of dying owners can pile up.
const maxFormers = 16

// record is what is written beside a slot that is held.
type record struct {
	Owner
	// Former are owners that died and whose leftovers may not be ended yet.
	Former []Owner `json:"former,omitempty"`
	// Lock names the lock file; see replaced.
	Lock string `json:"lock,omitempty"`
}

// slot is a slot file as it was found. If it was free, lock is held.
type slot struct {
	n    int
	held bool
	lock *lock
	rec  *record // nil: none, or not readable
}

type slotList []*slot

func (d Dir) slotFile(name string, n int) string {
	return filepath.Join(string(d), fmt.Sprintf("%s.%d.lock", name, n))
}

func (d Dir) recordFile(name string, n int) string {
	return filepath.Join(string(d), fmt.Sprintf("%s.%d.owner.json", name, n))
}

// probe looks at all slots of the lane by trying their locks, in order. The
// gate must be held; the caller unlocks.
func (d Dir) probe(name string) (_ slotList, err error) {
	entries, err := os.ReadDir(string(d))
	if err != nil {
		return nil, err
	}
	var slots slotList
	defer func() {
		if err != nil {
			slots.unlock()
		}
	}()
	for _, e := range entries {
		lane, n, ok := parseSlotFile(e.Name())
		if !ok || lane != name {
			continue
		}
		s := &slot{n: n}
		if s.lock, err = tryLock(d.slotFile(name, n)); err != nil {
			return nil, err
		}
		s.rec = d.readRecord(name, n)
		s.held = s.lock == nil || s.replaced()
		slots = append(slots, s)
	}
	slices.SortFunc(slots, func(a, b *slot) int { return a.n - b.n })
	return slots, nil
}

// parseSlotFile splits NAME.N.lock.
func parseSlotFile(file string) (lane string, n int, ok bool) {
	rest, ok := strings.CutSuffix(file, ".lock")
	if !ok {
		return "", 0, false
	}
	lane, number, ok := strings.Cut(rest, ".")
	if !ok || !ValidName(lane) {
		return "", 0, false
	}
	n, err := strconv.Atoi(number)
	return lane, n, err == nil && n >= 0 && strconv.Itoa(n) == number
}

// replaced reports whether the slot looks free only because its file was
// deleted or replaced while a living owner held the old one.
func (s *slot) replaced() bool {
	return s.lock != nil && s.rec != nil && s.rec.Lock != "" && s.rec.Lock != s.lock.id() && s.rec.Process.Alive()
}

// unlock frees what probe has locked.
func (l slotList) unlock() {
	for _, s := range l {
		if s.lock != nil {
			_ = s.lock.unlock() // closing the descriptor frees the lock in any case
		}
	}
}

// holders returns the owners of the slots that are held. One that is not known
// is empty: its record is being written or could not be read.
func (l slotList) holders() []Owner {
	var owners []Owner
	for _, s := range l {
		if s.held {
			owners = append(owners, s.owner())
		}
	}
	return owners
}

// owner believes the record of a held slot only if its process lives.
func (s *slot) owner() Owner {
	if s.rec == nil || !s.rec.Process.Alive() {
		return Owner{}
	}
	return s.rec.Owner
}

// formers returns the dead owners on record in free slots, the latest first. A
// release clears the record, so these did not release.
func (l slotList) formers() []Owner {
	var dead []Owner
	seen := map[string]bool{}
	for _, s := range l {
		if s.held || s.rec == nil {
			continue
		}
		for _, o := range append([]Owner{s.rec.Owner}, s.rec.Former...) {
			id := fmt.Sprint(o.Process, o.RunID)
			if !seen[id] && !o.Process.Alive() {
				seen[id] = true
				dead = append(dead, o)
			}
		}
	}
	slices.SortStableFunc(dead, func(a, b Owner) int { return b.Since.Compare(a.Since) })
	return dead[:min(len(dead), maxFormers)]
}

// readRecord returns nil for a record that is missing or damaged: it is only
// information.
func (d Dir) readRecord(name string, n int) *record {
	data, err := os.ReadFile(d.recordFile(name, n))
	if err != nil {
		return nil
	}
	var r record
	if json.Unmarshal(data, &r) != nil {
		return nil
	}
	return &r
}

func (d Dir) writeRecord(name string, n int, r record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return atomicfile.WriteVolatile(d.recordFile(name, n), append(data, '\n'), 0o600)
}

func (d Dir) removeRecord(name string, n int) error {
	err := os.Remove(d.recordFile(name, n))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
