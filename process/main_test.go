package process

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The test binary plays other programs when this variable says so.
const roleEnv = "PROCESS_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleEnv) {
	case "":
		goleak.VerifyTestMain(m)
	case "supervisor":
		os.Exit(supervisor(os.Args[1:]))
	case "limited":
		os.Exit(limited(os.Args[1], os.Args[2:]))
	}
}

// supervisor plays an agentd: it runs its arguments under a mark.
func supervisor(argv []string) int {
	spec := Spec{Argv: argv, Env: env(), Stdout: os.Stdout, Stderr: os.Stderr, Mark: os.Getenv("PROCESS_TEST_MARK")}
	res, err := Run(context.Background(), spec)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return res.Status
}

// limited plays an agentd in a cgroup with little memory, and tells how its
// program ended.
func limited(cgroup string, argv []string) int {
	if err := os.WriteFile(cgroup+"/cgroup.procs", []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		fmt.Println(err)
		return 1
	}
	res, err := Run(context.Background(), Spec{Argv: argv, Env: env()})
	fmt.Printf("oom %v, signal %s, status %d, error %v\n", res.OOM, res.Signal, res.Status, err)
	return 0
}

func env() []string { return []string{"PATH=" + os.Getenv("PATH")} }

func sh(script string) Spec {
	return Spec{Argv: []string{"sh", "-c", script}, Env: env(), Grace: 5 * time.Second}
}

// run runs a spec that must start, and fails the test if it takes very long.
func run(t *testing.T, ctx context.Context, spec Spec) (Result, string) {
	t.Helper()
	var out bytes.Buffer
	if spec.Stdout == nil {
		spec.Stdout, spec.Stderr = &out, &out
	}
	begin := time.Now()
	res, err := Run(ctx, spec)
	if err != nil {
		t.Fatalf("Run: %v", err)
	}
	if d := time.Since(begin); d > 45*time.Second {
		t.Errorf("Run took %v", d)
	}
	noChildren(t)
	return res, out.String()
}

// noChildren fails the test if this process still has children, dead or alive.
func noChildren(t *testing.T) {
	t.Helper()
	procs, _, err := snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range procs {
		if p.ppid == os.Getpid() {
			t.Errorf("left behind: %d %s in state %c", p.pid, p.name, p.state)
		}
	}
}

// readPID waits until file holds a pid.
func readPID(t *testing.T, file string) int {
	t.Helper()
	var pid int
	eventually(t, "a pid in "+file, func() bool {
		data, err := os.ReadFile(file)
		if err != nil || !strings.HasSuffix(string(data), "\n") {
			return false
		}
		pid, err = strconv.Atoi(strings.TrimSpace(string(data)))
		return err == nil
	})
	return pid
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

func running(pid int) bool {
	p, err := readProc(pid)
	return err == nil && p.living()
}
