// Package workspace finds, reads, checks and creates workspaces: folders with
// an agentd.toml that declares one agent and its jobs. It also knows the
// folders agentd keeps its own files in and reads env files.
package workspace

import (
	"strings"
	"time"

	"agentd/exitcodes"
	"agentd/scheduler/expr"
)

// FileName is the name of the file that makes a folder a workspace.
const FileName = "agentd.toml"

// Workspace is a valid agentd.toml.
type Workspace struct {
	Dir         string // absolute
	File        string // absolute path of agentd.toml
	Agent       string
	Description string
	Jobs        []*Job // in file order
	Providers   map[string]Provider
	Backends    map[string]Backend // from [backends.NAME], over the preset of that name
	LaneSlots   map[string]int     // from [lanes.NAME]
	Warnings    []Mistake          // allowed, but probably not what was meant
}

// Job is one job with all defaults filled in. Its fields are those of
// agentd.toml; see Keys for what each means.
type Job struct {
	Agent, Name string
	Dir         string // the workspace
	Description string
	Enabled     bool

	Schedules    []*expr.Schedule // empty: the job only runs by hand
	ScheduleText []string
	Timezone     string // "" is the machine's
	CatchUp      bool
	Jitter       time.Duration

	Prompt     string // XOR PromptFile
	PromptFile string // as written; ReadPrompt reads it

	Backend   string // "builtin", "command" or the name of an agent CLI
	Model     string // "provider/model"
	Command   []string
	PromptVia string // "stdin", "arg" or "file"

	Lane      string
	LaneSlots int
	LaneWait  time.Duration // 0: do not wait
	Session   string        // template; "" is one session a run

	Timeout, Grace time.Duration // of one attempt
	MaxSteps       int
	MaxCostUSD     float64 // 0: no limit
	MaxTokens      int64   // 0: no limit

	EnvFiles []string // as written; Variables reads them
	Env      map[string]string
	PassEnv  []string

	Recovery Recovery
	Resume   Resume
	Unit     Unit
}

// Recovery bounds one generation.
type Recovery struct {
	Requests       int           // physical requests
	Deadline       time.Duration // for admission and backoff
	RequestTimeout time.Duration // one request in flight
	BytesIdle      time.Duration // without a byte
	EventIdle      time.Duration // without an event that carries meaning
}

// Resume says how a run goes on after a failed attempt.
type Resume struct {
	Attempts int      // attempts in a run, counting the first
	On       []string // names of exit codes
	Cooldown time.Duration
	MaxWait  time.Duration // a longer wait ends the run instead
	Crashed  bool          // continue a run whose agentd died
}

// Unit holds what only the systemd unit of the job has a use for.
type Unit struct {
	MemoryMax     string // "" is no limit
	CPUQuota      string
	TasksMax      string
	Nice          int
	IOClass       string
	Hardening     bool
	NetworkOnline bool
	Wake          bool
	OnFailure     []string // units
}

// Provider is a [providers.NAME] table. Fields left empty are those of the
// preset with the same name, if there is one.
type Provider struct {
	Name           string
	Wire           string // "chat", "responses" or "anthropic"
	BaseURL        string
	APIKeyEnv      string
	APIKeyFile     string // absolute
	Credential     string // name of a systemd credential
	Headers        map[string]string
	DoneIsTerminal bool
}

// Address returns "agent/job".
func (j *Job) Address() string { return j.Agent + "/" + j.Name }

// Job returns the job of that name; "agent/name" works too. The error of a
// name that is not there has the code exitcodes.NoInput.
func (w *Workspace) Job(name string) (*Job, error) {
	short := strings.TrimPrefix(name, w.Agent+"/")
	names := make([]string, len(w.Jobs))
	for i, j := range w.Jobs {
		if j.Name == short {
			return j, nil
		}
		names[i] = j.Name
	}
	hint := "This workspace has no jobs yet: add a [jobs.NAME] table to " + FileName
	if len(names) > 0 {
		hint = "Jobs here: " + strings.Join(names, ", ")
	}
	return nil, exitcodes.Errorf(exitcodes.NoInput, "there is no job %s in %s (%s)%s",
		quote(name), FileName, w.Agent, didYouMean(short, names)).WithHint(hint)
}
