package backend

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentd/exitcodes"
)

// flood is how much a hostile program writes, in bytes. HOSTILE_BYTES makes it
// another number: "make soak" lets it be 5 GB.
func flood(t *testing.T) int64 {
	t.Helper()
	text := os.Getenv("HOSTILE_BYTES")
	if text == "" {
		return 20_000_000
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestHostilePrograms wants every one of them to be bounded, recorded and
// cleaned up, for a CLI with events and one that prints text.
func TestHostilePrograms(t *testing.T) {
	for _, c := range []struct {
		name, script string
		code         exitcodes.Code
		text         string // in the error
		leaves       bool   // a process, whose pid is in the file "left"
	}{
		{name: "a grandchild keeps the output open", leaves: true, script: `(echo $BASHPID > "$FAKE/left"; exec sleep 1000) & cat "$FAKE/hello"`},
		{name: "a daemon", leaves: true, script: `setsid bash -c 'trap "" TERM HUP; (echo $BASHPID > "$FAKE/left"; while :; do sleep 0.1; done) &' & wait; cat "$FAKE/hello"`},
		{name: "waits for input", script: `cat > /dev/null; cat "$FAKE/hello"`},
		{name: "a flood of lines", script: `yes 'nothing but words' | head -c $FLOOD; cat "$FAKE/hello"`},
		{name: "a flood without an end of line", script: `head -c $FLOOD /dev/zero; echo; cat "$FAKE/hello"`},
		{name: "a flood of errors", script: `head -c $FLOOD /dev/zero >&2; cat "$FAKE/hello"`},
		{name: "an event that does not end", script: `echo; printf '{"type":"'; head -c $FLOOD /dev/zero | tr '\0' a; echo; cat "$FAKE/hello"`},
		{name: "half a line, invalid text and no end", script: `cat "$FAKE/hello"; printf 'caf\351 \033[31mred\033[0m \xf0\x9f'`},
		{name: "stays for ever when done", script: `cat "$FAKE/hello"; trap '' TERM; exec >&- 2>&-; while :; do sleep 0.1; done`, code: exitcodes.Timeout, text: "timeout"},
	} {
		for _, preset := range []string{"claude", "gptme"} {
			t.Run(c.name+"/"+preset, func(t *testing.T) {
				d := newCLIDesk(t, preset, "")
				d.hello()
				d.preset.Linger, d.job.Grace, d.log = time.Hour, 100*time.Millisecond, 1<<20
				d.env = append(d.env, fmt.Sprintf("FLOOD=%d", flood(t)))
				d.script(c.script)
				d.write("bin/"+d.preset.Command[0], strings.Replace(d.got("bin/"+d.preset.Command[0]), "#!/bin/sh", "#!/bin/bash", 1), 0o700)
				limit := 5 * time.Minute
				if c.code == exitcodes.Timeout {
					limit = 3 * time.Second
				}
				ctx, cancel := context.WithTimeoutCause(t.Context(), limit, exitcodes.Errorf(exitcodes.Timeout, "the attempt's timeout passed"))
				defer cancel()
				before := heap()
				o := d.run(ctx, "Do it.")
				if grown := heap() - before; grown > 32<<20 {
					t.Errorf("the heap grew by %d bytes", grown)
				}
				if o.Code != c.code || o.Err != nil && !strings.Contains(o.Err.Error(), c.text) {
					t.Errorf("outcome %+v", o)
				}
				if d.out.Len() > 3<<20 { // of both outputs, with the last lines
					t.Errorf("%d bytes in the log", d.out.Len())
				}
				if c.leaves {
					pid := waitPID(filepath.Join(d.home, "left"))
					if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); pid == 0 || err == nil {
						t.Errorf("process %d is left", pid)
					}
				}
			})
		}
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}

// A request that is repeated is bounded by the number that the job allows, and
// by waits that are never slept inside a run.
func TestRepeatsAreBounded(t *testing.T) {
	const attempt = "echo 'Attempt %d failed%s. Retrying after 1ms...' >&2; "
	for _, c := range []struct {
		name, script string
		requests     int
		code         exitcodes.Code
		reset        time.Duration
		text         string
	}{
		{
			"too often", fmt.Sprintf(attempt, 1, " with status 503") + fmt.Sprintf(attempt, 2, " with status 503"), 2,
			exitcodes.Unavailable, 0, "it has sent its request 2 times: HTTP 503",
		},
		{
			"too often, limited", fmt.Sprintf(attempt, 1, " with status 429") + fmt.Sprintf(attempt, 2, " with status 429"), 2,
			exitcodes.RateLimited, 0, "HTTP 429",
		},
		{
			"too long", fmt.Sprintf(attempt, 1, ": You have exhausted your capacity on this model. Your quota will reset after 3h0m0s."), 11,
			exitcodes.RateLimited, 3 * time.Hour, "it waits for a limit",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newCLIDesk(t, "gemini", "")
			d.script(c.script + "exec sleep 1000")
			d.job.Recovery.Requests, d.job.Resume.MaxWait, d.job.Grace = c.requests, 10*time.Minute, time.Second
			o := d.run(t.Context(), "Do it.")
			if o.Code != c.code || !strings.Contains(o.Err.Error(), c.text) {
				t.Errorf("outcome %+v", o)
			}
			if reset := o.ResetAt; reset.IsZero() != (c.reset == 0) || c.reset > 0 && !reset.Equal(d.now.Add(c.reset)) {
				t.Errorf("reset at %v, want in %s", reset, c.reset)
			}
		})
	}
}
