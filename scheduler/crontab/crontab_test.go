package crontab

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"agentd/workspace"
)

var now = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)

func TestParse(t *testing.T) {
	entries, notes := Parse(strings.Join([]string{
		1:  "# m h  dom mon dow   command",
		2:  "0 1 * * * first",
		3:  "",
		4:  "# what the second does",
		5:  "  10 2 * * 1-5\tsecond  --with   'blanks'  ",
		6:  "# 0 3 * * * was switched off",
		7:  "0 4 * * * third",
		8:  "SHELL=/bin/bash",
		9:  `PATH = "/opt/my tools/bin:/bin"  `,
		10: "CRON_TZ=Europe/Stockholm",
		11: "RANDOM_DELAY=15",
		12: `@daily mail -s "100\% of %d" me%Hello%%World\%`,
		13: "MAILTO=",
		14: "MAILTO=ops@example.org",
		15: "-*/5 * * * * quiet\r",
		16: "A=1 ",
		17: "0 5 * * * B=2 fifth",
		18: "@reboot\tboot",
		19: "0 6 * * * only-a-percent %",
	}, "\n"), false)
	env := map[string]string{"PATH": "/opt/my tools/bin:/bin"}
	envA := map[string]string{"PATH": "/opt/my tools/bin:/bin", "A": "1"}
	const zone, bash, jitter = "Europe/Stockholm", "/bin/bash", 15 * time.Minute
	want := []Entry{
		{Line: 3, Schedule: "0 1 * * *", Shell: "/bin/sh", Command: "first", Env: map[string]string{}},
		{Line: 6, Comment: "what the second does", Schedule: "10 2 * * 1-5", Shell: "/bin/sh", Command: "second  --with   'blanks'", Env: map[string]string{}},
		{Line: 8, Schedule: "0 4 * * *", Shell: "/bin/sh", Command: "third", Env: map[string]string{}},
		{Line: 13, Schedule: "@daily", Timezone: zone, Jitter: jitter, Shell: bash, Command: `mail -s "100% of`, Stdin: "d\" me\nHello\n\nWorld%\n", Env: env},
		{Line: 16, Schedule: "*/5 * * * *", Timezone: zone, Jitter: jitter, Shell: bash, Command: "quiet", Env: env},
		{Line: 18, Schedule: "0 5 * * *", Timezone: zone, Jitter: jitter, Shell: bash, Command: "B=2 fifth", Env: envA},
		{Line: 19, Schedule: "@reboot", Timezone: zone, Jitter: jitter, Shell: bash, Command: "boot", Env: envA},
		{Line: 20, Schedule: "0 6 * * *", Timezone: zone, Jitter: jitter, Shell: bash, Command: "only-a-percent", Stdin: "\n", Env: envA},
	}
	if d := cmp.Diff(want, entries); d != "" {
		t.Error(d)
	}
	if len(notes) != 1 || notes[0].Line != 15 || notes[0].Lost {
		t.Errorf("notes %+v", notes)
	}
}

// What cannot be carried over is named, and makes no job.
func TestParseLoses(t *testing.T) {
	for line, want := range map[string]string{
		"61 * * * * x":           "minute 61 is out of 0-59",
		"0 0 30 2 * x":           "it never fires",
		"0~30 * * * * x":         "is not a number",
		"0 0 * * *":              "no command",
		"0 0 * * * % only input": "no command",
		"@daily -n x":            "no counterpart",
		"@fortnightly x":         "@fortnightly",
		"what is this":           "",
		"0 0 * * * \xff":         "UTF-8",
		"0 0 * * * a\x00b":       "UTF-8",
		"0 0 * * * " + strings.Repeat("x", maxLine): "longer than",
	} {
		entries, notes := Parse(line, false)
		if len(entries) != 0 || len(notes) != 1 || !notes[0].Lost || !strings.Contains(notes[0].Text, want) {
			t.Errorf("%.40q: entries %+v, notes %+v, want one with %q", line, entries, notes, want)
		}
	}
}

func TestParseSystem(t *testing.T) {
	entries, notes := Parse("17 *\t* * *\troot\tcd / && run-parts --report /etc/cron.hourly\n@daily www-data  x\n@daily root\n", true)
	if len(entries) != 2 || entries[0].User != "root" || entries[0].Command != "cd / && run-parts --report /etc/cron.hourly" || entries[1].User != "www-data" || entries[1].Command != "x" {
		t.Errorf("entries %+v", entries)
	}
	if len(notes) != 1 || notes[0].Line != 3 || !notes[0].Lost {
		t.Errorf("notes %+v", notes)
	}
}

func TestNames(t *testing.T) {
	for command, want := range map[string]string{
		"/usr/local/bin/backup.sh --all":                         "backup",
		"cd /srv/x && ./check":                                   "check",
		"[ -x /usr/bin/foo ] && foo":                             "foo",
		"flock -n /tmp/lock nice -n 5 restic backup":             "restic",
		"flock -n /tmp/lock restic backup":                       "restic",
		"A=1 env B=2 timeout -k 5s 60 python3.11 /opt/Report.py": "python3",
		"$HOME/bin/x":   "line-1",
		"/opt/Min Prog": "min",
	} {
		if got := nameOf(Entry{Line: 1, Command: command}); got != want {
			t.Errorf("%q: %q, want %q", command, got, want)
		}
	}
	entries, _ := Parse("@daily x\n@daily x\n@daily y\n", false)
	jobs, _, err := Jobs(entries, func(name string) bool { return name == "x-2" || name == "y" }, now)
	if err != nil {
		t.Fatal(err)
	}
	if got := []string{jobs[0].Name, jobs[1].Name, jobs[2].Name}; !slices.Equal(got, []string{"x", "x-3", "y-2"}) {
		t.Errorf("names %q", got)
	}
}

// Whatever a command holds, the job that comes of its line hands the same to
// the shell, with the same input, as cron does.
func TestCarriedOver(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		word := rapid.StringMatching(`[a-zåß€"'\\%$#{}\[\]=:;&|<> \t-]{1,30}`)
		command := "run " + word.Draw(rt, "command")
		value := rapid.StringMatching(`[a-zå"'\\$#{}=:; ]{0,20}[a-z]`).Draw(rt, "value")
		text := fmt.Sprintf("X=v%s\n# c%s\n*/10 3 * * 2 %s\n", value, word.Draw(rt, "comment"), command)

		entries, notes := Parse(text, false)
		wantCommand, wantInput := cronReads(command)
		if len(entries) != 1 {
			rt.Fatalf("%q: entries %+v, notes %+v", text, entries, notes)
		}
		jobs, _, err := Jobs(entries, func(string) bool { return false }, now)
		if err != nil {
			rt.Fatal(err)
		}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, workspace.FileName), []byte("[agent]\nname = \"bob\""), 0o600); err != nil {
			rt.Fatal(err)
		}
		if err := workspace.AddJobs(dir, jobs[0].TOML); err != nil {
			rt.Fatalf("%v\n%s", err, jobs[0].TOML)
		}
		ws, err := workspace.Load(dir)
		if err != nil {
			rt.Fatal(err)
		}
		j := ws.Jobs[0]
		if want := []string{"/bin/sh", "-c", "cd; " + wantCommand}; !slices.Equal(j.Command, want) || j.Prompt != wantInput || j.Env["X"] != "v"+value {
			rt.Fatalf("%q:\ncommand %q, want %q\ninput %q, want %q\nenv %q", text, j.Command, want, j.Prompt, wantInput, j.Env)
		}
		if j.Lane != j.Name || j.CatchUp || j.Timeout != unlimited || j.ScheduleText[0] != "*/10 3 * * 2" {
			rt.Fatalf("job %+v", j)
		}
	})
}

// cronReads is crontab(5) word by word: "%" is a newline unless a backslash
// stands before it, and all behind the first is the input.
func cronReads(line string) (command, input string) {
	const mark = "\x01"
	line = strings.ReplaceAll(line, `\%`, mark)
	command, input, cut := strings.Cut(line, "%")
	if cut {
		input = strings.ReplaceAll(input, "%", "\n") + "\n"
	}
	back := strings.NewReplacer(mark, "%")
	return strings.TrimRight(back.Replace(command), " \t"), back.Replace(input)
}

func FuzzParse(f *testing.F) {
	f.Add("@daily x%y\nA=1\n", false)
	f.Add("* * * * * root x", true)
	f.Fuzz(func(t *testing.T, text string, system bool) {
		entries, notes := Parse(text, system)
		jobs, _, err := Jobs(entries, func(string) bool { return false }, now)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Count(text, "\n") + 1
		for _, n := range notes {
			if n.Line < 1 || n.Line > lines || n.Text == "" {
				t.Errorf("note %+v", n)
			}
		}
		for _, j := range jobs {
			if workspace.CheckSlug(j.Name) != nil || j.Entry.Command == "" {
				t.Errorf("job %+v", j)
			}
		}
	})
}
