package workspace

import (
	"errors"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// kind is a TOML type in words for people.
type kind string

const (
	kindTable   kind = "table"
	kindArray   kind = "list"
	kindText    kind = "text"
	kindInteger kind = "whole number"
	kindFloat   kind = "number"
	kindBool    kind = "true or false"
	kindDate    kind = "date or time"
)

// node is a value of the file together with where it stands.
type node struct {
	kind   kind
	pos    int    // byte offset of the value; of the header for a table
	text   string // a text's content, any other scalar's own spelling
	items  []*node
	names  []string // of a table, in file order
	keys   map[string]*entry
	header bool // a [table] header of its own was seen
	closed bool // an inline table: nothing may be added from outside
}

type entry struct {
	pos   int // of the key
	value *node
}

func newTable(pos int) *node {
	return &node{kind: kindTable, pos: pos, keys: map[string]*entry{}}
}

func (n *node) get(name string) *entry {
	if n == nil {
		return nil
	}
	return n.keys[name]
}

func (n *node) put(name string, e *entry) {
	n.names = append(n.names, name)
	n.keys[name] = e
}

// grower builds the tree of a document out of the parser's expressions.
type grower struct {
	parser unstable.Parser
	doc    []byte
	found  *findings
	root   *node
}

// parseTree reads doc. It returns nil when doc is not TOML; what is wrong is
// among the findings.
func parseTree(doc []byte, found *findings) *node {
	g := &grower{doc: doc, found: found, root: newTable(0)}
	g.parser.Reset(doc)
	table := g.root
	for g.parser.NextExpression() {
		e := g.parser.Expression()
		switch e.Kind {
		case unstable.Table:
			table = g.openTable(e)
		case unstable.ArrayTable:
			table = g.openArrayTable(e)
		case unstable.KeyValue:
			g.keyValue(table, e)
		}
	}
	if err := g.parser.Error(); err != nil {
		found.mistakes = nil // those so far may only follow from this one
		found.mistake(g.errorOffset(err), "this is not TOML: %s", tomlWords(err.Error()))
		return nil
	}
	return g.root
}

// crossCheck lets the full decoder look at a document in which nothing else is
// wrong: it knows rules about dates, numbers and redefinitions that the
// expressions alone do not show. (Its time grows with the square of the keys.)
func crossCheck(doc []byte, found *findings) {
	var all map[string]any
	err := toml.Unmarshal(doc, &all)
	if err == nil {
		return
	}
	offset := 0
	if d, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, column := d.Position()
		if line >= 1 && line <= len(found.lines) {
			offset = found.lines[line-1] + max(column-1, 0)
		}
	}
	found.mistake(offset, "this is not TOML: %s", tomlWords(err.Error()))
}

func (g *grower) errorOffset(err error) int {
	p, ok := errors.AsType[*unstable.ParserError](err)
	if !ok || p.Highlight == nil {
		return len(g.doc)
	}
	// The highlight is a part of the document; capacities tell which.
	return min(max(cap(g.doc)-cap(p.Highlight), 0), len(g.doc))
}

// tomlWords turns the parser's message into one for people.
func tomlWords(message string) string {
	message = strings.TrimPrefix(message, "toml: ")
	if strings.Contains(message, "at start of value") || strings.Contains(message, "expected keyword") {
		message += " (text needs quotes)"
	}
	return message
}

// openTable finds or makes the table of a [header].
func (g *grower) openTable(e *unstable.Node) *node {
	parts := g.keyParts(e.Key())
	parent := g.descend(g.root, parts[:len(parts)-1], true)
	last := parts[len(parts)-1]
	old := parent.get(last.name)
	switch {
	case old == nil:
		t := newTable(last.pos)
		t.header = true
		parent.put(last.name, &entry{pos: last.pos, value: t})
		return t
	case old.value.kind != kindTable || old.value.closed:
		g.found.mistake(last.pos, "%q is defined twice", last.name)
		return newTable(last.pos)
	case old.value.header:
		g.found.mistake(last.pos, "table [%s] is there twice: put its keys into one", dotted(parts))
		return old.value
	default:
		old.pos, old.value.pos = last.pos, last.pos
	}
	old.value.header = true
	return old.value
}

// openArrayTable adds a table to the list of a [[header]].
func (g *grower) openArrayTable(e *unstable.Node) *node {
	parts := g.keyParts(e.Key())
	parent := g.descend(g.root, parts[:len(parts)-1], true)
	last := parts[len(parts)-1]
	old := parent.get(last.name)
	if old == nil {
		old = &entry{pos: last.pos, value: &node{kind: kindArray, pos: last.pos}}
		parent.put(last.name, old)
	}
	t := newTable(last.pos)
	if old.value.kind != kindArray {
		g.found.mistake(last.pos, "%q is defined twice", last.name)
		return t
	}
	old.value.items = append(old.value.items, t)
	return t
}

func (g *grower) keyValue(table *node, e *unstable.Node) {
	parts := g.keyParts(e.Key())
	parent := g.descend(table, parts[:len(parts)-1], false)
	last := parts[len(parts)-1]
	if parent.get(last.name) != nil {
		g.found.mistake(last.pos, "%q is defined twice", last.name)
		return
	}
	parent.put(last.name, &entry{pos: last.pos, value: g.value(e.Value(), g.valueOffset(last.end))})
}

// descend walks to the table that the parts name, making what is missing. A
// header may pass through the last table of a list, a dotted key may not.
func (g *grower) descend(t *node, parts []part, header bool) *node {
	for _, p := range parts {
		old := t.get(p.name)
		if old == nil {
			old = &entry{pos: p.pos, value: newTable(p.pos)}
			t.put(p.name, old)
		}
		v := old.value
		if header && v.kind == kindArray && len(v.items) > 0 {
			v = v.items[len(v.items)-1]
		}
		if v.kind != kindTable || v.closed {
			g.found.mistake(p.pos, "%q is defined twice", p.name)
			return newTable(p.pos)
		}
		t = v
	}
	return t
}

// value copies a parsed value. near is its offset where the node does not
// tell.
func (g *grower) value(v *unstable.Node, near int) *node {
	if v.Raw.Length > 0 {
		near = int(v.Raw.Offset)
	}
	switch v.Kind {
	case unstable.Array:
		list := &node{kind: kindArray, pos: near}
		for it := v.Children(); it.Next(); {
			list.items = append(list.items, g.value(it.Node(), near))
		}
		return list
	case unstable.InlineTable:
		t := newTable(near)
		for it := v.Children(); it.Next(); {
			g.keyValue(t, it.Node())
		}
		t.close()
		return t
	}
	return &node{kind: scalarKind(v.Kind), pos: near, text: string(v.Data)}
}

func (n *node) close() {
	n.closed = true
	for _, e := range n.keys {
		if e.value.kind == kindTable && !e.value.closed {
			e.value.close()
		}
	}
}

func scalarKind(k unstable.Kind) kind {
	switch k {
	case unstable.String:
		return kindText
	case unstable.Integer:
		return kindInteger
	case unstable.Float:
		return kindFloat
	case unstable.Bool:
		return kindBool
	}
	return kindDate
}

// part is one name of a dotted key.
type part struct {
	name     string
	pos, end int
}

func (g *grower) keyParts(it unstable.Iterator) []part {
	var parts []part
	for it.Next() {
		k := it.Node()
		start := int(k.Raw.Offset)
		parts = append(parts, part{name: string(k.Data), pos: start, end: start + int(k.Raw.Length)})
	}
	return parts
}

// valueOffset finds where the value after a key starts.
func (g *grower) valueOffset(keyEnd int) int {
	i := keyEnd
	for i < len(g.doc) && strings.IndexByte(" \t=", g.doc[i]) >= 0 {
		i++
	}
	return i
}

func dotted(parts []part) string {
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = p.name
	}
	return strings.Join(names, ".")
}
