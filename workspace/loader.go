package workspace

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"agentd/scheduler/expr"
)

// loader turns the tree of an agentd.toml into a Workspace.
type loader struct {
	found  *findings
	ws     *Workspace
	drafts []*draft
}

type agent struct{ name, description string }

func agentFields() []field[agent] {
	return []field[agent]{
		{"name", "text", "", "who the agent is: its name is unique for a user", text(func(a *agent) *string { return &a.name }, CheckSlug)},
		{"description", "text", "", "one line about the agent for people", text(func(a *agent) *string { return &a.description }, checkLine)},
	}
}

type lane struct{ slots int }

func laneFields() []field[lane] {
	return []field[lane]{
		{"slots", "whole number", "1", "how many runs may hold the lane at once", integer(func(l *lane) *int { return &l.slots }, 1, maxSlots)},
	}
}

var topTables = [...]string{"agent", "defaults", "jobs", "lanes", "providers"}

func (l *loader) read(root *node) {
	for _, name := range root.names {
		if l.found.full() {
			return
		}
		e := root.keys[name]
		if !slices.Contains(topTables[:], name) {
			l.found.unknownTop(e, name)
			delete(root.keys, name)
		} else if e.value.kind != kindTable {
			l.found.mistake(e.pos, "%s must be a table: [%s]", name, topHeader(name))
			delete(root.keys, name)
		}
	}
	l.readAgent(root)
	if e := root.get("providers"); e != nil {
		l.readProviders(e.value)
	}
	lanes := map[string]*entry{}
	if e := root.get("lanes"); e != nil {
		lanes = l.readLanes(e.value)
	}
	base := newDraft()
	if e := root.get("defaults"); e != nil {
		base.read(l.found, "defaults", e.value)
		base.checkDefaults(l)
	}
	if e := root.get("jobs"); e != nil {
		l.readJobs(e.value, base)
	}
	l.shareLanes(lanes)
}

func topHeader(name string) string {
	switch name {
	case "jobs", "lanes", "providers":
		return name + ".NAME"
	}
	return name
}

func (f *findings) unknownTop(e *entry, name string) {
	what := "key"
	if e.value.kind == kindTable {
		what = "table"
	}
	hint := didYouMean(name, topTables[:])
	if hint == "" {
		hint = belongs(name, "")
	}
	f.mistake(e.pos, "unknown %s %s%s", what, quote(name), hint)
}

func (l *loader) readAgent(root *node) {
	e := root.get("agent")
	if e == nil {
		l.found.mistake(0, "there is no [agent] table with the agent's name")
		return
	}
	var a agent
	named := false
	decode(l.found, "agent", "", agentFields(), e.value, &a, func(key string, _ *entry) { named = named || key == "name" })
	if !named && !l.found.meant["agent.name"] {
		l.found.mistake(e.pos, "agent needs a name")
	}
	l.ws.Agent, l.ws.Description = a.name, a.description
}

// named reports whether e is a table with a valid name; what is wrong is among
// the findings.
func (l *loader) named(e *entry, what, table, name string) bool {
	if err := CheckSlug(name); err != nil {
		l.found.mistake(e.pos, "%s name %s: %v", what, quote(name), err)
		return false
	}
	switch e.value.kind {
	case kindTable:
		return true
	case kindArray:
		l.found.mistake(e.pos, "%s.%s must be one table: write [%s.%s] with single brackets", table, name, table, name)
	default:
		l.found.mistake(e.pos, "%s.%s must be a table: [%s.%s]", table, name, table, name)
	}
	return false
}

func (l *loader) readLanes(n *node) map[string]*entry {
	lanes := map[string]*entry{}
	for _, name := range n.names {
		e := n.keys[name]
		if !l.named(e, "lane", "lanes", name) {
			continue
		}
		one := lane{slots: 1}
		decode(l.found, "lanes."+name, "", laneFields(), e.value, &one, nil)
		l.ws.LaneSlots[name] = one.slots
		lanes[name] = e
	}
	return lanes
}

func (l *loader) readJobs(n *node, base *draft) {
	for _, name := range n.names {
		if l.found.full() {
			return
		}
		e := n.keys[name]
		if !l.named(e, "job", "jobs", name) {
			continue
		}
		d := base.inherit()
		d.Agent, d.Name, d.Dir = l.ws.Agent, name, l.ws.Dir
		d.at["."] = spot{key: e.pos, value: e.pos, own: true}
		d.read(l.found, "jobs."+name, e.value)
		if d.Lane == "" {
			d.Lane = l.ws.Agent
		}
		d.check(l)
		l.drafts = append(l.drafts, d)
		l.ws.Jobs = append(l.ws.Jobs, &d.Job)
	}
}

// shareLanes gives the jobs of a lane one number of slots, and refuses
// numbers that differ.
func (l *loader) shareLanes(lanes map[string]*entry) {
	first := map[string]*draft{}
	used := map[string]bool{}
	for _, d := range l.drafts {
		used[d.Lane] = true
		_, said := d.at["lane_slots"]
		if slots, ok := l.ws.LaneSlots[d.Lane]; ok {
			if said && d.LaneSlots != slots {
				l.found.mistake(d.pos("lane_slots"), "lane_slots %d of job %s differs from [lanes.%s], which has %d slots", d.LaneSlots, d.Name, d.Lane, slots)
			}
			d.LaneSlots = slots
			continue
		}
		if other := first[d.Lane]; other == nil {
			first[d.Lane] = d
		} else if other.LaneSlots != d.LaneSlots {
			l.found.mistake(d.pos("lane_slots"), "job %s gives lane %q %d slots, but job %s gives it %d: say it once, in [lanes.%s]",
				d.Name, d.Lane, d.LaneSlots, other.Name, other.LaneSlots, d.Lane)
		}
	}
	for name, e := range lanes {
		if !used[name] {
			l.found.warn(e.pos, "no job uses lane %q%s", name, didYouMean(name, sortedKeys(used)))
		}
	}
}

// checkDefaults checks what does not depend on a job, for a file without jobs.
func (d *draft) checkDefaults(l *loader) {
	if s, ok := d.at["model"]; ok && d.Model != "" {
		if err := l.checkModel(d.Model); err != nil {
			l.found.mistake(s.value, "model %s: %v", quote(d.Model), err)
		}
	}
	d.checkPromptChoice(l.found)
	d.parseSchedules(l.found)
}

// check looks at the keys of a job together.
func (d *draft) check(l *loader) {
	f := l.found
	d.checkPromptChoice(f)
	d.checkWork(l)
	d.parseSchedules(f)
}

func (d *draft) checkPromptChoice(f *findings) {
	prompt, hasPrompt := d.at["prompt"]
	file, hasFile := d.at["prompt_file"]
	if hasPrompt && hasFile && prompt.own == file.own {
		f.mistake(max(prompt.key, file.key), "prompt and prompt_file exclude each other: keep one")
	}
}

// checkWork checks prompt, backend, model and command.
func (d *draft) checkWork(l *loader) {
	f := l.found
	if d.Model != "" {
		if err := l.checkModel(d.Model); err != nil {
			f.mistake(d.pos("model"), "model %s: %v", quote(d.Model), err)
		}
	}
	if s, said := d.at["backend"]; said && f.wrong[s.value] {
		return // what else is needed depends on it
	}
	if d.Backend == "command" {
		d.checkCommand(f)
	} else {
		d.checkBuiltin(f)
	}
}

// lacks reports whether a key is missing, also under a mistyped name.
func (d *draft) lacks(f *findings, key string) bool {
	_, said := d.at[key]
	return !said && !f.meant["jobs."+d.Name+"."+key] && !f.meant["defaults."+key]
}

func (d *draft) checkBuiltin(f *findings) {
	where := "jobs." + d.Name
	_, hasFile := d.at["prompt_file"]
	prompt, hasPrompt := d.at["prompt"]
	switch {
	case d.lacks(f, "prompt") && d.lacks(f, "prompt_file"):
		f.mistake(d.pos("."), "%s needs a prompt or a prompt_file", where)
	case hasPrompt && !hasFile && strings.TrimSpace(d.Prompt) == "" && !f.wrong[prompt.value]:
		f.mistake(prompt.value, "prompt is empty")
	}
	if model, said := d.at["model"]; said && d.Model == "" && !f.wrong[model.value] {
		f.mistake(model.value, "model is empty")
	} else if d.lacks(f, "model") {
		f.mistake(d.pos("."), `%s needs a model, such as model = "anthropic/claude-sonnet-4-5"`, where)
	}
	for _, key := range []string{"command", "prompt_via"} {
		if s, said := d.at[key]; said && s.own {
			f.mistake(s.key, `%s is only for backend = "command"`, key)
		}
	}
}

func (d *draft) checkCommand(f *findings) {
	s, said := d.at["command"]
	switch {
	case d.lacks(f, "command"):
		f.mistake(d.pos("backend"), `jobs.%s needs a command, such as command = ["prog", "arg"]`, d.Name)
	case said && (len(d.Command) == 0 || d.Command[0] == "") && !f.wrong[s.value]:
		f.mistake(s.value, "command must name a program")
	}
}

// parseSchedules parses the texts in the job's zone.
func (d *draft) parseSchedules(f *findings) {
	if s, ok := d.at["timezone"]; ok && f.wrong[s.value] {
		return // the schedules are not to blame for their zone
	}
	d.Schedules = nil
	for i, text := range d.ScheduleText {
		s, err := expr.Parse(text, d.Timezone)
		if err == nil {
			d.Schedules = append(d.Schedules, s)
			continue
		}
		f.mistake(d.schedulePos[i], "schedule %s: %s", quote(text), scheduleReason(err))
	}
}

func scheduleReason(err error) string {
	s, ok := errors.AsType[*expr.SyntaxError](err)
	switch {
	case !ok:
		return err.Error()
	case s.Column > 0:
		return fmt.Sprintf("%s (column %d)", s.Reason, s.Column)
	}
	return s.Reason
}
