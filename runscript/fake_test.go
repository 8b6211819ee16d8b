package runscript

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// The test program is its own agentd: under that name it plays the part that
// the variable FAKE asks for, instead of running tests.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "agentd" {
		os.Exit(fakeAgentd())
	}
	os.Exit(m.Run())
}

// call is what the fake agentd saw of its start.
type call struct {
	Args    []string
	Env     []string
	PID     int
	PGID    int
	Signals []string
}

func fakeAgentd() int {
	c := call{Args: os.Args[1:], Env: os.Environ(), PID: os.Getpid(), PGID: syscall.Getpgrp()}
	status, _ := strconv.Atoi(os.Getenv("FAKE_STATUS"))
	switch os.Getenv("FAKE") {
	case "signals":
		status = awaitSignals(&c)
	case "leftover":
		// A stray process that holds the output open after agentd's end.
		stray := exec.Command("sleep", "300")
		stray.Stdout = os.Stdout
		if err := stray.Start(); err != nil {
			return 70
		}
		c.PID = stray.Process.Pid
	case "flood":
		for i := range 20000 {
			fmt.Println("line", i)
		}
	}
	fmt.Println("to stdout")
	fmt.Fprintln(os.Stderr, "to stderr")
	if err := record(c); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 74
	}
	return status
}

// awaitSignals says it is ready, then counts signals until none came for a
// while after the first.
func awaitSignals(c *call) int {
	got := make(chan os.Signal, 16)
	signal.Notify(got, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	if err := record(*c); err != nil {
		return 74
	}
	fmt.Println("ready")
	status := 1
	quiet := time.After(time.Minute)
	for {
		select {
		case s := <-got:
			c.Signals = append(c.Signals, s.String())
			status = 128 + int(s.(syscall.Signal))
			quiet = time.After(300 * time.Millisecond)
		case <-quiet:
			fmt.Println("the orderly end")
			return status
		}
	}
}

func record(c call) error {
	var data bytes.Buffer // gob, since it keeps bytes that are not UTF-8
	if err := gob.NewEncoder(&data).Encode(c); err != nil {
		return err
	}
	path := os.Getenv("FAKE_RECORD")
	if err := os.WriteFile(path+".new", data.Bytes(), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
