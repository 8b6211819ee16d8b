package cli

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// How many runs the kill tests cut off; KILLS makes it a campaign, as `make
// soak` does.
func kills(t *testing.T, usual int) int {
	t.Helper()
	if text := os.Getenv("KILLS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return usual
}

const toolCalls = 20

// victim is a job whose model calls a tool 20 times; each call appends a line
// of its own to a file.
type victim struct {
	*testing.T
	agentd, dir string
	url         string
}

func newVictim(t *testing.T) *victim {
	t.Helper()
	v := &victim{T: t, dir: t.TempDir()}
	v.agentd = filepath.Join(v.dir, "agentd")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, v.agentd); err != nil { // under this name it is agentd: see TestMain
		t.Fatal(err)
	}
	model := httptest.NewServer(http.HandlerFunc(appendLines))
	t.Cleanup(model.Close)
	v.url = model.URL
	config := "[agent]\nname = \"bob\"\n[jobs.lines]\nprompt = \"Go.\"\nmodel = \"rehearsal/outside\"\nsession = \"lines\"\nresume = { attempts = 20 }\n"
	if err := os.WriteFile(filepath.Join(v.dir, "agentd.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return v
}

// appendLines is a model without a memory: which call is next it sees from the
// conversation alone, so that it can go on after any interruption.
func appendLines(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Messages []struct {
			Role string `json:"role"`
		} `json:"messages"`
	}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	replies := 0
	for _, m := range q.Messages {
		if m.Role == "assistant" {
			replies++
		}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	delta, finish := `{"role":"assistant","content":"All lines are written."}`, "stop"
	if replies < toolCalls {
		args, _ := json.Marshal(fmt.Sprintf(`{"command":"echo line-%d >>lines"}`, replies))
		delta = fmt.Sprintf(`{"role":"assistant","tool_calls":[{"index":0,"id":"call_%d","type":"function","function":{"name":"shell","arguments":%s}}]}`, replies, args)
		finish = "tool_calls"
	}
	fmt.Fprintf(w, "data: {\"id\":\"r\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":null}]}\n\n", delta)
	fmt.Fprintf(w, "data: {\"id\":\"r\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":%q}]}\n\ndata: [DONE]\n\n", finish)
}

// command is a run, with a state folder of its own, behind a prefix such as strace.
func (v *victim) command(n int, prefix ...string) *exec.Cmd {
	argv := append(prefix, v.agentd, "run", "lines", "--trigger", "timer")
	return v.in(n, argv...)
}

func (v *victim) in(n int, argv ...string) *exec.Cmd {
	c := exec.CommandContext(v.Context(), argv[0], argv[1:]...)
	c.Dir = v.dir
	c.Env = append(os.Environ(), "HOME="+v.dir, "XDG_STATE_HOME="+filepath.Join(v.dir, strconv.Itoa(n)), "AGENTD_REHEARSAL_URL="+v.url)
	return c
}

var unknown = regexp.MustCompile(`outcome of this call is unknown`)

// check lets the killed run go on to its end and looks at what came of it.
func (v *victim) check(n int, when string) {
	v.Helper()
	if out, err := v.command(n).CombinedOutput(); err != nil {
		v.Fatalf("%s: the run after it: %v\n%s", when, err, out)
	}
	data, err := os.ReadFile(filepath.Join(v.dir, "lines"))
	if err != nil {
		v.Fatalf("%s: %v", when, err)
	}
	seen := map[string]int{}
	for line := range strings.Lines(string(data)) {
		seen[strings.TrimSpace(line)]++
	}
	missing := 0
	for i := range toolCalls {
		switch name := fmt.Sprintf("line-%d", i); seen[name] {
		case 1:
		case 0:
			missing++
		default:
			v.Errorf("%s: %s stands %d times", when, name, seen[name])
		}
	}
	export, err := v.in(n, v.agentd, "sessions", "export", "--format", "json", "lines").Output()
	if err != nil {
		v.Fatalf("%s: export: %v", when, err)
	}
	if told := len(unknown.FindAll(export, -1)); missing > told {
		v.Errorf("%s: %d lines are missing, and the model was told of %d unknown outcomes", when, missing, told)
	}
	if out, err := v.in(n, v.agentd, "sessions", "verify").CombinedOutput(); err != nil {
		v.Errorf("%s: verify: %v\n%s", when, err, out)
	}
	if err := os.Remove(filepath.Join(v.dir, "lines")); err != nil {
		v.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(v.dir, strconv.Itoa(n))); err != nil {
		v.Fatal(err)
	}
}

// TestKilledAtRandomMoments ends agentd with SIGKILL at moments spread over the
// length of a run.
func TestKilledAtRandomMoments(t *testing.T) {
	v := newVictim(t)
	start := time.Now()
	if out, err := v.command(0).CombinedOutput(); err != nil {
		t.Fatalf("a run that nothing disturbs: %v\n%s", err, out)
	}
	whole := time.Since(start)
	v.checkOnly(0)
	for n := 1; n <= kills(t, 8); n++ {
		moment := time.Duration(rand.Int64N(int64(whole)))
		c := v.command(n)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(moment, func() { _ = c.Process.Signal(syscall.SIGKILL) })
		_ = c.Wait() // the end is checked by what it left
		timer.Stop()
		v.check(n, fmt.Sprintf("killed after %s", moment))
	}
}

// checkOnly checks a run that was not killed: there is nothing to go on with.
func (v *victim) checkOnly(n int) {
	v.Helper()
	data, err := os.ReadFile(filepath.Join(v.dir, "lines"))
	if err != nil || strings.Count(string(data), "\n") != toolCalls {
		v.Fatalf("lines: %v\n%s", err, data)
	}
	if err := os.Remove(filepath.Join(v.dir, "lines")); err != nil {
		v.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(v.dir, strconv.Itoa(n))); err != nil {
		v.Fatal(err)
	}
}

// TestKilledAtEverySync ends agentd with SIGKILL as it enters its Nth fsync or
// write, for N up to where a run has no more of them. In a usual test only
// some N are tried.
func TestKilledAtEverySync(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("strace is not installed")
	}
	v := newVictim(t)
	run := 0
	for _, call := range []string{"fsync", "write"} {
		step := 1
		if os.Getenv("KILLS") == "" {
			step = 67
		}
		for n := 1; ; n += step {
			run++
			c := v.command(run, "strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace="+call,
				"-e", fmt.Sprintf("inject=%s:signal=SIGKILL:when=%d", call, n))
			err := c.Run()
			if err == nil { // it was over before
				v.checkOnly(run)
				break
			}
			v.check(run, fmt.Sprintf("killed at %s %d", call, n))
		}
	}
}
