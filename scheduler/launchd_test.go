package scheduler

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentd/exitcodes"
)

var update = flag.Bool("update", false, "write the golden files anew")

const launchdJobs = `[agent]
name = "my-bot"
[defaults]
backend = "command"
command = ["/bin/cat"]
prompt = "x"
[jobs.office]
schedule = "*/30 9-10 * * 1-2"
[jobs.either]
schedule = "0 9 1 * 1"
[jobs.minute]
schedule = "* * * * *"
[jobs.every]
schedule = "@every 90m"
[jobs.dense-every]
schedule = "@every 5s"
[jobs.boot]
schedule = "@reboot"
[jobs.by-hand]
[jobs.seconds]
schedule = "*/10 * * * * *"
[jobs.third]
schedule = "0 3 * * FRI#3"
[jobs.last]
schedule = "5 4 L * *"
[jobs.once]
schedule = "at 2030-01-01 09:00"
[jobs.zoned]
schedule = "0 9 * * *"
timezone = "Asia/Kathmandu"
[jobs.dense]
schedule = "1-59/2 1-23 2-31 1-11 *"
[jobs.mixed]
schedule = ["@every 1h", "0 9 * * *"]
`

func TestLaunchd(t *testing.T) {
	ws := load(t, launchdJobs)
	for name, refusal := range map[string]string{
		"office": "", "either": "", "minute": "", "every": "", "boot": "", "by-hand": "",
		"seconds": "cannot express", "third": "cannot express", "last": "cannot express", "once": "no years",
		"zoned": "the machine's time zone, not Asia/Kathmandu", "dense": "more than 2000", "dense-every": "10s and more", "mixed": "only by itself",
	} {
		job, err := ws.Job(name)
		if err != nil {
			t.Fatal(err)
		}
		job.Dir = "/Users/bob/a <b> & \"c\""
		got, err := Launchd(job, "/Users/bob/run.sh", "/Users/bob/log")
		if refusal != "" {
			if err == nil || !strings.Contains(err.Error(), refusal) || exitcodes.From(err) != exitcodes.Config {
				t.Errorf("%s: %v, want %q", name, err, refusal)
			}
			continue
		}
		if err != nil {
			t.Error(err)
			continue
		}
		wellFormed(t, got)
		file := filepath.Join("testdata", name+".plist.golden")
		if *update {
			if err := os.WriteFile(file, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), string(got)); d != "" {
			t.Errorf("%s differs (go test -update writes it anew):\n%s", file, d)
		}
	}
}

// wellFormed checks that a dict is keys and values in turn.
func wellFormed(t *testing.T, text []byte) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(string(text)))
	var path []string
	children := map[int]int{}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		switch e := token.(type) {
		case xml.StartElement:
			if n := len(path); n > 0 && path[n-1] == "dict" {
				if isKey := e.Name.Local == "key"; isKey != (children[n]%2 == 0) {
					t.Fatalf("%s in the place of a key or value in\n%s", e.Name.Local, text)
				}
				children[n]++
			}
			path = append(path, e.Name.Local)
			children[len(path)] = 0
		case xml.EndElement:
			if e.Name.Local == "dict" && children[len(path)]%2 != 0 {
				t.Fatalf("a key without a value in\n%s", text)
			}
			path = path[:len(path)-1]
		}
	}
}

func TestLaunchdRefusesText(t *testing.T) {
	ws := load(t, launchdJobs)
	job, err := ws.Job("boot")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/a\x01", "/\xff", "/\uffff", "/a\x00"} {
		if text, err := Launchd(job, path, "/log"); err == nil {
			t.Errorf("%q:\n%s", path, text)
		}
	}
	// What XML can carry comes back.
	for _, path := range []string{"/a <b> & \"c\" 'd' ]]>", "/tab\tline\n", "/ü 日本 🙂 \ufffd"} {
		text, err := Launchd(job, path, "/log")
		if err != nil {
			t.Errorf("%q: %v", path, err)
			continue
		}
		var list struct {
			Arguments []string `xml:"dict>array>string"`
		}
		if err := xml.Unmarshal(text, &list); err != nil || !slices.Equal(list.Arguments, []string{"/bin/bash", path}) {
			t.Errorf("%q came back as %q, %v", path, list.Arguments, err)
		}
	}
}
