package workspace

import (
	"slices"
	"strings"
)

// loader turns the tree of an agentd.toml into a Workspace.
type loader struct {
	found    *findings
	ws       *Workspace
	drafts   []*draft
	keyFiles []keyFile
}

// keyFile is a file that a provider's key comes from.
type keyFile struct {
	pos  int
	path string
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

var topTables = [...]string{"agent", "backends", "defaults", "jobs", "lanes", "providers"}

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
	if e := root.get("backends"); e != nil {
		l.readBackends(e.value)
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
	l.warnOfSessions()
}

func topHeader(name string) string {
	switch name {
	case "backends", "jobs", "lanes", "providers":
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
		named := l.named(e, "job", "jobs", name)
		if e.value.kind != kindTable {
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
		if !named { // only for its mistakes
			continue
		}
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
			l.found.mistake(d.pos("lane_slots"), "lane %q has lane_slots %d in job %s, but %d in job %s: say it once, in [lanes.%s]",
				d.Lane, d.LaneSlots, d.Name, other.LaneSlots, other.Name, d.Lane)
		}
	}
	for name, e := range lanes {
		if !used[name] {
			l.found.warn(e.pos, "no job uses lane %q%s", name, didYouMean(name, sortedKeys(used)))
		}
	}
}

// warnOfSessions tells of jobs that continue one session and may run together:
// a session has one writer.
func (l *loader) warnOfSessions() {
	first := map[string]*draft{}
	for _, d := range l.drafts {
		if d.Session == "" || strings.Contains(d.Session, "{run}") {
			continue
		}
		other := first[d.Session]
		if other == nil {
			first[d.Session] = d
		} else if other.Lane != d.Lane {
			l.found.warn(d.pos("session"), "jobs %s and %s continue session %q in different lanes: when both run, one fails", other.Name, d.Name, d.Session)
		}
	}
}
