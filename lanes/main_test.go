package lanes

import (
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"agentd/process"
)

// The test binary plays another process when this variable says so.
const roleEnv = "LANES_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleEnv) {
	case "":
		goleak.VerifyTestMain(m)
	case "fighter":
		os.Exit(fight(os.Args[1:]))
	case "holder":
		os.Exit(hold(os.Args[1:]))
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("timed out: %s", what)
		}
		<-time.After(5 * time.Millisecond)
	}
}

func acquire(t *testing.T, d Dir, r Request) *Held {
	t.Helper()
	h, err := d.Acquire(t.Context(), r)
	if err != nil {
		t.Fatalf("Acquire: %v", err)
	}
	t.Cleanup(func() { _ = h.Release() })
	return h
}

// dead is an identity that no process has.
func dead() process.Identity {
	id := process.Self()
	id.StartTime++
	return id
}
