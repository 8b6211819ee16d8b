package daemon

import (
	"context"
	"sync"
	"time"
)

// bookkeeper writes to the book beside the engine, since a write waits for the
// disk, and there may be ten thousand jobs that are new.
type bookkeeper struct {
	book Book
	say  func(format string, args ...any)
	some chan struct{}

	mu      sync.Mutex
	written sync.Cond
	order   []Name
	todo    map[Name]note
	writing Name
}

// note is what is to be written about a job.
type note struct {
	at   time.Time
	skip bool // nothing before is due, whatever the book says; else only if it says nothing
}

func newBookkeeper(book Book, say func(string, ...any)) *bookkeeper {
	b := &bookkeeper{book: book, say: say, some: make(chan struct{}, 1), todo: map[Name]note{}}
	b.written.L = &b.mu
	return b
}

// later has a note written; it takes the place of one about the same job that
// has not been.
func (b *bookkeeper) later(n Name, what note) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, waits := b.todo[n]; !waits {
		b.order = append(b.order, n)
	}
	b.todo[n] = what
	select {
	case b.some <- struct{}{}:
	default:
	}
}

// settle is called before a run takes a firing: what the book has to say
// against that is written then. A job of which it says nothing has its note made
// by the run.
func (b *bookkeeper) settle(n Name) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.writing != (Name{}) {
		b.written.Wait()
	}
	if what, ok := b.todo[n]; ok && !what.skip {
		delete(b.todo, n)
		return
	}
	b.write(n)
}

// write writes what there is about a job. It gives up the lock meanwhile.
func (b *bookkeeper) write(n Name) {
	what, ok := b.todo[n]
	if !ok {
		return
	}
	delete(b.todo, n)
	b.writing = n
	b.mu.Unlock()
	do := b.book.Begin
	if what.skip {
		do = b.book.Skip
	}
	if err := do(n.Agent, n.Job, what.at); err != nil {
		b.say("%s: %v", n, err)
	}
	b.mu.Lock()
	b.writing = Name{}
	b.written.Broadcast()
}

// run writes until ctx ends, and then what is left.
func (b *bookkeeper) run(ctx context.Context) {
	for {
		for b.one() {
		}
		select {
		case <-ctx.Done():
			for b.one() {
			}
			return
		case <-b.some:
		}
	}
}

// one writes an entry, and reports whether there was any.
func (b *bookkeeper) one() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.writing != (Name{}) { // a starter writes
		b.written.Wait()
	}
	if len(b.order) == 0 {
		b.order, b.todo = nil, map[Name]note{} // lets go of what a start has needed
		return false
	}
	n := b.order[0]
	b.order = b.order[1:]
	b.write(n)
	return true
}
