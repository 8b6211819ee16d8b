package workspace

import (
	"fmt"
	"slices"
	"strings"
)

// field is one key of a table in agentd.toml. Unknown keys, types, bounds,
// positions and the reference all come from the same rows.
type field[T any] struct {
	name    string
	typ     string // in words, for the reference
	def     string // default, for the reference; "" is none
	meaning string
	set     setter[T]
}

func fieldNames[T any](fields []field[T]) []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	return names
}

// decode reads table n into t. where is the table's name in messages, inner
// what goes before its keys there ("resume."); seen, if not nil, hears of every
// key that is known.
func decode[T any](f *findings, where, inner string, fields []field[T], n *node, t *T, seen func(string, *entry)) {
	for _, name := range n.names {
		if f.full() {
			return
		}
		e := n.keys[name]
		i := slices.IndexFunc(fields, func(x field[T]) bool { return x.name == name })
		if i < 0 {
			f.unknownKey(e.pos, name, where, fieldNames(fields))
			continue
		}
		if seen != nil {
			seen(name, e)
		}
		fields[i].set(f, inner+name, e.value, t)
	}
}

func (f *findings) unknownKey(pos int, name, where string, known []string) {
	hint := didYouMean(name, known)
	if hint == "" {
		hint = belongs(name, where)
	} else {
		f.meant[where+"."+nearest(name, known)] = true
	}
	f.mistake(pos, "unknown key %s in %s%s", quote(name), where, hint)
}

// belongs tells where a key that is known elsewhere should have been written.
func belongs(name, where string) string {
	var tables []string
	for _, k := range Keys() {
		if k.Key != name {
			continue
		}
		// jobs.triage wants jobs.triage.resume, not jobs.NAME.resume.
		table := k.Table
		if head, _, _ := strings.Cut(where, "."); head == "defaults" || head == "jobs" {
			owner := head
			if head == "jobs" {
				owner = strings.Join(strings.SplitN(where, ".", 3)[:2], ".")
			}
			table = strings.Replace(table, "jobs.NAME", owner, 1)
		}
		if table != where && !slices.Contains(tables, "["+table+"]") {
			tables = append(tables, "["+table+"]")
		}
	}
	if len(tables) == 0 {
		return ""
	}
	return fmt.Sprintf(": it belongs in %s", strings.Join(tables, " or "))
}

// KeyDoc describes one key of agentd.toml for the reference.
type KeyDoc struct {
	Table   string // e.g. "jobs.NAME.resume"
	Key     string
	Type    string
	Default string // "" is none
	Meaning string
}

// Keys lists every key of agentd.toml, table by table. A key of jobs.NAME may
// also stand in [defaults], and its tables under it.
func Keys() []KeyDoc {
	var docs []KeyDoc
	docs = appendDocs(docs, "agent", agentFields())
	docs = appendDocs(docs, "jobs.NAME", jobFields())
	for _, s := range jobTables() {
		docs = appendDocs(docs, "jobs.NAME."+s.name, s.fields)
	}
	docs = appendDocs(docs, "lanes.NAME", laneFields())
	docs = appendDocs(docs, "providers.NAME", providerFields())
	return appendDocs(docs, "backends.NAME", backendFields())
}

func appendDocs[T any](docs []KeyDoc, table string, fields []field[T]) []KeyDoc {
	for _, f := range fields {
		docs = append(docs, KeyDoc{Table: table, Key: f.name, Type: f.typ, Default: f.def, Meaning: f.meaning})
	}
	return docs
}
