package history

import "testing"

func TestOnlyOneHoldsARun(t *testing.T) {
	s := open(t, t.TempDir())
	r := begin(t, s, "triage", noon)
	first, ok, err := s.Hold(r.RunID)
	if err != nil || !ok {
		t.Fatalf("Hold = %v, %v", ok, err)
	}
	if _, ok, err := s.Hold(r.RunID); ok || err != nil {
		t.Errorf("a second Hold = %v, %v, want false", ok, err)
	}
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	again, ok, err := s.Hold(r.RunID)
	if err != nil || !ok {
		t.Fatalf("Hold after Release = %v, %v", ok, err)
	}
	if err := again.Release(); err != nil {
		t.Error(err)
	}
	if _, _, err := s.Hold(NewRunID()); err == nil {
		t.Error("Hold of a run that is not there succeeded")
	}
}

// TestReserve wants a new run to be held before it has a record.
func TestReserve(t *testing.T) {
	s := open(t, t.TempDir())
	r := &Run{RunID: NewRunID(), StartedAt: noon}
	hold, ok, err := s.Reserve(r.RunID)
	if err != nil || !ok {
		t.Fatalf("Reserve = %v, %v", ok, err)
	}
	if err := s.Begin(r); err != nil {
		t.Errorf("Begin of a reserved run: %v", err)
	}
	if _, ok, err := s.Hold(r.RunID); ok || err != nil {
		t.Errorf("Hold by another = %v, %v, want false", ok, err)
	}
	if err := hold.Release(); err != nil {
		t.Error(err)
	}
	if _, _, err := s.Reserve("../x"); err == nil {
		t.Error("Reserve takes what is no run id")
	}
}

func TestPendingRuns(t *testing.T) {
	s := open(t, t.TempDir())
	r := begin(t, s, "triage", noon)
	begin(t, s, "digest", noon)
	pending := func() []string {
		runs, err := s.PendingRuns()
		if err != nil {
			t.Fatal(err)
		}
		return ids(runs)
	}
	if got := pending(); len(got) != 0 {
		t.Errorf("pending = %v, want none", got)
	}
	r.PendingResume = &Pending{NotBefore: noon, Attempt: 2, Reason: "rate_limited"}
	if err := s.Save(r); err != nil {
		t.Fatal(err)
	}
	if got := pending(); len(got) != 1 || got[0] != r.RunID {
		t.Errorf("pending = %v, want %s", got, r.RunID)
	}
	r.PendingResume = nil
	if err := s.Save(r); err != nil {
		t.Fatal(err)
	}
	// A marker left by a crash between the two writes means nothing.
	if err := s.markPending(r.RunID); err != nil {
		t.Fatal(err)
	}
	if got := pending(); len(got) != 0 {
		t.Errorf("pending = %v, want none", got)
	}
}
