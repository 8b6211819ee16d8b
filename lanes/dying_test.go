package lanes

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/gofrs/flock"
)

// A holder that is killed while it starts a program leaves its lock for a moment
// to a process that is not on record: even who does not wait gives it that moment.
func TestADyingHolderIsGivenAMoment(t *testing.T) {
	d := Dir(t.TempDir())
	first, err := d.Acquire(t.Context(), Request{Name: "bob"})
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Release(); err != nil { // the slot file is there now
		t.Fatal(err)
	}
	dying := flock.New(filepath.Join(string(d), "bob.0.lock"))
	if ok, err := dying.TryLock(); !ok || err != nil {
		t.Fatalf("TryLock = %v, %v", ok, err)
	}
	got := make(chan error, 1)
	go func() {
		h, err := d.Acquire(t.Context(), Request{Name: "bob"})
		if err == nil {
			err = h.Release()
		}
		got <- err
	}()
	for deadline := time.Now().Add(10 * time.Second); len(d.tickets("bob")) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nobody waits")
		}
	}
	if err := dying.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Errorf("Acquire = %v, want the lane", err)
	}
}
