package session

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentd/exitcodes"
	"agentd/provider/message"
)

// sample writes a short journal and returns its bytes.
func sample(t *testing.T) []byte {
	t.Helper()
	st := Store{Dir: fastDir(t)}
	s := open(t, st)
	must(t, s.AttemptStarted("r", 1, "builtin", "m"))
	must(t, s.Message(message.NewText(message.User, "go"), message.Usage{}, ""))
	must(t, s.Message(calls(toolCall("a", "sh", "{}"), toolCall("b", "sh", "{}")), message.Usage{OutputTokens: 3}, "tool_calls"))
	must(t, s.Intent(toolCall("a", "sh", "{}"), Unknown))
	must(t, s.Result(result("a", "done"), OutcomeOK))
	must(t, s.Intent(toolCall("b", "sh", "{}"), Unknown))
	must(t, s.Close())
	return []byte(journalText(t, st))
}

// put makes a store whose one session has the journal.
func put(t *testing.T, journal []byte) (Store, string) {
	t.Helper()
	st := Store{Dir: fastDir(t)}
	dir := st.dir("bob", "triage")
	must(t, os.MkdirAll(dir, 0o700))
	must(t, os.WriteFile(segmentPath(dir, 1), journal, 0o600))
	return st, dir
}

func seqs(t *testing.T, st Store) []Type {
	t.Helper()
	var out []Type
	must(t, st.Records("bob", "triage", func(rec *Record) error {
		out = append(out, rec.Type)
		return nil
	}))
	return out
}

func TestCutAtEveryByte(t *testing.T) {
	journal := sample(t)
	whole := []Type{TypeSegment, TypeAttemptStarted, TypeMessage, TypeMessage, TypeIntent, TypeResult, TypeIntent}
	for cut := 0; cut <= len(journal); cut++ {
		st, dir := put(t, journal[:cut])
		lines := bytes.Count(journal[:cut], []byte("\n"))
		torn := cut - (bytes.LastIndexByte(journal[:cut], '\n') + 1)
		if got := seqs(t, st); !cmp.Equal(got, whole[:lines], cmp.Transformer("empty", func(x []Type) int { return len(x) })) {
			t.Fatalf("cut at %d: a reader sees %v, want %v", cut, got, whole[:lines])
		}
		s, err := st.Open("bob", "triage", Options{})
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		must(t, s.Note("test", "goes on"))
		live := s.Transcript()
		must(t, s.Close())
		want := append([]Type{}, whole[:lines]...)
		if lines == 0 {
			want = append(want, TypeSegment)
		}
		if torn > 0 {
			want = append(want, TypeSealed)
		}
		if got := seqs(t, st); !cmp.Equal(got, append(want, TypeNote)) {
			t.Fatalf("cut at %d: journal = %v, want %v and a note", cut, got, want)
		}
		again, err := st.Read("bob", "triage")
		must(t, err)
		if d := cmp.Diff(live.Pending, again.Pending); d != "" || len(live.Messages) != len(again.Messages) || live.Seq != again.Seq {
			t.Fatalf("cut at %d: the writer's view is not the reader's:\n%+v\n%+v", cut, live, again)
		}
		side, _ := filepath.Glob(filepath.Join(dir, "torn-*"))
		if torn > 0 {
			if kept, err := os.ReadFile(strings.Join(side, "")); err != nil || !bytes.Equal(kept, journal[cut-torn:cut]) {
				t.Fatalf("cut at %d: torn bytes kept = %q, %v", cut, kept, err)
			}
		} else if len(side) > 0 {
			t.Fatalf("cut at %d: %v without a torn line", cut, side)
		}
	}
}

func TestZerosAtTheEndAreTorn(t *testing.T) {
	journal := sample(t)
	st, _ := put(t, append(bytes.Clone(journal), make([]byte, 5000)...))
	s := open(t, st)
	if got := len(s.Transcript().Pending); got != 1 {
		t.Errorf("pending = %d, want 1", got)
	}
	must(t, s.Close())
	if r, err := st.Verify("bob", "triage"); err != nil || !r.Good() {
		t.Errorf("verify = %+v, %v", r, err)
	}
}

// TestEveryChangedByteIsFound changes each byte of the journal: it is named
// where it is, or the end counts as torn, and it can be repaired.
func TestEveryChangedByteIsFound(t *testing.T) {
	journal := sample(t)
	for i := range journal {
		bad := bytes.Clone(journal)
		bad[i] ^= 0x15
		st, dir := put(t, bad)
		s, err := st.Open("bob", "triage", Options{})
		if i == len(journal)-1 {
			must(t, err)
			must(t, s.Close())
			continue
		}
		d, ok := errors.AsType[*Damage](err)
		line := bytes.Count(journal[:i], []byte("\n")) + 1
		offset := bytes.LastIndexByte(journal[:i], '\n') + 1
		if !ok || d.Line != line || d.Offset != int64(offset) || d.File != segmentPath(dir, 1) || exitcodes.From(err) != exitcodes.Data {
			t.Fatalf("byte %d changed: error = %v, want damage in line %d at byte %d", i, err, line, offset)
		}
		if !strings.Contains(exitcodes.HintOf(err), "agentd sessions repair bob/triage") {
			t.Fatalf("hint = %q", exitcodes.HintOf(err))
		}
		r, err := st.Repair("bob", "triage", nil)
		must(t, err)
		if r.Kept != line-1 || r.Bytes != int64(len(journal)-offset) || !r.Changed() {
			t.Fatalf("byte %d changed: repair = %+v, want %d records kept", i, r, line-1)
		}
		if v, err := st.Verify("bob", "triage"); err != nil || !v.Good() {
			t.Fatalf("byte %d changed: after the repair: %+v, %v", i, v, err)
		}
		s, err = st.Open("bob", "triage", Options{})
		must(t, err)
		for _, p := range s.Transcript().Pending {
			if !p.Started {
				t.Fatalf("byte %d changed: call %s counts as not started, but its intent may have been cut off", i, p.Call.ID)
			}
		}
		must(t, s.Close())
	}
}

func TestRepairOfGoodSessionChangesNothing(t *testing.T) {
	journal := sample(t)
	st, dir := put(t, journal)
	r, err := st.Repair("bob", "triage", nil)
	must(t, err)
	if got, _ := os.ReadFile(segmentPath(dir, 1)); r.Changed() || !bytes.Equal(got, journal) {
		t.Errorf("repair of a good session = %+v, journal changed: %v", r, !bytes.Equal(got, journal))
	}
}

// segmented writes a session of several files and returns its folder.
func segmented(t *testing.T) (Store, string) {
	t.Helper()
	st := Store{Dir: fastDir(t)}
	must(t, work(st, func(string) {}))
	dir := st.dir("bob", "triage")
	if n := lastSegment(dir); n < 3 {
		t.Fatalf("the session has only %d files", n)
	}
	return st, dir
}

func TestDamageInSegments(t *testing.T) {
	for name, harm := range map[string]func(dir string) error{
		"first missing":   func(dir string) error { return os.Remove(segmentPath(dir, 1)) },
		"second missing":  func(dir string) error { return os.Remove(segmentPath(dir, 2)) },
		"second cut":      func(dir string) error { return os.Truncate(segmentPath(dir, 2), 1000) },
		"second empty":    func(dir string) error { return os.Truncate(segmentPath(dir, 2), 0) },
		"second is first": func(dir string) error { return copyFile(segmentPath(dir, 1), segmentPath(dir, 2)) },
		"second is third": func(dir string) error { return copyFile(segmentPath(dir, 3), segmentPath(dir, 2)) },
	} {
		t.Run(name, func(t *testing.T) {
			st, dir := segmented(t)
			must(t, harm(dir))
			_, err := st.Open("bob", "triage", Options{})
			if _, ok := errors.AsType[*Damage](err); !ok || exitcodes.From(err) != exitcodes.Data {
				t.Fatalf("Open = %v, want damage", err)
			}
			infos, err := st.List()
			if err != nil || len(infos) != 1 || infos[0].Damage == "" || infos[0].UpdatedAt.IsZero() {
				t.Errorf("List = %+v, %v, want one damaged session", infos, err)
			}
			r, err := st.Repair("bob", "triage", nil)
			must(t, err)
			if r.Lost == 0 || len(r.Files) == 0 {
				t.Errorf("repair = %+v, want records lost and kept aside", r)
			}
			s := open(t, st)
			must(t, s.Note("test", "goes on"))
			must(t, s.Close())
			if v, err := st.Verify("bob", "triage"); err != nil || !v.Good() {
				t.Errorf("after the repair: %+v, %v", v, err)
			}
		})
	}
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o600)
}

func TestLostOutput(t *testing.T) {
	for name, harm := range map[string]func(path string) error{
		"missing": os.Remove,
		"changed": func(path string) error { return os.WriteFile(path, []byte("x"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			st := Store{Dir: fastDir(t)}
			big := strings.Repeat("y", maxInline+1)
			s := open(t, st)
			must(t, s.Message(calls(toolCall("a", "x", "")), message.Usage{}, ""))
			must(t, s.Intent(toolCall("a", "x", ""), Read))
			must(t, s.Result(result("a", big), OutcomeOK))
			must(t, s.Close())
			must(t, harm(blobOf(big).path(s.Dir())))
			_, err := st.Open("bob", "triage", Options{})
			if d, ok := errors.AsType[*Damage](err); !ok || d.Line != 4 {
				t.Fatalf("Open = %v, want damage in line 4", err)
			}
			r, err := st.Repair("bob", "triage", nil)
			must(t, err)
			if r.Outputs != 1 || r.Lost != 0 {
				t.Errorf("repair = %+v, want one output lost and nothing cut", r)
			}
			if v, err := st.Verify("bob", "triage"); err != nil || !v.Good() {
				t.Errorf("after the repair: %+v, %v", v, err)
			}
			s = open(t, st)
			if got := roles(s.Transcript()); !strings.Contains(got, "32769 bytes, was lost from the disk") {
				t.Errorf("transcript = %s", got)
			}
			// The same output again is kept and read again.
			must(t, s.Message(calls(toolCall("a", "x", "")), message.Usage{}, ""))
			must(t, s.Intent(toolCall("a", "x", ""), Read))
			must(t, s.Result(result("a", big), OutcomeOK))
			must(t, s.Close())
			after, err := st.Read("bob", "triage")
			must(t, err)
			if !strings.HasSuffix(roles(after), "a="+big) {
				t.Error("an output that was written again is not read")
			}
		})
	}
}

func TestNewerFormatIsRefusedAndNotRepaired(t *testing.T) {
	line, err := encode(&Record{Seq: 1, Type: TypeSegment, Version: formatVersion + 1, Segment: 1})
	must(t, err)
	st, _ := put(t, line)
	if _, err := st.Open("bob", "triage", Options{}); exitcodes.From(err) != exitcodes.Data || !strings.Contains(err.Error(), "newer agentd") {
		t.Errorf("Open = %v", err)
	}
	if _, err := st.Repair("bob", "triage", nil); err == nil {
		t.Error("a session of a newer agentd was repaired")
	}
	if got := journalText(t, st); got != string(line) {
		t.Errorf("the journal changed: %q", got)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(""))
	f.Add([]byte("{}\n"))
	line, _ := encode(&Record{Seq: 1, Type: TypeSegment, Version: 1, Segment: 1})
	f.Add(line)
	for _, rec := range []Record{
		{Type: TypeMessage}, {Type: TypeResult, CallID: "a"}, {Type: TypeCompaction, KeepFrom: 9},
		{Type: TypeAttemptEnded, RunID: "r"}, {Type: TypeBlobLost}, {Type: TypeRepaired}, {Type: "future"},
		{Type: TypeResult, Result: &message.Part{}, Blob: &Blob{SHA256: "../../x"}},
		{Type: TypeMessage, Message: &message.Message{Role: message.Assistant, Parts: []message.Part{{Kind: message.ToolCall}}}},
	} {
		rec.Seq = 2
		second, err := encode(&rec)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(append(bytes.Clone(line), second...))
	}
	f.Fuzz(func(t *testing.T, journal []byte) {
		st, _ := put(t, journal)
		_, readErr := st.Read("bob", "triage")
		_ = st.Export(&bytes.Buffer{}, "bob", "triage", Markdown)
		_ = st.Export(&bytes.Buffer{}, "bob", "triage", JSON)
		s, err := st.Open("bob", "triage", Options{})
		if (readErr == nil) != (err == nil) {
			t.Fatalf("Read says %v, Open says %v", readErr, err)
		}
		if err != nil {
			if c := exitcodes.From(err); c != exitcodes.Data {
				t.Fatalf("Open = %v (code %d), want code 65", err, c)
			}
			if _, err := st.Repair("bob", "triage", nil); err != nil {
				if strings.Contains(err.Error(), "newer agentd") {
					return
				}
				t.Fatalf("Repair: %v", err)
			}
			if s, err = st.Open("bob", "triage", Options{}); err != nil {
				t.Fatalf("Open after Repair: %v", err)
			}
		}
		must(t, s.Note("test", "goes on"))
		must(t, s.Close())
		if r, err := st.Verify("bob", "triage"); err != nil || r.Damage != "" {
			t.Fatalf("Verify = %+v, %v", r, err)
		}
	})
}
