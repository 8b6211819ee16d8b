package systemd

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

func service() Service {
	return Service{
		Name: JobName{"bob", "triage"}, Description: "Looks through new issues.",
		Workspace: "/home/bob/agents/bob", Script: "/home/bob/.local/share/agentd/bob/triage/run.sh",
		Start: 75 * time.Minute, Stop: 45 * time.Second, Scope: User, Version: 252, Hardening: true,
	}
}

func timer() Timer {
	return Timer{
		Name: JobName{"bob", "triage"}, Workspace: "/home/bob/agents/bob",
		When:    []Entry{{"OnCalendar", "Mon,Tue *-*-* 9,10:00,30:00 Europe/Stockholm"}, {"OnCalendar", "*-*-1 00:00:00 Europe/Stockholm"}},
		CatchUp: true, Jitter: 2 * time.Minute, Scope: User, Version: 252,
	}
}

func arm(scope Scope) Arm {
	return Arm{
		Agent: "my-bot", Workspace: "/home/bob/agents/bob", Agentd: "/home/bob/my bin/agentd", Scope: scope,
		Env: []string{"XDG_STATE_HOME=/home/bob/the state"},
	}
}

// full is a service with everything in it.
func daemonService(scope Scope) DaemonService {
	d := DaemonService{Agentd: "/usr/bin/agentd", Env: []string{"PATH=/usr/bin:/bin", "XDG_STATE_HOME=/home/bob/100% state"}, Scope: scope, Version: 252}
	if scope == System {
		d.User, d.Workspaces, d.Version = "bob", []string{"/home/bob/agents/it's $HOME"}, 255
	}
	return d
}

func full(scope Scope) Service {
	s := service()
	s.Scope, s.User, s.NetworkOnline = scope, "daemon", true
	s.MemoryMax, s.CPUQuota, s.TasksMax, s.Nice, s.IOClass = "50%", "150%", "200", 5, "idle"
	s.OnFailure = []string{"alert@%n.service"}
	return s
}

func TestGolden(t *testing.T) {
	for name, unit := range map[string]interface{ Bytes() ([]byte, error) }{
		"user.service": service(), "system.service": full(System), "user.timer": timer(),
		"user-arm.service": arm(User), "system-arm.service": arm(System),
		"user-daemon.service": daemonService(User), "system-daemon.service": daemonService(System),
	} {
		got, err := unit.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("testdata", name+".golden")
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

// A private /tmp must not hide what the job needs.
func TestPrivateTmp(t *testing.T) {
	for path, want := range map[string]string{"/home/bob/bin/agentd": "yes", "/tmp/x/agentd": "", "/var/tmp/x": ""} {
		s := full(System)
		s.Needs = []string{path}
		text, err := s.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		f, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Section("Service").Get("PrivateTmp"); got != want {
			t.Errorf("with %s: PrivateTmp=%s, want %q", path, got, want)
		}
	}
}

// The default system unit is about as closed as an agent can bear. Root's is
// more open (4.8): without its capabilities it would not be root.
func TestSecurity(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	s := service()
	s.Scope, s.User = System, "daemon"
	text, err := s.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), s.Name.Service())
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "security", "--offline=true", "--threshold=30", "--no-pager", path).CombinedOutput(); err != nil {
		t.Errorf("systemd-analyze security: %v\n%s", err, out)
	}
}

func TestOwner(t *testing.T) {
	s := service()
	s.Workspace = "/a \"b\"\n%é\\"
	text, err := s.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	want := Owner{s.Name, s.Workspace, true}
	if o, ok := OwnerOf(text); !ok || o != want {
		t.Errorf("OwnerOf = %+v, %v, want %+v", o, ok, want)
	}
	want.Intact = false
	for name, edited := range map[string][]byte{
		"changed": bytes.Replace(text, []byte("KillMode=mixed"), []byte("KillMode=none"), 1),
		"longer":  append(bytes.Clone(text), "# mine\n"...),
		"no hash": bytes.Replace(text, []byte("\nHash="), []byte("\nHashed="), 1),
	} {
		if o, ok := OwnerOf(edited); !ok || o != want {
			t.Errorf("%s: OwnerOf = %+v, %v", name, o, ok)
		}
	}
	for _, foreign := range []string{"", "[Unit]\nDescription=mine\n", "[X-Agentd]\nAgent=bob\n", "not a unit"} {
		if o, ok := OwnerOf([]byte(foreign)); ok {
			t.Errorf("OwnerOf(%q) = %+v", foreign, o)
		}
	}
}

func TestTimerHasASchedule(t *testing.T) {
	tm := timer()
	tm.When = nil
	if text, err := tm.Bytes(); err == nil {
		t.Errorf("a timer that never elapses:\n%s", text)
	}
}

func TestTimerKnowsItsSystemd(t *testing.T) {
	for _, c := range []struct {
		version int
		scope   Scope
		key     string
		want    string
	}{
		{252, User, "DeferReactivation", ""},
		{0, User, "DeferReactivation", ""},
		{257, User, "DeferReactivation", "yes"},
		{252, User, "WakeSystem", ""},
		{252, System, "WakeSystem", "yes"},
		{254, User, "WakeSystem", "yes"},
	} {
		tm := timer()
		tm.Version, tm.Scope, tm.Wake = c.version, c.scope, true
		text, err := tm.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		f, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Section("Timer").Get(c.key); got != c.want {
			t.Errorf("systemd %d, %s: %s=%s, want %q", c.version, c.scope, c.key, got, c.want)
		}
	}
}

// hardText are descriptions, and with a "/" before them paths, that have
// broken generators of units.
func hardText() []string {
	return []string{
		"with space", ` quote " and ' both `, "$HOME ${x} $(id)", "100% %h %%n %", "new\nline\n[Service]\nExecStart=/bin/evil",
		"naïve 日本語 🙂", `back\slash\`, `two\\`, "-rf ;& |<>*?[x]~!#{a,b}", "\ttab\x01\x7f\r", "[Unit]", "=", "# no comment", "~",
		"not utf-8 \xff", strings.Repeat("long ", 2000),
	}
}

// verify asks systemd itself whether it could load the units, and returns its
// complaints.
func verify(t *testing.T, scope Scope, units map[string][]byte) string {
	t.Helper()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	dir := t.TempDir()
	args := []string{"verify", "--" + string(scope), "--recursive-errors=yes", "--man=no", "--generators=no"}
	for name, text := range units {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		args = append(args, path)
	}
	cmd := exec.Command(analyze, args...)
	// Only our units and systemd's own, not what the machine has installed.
	cmd.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+dir+":/usr/lib/systemd/"+string(scope)+":/lib/systemd/"+string(scope), "XDG_RUNTIME_DIR="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Sprintf("%s%v", out, err)
	}
	return string(out)
}

func TestVerify(t *testing.T) {
	for i, text := range hardText() {
		s, tm := service(), timer()
		s.Name = JobName{"my-bot", "job-" + string(rune('a'+i))}
		tm.Name = s.Name
		s.Description, s.Workspace, s.Script = text, "/"+text, "/"+strings.ToValidUTF8(text, "?")
		tm.Workspace = s.Workspace
		one, err := s.Bytes()
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		two, err := tm.Bytes()
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if c := verify(t, User, map[string][]byte{s.Name.Service(): one, tm.Name.Timer(): two}); c != "" {
			t.Fatalf("with %q systemd says:\n%s\n%s", text, c, one)
		}
	}
}

// An agent's own unit takes any path of the program.
func TestVerifyArm(t *testing.T) {
	for _, program := range []string{"/usr/bin/env", "/usr/bin/it's", `/a "b" \c`} {
		a := arm(User)
		a.Agentd = program
		text, err := a.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		if c := verify(t, User, map[string][]byte{JobName{Agent: a.Agent}.Service(): text}); c != "" {
			t.Errorf("with %q systemd says:\n%s\n%s", program, c, text)
		}
	}
	a := arm(User)
	a.Env = []string{"XDG_STATE_HOME=/\x01"}
	if text, err := a.Bytes(); err == nil {
		t.Errorf("a control character in a variable:\n%s", text)
	}
}

func TestVerifyEverything(t *testing.T) {
	for _, scope := range []Scope{User, System} {
		text, err := full(scope).Bytes()
		if err != nil {
			t.Fatal(err)
		}
		tm := timer()
		tm.Scope, tm.Wake = scope, true
		when, err := tm.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		units := map[string][]byte{
			tm.Name.Service(): text, tm.Name.Timer(): when,
			"alert@.service": []byte("[Service]\nExecStart=/bin/true\n"),
		}
		if c := verify(t, scope, units); c != "" {
			t.Errorf("in the %s scope systemd says:\n%s\n%s", scope, c, text)
		}
		// The oracle does see mistakes.
		units[tm.Name.Service()] = bytes.Replace(text, []byte("KillMode=mixed"), []byte("KillMood=mixed"), 1)
		if c := verify(t, scope, units); !strings.Contains(c, "KillMood") {
			t.Errorf("in the %s scope systemd says nothing about an unknown key: %q", scope, c)
		}
	}
}
