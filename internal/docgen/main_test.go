package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestManualPages(t *testing.T) {
	dir := t.TempDir()
	if err := run([]string{dir}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"agentd.1":         "agents",
		"agentd-run.1":     "lane",
		"agentd-config.1":  "lane_wait",
		"agentd-install.1": "systemd",
	} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v, lacks %q", name, err, want)
		}
	}
	if run(nil) == nil {
		t.Error("docgen without a folder succeeded")
	}
}
