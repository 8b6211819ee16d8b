package workspace

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	day  = 24 * time.Hour
	week = 7 * day
)

// draft is a job while its tables are read: first those of [defaults], then
// its own.
type draft struct {
	Job
	at map[string]spot // by key, "resume.on" for one of a nested table
	// schedulePos are the offsets of the schedules' texts.
	schedulePos []int
}

// spot is where a draft's key was set last.
type spot struct {
	key, value int
	own        bool // in the job's own table, not in [defaults]
}

func newDraft() *draft {
	return &draft{at: map[string]spot{}, Job: Job{
		Enabled: true, CatchUp: true,
		Backend: "builtin", PromptVia: "stdin",
		LaneSlots: 1,
		Timeout:   30 * time.Minute, Grace: 30 * time.Second,
		MaxSteps: 100,
		EnvFiles: []string{"-.env", "-.env.local"},
		Recovery: Recovery{
			Requests: 11, Deadline: 10 * time.Minute, RequestTimeout: 10 * time.Minute,
			BytesIdle: 2 * time.Minute, EventIdle: 5 * time.Minute,
		},
		Resume: Resume{
			Attempts: 2, On: []string{"rate_limited", "unavailable", "io"},
			Cooldown: time.Minute, MaxWait: 10 * time.Minute, Crashed: true,
		},
		Unit: Unit{Hardening: true},
	}}
}

// inherit returns a draft that starts from d, sharing nothing with it.
func (d *draft) inherit() *draft {
	c := *d
	c.at = make(map[string]spot, len(d.at))
	for k, s := range d.at {
		c.at[k] = spot{key: s.key, value: s.value}
	}
	c.Env = maps.Clone(d.Env)
	c.ScheduleText, c.schedulePos = slices.Clone(d.ScheduleText), slices.Clone(d.schedulePos)
	c.Command, c.EnvFiles, c.PassEnv = slices.Clone(d.Command), slices.Clone(d.EnvFiles), slices.Clone(d.PassEnv)
	c.Resume.On, c.Unit.OnFailure = slices.Clone(d.Resume.On), slices.Clone(d.Unit.OnFailure)
	return &c
}

// read takes over the keys of table n, named where in messages.
func (d *draft) read(f *findings, where string, n *node) {
	mark := func(prefix string) func(string, *entry) {
		return func(name string, e *entry) {
			d.at[prefix+name] = spot{key: e.pos, value: e.value.pos, own: true}
		}
	}
	fields := jobFields()
	for _, s := range jobTables() {
		fields = append(fields, field[draft]{name: s.name, set: func(f *findings, name string, n *node, d *draft) {
			if n.kind != kindTable {
				wrongType(f, name, n, "a table: ["+where+"."+name+"]")
				return
			}
			decode(f, where+"."+name, name+".", s.fields, n, d, mark(name+"."))
		}})
	}
	decode(f, where, "", fields, n, d, mark(""))
	// A job's own prompt, in either form, replaces the inherited one.
	text, file := n.get("prompt") != nil, n.get("prompt_file") != nil
	if text && !file {
		d.PromptFile = ""
		delete(d.at, "prompt_file")
	}
	if file && !text {
		d.Prompt = ""
		delete(d.at, "prompt")
	}
}

// pos returns the offset of the value of a key, or else of where the job is.
func (d *draft) pos(key string) int {
	if s, ok := d.at[key]; ok {
		return s.value
	}
	return d.at["."].key
}

// jobTable is a table nested in a job.
type jobTable struct {
	name   string
	fields []field[draft]
}

func jobTables() []jobTable {
	return []jobTable{{"recovery", recoveryFields()}, {"resume", resumeFields()}, {"unit", unitFields()}}
}

func jobFields() []field[draft] {
	return slices.Concat(whenFields(), whatFields(), limitFields())
}

// whenFields are the keys that say when and beside what a job runs.
func whenFields() []field[draft] {
	return []field[draft]{
		{"description", "text", "", "one line about the job for people", text(func(d *draft) *string { return &d.Description }, checkLine)},
		{"enabled", "true or false", "true", "whether install gives the job a timer; a job that is off can still be run by hand", boolean(func(d *draft) *bool { return &d.Enabled })},
		{"schedule", "text or list of texts", "", "when the job runs: cron with 5 or 6 fields, @every 90m, @daily and the like, or \"OnCalendar: Mon..Fri *-*-* 09:00\"; without one the job only runs by hand", setSchedule},
		{"timezone", "text", "the machine's", "time zone of the schedule and of {date} and {week}, such as \"Europe/Stockholm\"", text(func(d *draft) *string { return &d.Timezone }, checkZone)},
		{"catch_up", "true or false", "true", "after downtime, run once for all the times that were missed", boolean(func(d *draft) *bool { return &d.CatchUp })},
		{"jitter", "duration", "0s", "a delay up to this comes before every start: the same each time, but another for each job, so that not all start at once", duration(func(d *draft) *time.Duration { return &d.Jitter }, 0, day)},
		{"lane", "text", "the agent's name", "the lock that the job's runs hold, shared by all jobs that name it", text(func(d *draft) *string { return &d.Lane }, CheckSlug)},
		{"lane_slots", "whole number", "1", "how many runs may hold the lane at once; [lanes.NAME] says it for all jobs of a lane", integer(func(d *draft) *int { return &d.LaneSlots }, 1, maxSlots)},
		{"lane_wait", "duration", "0s", "how long a run waits for its lane; 0s: it does not, and ends with 80", duration(func(d *draft) *time.Duration { return &d.LaneWait }, 0, week)},
		{"session", "text", "one a run", "name of the conversation that the runs continue, with {date}, {week} or {run}; a fixed name continues for ever", text(func(d *draft) *string { return &d.Session }, checkSession)},
	}
}

// whatFields are the keys that say what a job does and with what.
func whatFields() []field[draft] {
	return []field[draft]{
		{"prompt", "text", "", "what the agent is asked to do", text(func(d *draft) *string { return &d.Prompt })},
		{"prompt_file", "text", "", "file with the prompt, relative to the workspace; instead of prompt", text(func(d *draft) *string { return &d.PromptFile }, checkPath)},
		{"backend", "text", "builtin", "what does the work: builtin (agentd's own engine), command (any program), or an agent CLI such as claude or codex", text(func(d *draft) *string { return &d.Backend })},
		{"model", "text", "", "the model as provider/model; for an agent CLI also in its own words", text(func(d *draft) *string { return &d.Model })},
		{"command", "list of texts", "", "for backend = \"command\": the program and its arguments; no shell reads them", texts(func(d *draft) *[]string { return &d.Command })},
		{"prompt_via", "text", "stdin", "how a program gets the prompt: stdin, arg (last argument) or file (its path is the last argument)", text(func(d *draft) *string { return &d.PromptVia }, oneOf("stdin", "arg", "file"))},
		{"env_files", "list of texts", ".env and .env.local where they exist", "files of KEY=VALUE lines, relative to the workspace, read as data; one that may be missing starts with - or ends in .local", texts(func(d *draft) *[]string { return &d.EnvFiles }, checkEnvFile)},
		{"env", "table of texts", "", "variables for tools and programs; win over env_files", setEnv},
		{"pass_env", "list of texts", "", "variables of the caller handed on besides the basic ones (PATH, HOME, LANG and the like)", texts(func(d *draft) *[]string { return &d.PassEnv }, checkEnvName)},
	}
}

// limitFields are the keys that bound an attempt.
func limitFields() []field[draft] {
	return []field[draft]{
		{"timeout", "duration", "30m", "the longest one attempt may take", duration(func(d *draft) *time.Duration { return &d.Timeout }, time.Second, week)},
		{"grace", "duration", "30s", "time between SIGTERM to everything the attempt started and SIGKILL", duration(func(d *draft) *time.Duration { return &d.Grace }, 0, 10*time.Minute)},
		{"max_steps", "whole number", "100", "generations in one attempt", integer(func(d *draft) *int { return &d.MaxSteps }, 1, 100_000)},
		{"max_cost_usd", "number", "no limit", "what a run may cost, in US dollars", amount(func(d *draft) *float64 { return &d.MaxCostUSD }, 1_000_000)},
		{"max_tokens", "whole number", "no limit", "tokens a run may use, in and out", integer(func(d *draft) *int64 { return &d.MaxTokens }, 1, 1_000_000_000_000)},
	}
}

func recoveryFields() []field[draft] {
	return []field[draft]{
		{"requests", "whole number", "11", "physical requests that one generation may send", integer(func(d *draft) *int { return &d.Recovery.Requests }, 1, 1000)},
		{"deadline", "duration", "10m", "after this no request of the generation is sent again", duration(func(d *draft) *time.Duration { return &d.Recovery.Deadline }, time.Second, day)},
		{"request_timeout", "duration", "10m", "the longest one request may be in flight", duration(func(d *draft) *time.Duration { return &d.Recovery.RequestTimeout }, time.Second, day)},
		{"bytes_idle", "duration", "2m", "the longest silence on a stream", duration(func(d *draft) *time.Duration { return &d.Recovery.BytesIdle }, time.Second, day)},
		{"event_idle", "duration", "5m", "the longest time without an event that says something; keep-alive comments do not count", duration(func(d *draft) *time.Duration { return &d.Recovery.EventIdle }, time.Second, day)},
	}
}

func resumeFields() []field[draft] {
	return []field[draft]{
		{"attempts", "whole number", "2", "attempts in one run, counting the first; 1 never resumes", integer(func(d *draft) *int { return &d.Resume.Attempts }, 1, 100)},
		{"on", "list of texts", "rate_limited, unavailable, io", "names of the exit codes after which the session is continued", texts(func(d *draft) *[]string { return &d.Resume.On }, checkResumable)},
		{"cooldown", "duration", "1m", "the shortest wait before the next attempt; a limit's reset time may make it longer", duration(func(d *draft) *time.Duration { return &d.Resume.Cooldown }, 0, day)},
		{"max_wait", "duration", "10m", "a longer wait is not slept inside the run: it ends and leaves a pending resume", duration(func(d *draft) *time.Duration { return &d.Resume.MaxWait }, 0, day)},
		{"crashed", "true or false", "true", "continue a run whose agentd died", boolean(func(d *draft) *bool { return &d.Resume.Crashed })},
	}
}

func unitFields() []field[draft] {
	return []field[draft]{
		{"memory_max", "text", "no limit", "memory of the whole unit, such as \"2G\" or \"50%\"", text(func(d *draft) *string { return &d.Unit.MemoryMax }, checkMemory)},
		{"cpu_quota", "text", "no limit", "processor time, such as \"150%\" for one and a half processors", text(func(d *draft) *string { return &d.Unit.CPUQuota }, checkQuota)},
		{"tasks_max", "whole number or text", "the system's", "processes and threads of the unit, such as 200 or \"10%\"", setTasks},
		{"nice", "whole number", "0", "scheduling priority: -20 (first) to 19 (last)", integer(func(d *draft) *int { return &d.Unit.Nice }, -20, 19)},
		{"io_class", "text", "the system's", "priority at the disk: idle, best-effort or realtime", text(func(d *draft) *string { return &d.Unit.IOClass }, oneOf("idle", "best-effort", "realtime"))},
		{"hardening", "true or false", "true", "run the unit in systemd's sandbox", boolean(func(d *draft) *bool { return &d.Unit.Hardening })},
		{"network_online", "true or false", "false", "start only when the network is up", boolean(func(d *draft) *bool { return &d.Unit.NetworkOnline })},
		{"wake", "true or false", "false", "wake the machine from sleep", boolean(func(d *draft) *bool { return &d.Unit.Wake })},
		{"on_failure", "text or list of texts", "", "units to start when the job fails, such as \"alert@%n.service\"", textOrTexts(func(d *draft) *[]string { return &d.Unit.OnFailure }, checkUnitName)},
	}
}

func setSchedule(f *findings, name string, n *node, d *draft) {
	textOrTexts(func(d *draft) *[]string { return &d.ScheduleText })(f, name, n, d)
	d.schedulePos = nil
	if n.kind == kindText {
		d.schedulePos = []int{n.pos}
	}
	for _, item := range n.items {
		if item.kind == kindText {
			d.schedulePos = append(d.schedulePos, item.pos)
		}
	}
	if len(d.ScheduleText) != len(d.schedulePos) { // a text was refused and is reported
		d.ScheduleText, d.schedulePos = nil, nil
	}
}

func setEnv(f *findings, name string, n *node, d *draft) {
	readTexts(f, name, n, &d.Env, checkEnvName, anyText)
}

// readTexts reads a table of texts into the map, over what is there.
func readTexts(f *findings, name string, n *node, into *map[string]string, keyCheck, valueCheck check) {
	if n.kind != kindTable {
		wrongType(f, name, n, `a table such as { NAME = "value" }`)
		return
	}
	if *into == nil {
		*into = map[string]string{}
	}
	for _, k := range n.names {
		e := n.keys[k]
		if err := keyCheck(k); err != nil {
			f.mistake(e.pos, "%s.%s: %v", name, quote(k), err)
			continue
		}
		// The value may be a secret: no message shows it.
		switch v := e.value; {
		case v.kind != kindText:
			f.mistake(v.pos, "%s.%s must be text in quotes, not a %s", name, k, v.kind)
		case strings.ContainsRune(v.text, 0):
			f.mistake(v.pos, "%s.%s must not hold a NUL character", name, k)
		default:
			if err := valueCheck(v.text); err != nil {
				f.mistake(v.pos, "%s.%s: %v", name, k, err)
				continue
			}
			(*into)[k] = v.text
		}
	}
}

func setTasks(f *findings, name string, n *node, d *draft) {
	if n.kind == kindInteger {
		var count int
		integer(func(i *int) *int { return i }, 1, 4_000_000)(f, name, n, &count)
		d.Unit.TasksMax = strconv.Itoa(count)
		return
	}
	text(func(d *draft) *string { return &d.Unit.TasksMax }, checkTasks)(f, name, n, d)
}
