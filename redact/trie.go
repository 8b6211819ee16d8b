package redact

// trie finds the longest of many values at the start of a text.
type trie struct {
	nodes []node
	root  [256]int32 // the first step, which is taken for every byte of a text
}

type node struct {
	end  bool
	next []edge
}

type edge struct {
	b  byte
	to int32
}

func newTrie() *trie { return &trie{nodes: make([]node, 1)} }

func (t *trie) add(value string) {
	at := int32(0)
	for i := range len(value) {
		at = t.grow(at, value[i])
	}
	if at != 0 {
		t.nodes[at].end = true
	}
}

func (t *trie) grow(at int32, b byte) int32 {
	if to := t.step(at, b); to != 0 {
		return to
	}
	to := int32(len(t.nodes))
	t.nodes = append(t.nodes, node{})
	if at == 0 {
		t.root[b] = to
	} else {
		t.nodes[at].next = append(t.nodes[at].next, edge{b, to})
	}
	return to
}

// step returns 0 if no value goes on with b.
func (t *trie) step(at int32, b byte) int32 {
	if at == 0 {
		return t.root[b]
	}
	for _, e := range t.nodes[at].next {
		if e.b == b {
			return e.to
		}
	}
	return 0
}

// match returns the length of the longest value that text starts with, and
// whether text ends where a longer one could still go on.
func (t *trie) match(text []byte) (length int, more bool) {
	at := int32(0)
	for i, b := range text {
		at = t.step(at, b)
		if at == 0 {
			return length, false
		}
		if t.nodes[at].end {
			length = i + 1
		}
	}
	return length, at != 0 && len(t.nodes[at].next) > 0
}
