package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"agentd/backend"
	"agentd/exitcodes"
	"agentd/history"
	"agentd/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is a backend that ends its attempts as it is told.
type script struct {
	outcomes []backend.Outcome
	attempts []backend.Attempt
	during   func(ctx context.Context, a backend.Attempt)
}

func (s *script) Run(ctx context.Context, a backend.Attempt) backend.Outcome {
	s.attempts = append(s.attempts, a)
	if s.during != nil {
		s.during(ctx, a)
	}
	if ctx.Err() != nil {
		err := context.Cause(ctx)
		return backend.Outcome{Code: exitcodes.From(err), Err: err}
	}
	n := min(len(s.attempts), len(s.outcomes))
	return s.outcomes[n-1]
}

// house is a workspace with one job, and a state folder.
type house struct {
	*testing.T
	runner *Runner
	ws     *workspace.Workspace
	job    *workspace.Job
	out    bytes.Buffer
	script *script
}

func newHouse(t *testing.T, job string, outcomes ...backend.Outcome) *house {
	t.Helper()
	dir := t.TempDir()
	config := "[agent]\nname = \"bob\"\n[providers.mine]\nbase_url = \"http://127.0.0.1:1\"\napi_key_env = \"MY_KEY\"\n" +
		"[jobs.work]\nbackend = \"command\"\ncommand = [\"x\"]\nprompt = \"Work.\"\n" + job
	if err := os.WriteFile(filepath.Join(dir, "agentd.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	ws, err := workspace.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	h := &house{T: t, ws: ws, job: ws.Jobs[0], script: &script{outcomes: outcomes}}
	h.runner = &Runner{
		Folders: workspace.Folders{Config: filepath.Join(dir, "config"), State: filepath.Join(dir, "state"), Data: filepath.Join(dir, "data")},
		Environ: []string{"PATH=/bin", "MY_KEY=key-of-mine-123", "OTHER=other"},
		Backends: func(*workspace.Job, *workspace.Workspace, func(string) string) (backend.Backend, error) {
			return h.script, nil
		},
		Now: time.Now,
	}
	return h
}

func (h *house) run(ctx context.Context, trigger string) (*history.Run, error) {
	h.Helper()
	return h.runner.Run(ctx, Request{Workspace: h.ws, Job: h.job, Trigger: trigger, Output: &h.out, KeepLog: true})
}

func failed(code exitcodes.Code) backend.Outcome {
	return backend.Outcome{Code: code, Err: exitcodes.Errorf(code, "it failed")}
}

func TestAttempts(t *testing.T) {
	now := time.Now()
	tests := []struct {
		name     string
		job      string
		outcomes []backend.Outcome
		want     exitcodes.Code
		attempts int
		pending  string
	}{
		{"success needs one", "", []backend.Outcome{{}}, exitcodes.OK, 1, ""},
		{"a failure that repeats itself is not tried again", "", []backend.Outcome{failed(exitcodes.NoPermission)}, exitcodes.NoPermission, 1, ""},
		{"one that passes is", `resume = { cooldown = "1ms" }`, []backend.Outcome{failed(exitcodes.Unavailable), {}}, exitcodes.OK, 2, ""},
		{"until the attempts are used up", `resume = { cooldown = "1ms", attempts = 3 }`, []backend.Outcome{failed(exitcodes.IO)}, exitcodes.IO, 3, ""},
		{"only for the codes of the job", `resume = { cooldown = "1ms", on = ["io"] }`, []backend.Outcome{failed(exitcodes.Unavailable)}, exitcodes.Unavailable, 1, ""},
		{"a long cooldown is not slept", `resume = { cooldown = "1h", max_wait = "1m" }`, []backend.Outcome{failed(exitcodes.Unavailable)}, exitcodes.Unavailable, 1, "unavailable"},
		{
			"nor is a far reset", `resume = { cooldown = "1ms", max_wait = "1m" }`,
			[]backend.Outcome{{Code: exitcodes.RateLimited, Err: errors.New("limit"), ResetAt: now.Add(time.Hour)}}, exitcodes.RateLimited, 1, "rate_limited",
		},
		{
			"a reset that has passed is no wait", `resume = { cooldown = "1ms", max_wait = "1m" }`,
			[]backend.Outcome{{Code: exitcodes.RateLimited, Err: errors.New("limit"), ResetAt: now.Add(-time.Hour)}, {}}, exitcodes.OK, 2, "",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHouse(t, tt.job, tt.outcomes...)
			r, err := h.run(t.Context(), "manual")
			if got := exitcodes.From(err); got != tt.want || r.Code == nil || *r.Code != tt.want {
				t.Errorf("code = %d (%v), in the record %v, want %d", got, err, r.Code, tt.want)
			}
			if len(r.Attempts) != tt.attempts || len(h.script.attempts) != tt.attempts {
				t.Errorf("%d attempts, %d in the record, want %d", len(h.script.attempts), len(r.Attempts), tt.attempts)
			}
			pending := ""
			if r.PendingResume != nil {
				pending = r.PendingResume.Reason
			}
			if pending != tt.pending {
				t.Errorf("pending = %q, want %q", pending, tt.pending)
			}
			for i, a := range h.script.attempts {
				if a.N != i+1 || a.Resumed != (i > 0) || a.Prompt != "Work." {
					t.Errorf("attempt %d: %+v", i+1, a)
				}
			}
			stored, err := h.stored(r.RunID)
			if err != nil || stored.Open() || stored.Name != tt.want.String() {
				t.Errorf("stored: %+v, %v", stored, err)
			}
		})
	}
}

func (h *house) stored(id string) (*history.Run, error) {
	store, err := history.Open(h.runner.Folders.State)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	return store.Read(id)
}

// While a run waits, others may have its lane; afterwards it has it again.
func TestTheLaneIsFreeDuringACooldown(t *testing.T) {
	h := newHouse(t, `resume = { cooldown = "300ms" }`, failed(exitcodes.Unavailable), backend.Outcome{})
	other := newHouse(t, "", backend.Outcome{})
	other.runner.Folders = h.runner.Folders
	got := make(chan error, 1)
	h.script.during = func(_ context.Context, a backend.Attempt) {
		if a.N > 1 { // the other one has had its turn by now
			select {
			case err := <-got:
				if err != nil {
					t.Errorf("the other run: %v", err)
				}
			case <-time.After(30 * time.Second):
				t.Error("the lane was not let go during the cooldown")
			}
			return
		}
		if _, err := other.run(t.Context(), "manual"); exitcodes.From(err) != exitcodes.LaneBusy {
			t.Errorf("another run of the lane meanwhile: %v, want lane_busy", err)
		}
		other.job.LaneWait = time.Minute
		go func() {
			_, err := other.run(t.Context(), "manual")
			got <- err
		}()
	}
	if _, err := h.run(t.Context(), "manual"); err != nil {
		t.Errorf("the run: %v", err)
	}
	if len(h.script.attempts) != 2 {
		t.Errorf("%d attempts, want 2", len(h.script.attempts))
	}
}

func TestStops(t *testing.T) {
	term := exitcodes.Errorf(exitcodes.Terminated, "stopped by SIGTERM")
	t.Run("a signal in an attempt", func(t *testing.T) {
		h := newHouse(t, "", backend.Outcome{})
		ctx, cancel := context.WithCancelCause(t.Context())
		h.script.during = func(context.Context, backend.Attempt) { cancel(term) }
		r, err := h.run(ctx, "manual")
		if exitcodes.From(err) != exitcodes.Terminated || *r.Code != exitcodes.Terminated {
			t.Errorf("%v, record %v", err, r.Name)
		}
	})
	t.Run("a signal in a cooldown", func(t *testing.T) {
		h := newHouse(t, `resume = { cooldown = "5m" }`, failed(exitcodes.Unavailable))
		ctx, cancel := context.WithCancelCause(t.Context())
		h.script.during = func(context.Context, backend.Attempt) {
			time.AfterFunc(50*time.Millisecond, func() { cancel(term) })
		}
		r, err := h.run(ctx, "manual")
		if exitcodes.From(err) != exitcodes.Terminated {
			t.Errorf("%v", err)
		}
		if r.PendingResume == nil {
			t.Error("a stop of the machine in a cooldown loses the rest of the run")
		}
	})
	t.Run("the timeout", func(t *testing.T) {
		h := newHouse(t, "timeout = \"1s\"", backend.Outcome{})
		h.script.during = func(ctx context.Context, _ backend.Attempt) { <-ctx.Done() }
		_, err := h.run(t.Context(), "manual")
		if exitcodes.From(err) != exitcodes.Timeout || !strings.Contains(err.Error(), "1s") {
			t.Errorf("%v", err)
		}
	})
}

func TestSecretsAreMasked(t *testing.T) {
	h := newHouse(t, "", backend.Outcome{Code: exitcodes.Failure, Err: errors.New("the server said key-of-mine-123")})
	if err := os.WriteFile(filepath.Join(h.ws.Dir, ".env"), []byte("TOKEN=s3cr3t-token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.script.during = func(_ context.Context, a backend.Attempt) {
		fmt.Fprintln(a.Output, "TOKEN is s3cr3t-token and the key is key-of-mine-123")
		a.Events(backend.Event{Kind: "tool", Text: "curl -H s3cr3t-token", Data: map[string]any{"arg": "s3cr3t-token"}})
		if !slices.Contains(a.Env, "TOKEN=s3cr3t-token") {
			t.Error("the env file's variable is not in the program's environment")
		}
		for _, kv := range a.Env {
			if strings.HasPrefix(kv, "MY_KEY=") || strings.HasPrefix(kv, "OTHER=") {
				t.Errorf("the program is given %s", kv)
			}
		}
	}
	_, err := h.run(t.Context(), "manual")
	if err == nil {
		t.Fatal("no error")
	}
	for _, secret := range []string{"s3cr3t-token", "key-of-mine-123"} {
		if strings.Contains(h.out.String(), secret) {
			t.Errorf("the output shows %s:\n%s", secret, h.out.String())
		}
		err := filepath.WalkDir(h.runner.Folders.State, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			if bytes.Contains(data, []byte(secret)) {
				t.Errorf("%s holds %s:\n%s", path, secret, data)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Whoever finds a crashed run closes it; the job says whether it goes on.
func TestCrashedRuns(t *testing.T) {
	for _, tt := range []struct {
		job      string
		attempts int
		pending  bool
	}{
		{"", 1, true},
		{"", 0, false},
		{"resume = { crashed = false }", 1, false},
		{"resume = { attempts = 1 }", 1, false},
	} {
		h := newHouse(t, tt.job, backend.Outcome{})
		store, err := history.Open(h.runner.Folders.State)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		dead := &history.Run{RunID: history.NewRunID(), Agent: "bob", Job: "work", Workspace: h.ws.Dir, StartedAt: time.Now()}
		for n := range tt.attempts {
			dead.Attempts = append(dead.Attempts, history.Attempt{N: n + 1, StartedAt: time.Now()})
		}
		alive := &history.Run{RunID: history.NewRunID(), Agent: "bob", Job: "work", Workspace: h.ws.Dir, StartedAt: time.Now()}
		for _, r := range []*history.Run{dead, alive} {
			if err := store.Begin(r); err != nil {
				t.Fatal(err)
			}
		}
		hold, ok, err := store.Hold(alive.RunID)
		if err != nil || !ok {
			t.Fatal(err)
		}
		if err := h.runner.CloseCrashed(store); err != nil {
			t.Fatal(err)
		}
		got, err := store.Read(dead.RunID)
		if err != nil || got.Open() || *got.Code != exitcodes.Interrupted || (got.PendingResume != nil) != tt.pending {
			t.Errorf("%q with %d attempts: %+v, %v", tt.job, tt.attempts, got, err)
		}
		if len(got.Attempts) > 0 && got.Attempts[0].EndedAt == nil {
			t.Error("the attempt stays open")
		}
		if got, err := store.Read(alive.RunID); err != nil || !got.Open() {
			t.Errorf("a run that is held was closed: %+v, %v", got, err)
		}
		if err := hold.Release(); err != nil {
			t.Fatal(err)
		}
	}
}

// Of many that find a pending run, one goes on with it.
func TestAPendingRunIsClaimedOnce(t *testing.T) {
	h := newHouse(t, `resume = { cooldown = "1h", max_wait = "1s" }`, failed(exitcodes.Unavailable), backend.Outcome{})
	first, err := h.run(t.Context(), "timer")
	if err == nil || first.PendingResume == nil {
		t.Fatalf("%v, %+v", err, first)
	}
	const many = 8
	claimed := make(chan string, many)
	for range many {
		go func() {
			store, err := history.Open(h.runner.Folders.State)
			if err != nil {
				claimed <- err.Error()
				return
			}
			defer store.Close()
			run, hold, err := h.runner.claim(store, first.RunID)
			switch {
			case err != nil:
				claimed <- err.Error()
			case run == nil:
				claimed <- ""
			default:
				claimed <- "claimed"
				_ = hold.Release()
			}
		}()
	}
	n := 0
	for range many {
		switch got := <-claimed; got {
		case "claimed":
			n++
		case "":
		default:
			t.Error(got)
		}
	}
	if n != 1 {
		t.Errorf("claimed %d times", n)
	}
}
