package lanes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentd/exitcodes"
)

// Somebody deletes the lock file of a lane that is held: the kernel would let
// in a second holder.
func TestDeletedLockFileAdmitsNoSecondHolder(t *testing.T) {
	d := Dir(t.TempDir())
	other := startHolder(t, d, "bob", 1, "run-1")
	if err := os.Remove(d.slotFile("bob", 0)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(d.slotFile("bob", 0), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Acquire(t.Context(), Request{Name: "bob"}); exitcodes.From(err) != exitcodes.LaneBusy {
		t.Errorf("got %v", err)
	}
	other.kill()
	if h := acquire(t, d, Request{Name: "bob"}); h.Former() == nil {
		t.Error("the dead owner is forgotten")
	}
}

func TestListBelievesLocksNotRecords(t *testing.T) {
	d := Dir(filepath.Join(t.TempDir(), "lanes"))
	if l, err := d.List(); err != nil || l == nil || len(l) != 0 {
		t.Errorf("no folder: %v, %v", l, err)
	}
	held := startHolder(t, d, "held", 1, "run-1")
	startHolder(t, d, "dead", 1, "run-2").kill()
	lost := startHolder(t, d, "lost", 1, "run-3")
	if err := os.WriteFile(d.recordFile("lost", 0), []byte("{torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := d.List()
	if err != nil || len(l) != 3 {
		t.Fatalf("got %+v, %v", l, err)
	}
	dead, heldS, lostS := l[0], l[1], l[2]
	if len(dead.Holders) != 0 || len(dead.Left) != 1 || dead.Left[0].RunID != "run-2" {
		t.Errorf("dead owner: %+v", dead)
	}
	if len(heldS.Holders) != 1 || !heldS.Holders[0].Known || heldS.Holders[0].Process != held.id {
		t.Errorf("held: %+v", heldS)
	}
	if len(lostS.Holders) != 1 || lostS.Holders[0].Known {
		t.Errorf("record lost: %+v", lostS)
	}
	lost.release(t)
}

func TestRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		dir  Dir
		req  Request
		code exitcodes.Code
	}{
		{"unwritable", "/proc/agentd-lanes", Request{Name: "bob"}, exitcodes.CannotCreate},
		{"under a file", Dir(file + "/lanes"), Request{Name: "bob"}, exitcodes.CannotCreate},
		{"name", Dir(t.TempDir()), Request{Name: "../bob"}, exitcodes.Config},
		{"empty name", Dir(t.TempDir()), Request{}, exitcodes.Config},
		{"slots", Dir(t.TempDir()), Request{Name: "bob", Slots: -1}, exitcodes.Config},
	} {
		t.Run(c.name, func(t *testing.T) {
			if h, err := c.dir.Acquire(t.Context(), c.req); h != nil || exitcodes.From(err) != c.code {
				t.Errorf("got %v, %v (%d)", h, err, exitcodes.From(err))
			}
		})
	}
	for err, code := range map[error]exitcodes.Code{
		syscall.ENOLCK: exitcodes.IO, syscall.EOPNOTSUPP: exitcodes.IO, syscall.ENOSPC: exitcodes.IO, syscall.EIO: exitcodes.IO,
		errNoExclusion: exitcodes.IO, syscall.EROFS: exitcodes.CannotCreate, syscall.EACCES: exitcodes.CannotCreate,
	} {
		if got := exitcodes.From(Dir("/x").refuse("bob", fmt.Errorf("open: %w", err))); got != code {
			t.Errorf("%v: code %d, want %d", err, got, code)
		}
	}
}

func TestCheckProvesExclusion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	l, err := tryLock(path)
	if err != nil || l == nil {
		t.Fatal(l, err)
	}
	if err := l.check(); err != nil {
		t.Errorf("a lock that works: %v", err)
	}
	_ = syscall.Flock(int(mustFd(t, l)), syscall.LOCK_UN) // as a file system whose locks do nothing
	if err := l.check(); !errors.Is(err, errNoExclusion) {
		t.Errorf("a lock that does not exclude: %v", err)
	}
	_ = l.unlock()
}

// mustFd finds the descriptor of the lock in /proc, as the library hides it.
func mustFd(t *testing.T, l *lock) uintptr {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if to, _ := os.Readlink("/proc/self/fd/" + e.Name()); to == l.f.Path() {
			var fd uintptr
			fmt.Sscan(e.Name(), &fd)
			return fd
		}
	}
	t.Fatal("the lock has no descriptor")
	return 0
}

func TestHistory(t *testing.T) {
	d := Dir(t.TempDir())
	h := acquire(t, d, Request{Name: "bob", Owner: Owner{RunID: "run-1", Job: "bob/triage"}})
	_ = h.Release()
	startHolder(t, d, "bob", 1, "run-2").kill()
	_ = acquire(t, d, Request{Name: "bob", Owner: Owner{RunID: "run-3"}}).Release()
	holds, err := d.History("bob", 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, h := range holds {
		got = append(got, fmt.Sprint(h.RunID, " ", h.End, " ", !h.Until.Before(h.Since)))
	}
	want := []string{"run-1 released true", "run-2 died true", "run-3 released true"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if last, err := d.History("bob", 1); err != nil || len(last) != 1 || last[0].RunID != "run-3" {
		t.Errorf("last: %+v, %v", last, err)
	}
	if holds, err := d.History("nobody", 0); err != nil || len(holds) != 0 {
		t.Errorf("unknown lane: %v, %v", holds, err)
	}
}

func TestHistoryIsCapped(t *testing.T) {
	d := Dir(t.TempDir())
	if err := os.WriteFile(d.historyFile("bob"), []byte("torn {\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range 3 * historyLimit / 200 {
		d.appendHistory("bob", Hold{Owner: Owner{RunID: fmt.Sprint(i), Job: "bob/triage"}, End: Released})
	}
	var size int64
	for _, f := range files(t, d) {
		info, err := os.Stat(filepath.Join(string(d), f))
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	holds, err := d.History("bob", 0)
	if err != nil || size > 2*historyLimit+1000 || len(holds) < 1000 || holds[len(holds)-1].RunID != fmt.Sprint(3*historyLimit/200-1) {
		t.Errorf("%d bytes, %d holds, %v", size, len(holds), err)
	}
}
