package clis

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agentd/cli"
	"agentd/provider/rehearsal"
)

// TestMain is agentd itself when it is called by that name.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "agentd" {
		os.Exit(int(cli.Main(cli.System(), os.Args[1:])))
	}
	os.Exit(m.Run())
}

// program is an agent CLI and how it is told where its provider is.
type program struct {
	name  string // of the preset
	wire  rehearsal.Wire
	model string
	env   func(url string) map[string]string
	files func(url string) map[string]string // below the home folder
}

func programs() []program {
	return []program{
		{
			name: "claude", wire: rehearsal.Anthropic, model: "claude-sonnet-4-5",
			env: func(url string) map[string]string {
				return map[string]string{"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "sk-test"}
			},
		},
		{
			name: "codex", wire: rehearsal.Responses, model: "gpt-5",
			env: func(string) map[string]string { return map[string]string{"CODEX_API_KEY": "sk-test"} },
			files: func(url string) map[string]string {
				return map[string]string{".codex/config.toml": fmt.Sprintf(`
model_provider = "rehearsal"
[analytics]
enabled = false
[model_providers.rehearsal]
name = "rehearsal"
base_url = %q
wire_api = "responses"
env_key = "CODEX_API_KEY"
request_max_retries = 1
stream_max_retries = 1
`, url)}
			},
		},
		{
			name: "gemini", wire: rehearsal.Gemini, model: "gemini-2.5-flash",
			env: func(url string) map[string]string {
				return map[string]string{"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": "test"}
			},
			files: func(string) map[string]string {
				return map[string]string{".gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"}},"general":{"disableAutoUpdate":true}}`}
			},
		},
		{
			name: "qwen", wire: rehearsal.Chat, model: "m",
			env: func(url string) map[string]string {
				return map[string]string{"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "sk-test", "QWEN_TELEMETRY_ENABLED": "false"}
			},
			files: func(string) map[string]string {
				return map[string]string{".qwen/settings.json": `{"security":{"auth":{"selectedType":"openai"}},"privacy":{"usageStatisticsEnabled":false},"general":{"disableAutoUpdate":true}}`}
			},
		},
		{
			name: "opencode", wire: rehearsal.Chat, model: "rehearsal/m",
			env: func(string) map[string]string {
				return map[string]string{"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1"}
			},
			files: func(url string) map[string]string {
				return map[string]string{".config/opencode/opencode.json": fmt.Sprintf(`{
  "autoupdate": false, "share": "disabled",
  "provider": {"rehearsal": {
    "npm": "@ai-sdk/openai-compatible", "name": "rehearsal", "options": {"baseURL": %q, "apiKey": "sk-test"},
    "models": {"m": {"name": "m"}}
  }},
  "model": "rehearsal/m", "small_model": "rehearsal/m"
}`, url)}
			},
		},
	}
}

// folder is where the CLIs are installed. The tests run nowhere but where
// nothing can be reached except loopback.
func folder(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("AGENTD_CLIS")
	if dir == "" {
		t.Skip("the real agent CLIs are tried by: make test-clis")
	}
	if err := loopback(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// loopback brings up lo, and refuses any other network.
func loopback() error {
	all, err := net.Interfaces()
	if err != nil {
		return err
	}
	for _, i := range all {
		if i.Flags&net.FlagLoopback == 0 && i.Flags&net.FlagUp != 0 {
			return fmt.Errorf("the network %s is up: run the tests with make test-clis", i.Name)
		}
	}
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, req)
}

// place is a home with a workspace of one job, which a CLI does.
type place struct {
	t         *testing.T
	cli       program
	home, dir string
	agentd    string
	path      string
}

// newPlace makes the place; extra are more lines of the job.
func newPlace(t *testing.T, p program, url, extra string) *place {
	t.Helper()
	clis := folder(t)
	if _, err := os.Stat(filepath.Join(clis, "node_modules", ".bin", p.name)); err != nil {
		t.Skipf("%s could not be installed here: %v", p.name, err)
	}
	base := t.TempDir()
	l := &place{t: t, cli: p, home: filepath.Join(base, "home"), dir: filepath.Join(base, "w"), agentd: filepath.Join(base, "agentd")}
	l.path = filepath.Join(clis, "node_modules", ".bin") + ":" + os.Getenv("PATH")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, l.agentd); err != nil {
		t.Fatal(err)
	}
	if p.files != nil {
		for name, text := range p.files(url) {
			l.write(filepath.Join(l.home, name), text)
		}
	}
	env := p.env(url)
	if env == nil {
		env = map[string]string{}
	}
	var vars []string
	for k, v := range env {
		vars = append(vars, fmt.Sprintf("%s = %q", k, v))
	}
	slices.Sort(vars)
	l.write(filepath.Join(l.dir, "agentd.toml"), fmt.Sprintf(`
[agent]
name = "bob"
[jobs.t]
backend = %q
model = %q
prompt_file = "prompt"
grace = "5s"
%s
env = { %s }
[jobs.t.resume]
attempts = 1
[jobs.t.recovery]
requests = 2
`, p.name, p.model, extra, strings.Join(vars, ", ")))
	l.prompt("Say hello, friend.")
	return l
}

func (l *place) write(path, text string) {
	l.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
}

func (l *place) prompt(text string) { l.write(filepath.Join(l.dir, "prompt"), text) }

// record is what is looked at of a run.
type record struct {
	RunID   string     `json:"run_id"`
	Session string     `json:"session"`
	Code    int        `json:"code"`
	Error   string     `json:"error"`
	ResetAt *time.Time `json:"reset_at"`
	Usage   struct {
		Input  int64 `json:"input_tokens"`
		Output int64 `json:"output_tokens"`
	} `json:"usage"`
	Notes []string `json:"notes"`
}

// command is agentd as a user calls it.
func (l *place) command(args ...string) *exec.Cmd {
	cmd := exec.Command(l.agentd, args...)
	cmd.Dir = l.dir
	cmd.Env = []string{"HOME=" + l.home, "PATH=" + l.path, "TZ=UTC", "LANG=C.UTF-8", "XDG_RUNTIME_DIR=" + filepath.Join(l.home, "run")}
	return cmd
}

// run runs the job, and wants its record, the same exit status, and nothing
// left behind.
func (l *place) run(args ...string) record {
	l.t.Helper()
	return l.finish(l.start(args...))
}

// started is a run under way.
type started struct {
	cmd         *exec.Cmd
	out, errors bytes.Buffer
}

func (l *place) start(args ...string) *started {
	l.t.Helper()
	s := &started{cmd: l.command(append([]string{"run", "t", "--json"}, args...)...)}
	s.cmd.Stdout, s.cmd.Stderr = &s.out, &s.errors
	if err := s.cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	return s
}

func (l *place) finish(s *started) record {
	l.t.Helper()
	begun := time.Now()
	err := s.cmd.Wait()
	status := 0
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		status = e.ExitCode()
	}
	lines := strings.Split(strings.TrimSpace(s.out.String()), "\n")
	var r record
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &r); err != nil {
		l.t.Fatalf("%v in the output:\n%s%s", err, s.out.String(), s.errors.String())
	}
	l.t.Logf("%d in %.1f s: %s", r.Code, time.Since(begun).Seconds(), r.Error)
	if status != r.Code {
		l.t.Errorf("exit status %d, record %d", status, r.Code)
	}
	if left := l.left(); len(left) > 0 {
		l.t.Errorf("left behind: %q", left)
	}
	if l.t.Failed() {
		l.t.Logf("output:\n%s%s", s.out.String(), s.errors.String())
	}
	return r
}

// left lists the processes that live in the place's home.
func (l *place) left() (commands []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range all {
		env, err := os.ReadFile(file)
		if err == nil && slices.Contains(strings.Split(string(env), "\x00"), "HOME="+l.home) {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
			commands = append(commands, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return commands
}

// serve starts the scripted provider with one reply, for all requests.
func serve(t *testing.T, r rehearsal.Reply) *rehearsal.Server {
	t.Helper()
	r.Repeat = true
	s, err := rehearsal.Serve(&rehearsal.Scenario{Name: t.Name(), Lenient: true, Replies: []rehearsal.Reply{r}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
