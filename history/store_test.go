package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentd/exitcodes"
	"agentd/process"
)

func open(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func begin(t *testing.T, s *Store, job string, at time.Time) *Run {
	t.Helper()
	r := &Run{RunID: NewRunID(), Agent: "bob", Job: job, Lane: "bob", Trigger: "manual", StartedAt: at, Process: process.Self()}
	if err := s.Begin(r); err != nil {
		t.Fatal(err)
	}
	return r
}

func end(t *testing.T, s *Store, r *Run, code exitcodes.Code) {
	t.Helper()
	at := r.StartedAt.Add(time.Second)
	r.EndedAt = &at
	r.SetCode(code)
	if err := s.Save(r); err != nil {
		t.Fatal(err)
	}
}

func ids(runs []*Run) []string {
	var out []string
	for _, r := range runs {
		out = append(out, r.RunID)
	}
	return out
}

func TestRecordKeepsItsShape(t *testing.T) {
	s := open(t, t.TempDir())
	r := begin(t, s, "triage", noon)
	data, err := os.ReadFile(filepath.Join(s.RunDir(r.RunID), "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"attempts":[]`, `"code":null`, `"name":"running"`, `"ended_at":null`, `"reset_at":null`, `"pending_resume":null`, `"started_at":"2026-12-01T12:00:00Z"`} {
		if !bytes.Contains(data, []byte(want)) {
			t.Errorf("a new record lacks %s:\n%s", want, data)
		}
	}
	end(t, s, r, exitcodes.RateLimited)
	got, err := s.Read(r.RunID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, got); diff != "" {
		t.Errorf("the record read back differs (-written +read):\n%s", diff)
	}
	if *got.Code != exitcodes.RateLimited || got.Name != "rate_limited" {
		t.Errorf("code = %d %s", *got.Code, got.Name)
	}
}

func TestListFilters(t *testing.T) {
	s := open(t, t.TempDir())
	a := begin(t, s, "triage", noon)
	end(t, s, a, exitcodes.OK)
	b := begin(t, s, "digest", noon.Add(time.Hour))
	end(t, s, b, exitcodes.RateLimited)
	c := begin(t, s, "triage", noon.Add(2*time.Hour))
	limited := exitcodes.RateLimited
	tests := []struct {
		name   string
		filter Filter
		want   []string
	}{
		{"all, the newest first", Filter{}, []string{c.RunID, b.RunID, a.RunID}},
		{"limit", Filter{Limit: 2}, []string{c.RunID, b.RunID}},
		{"job", Filter{Agent: "bob", Job: "triage"}, []string{c.RunID, a.RunID}},
		{"other agent", Filter{Agent: "eve"}, nil},
		{"since", Filter{Since: noon.Add(time.Hour)}, []string{c.RunID, b.RunID}},
		{"code", Filter{Code: &limited}, []string{b.RunID}},
	}
	check := func(t *testing.T, s *Store) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				got, err := s.List(tt.filter)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, ids(got)); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			})
		}
	}
	check(t, s)
	openRuns, err := s.OpenRuns()
	if err != nil || len(openRuns) != 1 || openRuns[0].RunID != c.RunID {
		t.Errorf("OpenRuns = %v, %v, want the one without an end", ids(openRuns), err)
	}

	// The same after each kind of loss of the index.
	db := filepath.Join(s.dir, indexFile)
	for name, damage := range map[string]func() error{
		"lost":       func() error { return os.Remove(db) },
		"garbage":    func() error { return os.WriteFile(db, bytes.Repeat([]byte("garbage "), 4096), 0o600) },
		"empty":      func() error { return os.WriteFile(db, nil, 0o600) },
		"truncated":  func() error { return os.Truncate(db, 4096+100) },
		"zeroed":     func() error { return zero(db, 4096) },
		"stale mark": func() error { markStale(s.dir); return nil },
		"a folder":   func() error { return errors.Join(os.Remove(db), os.Mkdir(db, 0o700)) },
	} {
		t.Run(name, func(t *testing.T) {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			for _, side := range []string{"-wal", "-shm"} {
				_ = os.Remove(db + side)
			}
			if err := damage(); err != nil {
				t.Fatal(err)
			}
			check(t, open(t, s.dir))
		})
	}
}

// zero overwrites all of the file behind its first n bytes.
func zero(path string, n int) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	clear(data[min(n, len(data)):])
	return os.WriteFile(path, data, 0o600)
}

func TestGetByPart(t *testing.T) {
	s := open(t, t.TempDir())
	a, b := begin(t, s, "triage", noon), begin(t, s, "triage", noon)
	for _, part := range []string{a.RunID, a.RunID[:len(a.RunID)-1], a.RunID[20:], strings.ToUpper(a.RunID[20:])} {
		if got, err := s.Get(part); err != nil || got.RunID != a.RunID {
			t.Errorf("Get(%q) = %v, %v", part, got, err)
		}
	}
	for part, want := range map[string]string{
		"":          "there is no run",
		"zzzz":      "there is no run",
		"../../etc": "there is no run",
		a.RunID[:2]: "2 runs",
	} {
		if _, err := s.Get(part); exitcodes.From(err) != exitcodes.NoInput || !strings.Contains(err.Error(), want) {
			t.Errorf("Get(%q) = %v, want %q with code 66", part, err, want)
		}
	}
	_ = b
}

func TestBeginRefuses(t *testing.T) {
	s := open(t, t.TempDir())
	r := begin(t, s, "triage", noon)
	if err := s.Begin(&Run{RunID: r.RunID, StartedAt: noon}); exitcodes.From(err) != exitcodes.Usage {
		t.Errorf("a second run with one id: %v, want code 64", err)
	}
	for _, id := range []string{"", "x", "../x", strings.ToUpper(NewRunID())} {
		if err := s.Begin(&Run{RunID: id, StartedAt: noon}); exitcodes.From(err) != exitcodes.Usage {
			t.Errorf("Begin with id %q: %v, want code 64", id, err)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := open(t, file).Begin(&Run{RunID: NewRunID(), StartedAt: noon}); exitcodes.From(err) != exitcodes.CannotCreate {
		t.Errorf("Begin where the state folder is a file: %v, want code 73", err)
	}
	if _, err := Open("relative"); exitcodes.From(err) != exitcodes.Config {
		t.Errorf("Open of a relative folder: %v, want code 78", err)
	}
}

func TestDamagedRecordIsNamed(t *testing.T) {
	s := open(t, t.TempDir())
	r := begin(t, s, "triage", noon)
	path := filepath.Join(s.RunDir(r.RunID), "run.json")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(r.RunID); exitcodes.From(err) != exitcodes.Data || !strings.Contains(err.Error(), path) {
		t.Errorf("Get = %v, want code 65 and the path", err)
	}
}

func TestManyWritersLoseNothing(t *testing.T) {
	dir := t.TempDir()
	const writers, each = 8, 10
	var wg sync.WaitGroup
	errs := make(chan error, writers)
	for w := range writers {
		wg.Go(func() {
			s, err := Open(dir)
			if err != nil {
				errs <- err
				return
			}
			defer s.Close()
			for i := range each {
				r := &Run{RunID: NewRunID(), Agent: "bob", Job: fmt.Sprint(w), StartedAt: noon.Add(time.Duration(i) * time.Minute)}
				if err := s.Begin(r); err != nil {
					errs <- err
					return
				}
				r.EndedAt = &noon
				r.SetCode(exitcodes.OK)
				if err := s.Save(r); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		t.Fatal(err)
	}
	runs, err := open(t, dir).List(Filter{})
	if err != nil || len(runs) != writers*each {
		t.Fatalf("%d runs, %v, want %d", len(runs), err, writers*each)
	}
	ok := exitcodes.OK
	runs, err = open(t, dir).List(Filter{Code: &ok})
	if err != nil || len(runs) != writers*each {
		t.Errorf("%d ended runs, %v, want %d", len(runs), err, writers*each)
	}
}

func TestEvents(t *testing.T) {
	dir := t.TempDir()
	for i := range 2 { // a second attempt goes on where the first stopped
		e, err := OpenEvents(dir, func(line string) string { return strings.ReplaceAll(line, "TOOL", "tool") })
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Append(Event{At: noon, Kind: "TOOL", Text: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, "events.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines, want 2", len(lines))
	}
	var ev Event
	if err := json.Unmarshal([]byte(lines[1]), &ev); err != nil || ev.Text != "1" || ev.Kind != "tool" {
		t.Errorf("event = %+v, %v", ev, err)
	}
}
