package lanes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentd/exitcodes"
	"agentd/process"
)

func TestBusyNamesTheHolder(t *testing.T) {
	d := Dir(filepath.Join(t.TempDir(), "lanes"))
	other := startHolder(t, d, "bob", 1, "run-1")
	_, err := d.Acquire(t.Context(), Request{Name: "bob"})
	busy, ok := errors.AsType[*Busy](err)
	if !ok || exitcodes.From(err) != exitcodes.LaneBusy {
		t.Fatalf("got %v", err)
	}
	if len(busy.Holders) != 1 || busy.Holders[0].Process != other.id || busy.Holders[0].RunID != "run-1" {
		t.Errorf("holders %+v", busy.Holders)
	}
	for _, part := range []string{"lane bob", "bob/run-1", "run run-1", fmt.Sprintf("pid %d", other.id.PID), "since "} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
	other.release(t)
	h := acquire(t, d, Request{Name: "bob"})
	if h.Former() != nil {
		t.Errorf("a proper release left a former owner: %+v", h.Former())
	}
}

func TestBusyText(t *testing.T) {
	at := time.Date(2026, 12, 1, 9, 4, 0, 0, time.Local)
	b := &Busy{Lane: "bob", Waited: 1500 * time.Millisecond, At: at, Holders: []Owner{
		{Process: process.Identity{PID: 7}, RunID: "r1", Job: "bob/triage", Since: at.Add(-4 * time.Minute)}, {}}}
	want := "lane bob is held by bob/triage (run r1, pid 7) since 2026-12-01 09:00:00, 4m0s, a process that is not on record; waited 1.5s"
	if b.Error() != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
}

func TestSameProcessConflictsToo(t *testing.T) {
	d := Dir(t.TempDir())
	h := acquire(t, d, Request{Name: "bob"})
	if _, err := d.Acquire(t.Context(), Request{Name: "bob"}); exitcodes.From(err) != exitcodes.LaneBusy {
		t.Errorf("second: %v", err)
	}
	acquire(t, d, Request{Name: "eve"})
	if err := h.Release(); err != nil {
		t.Error(err)
	}
	if err := h.Release(); err != nil {
		t.Errorf("a second release: %v", err)
	}
	acquire(t, d, Request{Name: "bob"})
}

func TestSlots(t *testing.T) {
	d := Dir(t.TempDir())
	a := acquire(t, d, Request{Name: "x", Slots: 3})
	b := acquire(t, d, Request{Name: "x", Slots: 3})
	if a.Slot() == b.Slot() || a.Lane() != "x" {
		t.Errorf("both in slot %d of %s", a.Slot(), a.Lane())
	}
	busy := func(slots int) bool {
		h, err := d.Acquire(t.Context(), Request{Name: "x", Slots: slots})
		if err == nil {
			return errors.Join(h.Release()) != nil
		}
		return exitcodes.From(err) == exitcodes.LaneBusy
	}
	// Each request counts with its own number, wherever the others sit.
	if !busy(1) || !busy(2) || busy(3) {
		t.Errorf("two holders: busy for 1 %v, 2 %v, 3 %v", busy(1), busy(2), busy(3))
	}
	_ = a.Release()
	if !busy(1) || busy(2) {
		t.Errorf("one holder in slot %d: busy for 1 %v, 2 %v", b.Slot(), busy(1), busy(2))
	}
	_ = b.Release()
	if busy(1) {
		t.Error("nobody holds it: busy for 1")
	}
}

func TestFormerOwner(t *testing.T) {
	d := Dir(t.TempDir())
	first := startHolder(t, d, "bob", 1, "run-1")
	first.kill()
	second := startHolder(t, d, "bob", 1, "run-2")
	second.kill() // before it had ended what the first left behind
	h := acquire(t, d, Request{Name: "bob", Owner: Owner{RunID: "run-3"}})
	if f := h.Former(); f == nil || f.RunID != "run-2" || f.Process != second.id {
		t.Errorf("former %+v", f)
	}
	var ids []string
	for _, f := range h.Formers() {
		ids = append(ids, f.RunID)
	}
	if diff := cmp.Diff([]string{"run-2", "run-1"}, ids); diff != "" {
		t.Errorf("formers: %s", diff)
	}
	if err := h.Abandon(); err != nil {
		t.Fatal(err)
	}
	h = acquire(t, d, Request{Name: "bob"})
	if len(h.Formers()) != 2 {
		t.Errorf("after Abandon: %+v", h.Formers())
	}
	if err := h.Release(); err != nil {
		t.Fatal(err)
	}
	if h = acquire(t, d, Request{Name: "bob"}); h.Former() != nil {
		t.Errorf("after Release: %+v", h.Former())
	}
}

func TestFormerOwnerInAnotherSlot(t *testing.T) {
	d := Dir(t.TempDir())
	keep := startHolder(t, d, "x", 2, "run-0")
	died := startHolder(t, d, "x", 2, "run-1")
	died.kill()
	keep.release(t)
	h := acquire(t, d, Request{Name: "x"}) // slot 0; the dead one was in 1
	if f := h.Former(); f == nil || f.RunID != "run-1" {
		t.Errorf("former %+v", f)
	}
}

func TestWaitGetsTheLane(t *testing.T) {
	d := Dir(t.TempDir())
	other := startHolder(t, d, "bob", 1, "run-1")
	got := make(chan error, 1)
	go func() {
		h, err := d.Acquire(t.Context(), Request{Name: "bob", Wait: time.Minute, Owner: Owner{RunID: "run-2"}})
		if err == nil {
			err = h.Release()
		}
		got <- err
	}()
	eventually(t, "the waiter is listed", func() bool {
		l, err := d.List()
		return err == nil && len(l) == 1 && len(l[0].Waiters) == 1 && l[0].Waiters[0].RunID == "run-2"
	})
	other.release(t)
	if err := <-got; err != nil {
		t.Error(err)
	}
	if l, err := d.List(); err != nil || len(l[0].Waiters) != 0 || len(l[0].Holders) != 0 {
		t.Errorf("afterwards: %+v, %v", l, err)
	}
}

func TestWaitHasALimitAndObeysTheContext(t *testing.T) {
	d := Dir(t.TempDir())
	acquire(t, d, Request{Name: "bob"})
	_, err := d.Acquire(t.Context(), Request{Name: "bob", Wait: 30 * time.Millisecond})
	if busy, ok := errors.AsType[*Busy](err); !ok || busy.Waited < 30*time.Millisecond {
		t.Errorf("limit: %v", err)
	}
	cause := exitcodes.Errorf(exitcodes.Terminated, "stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(30*time.Millisecond, func() { cancel(cause) })
	if _, err := d.Acquire(ctx, Request{Name: "bob", Wait: time.Hour}); !errors.Is(err, cause) || exitcodes.From(err) != 143 {
		t.Errorf("context: %v", err)
	}
	if _, err := d.Acquire(ctx, Request{Name: "eve"}); !errors.Is(err, cause) {
		t.Errorf("a context that has ended: %v", err)
	}
	for _, f := range files(t, d) {
		if strings.Contains(f, ".wait.") {
			t.Errorf("left behind: %s", f)
		}
	}
}

func TestWaitersComeInOrder(t *testing.T) {
	d := Dir(t.TempDir())
	h := acquire(t, d, Request{Name: "bob"})
	order := make(chan int, 3)
	for i := range 3 {
		go func() {
			h, err := d.Acquire(t.Context(), Request{Name: "bob", Wait: time.Minute})
			if err != nil {
				t.Error(err)
			}
			order <- i
			_ = h.Release()
		}()
		eventually(t, "the waiter is in the queue", func() bool { return len(d.tickets("bob")) == i+1 })
	}
	_ = h.Release()
	var got []int
	for range 3 {
		got = append(got, <-order)
	}
	// Fair as far as it goes: nobody is forgotten, and the first is not last.
	if got[2] == 0 {
		t.Errorf("order %v", got)
	}
}

// One who waits and is stopped, or is dead, does not block those behind it.
func TestDeadWaiterIsForgotten(t *testing.T) {
	d := Dir(t.TempDir())
	h := acquire(t, d, Request{Name: "bob"})
	past := time.Unix(1, 0)
	if _, err := d.queue("bob", Waiter{Owner: Owner{Process: dead(), Since: past}}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.queue("bob", Waiter{Owner: Owner{Process: process.Self(), Since: past}}); err != nil { // lives, never acts
		t.Fatal(err)
	}
	time.AfterFunc(20*time.Millisecond, func() { _ = h.Release() })
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	h2, err := d.Acquire(ctx, Request{Name: "bob", Wait: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	_ = h2.Release()
	if n := len(d.tickets("bob")); n != 1 {
		t.Errorf("%d waiters on record, want the living one", n)
	}
}

func TestLockIsNotInherited(t *testing.T) {
	d := Dir(t.TempDir())
	h := acquire(t, d, Request{Name: "bob"})
	child := exec.Command("sleep", "1000")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Process.Kill(); _ = child.Wait() }()
	if err := h.Release(); err != nil {
		t.Fatal(err)
	}
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", child.Process.Pid))
	if err != nil || len(links) == 0 {
		t.Fatalf("descriptors of the child: %v, %v", links, err)
	}
	for _, l := range links {
		if to, _ := os.Readlink(l); strings.HasPrefix(to, string(d)) {
			t.Errorf("the child has %s open", to)
		}
	}
	acquire(t, d, Request{Name: "bob"})
}

func TestLockFilesAreNeverDeleted(t *testing.T) {
	d := Dir(t.TempDir())
	_ = acquire(t, d, Request{Name: "bob"}).Release()
	want := []string{"bob.0.lock", "bob.gate", "bob.history.jsonl"}
	if diff := cmp.Diff(want, files(t, d)); diff != "" {
		t.Error(diff)
	}
	for _, f := range want {
		info, err := os.Stat(filepath.Join(string(d), f))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", f, info.Mode(), err)
		}
	}
}

func files(t *testing.T, d Dir) []string {
	t.Helper()
	entries, err := os.ReadDir(string(d))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func BenchmarkAcquireRelease(b *testing.B) {
	d := Dir(b.TempDir())
	for b.Loop() {
		h, err := d.Acquire(b.Context(), Request{Name: "bob"})
		if err != nil {
			b.Fatal(err)
		}
		if err := h.Release(); err != nil {
			b.Fatal(err)
		}
	}
}
