package lanes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// Status is how a lane stands.
type Status struct {
	Name    string   `json:"lane"`
	Slots   int      `json:"slots"` // that were ever used
	Holders []Holder `json:"holders"`
	Waiters []Waiter `json:"waiters"` // in the order of their arrival
	// Left are owners that died holding the lane, and whose leftovers the next
	// taker will end.
	Left []Owner `json:"left,omitempty"`
}

// Holder is an owner in a slot. Known is false if the slot is locked but the
// record beside it does not say by whom.
type Holder struct {
	Slot  int  `json:"slot"`
	Known bool `json:"known"`
	Owner
}

// List returns all lanes by name; the list is never nil. Who holds is found out by trying the locks,
// not by believing the records.
func (d Dir) List() ([]Status, error) {
	entries, err := os.ReadDir(string(d))
	if errors.Is(err, fs.ErrNotExist) {
		return []Status{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list lanes: %w", err)
	}
	var names []string
	for _, e := range entries {
		if lane, _, ok := parseSlotFile(e.Name()); ok {
			names = append(names, lane)
		}
	}
	slices.Sort(names)
	list := []Status{}
	for _, name := range slices.Compact(names) {
		s, err := d.status(name)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

func (d Dir) status(name string) (Status, error) {
	gate, err := d.gate(context.Background(), name)
	if err != nil {
		return Status{}, err
	}
	defer gate.unlock()
	slots, err := d.probe(name)
	if err != nil {
		return Status{}, d.refuse(name, err)
	}
	defer slots.unlock()
	s := Status{Name: name, Slots: len(slots), Holders: []Holder{}, Waiters: []Waiter{}, Left: slots.formers()}
	for _, sl := range slots {
		if sl.held {
			o := sl.owner()
			s.Holders = append(s.Holders, Holder{Slot: sl.n, Known: o.Process.PID != 0, Owner: o})
		}
	}
	for _, f := range d.tickets(name) {
		if w, ok := d.waiter(f); ok {
			s.Waiters = append(s.Waiters, w)
		}
	}
	return s, nil
}
