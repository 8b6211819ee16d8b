package lanes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"agentd/atomicfile"
)

const (
	firstPause = 10 * time.Millisecond
	maxPause   = 200 * time.Millisecond
	// patience is how long those further back in the queue hold back. They do
	// try in the end, so that one who is stopped at the front stops nobody.
	patience = time.Second
)

// Waiter is one who waits for a lane.
type Waiter struct {
	Owner           // Since is when the waiting began
	Until time.Time `json:"until"` // when it gives up
}

// wait queues up: a record with a ticket by the time of arrival. Those at the
// front of the queue try often, the others seldom.
func (d Dir) wait(ctx context.Context, r Request, busy *Busy) (*Held, error) {
	begin := time.Now()
	w := Waiter{Owner: r.Owner, Until: begin.Add(r.Wait)}
	w.Since = begin
	ticket, err := d.queue(r.Name, w)
	if err != nil {
		return nil, d.refuse(r.Name, err)
	}
	defer os.Remove(ticket)

	pause, lastTry := firstPause, begin
	for {
		left := time.Until(w.Until)
		if left <= 0 {
			busy.Waited = time.Since(begin)
			return nil, busy
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("stopped waiting for lane %s: %w", r.Name, context.Cause(ctx))
		case <-time.After(min(pause, left)):
		}
		pause = min(pause*3/2, maxPause)
		last := time.Until(w.Until) <= 0
		if !last && time.Since(lastTry) < patience && d.ahead(r.Name, ticket) >= r.Slots {
			continue
		}
		lastTry = time.Now()
		h, err := d.try(ctx, r)
		b, stillBusy := errors.AsType[*Busy](err)
		if !stillBusy {
			return h, err
		}
		busy = b
	}
}

// queue writes the waiter's record. Its name sorts by time of arrival.
func (d Dir) queue(name string, w Waiter) (path string, err error) {
	data, err := json.Marshal(w)
	if err != nil {
		return "", err
	}
	for try := 0; ; try++ {
		file := fmt.Sprintf("%s%020d-%d-%d.json", waitPrefix(name), w.Since.UnixNano(), w.Process.PID, try)
		path = filepath.Join(string(d), file)
		err = atomicfile.Create(path, append(data, '\n'), 0o600)
		if !errors.Is(err, os.ErrExist) || try == 100 {
			return path, err
		}
	}
}

func waitPrefix(name string) string { return name + ".wait." }

// ahead counts the living waiters that came before ticket.
func (d Dir) ahead(name, ticket string) int {
	n := 0
	for _, f := range d.tickets(name) {
		if f >= filepath.Base(ticket) {
			break
		}
		if _, ok := d.waiter(f); ok {
			n++
		}
	}
	return n
}

// tickets returns the names of the waiters' records in order of arrival.
func (d Dir) tickets(name string) []string {
	entries, err := os.ReadDir(string(d)) // sorted
	if err != nil {
		return nil
	}
	var files []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), waitPrefix(name)) && strings.HasSuffix(e.Name(), ".json") {
			files = append(files, e.Name())
		}
	}
	return files
}

// waiter reads the record of one who still waits. The record of a dead one is
// removed on the way.
func (d Dir) waiter(file string) (Waiter, bool) {
	path := filepath.Join(string(d), file)
	data, err := os.ReadFile(path)
	if err != nil {
		return Waiter{}, false
	}
	var w Waiter
	if json.Unmarshal(data, &w) == nil && w.Process.Alive() {
		return w, true
	}
	_ = os.Remove(path) // whoever sees it next tries again
	return Waiter{}, false
}
