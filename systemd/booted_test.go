package systemd

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentd/internal/sandbox"
)

// roundTrips is the number of strings that each directive has to carry.
const roundTrips = 2000

// What we write, the running systemd reads back the same over D-Bus, for any
// string; or we refuse it.
func TestBootedRoundTrip(t *testing.T) {
	if !sandbox.Inside() {
		sandbox.Test(t, sandbox.Options{})
		return
	}
	conn, err := Connect(t.Context(), System, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	written := map[string]written{}
	counts := map[string]int{}
	for i := range roundTrips {
		w := writeRandom(t, random, fmt.Sprintf("round-trip-%d.service", i))
		written[w.unit] = w
		for directive := range w.want {
			counts[directive]++
		}
	}
	hold(t, conn, written)
	failures := 0
	for _, w := range written {
		got := readBack(t, conn, w.unit)
		for directive, want := range w.want {
			if got[directive] != want {
				t.Errorf("%s= in %s\n got %.300q\nwant %.300q", directive, w.unit, got[directive], want)
				failures++
			}
		}
		if failures > 10 {
			t.Fatal("and so on")
		}
	}
	t.Logf("carried of %d: %v", roundTrips, counts)
	for _, directive := range []string{"Description", "WorkingDirectory", "ExecStart", "Environment", "LoadCredential"} {
		if counts[directive] < roundTrips/3 {
			t.Errorf("%s= carried only %d of %d strings: we refuse too much", directive, counts[directive], roundTrips)
		}
	}
}

// hold has systemd load the units and keep them: it forgets units that nobody
// wants, and would read them again for each question.
func hold(t *testing.T, conn *Conn, units map[string]written) {
	t.Helper()
	all := Section{Name: "Unit"}
	for unit := range units {
		all.add("Wants", unit)
	}
	content, err := (&File{Sections: []Section{all}}).Bytes()
	if err != nil {
		t.Fatal(err)
	}
	const target = "round-trip.target"
	if err := os.WriteFile(filepath.Join("/etc/systemd/system", target), content, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := conn.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	result := make(chan string, 1)
	if _, err := conn.bus.StartUnitContext(t.Context(), target, "ignore-dependencies", result); err != nil {
		t.Fatal(err)
	}
	if r := <-result; r != "done" {
		t.Fatalf("starting %s: %s", target, r)
	}
}

type written struct {
	unit string
	want map[string]string // by directive; what was refused is not in it
}

// writeRandom writes a unit that holds random strings where we take them.
func writeRandom(t *testing.T, random *rand.Rand, unit string) written {
	t.Helper()
	w := written{unit, map[string]string{}}
	section := Section{Name: "Service", Entries: []Entry{{"Type", "oneshot"}}}
	about := Section{Name: "Unit"}
	text := randomText(random)
	if value, err := Text(text); err == nil && text != "" {
		w.want["Description"] = text
		about.add("Description", value)
	}
	arg := randomText(random)
	value, err := Command("/bin/true", "a", arg, "z")
	if err == nil {
		// "$$" becomes "$" when it is executed only: see TestBootedArguments.
		w.want["ExecStart"] = "/bin/true\x00a\x00" + strings.ReplaceAll(arg, "$", "$$") + "\x00z"
	} else if value, err = Command("/bin/true"); err != nil {
		t.Fatal(err)
	}
	section.add("ExecStart", value)
	variable := randomText(random)
	if value, err := Assignment("A", variable); err == nil {
		w.want["Environment"] = "A=" + variable
		section.add("Environment", value)
	}
	dir := filepath.Clean("/" + randomText(random))
	if value, err := Directory(dir); err == nil {
		w.want["WorkingDirectory"] = "!" + dir
		section.add("WorkingDirectory", value)
	}
	key := filepath.Clean("/" + randomText(random))
	if entry, err := (Credential{Name: "key", Path: key}).entry(); err == nil {
		w.want["LoadCredential"] = "key\x00" + key
		section.Entries = append(section.Entries, entry)
	}
	f := File{Sections: []Section{about, section}}
	content, err := f.Bytes()
	if err != nil {
		t.Fatalf("quoted text is refused by the file: %v", err)
	}
	if err := os.WriteFile(filepath.Join("/etc/systemd/system", unit), content, 0o644); err != nil {
		t.Fatal(err)
	}
	return w
}

func readBack(t *testing.T, conn *Conn, unit string) map[string]string {
	t.Helper()
	got := map[string]string{}
	about, err := conn.bus.GetUnitPropertyContext(t.Context(), unit, "Description")
	if err != nil {
		t.Fatalf("%s: %v", unit, err)
	}
	got["Description"], _ = about.Value.Value().(string)
	// One by one: all properties of a service take systemd ten times as long.
	for _, directive := range []string{"WorkingDirectory", "Environment", "ExecStart", "LoadCredential"} {
		p, err := conn.bus.GetServicePropertyContext(t.Context(), unit, directive)
		if err != nil {
			t.Fatalf("%s: %v", unit, err)
		}
		switch v := p.Value.Value().(type) {
		case string:
			got[directive] = v
		case []string:
			got[directive] = strings.Join(v, "\x00")
		case [][]any:
			if directive == "LoadCredential" {
				for _, c := range v {
					got[directive] = fmt.Sprintf("%s\x00%s", c...)
				}
				continue
			}
			argv, _ := v[0][1].([]string)
			got[directive] = strings.Join(argv, "\x00")
		}
	}
	return got
}

// A program gets the arguments and the environment that we wrote.
func TestBootedArguments(t *testing.T) {
	if !sandbox.Inside() {
		sandbox.Test(t, sandbox.Options{User: "bob"})
		return
	}
	conn, err := Connect(t.Context(), User, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	out := filepath.Join(t.TempDir(), "arguments")
	args := []string{"-c", `printf '%s\0' "$@" >"$0"; printf '%s\0' "${!V@}" "${V1-}" >>"$0"`, out}
	section := Section{Name: "Service", Entries: []Entry{{"Type", "oneshot"}}}
	want := ""
	for len(args) < 300 {
		text := randomText(random)
		if _, err := Command("/bin/bash", text); err == nil && len(text) < 1000 {
			args = append(args, text)
			want += text + "\x00"
		}
	}
	command, err := Command("/bin/bash", args...)
	if err != nil {
		t.Fatal(err)
	}
	section.add("ExecStart", command)
	const variable = "a\n\"$HOME\" %h \\ 'é'"
	value, err := Assignment("V1", variable)
	if err != nil {
		t.Fatal(err)
	}
	section.add("Environment", value)
	want += "V1\x00" + variable + "\x00"
	content, err := (&File{Sections: []Section{section}}).Bytes()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(os.Getenv("HOME"), ".config/systemd/user")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "arguments.service"), content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := conn.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := conn.Start(t.Context(), "arguments.service"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// randomText returns text made of what is special to systemd, to C, and to
// nobody; at times long.
func randomText(random *rand.Rand) string {
	pieces := []string{
		" ", "  ", `"`, "'", "%", "%%", "%h", "%n", "$", "$$", "${A}", "$HOME", `\`, `\\`, `\n`, `\x41`, ";", "#", "=", "[", "]", "~", "-", "@", "+", "!", ":", "/", "|", "&", "`",
		"é", "日本", "🙂", "\u00a0", "\u2028", "a", "Z", "0", "word", ".", "..",
	}
	if random.IntN(4) == 0 {
		pieces = append(pieces, "\n", "\t", "\r", "\x01", "\x1b", "\x7f", "\xff", "\x00")
	}
	length := random.IntN(20)
	if random.IntN(50) == 0 {
		length = 1 + random.IntN(1<<16)
	}
	var b strings.Builder
	for b.Len() < length {
		b.WriteString(pieces[random.IntN(len(pieces))])
	}
	return b.String()
}
