package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"testing"

	"pgregory.net/rapid"
)

func TestIdentityAlive(t *testing.T) {
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	id, err := Of(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	reused, rebooted := id, id
	reused.StartTime++
	rebooted.BootID = "another boot"
	if !id.Alive() || reused.Alive() || rebooted.Alive() || (Identity{}).Alive() || !Self().Alive() {
		t.Errorf("alive: %v, with another start time %v, boot %v, zero %v, self %v",
			id.Alive(), reused.Alive(), rebooted.Alive(), (Identity{}).Alive(), Self().Alive())
	}
	_ = in.Close()
	eventually(t, "a zombie is not alive", func() bool { return !id.Alive() })
	if _, err := Of(id.PID); err != nil {
		t.Errorf("the zombie has gone too early: %v", err)
	}
	_ = cmd.Wait()
	if _, err := Of(id.PID); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Of(gone) = %v", err)
	}
	data, err := json.Marshal(id)
	var back Identity
	if err != nil || json.Unmarshal(data, &back) != nil || back != id {
		t.Errorf("JSON %s, %v", data, err)
	}
}

func TestParseStatAnyName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringOfN(rapid.RuneFrom([]rune(") (\n aR1")), 0, 15, -1).Draw(t, "name")
		pid := rapid.IntRange(1, 1<<22).Draw(t, "pid")
		start := rapid.Uint64().Draw(t, "start")
		line := fmt.Sprintf("%d (%s) S 7 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 3 0 %d 100 200\n", pid, name, start)
		p, err := parseStat([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		if want := (proc{pid: pid, ppid: 7, pgid: 8, sid: 9, start: start, state: 'S', threads: 3, name: name}); p != want {
			t.Errorf("got %+v, want %+v", p, want)
		}
	})
}

func TestParseStatDamaged(t *testing.T) {
	for _, s := range []string{"", "1", "1 (a", "1 (a) S", ") 1 (", "x (a) S 1 1 1 0 -1 0 1 2 3 4 5 6 7 8 20 0 3 0 1 100"} {
		if p, err := parseStat([]byte(s)); err == nil {
			t.Errorf("%q: got %+v", s, p)
		}
	}
}
