package lanes

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agentd/atomicfile"
	"agentd/process"
)

// fight takes the lane again and again until a time. Each time it proves in two
// other ways that no more than the allowed number are inside: by a lock of
// another kind, and by a counter that loses an update if two write it.
func fight(args []string) int {
	dir := args[0]
	slots, _ := strconv.Atoi(args[1])
	until, _ := strconv.ParseInt(args[2], 10, 64)
	// Opened first: when we are killed, descriptors are closed in this order,
	// and this lock has to go before the lane's.
	proof, err := os.OpenFile(filepath.Join(dir, "proof"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return complain(dir, "%v", err)
	}
	for n := 0; time.Now().UnixNano() < until; n++ {
		wait := time.Duration(rand.IntN(3)) * time.Second
		h, err := Dir(filepath.Join(dir, "lanes")).Acquire(context.Background(),
			Request{Name: "ring", Slots: slots, Wait: wait, Owner: Owner{RunID: fmt.Sprintf("%d-%d", os.Getpid(), n)}})
		if _, busy := errors.AsType[*Busy](err); busy {
			continue
		}
		if err != nil {
			return complain(dir, "%v", err)
		}
		if h.Former() != nil {
			note(dir, "formers", "%s", h.Former().RunID)
		}
		if !prove(proof, slots) {
			return complain(dir, "more than %d holders", slots)
		}
		if slots == 1 {
			if err := count(dir); err != nil {
				return complain(dir, "%v", err)
			}
		}
		<-time.After(time.Duration(rand.IntN(3000)) * time.Microsecond)
		_ = unix.FcntlFlock(proof.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_UNLCK})
		if err := h.Release(); err != nil {
			return complain(dir, "%v", err)
		}
	}
	return 0
}

// prove locks one of as many bytes as there are slots.
func prove(f *os.File, slots int) bool {
	for i := range slots {
		if unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Start: int64(i), Len: 1}) == nil {
			return true
		}
	}
	return false
}

// count adds one to a number in a file, without a lock of its own, and notes it.
func count(dir string) error {
	path := filepath.Join(dir, "counter")
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	n, _ := strconv.Atoi(string(data))
	if err := atomicfile.Write(path, []byte(strconv.Itoa(n+1)), 0o600); err != nil {
		return err
	}
	note(dir, "values", "%d", n+1)
	return nil
}

func complain(dir, format string, args ...any) int {
	note(dir, "complaints", format, args...)
	return 1
}

func note(dir, file, format string, args ...any) {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	fmt.Fprintf(f, format+"\n", args...)
}

func lines(t *testing.T, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

// Processes fight for a lane and are killed at random. LANES_SECONDS makes it a
// campaign of that length with 20 processes.
func TestNeverMoreHoldersThanSlots(t *testing.T) {
	length, fighters := 2*time.Second, 5
	if s := os.Getenv("LANES_SECONDS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		length, fighters = time.Duration(n)*time.Second, 20
	}
	for _, slots := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d slots", slots), func(t *testing.T) {
			dir := t.TempDir()
			kills := battle(t, dir, slots, fighters, length)
			for _, c := range lines(t, filepath.Join(dir, "complaints")) {
				t.Error(c)
			}
			values := lines(t, filepath.Join(dir, "values"))
			for i, v := range values {
				if i > 0 && v == values[i-1] {
					t.Errorf("value %s was counted twice", v)
				}
			}
			if slots == 1 && len(values) == 0 {
				t.Error("nobody ever held the lane")
			}
			holds, err := Dir(filepath.Join(dir, "lanes")).History("ring", 0)
			if err != nil || len(holds) == 0 {
				t.Errorf("history: %d holds, %v", len(holds), err)
			}
			t.Logf("%d holds on record, %d kills, %d takers found a dead owner",
				len(holds), kills, len(lines(t, filepath.Join(dir, "formers"))))
		})
	}
}

func battle(t *testing.T, dir string, slots, fighters int, length time.Duration) (kills int) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	end := time.Now().Add(length)
	procs := make([]*exec.Cmd, fighters)
	start := func(i int) {
		cmd := exec.Command(exe, dir, strconv.Itoa(slots), strconv.FormatInt(end.UnixNano(), 10))
		cmd.Env = []string{roleEnv + "=fighter"}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		procs[i] = cmd
	}
	for i := range procs {
		start(i)
	}
	for time.Until(end) > 50*time.Millisecond {
		<-time.After(time.Duration(20+rand.IntN(80)) * time.Millisecond)
		i := rand.IntN(fighters)
		_ = procs[i].Process.Kill()
		_ = procs[i].Wait()
		kills++
		start(i)
	}
	for _, p := range procs {
		if err := p.Wait(); err != nil {
			t.Errorf("a fighter ended with %v", err)
		}
	}
	return kills
}

// hold takes a lane for a run, tells it, and keeps it until its input ends.
func hold(args []string) int {
	slots, _ := strconv.Atoi(args[2])
	h, err := Dir(args[0]).Acquire(context.Background(), Request{Name: args[1], Slots: slots,
		Owner: Owner{RunID: args[3], Job: "bob/" + args[3]}})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("held by", h.rec.Process.PID)
	_, _ = io.Copy(io.Discard, os.Stdin)
	if h.Release() != nil {
		return 1
	}
	return 0
}

type holder struct {
	cmd *exec.Cmd
	in  io.Closer
	id  process.Identity
}

// startHolder starts another process that holds the lane.
func startHolder(t *testing.T, d Dir, lane string, slots int, runID string) *holder {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, string(d), lane, strconv.Itoa(slots), runID)
	cmd.Env = []string{roleEnv + "=holder"}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	if !strings.HasPrefix(line, "held by") {
		t.Fatalf("the holder says %q", line)
	}
	id, err := process.Of(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	h := &holder{cmd, in, id}
	t.Cleanup(h.kill)
	return h
}

func (h *holder) kill() {
	_ = h.cmd.Process.Kill()
	_ = h.cmd.Wait()
}

// release makes the process end in good order.
func (h *holder) release(t *testing.T) {
	t.Helper()
	_ = h.in.Close()
	if err := h.cmd.Wait(); err != nil {
		t.Errorf("the holder ended with %v", err)
	}
}
