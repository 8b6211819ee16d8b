// Package lanes keeps runs apart: at most N holders of a named lane at once,
// across processes, whoever started them.
//
// The kernel's lock (flock) on a slot file is the truth. What is written beside
// it, who holds and who waits, is only information. Slot files are never
// deleted, because whoever held a deleted one would not keep out the next. A
// lane that cannot be locked is refused; nothing ever runs unlocked.
//
// Files of a lane NAME: NAME.gate (taken for the moment of looking and taking),
// NAME.0.lock and so on, NAME.0.owner.json, NAME.wait.TICKET.json, and
// NAME.history.jsonl.
package lanes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"sync"
	"time"

	"agentd/exitcodes"
	"agentd/process"
)

// Dir is the folder with the lanes of a user. It is created when needed.
type Dir string

// Owner says who holds, held or waits for a lane.
type Owner struct {
	Process process.Identity `json:"process"`
	RunID   string           `json:"run_id"`
	Job     string           `json:"job"`
	Since   time.Time        `json:"since"`
}

// Request asks for a lane.
type Request struct {
	Name string
	// Slots is how many may hold the lane at once; zero means one. Each request
	// counts with its own number: one with 1 waits until nobody else holds the
	// lane, one with 3 until fewer than three do.
	Slots int
	Wait  time.Duration // how long to wait; zero: not at all
	Owner Owner         // an empty Process is this one, an empty Since is now
}

// Held is a lane that is held. It must be released; if the process dies, the
// kernel does it.
type Held struct {
	dir     Dir
	name    string
	slot    int
	lock    *lock
	rec     record
	release sync.Once
	err     error
}

var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// ValidName reports whether a lane may have the name: letters, digits, - and _,
// at most 64 bytes.
func ValidName(name string) bool { return validName.MatchString(name) }

// Acquire takes the lane. If it is not free within Request.Wait the error is a
// *Busy; if ctx ends first it is the cause of that. A lane that cannot be
// locked at all is an *exitcodes.Error with 73 or 74.
func (d Dir) Acquire(ctx context.Context, r Request) (*Held, error) {
	if !ValidName(r.Name) {
		return nil, exitcodes.Errorf(exitcodes.Config, "cannot take lane %q: the name may have letters, digits, - and _", r.Name)
	}
	if r.Slots < 0 {
		return nil, exitcodes.Errorf(exitcodes.Config, "cannot take lane %s: %d slots", r.Name, r.Slots)
	}
	r.Slots = max(r.Slots, 1)
	if r.Owner.Process == (process.Identity{}) {
		r.Owner.Process = process.Self()
	}
	if r.Owner.Since.IsZero() {
		r.Owner.Since = time.Now()
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("cannot take lane %s: %w", r.Name, context.Cause(ctx))
	}
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return nil, d.refuse(r.Name, err)
	}
	h, err := d.try(ctx, r)
	if busy, ok := errors.AsType[*Busy](err); ok {
		if busy.dying() {
			r.Wait = max(r.Wait, dyingLimit)
		}
		if r.Wait > 0 {
			return d.wait(ctx, r, busy)
		}
	}
	return h, err
}

// try takes a slot if one is free for the request now.
func (d Dir) try(ctx context.Context, r Request) (*Held, error) {
	gate, err := d.gate(ctx, r.Name)
	if err != nil {
		return nil, err
	}
	defer gate.unlock()
	slots, err := d.probe(r.Name)
	if err != nil {
		return nil, d.refuse(r.Name, err)
	}
	defer slots.unlock() // all that were found free, but for the one taken
	holders := slots.holders()
	if len(holders) >= r.Slots {
		return nil, &Busy{Lane: r.Name, Slots: r.Slots, Holders: holders, At: time.Now()}
	}
	s, err := d.take(slots, r)
	if err != nil {
		return nil, d.refuse(r.Name, err)
	}
	formers := slots.formers()
	h := &Held{dir: d, name: r.Name, slot: s.n, lock: s.lock, rec: record{Owner: r.Owner, Former: formers, Lock: s.lock.id()}}
	s.lock = nil // ours now
	if err := d.writeRecord(r.Name, s.n, h.rec); err != nil {
		h.lock.unlock()
		return nil, d.refuse(r.Name, err)
	}
	// The formers are in our own record: the next taker learns of them even if
	// we die before they have been ended.
	for _, o := range slots {
		if o.n != s.n && !o.held && o.rec != nil {
			d.removeRecord(r.Name, o.n)
		}
	}
	for _, f := range formers {
		d.appendHistory(r.Name, Hold{Slot: s.n, Owner: f, Until: time.Now(), End: Died})
	}
	return h, nil
}

// take returns a free slot under the request's number, making it if needed.
func (d Dir) take(slots slotList, r Request) (*slot, error) {
	taken := map[int]bool{}
	for _, s := range slots {
		taken[s.n] = true
		if !s.held && s.n < r.Slots {
			return s, s.lock.check()
		}
	}
	n := 0
	for taken[n] {
		n++
	}
	l, err := tryLock(d.slotFile(r.Name, n))
	switch {
	case err != nil:
		return nil, err
	case l == nil:
		return nil, fmt.Errorf("%s is locked by something other than agentd", d.slotFile(r.Name, n))
	}
	if err := l.check(); err != nil {
		l.unlock()
		return nil, err
	}
	return &slot{n: n, lock: l}, nil
}

// Lane returns the name of the lane, and Slot which of its slots is held.
func (h *Held) Lane() string { return h.name }

// Slot returns the slot that is held, from 0.
func (h *Held) Slot() int { return h.slot }

// Former returns the last owner that died without releasing the lane, or nil.
// What it left behind must be ended before the lane is used.
func (h *Held) Former() *Owner {
	if len(h.rec.Former) == 0 {
		return nil
	}
	f := h.rec.Former[0]
	return &f
}

// Formers returns all owners that died without releasing the lane: with several
// slots, or when a taker died before it had ended the former's leftovers, there
// may be more than one.
func (h *Held) Formers() []Owner {
	return append([]Owner(nil), h.rec.Former...)
}

// Release gives the lane back. Only the first call does something; later ones
// return the same error. The lock is gone also when there is an error.
func (h *Held) Release() error {
	h.release.Do(func() {
		h.dir.appendHistory(h.name, Hold{Slot: h.slot, Owner: h.rec.Owner, Until: time.Now(), End: Released})
		h.err = errors.Join(h.dir.removeRecord(h.name, h.slot), h.lock.unlock())
		if h.err != nil {
			h.err = fmt.Errorf("cannot release lane %s: %w", h.name, h.err)
		}
	})
	return h.err
}

// Abandon gives the lane back like Release, but leaves the formers on record:
// what they left behind could not be ended, and the next taker has to try.
func (h *Held) Abandon() error {
	formers := h.Formers()
	if len(formers) == 0 {
		return h.Release()
	}
	h.release.Do(func() {
		h.dir.appendHistory(h.name, Hold{Slot: h.slot, Owner: h.rec.Owner, Until: time.Now(), End: Released})
		rec := record{Owner: formers[0], Former: formers[1:], Lock: h.rec.Lock}
		h.err = errors.Join(h.dir.writeRecord(h.name, h.slot, rec), h.lock.unlock())
		if h.err != nil {
			h.err = fmt.Errorf("cannot release lane %s: %w", h.name, h.err)
		}
	})
	return h.err
}
