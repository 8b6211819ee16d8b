package tools

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"agentd/session"
)

func TestShell(t *testing.T) {
	o := options(t)
	s := Builtin(o)
	for _, c := range []struct {
		command, want string
		isError       bool
	}{
		{"echo hi", "hi\n[exit status 0]", false},
		{"printf hi", "hi\n[exit status 0]", false},
		{"true", "(no output)\n[exit status 0]", false},
		{"echo out; echo err >&2; exit 3", "out\nerr\n[exit status 3]", true},
		{"set -o pipefail; false | cat", "(no output)\n[exit status 1]", true},
		{"cat", "(no output)\n[exit status 0]", false},
		{`printf '\377\000x'`, "\uFFFD\uFFFDx\n[exit status 0]", false},
		{"kill -9 $$", "(no output)\n[ended by SIGKILL]", true},
		{"sleep 1000 & sleep 1000 & echo started", "started\n[exit status 0]\n[ended what it left in the background: sleep (2 times)]", false},
		{"echo $AGENTD_RUN_ID", "run-1\n[exit status 0]", false},
		{"echo my hunter2-secret", "my [redacted]\n[exit status 0]", false},
		{"pwd", o.Dir + "\n[exit status 0]", false},
		{"no-such-program-here 2>/dev/null", "(no output)\n[exit status 127]", true},
	} {
		t.Run(c.command, func(t *testing.T) {
			r := call(t, s, "shell", arg(t, map[string]any{"command": c.command}))
			if r.Text != c.want || r.IsError != c.isError || r.Interrupted {
				t.Errorf("got  %+v\nwant %q", r, c.want)
			}
		})
	}
}

func TestShellCannotStart(t *testing.T) {
	o := options(t)
	r := call(t, Builtin(o), "shell", arg(t, map[string]any{"command": "true " + strings.Repeat("x", 200<<10)}))
	if !r.IsError || !strings.Contains(r.Text, "more than the kernel takes") || !strings.Contains(r.Text, "in a file") {
		t.Errorf("too long: %+v", r)
	}
	r = call(t, Builtin(o), "shell", arg(t, map[string]any{"command": "a\x00b"}))
	if !r.IsError || !strings.Contains(r.Text, "NUL") {
		t.Errorf("NUL: %+v", r)
	}
	o.Dir = filepath.Join(o.Dir, "gone")
	if r = call(t, Builtin(o), "shell", `{"command":"true"}`); !r.IsError || !strings.Contains(r.Text, "no folder") {
		t.Errorf("no workspace: %+v", r)
	}
}

func TestShellTimeout(t *testing.T) {
	o := options(t)
	o.Grace = 100 * time.Millisecond
	pidfile := filepath.Join(o.Dir, "pid")
	r := call(t, Builtin(o), "shell", arg(t, map[string]any{"timeout_s": 2,
		"command": "echo before; setsid sh -c 'trap \"\" TERM; echo $$ >pid; while :; do sleep 0.05; done' & wait"}))
	if r.Text != "before\n[timeout: the command was ended after 2s]" || !r.IsError || r.Interrupted {
		t.Errorf("got %+v", r)
	}
	gone(t, pidfile)
}

// gone fails if the process whose pid is in the file still runs.
func gone(t *testing.T, pidfile string) {
	t.Helper()
	data, err := os.ReadFile(pidfile)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err == nil {
		t.Errorf("process %d still runs", pid)
	}
}

func TestShellInterrupted(t *testing.T) {
	o := options(t)
	o.Grace = 100 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	pidfile := filepath.Join(o.Dir, "pid")
	go func() {
		for i := 0; i < 6000; i++ {
			if data, _ := os.ReadFile(pidfile); bytes.HasSuffix(data, []byte("\n")) {
				break
			}
			<-time.After(5 * time.Millisecond)
		}
		cancel()
	}()
	r, err := Builtin(o).Lookup("shell").Run(ctx, Call{Name: "shell", Arguments: `{"command":"echo before; echo $$ >pid; sleep 1000"}`})
	if err != nil || !r.Interrupted || !r.IsError || r.Outcome() != session.OutcomeInterrupted || !strings.HasPrefix(r.Text, "before\n[interrupted") {
		t.Errorf("got %+v, %v", r, err)
	}
	gone(t, pidfile)
	r, err = Builtin(o).Lookup("shell").Run(ctx, Call{Name: "shell", Arguments: `{"command":"touch ran"}`})
	if _, statErr := os.Stat(filepath.Join(o.Dir, "ran")); err != nil || !r.Interrupted || statErr == nil {
		t.Errorf("after the end: %+v, %v", r, err)
	}
}

func TestShellLongOutput(t *testing.T) {
	o := options(t)
	r := call(t, Builtin(o), "shell", `{"command":"seq 100000; echo hunter2-secret"}`)
	if len(r.Text) > outputLimit+1000 || !strings.HasPrefix(r.Text, "1\n2\n") || !strings.Contains(r.Text, "\n100000\n[redacted]\n[exit status 0]\n[of 588906") {
		t.Errorf("%d bytes: %q ... %q", len(r.Text), r.Text[:20], r.Text[len(r.Text)-300:])
	}
	path := regexp.MustCompile(`all of it is in (\S+)\]`).FindStringSubmatch(r.Text)
	if path == nil {
		t.Fatalf("no file: %q", r.Text[len(r.Text)-300:])
	}
	data, err := os.ReadFile(path[1])
	if err != nil || len(data) != 588895+len("[redacted]\n") || !bytes.HasSuffix(data, []byte("\n100000\n[redacted]\n")) {
		t.Errorf("the file has %d bytes, %v", len(data), err)
	}
	if info, err := os.Stat(path[1]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	o.RunDir = ""
	if r := call(t, Builtin(o), "shell", `{"command":"seq 100000"}`); strings.Contains(r.Text, "is in") || r.IsError {
		t.Errorf("without a folder: %q", r.Text[len(r.Text)-300:])
	}
	o.RunDir = "/proc/nowhere"
	if r := call(t, Builtin(o), "shell", `{"command":"seq 100000"}`); !strings.Contains(r.Text, "could not be kept") || r.IsError {
		t.Errorf("with a folder that cannot be: %q", r.Text[len(r.Text)-300:])
	}
}

// The capture keeps the two ends and the file all of it, however it is written.
func TestCaptureAnyCut(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		c := &capture{dir: dir}
		defer c.close()
		var all []byte
		for _, n := range rapid.SliceOfN(rapid.IntRange(0, 40<<10), 0, 8).Draw(t, "sizes") {
			p := make([]byte, n)
			for i := range p {
				p[i] = byte('a' + (len(all)+i)*7/5%26)
			}
			all = append(all, p...)
			if got, err := c.Write(p); got != n || err != nil {
				t.Fatal(got, err)
			}
		}
		if len(all) <= outputLimit {
			if c.text() != string(all) || c.note() != "" || c.path != "" {
				t.Errorf("%d bytes come out as %d, note %q", len(all), len(c.text()), c.note())
			}
			return
		}
		const half = outputLimit / 2
		want := fmt.Sprintf("%s\n[... %d bytes left out ...]\n%s", all[:half], len(all)-outputLimit, all[len(all)-half:])
		if c.text() != want {
			t.Errorf("%d bytes: the ends are wrong", len(all))
		}
		if data, err := os.ReadFile(c.path); err != nil || !bytes.Equal(data, all) {
			t.Errorf("the file has %d bytes of %d, %v", len(data), len(all), err)
		}
		_ = os.Remove(c.path)
	})
}

// A flood neither fills the memory nor the disk.
func TestShellFlood(t *testing.T) {
	o := options(t)
	r := call(t, Builtin(o), "shell", `{"command":"head -c 100000000 /dev/zero | tr '\\0' 'é'"}`)
	if len(r.Text) > 4*outputLimit || !utf8.ValidString(r.Text) || !strings.Contains(r.Text, "the first 64 MiB are in") {
		t.Errorf("%d bytes: %q", len(r.Text), r.Text[max(0, len(r.Text)-300):])
	}
	entries, err := os.ReadDir(o.RunDir)
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	if info, err := entries[0].Info(); err != nil || info.Size() != fileLimit {
		t.Errorf("size %v, %v", info.Size(), err)
	}
}
