package workspace

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"
)

// FuzzLoad feeds any bytes as agentd.toml: nothing panics, and every mistake
// stands within the file.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(everyKey))
	f.Add([]byte(agentHead + "[jobs.a]\npromt = 'x'\n[[jobs.b]]\n[jobs.a.resume.x]\n"))
	f.Add([]byte("a.b.c = [[1, {x.y = 2}], 2026-01-01]\n[a]\n[a.b]\nb.c = nan\n"))
	f.Add([]byte("[defaults]\nprompt = \"\"\"\n\u00e5\u00e4\u00f6\"\"\"\nschedule = ['61 * * * *', \"@every\"]\ntimezone = 'UTC'"))
	f.Add([]byte("x = \"\xff"))
	f.Add([]byte("[[a.b]]\n[a.b.c]\n[[a.b]]\na = {b = {c = 1}}"))
	f.Fuzz(func(t *testing.T, doc []byte) {
		ws, found := parse("/w/agentd.toml", doc)
		for _, m := range append(found.mistakes, found.warnings...) {
			checkPosition(t, doc, m)
		}
		if ws.Workspace == nil && len(found.mistakes) == 0 {
			t.Error("nothing was read and nothing is wrong")
		}
		if len(found.mistakes) > 0 {
			return
		}
		if !isSlug(ws.Agent) {
			t.Errorf("agent %q was accepted", ws.Agent)
		}
		for _, j := range ws.Jobs {
			if !isSlug(j.Name) || !isSlug(j.Lane) || j.Timeout <= 0 || j.LaneSlots < 1 || len(j.Schedules) != len(j.ScheduleText) {
				t.Errorf("job %+v was accepted", j)
			}
		}
	})
}

func checkPosition(t *testing.T, doc []byte, m Mistake) {
	t.Helper()
	lines := bytes.Split(doc, []byte("\n"))
	if m.Line < 1 || m.Line > len(lines) || m.Column < 1 || m.Column > utf8.RuneCount(lines[m.Line-1])+1 {
		t.Errorf("%v stands outside the file", m)
	}
	if m.Message == "" || bytes.ContainsAny([]byte(m.Message), "\n\r") {
		t.Errorf("message %q is not one line", m.Message)
	}
}

// FuzzEnvFile feeds any bytes as an env file.
func FuzzEnvFile(f *testing.F) {
	f.Add("A=1\nexport B='x\ny'\r\nC=\"\\n\\\"\" # c\n# d\n")
	f.Add("\ufeffA = b # c")
	f.Add("A=\"")
	f.Add("=x\nA")
	f.Fuzz(func(t *testing.T, content string) {
		file := filepath.Join(t.TempDir(), ".env")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		vars, err := ReadEnvFile(file)
		if err != nil {
			e, ok := errors.AsType[*EnvFileError](err)
			if !ok {
				t.Fatalf("error %v is not an *EnvFileError", err)
			}
			if lines := bytes.Count([]byte(content), []byte("\n")) + 1; e.Line < 1 || e.Line > lines {
				t.Errorf("%v stands outside the file of %d lines", err, lines)
			}
		}
		for key, value := range vars {
			if !envName.MatchString(key) || bytes.IndexByte([]byte(value), 0) >= 0 {
				t.Errorf("%q = %q was accepted", key, value)
			}
		}
	})
}
