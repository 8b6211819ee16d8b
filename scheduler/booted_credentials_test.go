package scheduler

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentd/internal/sandbox"
	"agentd/systemd"
)

const credentialJobs = `[agent]
name = "my-bot"
[defaults]
prompt = "x"
[jobs.plain]
model = "openai/x"
[jobs.sealed]
model = "anthropic/x"
[jobs.missing]
model = "groq/x"
[providers.openai]
credential = "plain"
[providers.anthropic]
credential = "sealed"
[providers.groq]
credential = "missing"
`

// credentialAgentd shows what its job was handed.
const credentialAgentd = `#!/bin/bash
shopt -s nullglob
for file in "${CREDENTIALS_DIRECTORY:-/none}"/*; do
  echo "${file##*/}: $(<"$file")"
done
echo end
`

func TestBootedCredentialsUser(t *testing.T) {
	if !sandbox.Inside() {
		sandbox.Test(t, sandbox.Options{User: "bob"})
		return
	}
	b := newBooted(t, systemd.User)
	store := filepath.Join(b.target.Config, "credstore")
	writeFile(t, filepath.Join(store, "plain"), "s3cret", 0o600)
	bootedCredentials(b, map[string]string{"plain": "plain: s3cret\nend\n", "missing": "end\n"})
}

func TestBootedCredentialsSystem(t *testing.T) {
	if !sandbox.Inside() {
		sandbox.Test(t, sandbox.Options{})
		return
	}
	b := newBooted(t, systemd.System)
	writeFile(t, "/etc/credstore/plain", "s3cret", 0o600)
	want := map[string]string{"plain": "plain: s3cret\nend\n", "missing": "end\n"}
	if err := os.MkdirAll("/etc/credstore.encrypted", 0o700); err != nil {
		t.Fatal(err)
	}
	encrypt := exec.Command("systemd-creds", "encrypt", "--with-key=host", "--name=sealed", "-", "/etc/credstore.encrypted/sealed")
	encrypt.Stdin = strings.NewReader("s3aled")
	if out, err := encrypt.CombinedOutput(); err != nil {
		t.Logf("nothing to decrypt: %v: %s", err, out)
	} else {
		want["sealed"] = "sealed: s3aled\nend\n"
	}
	bootedCredentials(b, want)
}

func writeFile(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// bootedCredentials runs jobs and compares what each says that it was handed.
func bootedCredentials(b *booted, want map[string]string) {
	b.Helper()
	writeFile(b.T, filepath.Join(b.bin, "agentd"), credentialAgentd, 0o700)
	apply(b.T, plan(b.T, loadIn(b.T, b.work, credentialJobs), b.target, Options{}), b.conn)
	for job, text := range want {
		before := b.logs()
		if err := b.conn.Start(b.Context(), (systemd.JobName{Agent: "my-bot", Job: job}).Service()); err != nil {
			b.Errorf("%s: %v", job, err)
			continue
		}
		got := ""
		for path := range b.logs() {
			if !before[path] {
				data, err := os.ReadFile(path)
				if err != nil {
					b.Error(err)
				}
				got = string(data)
			}
		}
		if got != text {
			b.Errorf("%s says %q, want %q", job, got, text)
		}
	}
}

func (b *booted) logs() map[string]bool {
	b.Helper()
	list, err := filepath.Glob(filepath.Join(b.target.State, "runs/*/output.log"))
	if err != nil {
		b.Fatal(err)
	}
	found := map[string]bool{}
	for _, path := range list {
		found[path] = true
	}
	return found
}
