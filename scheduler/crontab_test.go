package scheduler

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentd/exitcodes"
	"agentd/scheduler/expr"
	"agentd/workspace"
)

func TestCrontabLines(t *testing.T) {
	for _, c := range []struct {
		schedules    []string
		zone, script string
		want         string // lines; "!" begins what the refusal says
	}{
		{[]string{"*/30 9-17 * * 1-5"}, "", "/a/run.sh", `*/30 9-17 * * 1-5 /bin/bash '/a/run.sh'`},
		{[]string{"@daily"}, "", "/100% 'q'/run.sh", `0 0 * * * /bin/bash '/100\% '\''q'\''/run.sh'`},
		{[]string{"@reboot", "30 9 * * FRI"}, "", "/a/run.sh", "@reboot /bin/bash '/a/run.sh'\n30 9 * * 5 /bin/bash '/a/run.sh'"},
		{[]string{"OnCalendar: Mon 09:00"}, "", "/a/run.sh", `0 9 * * 1 /bin/bash '/a/run.sh'`},
		{[]string{"*/10 0 9 * * 1"}, "", "/a/run.sh", "!no such times"},
		{[]string{"@every 1h"}, "", "/a/run.sh", "!no such times"},
		{[]string{"0 9 * * *"}, "Asia/Kathmandu", "/a/run.sh", "!not Asia/Kathmandu"},
		{[]string{"0 9 * * *"}, "", "/a\nb/run.sh", "!not one line"},
		{[]string{"0 9 * * *"}, "", `/a\b/run.sh`, "!backslash"},
		{[]string{"0 9 * * *"}, "", "/" + strings.Repeat("a", 1000), "!too long"},
		{nil, "", "/a/run.sh", ""},
	} {
		job := &workspace.Job{Agent: "bob", Name: "job", Enabled: true, Timezone: c.zone}
		for _, text := range c.schedules {
			s, err := expr.Parse(text, c.zone)
			if err != nil {
				t.Fatal(err)
			}
			job.Schedules = append(job.Schedules, s)
		}
		got, err := CrontabLines(job, c.script)
		if refusal, ok := strings.CutPrefix(c.want, "!"); ok {
			if err == nil || !strings.Contains(err.Error(), refusal) || exitcodes.From(err) != exitcodes.Config || len(got) > 0 {
				t.Errorf("%q: %q, %v, want %q", c.schedules, got, err, refusal)
			}
			continue
		}
		if d := cmp.Diff(c.want, strings.Join(got, "\n")); d != "" || err != nil {
			t.Errorf("%q: %v\n%s", c.schedules, err, d)
		}
	}
}

// cronCommand is what cron makes of a command before it hands it to sh; some
// crons make one backslash of two.
func cronCommand(text string, both bool) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '%' {
			break // the rest is the command's input
		}
		if text[i] == '\\' && i+1 < len(text) {
			i++
			if text[i] != '%' && (text[i] != '\\' || !both) {
				b.WriteByte('\\')
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// The script's path comes out of cron and sh as it went in, or is refused.
func TestCrontabCommandBearsHostileNames(t *testing.T) {
	for _, path := range []string{
		"/a b", "/100%", "/%%", "/'%'", "/''", `/"q"`, "/$HOME", "/`id`", "/$(id)", "/a;b", "/a&b|c>d<e", "/#", "/*?[a]", "/~", "/é 日本 🙂", "/a\tb", "/!", "/-n",
		`/\`, `/a\%b`, `/\\%`, "/a\n%", "/ends with space ",
	} {
		command, err := crontabCommand(path)
		if err != nil {
			if !strings.ContainsAny(path, "\\\n") {
				t.Errorf("%q: %v", path, err)
			}
			continue
		}
		for _, both := range []bool{false, true} {
			word, ok := strings.CutPrefix(cronCommand(command, both), "/bin/bash ")
			out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", "printf %s "+word).Output()
			if !ok || err != nil || string(out) != path {
				t.Errorf("%q: cron hands over %q, sh %q, %v", path, word, out, err)
			}
		}
	}
}
