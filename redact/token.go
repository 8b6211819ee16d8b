package redact

import (
	"bytes"
)

// class is a set of bytes.
type class [256]bool

func classOf(chars string) *class {
	var c class
	for i := 0; i < len(chars); i++ {
		if i+2 < len(chars) && chars[i+1] == '~' { // a~z is a range
			for b := int(chars[i]); b <= int(chars[i+2]); b++ {
				c[b] = true
			}
			i += 2
			continue
		}
		c[chars[i]] = true
	}
	return &c
}

// pattern is a kind of token known by its look: a prefix, and then at least min
// bytes of a class.
type pattern struct {
	prefix string
	min    int
	class  *class
	name   bool // the prefix is a name in any case, and no secret itself
}

// tokens are the patterns by the first byte of their prefix.
type tokens struct {
	by   [256][]pattern
	word *class
}

func newTokens() *tokens {
	word, dash, upper := classOf("0~9a~zA~Z_"), classOf("0~9a~zA~Z_-"), classOf("0~9A~Z")
	credential := classOf("0~9a~zA~Z._+/=-")
	credential['~'] = true
	t := &tokens{word: word}
	for _, p := range []pattern{
		{prefix: "sk-", min: 20, class: dash},
		{prefix: "sk_live_", min: 16, class: word},
		{prefix: "rk_live_", min: 16, class: word},
		{prefix: "AKIA", min: 16, class: upper},
		{prefix: "ASIA", min: 16, class: upper},
		{prefix: "ghp_", min: 30, class: word},
		{prefix: "gho_", min: 30, class: word},
		{prefix: "ghu_", min: 30, class: word},
		{prefix: "ghs_", min: 30, class: word},
		{prefix: "ghr_", min: 30, class: word},
		{prefix: "github_pat_", min: 22, class: word},
		{prefix: "glpat-", min: 20, class: dash},
		{prefix: "xoxb-", min: 10, class: dash},
		{prefix: "xoxp-", min: 10, class: dash},
		{prefix: "xapp-", min: 10, class: dash},
		{prefix: "AIza", min: 35, class: dash},
		{prefix: "hf_", min: 30, class: word},
		{prefix: "npm_", min: 36, class: word},
		{prefix: "bearer ", min: 16, class: credential, name: true},
		{prefix: "authorization: basic ", min: 8, class: credential, name: true},
	} {
		first := p.prefix[0]
		t.by[first] = append(t.by[first], p)
		if p.name {
			t.by[first-'a'+'A'] = append(t.by[first-'a'+'A'], p)
		}
	}
	return t
}

// found is a token at the start of a text.
type found struct {
	length int // with the prefix; 0: none
	keep   int // how much of it may be shown
	class  *class
	more   bool // undecided: it depends on what follows
}

// match looks for a token at the start of text. before is the byte before text:
// a prefix in the middle of a word is none ("task-force").
func (t *tokens) match(before byte, text []byte, final bool) found {
	if t.word[before] {
		return found{}
	}
	for _, p := range t.by[text[0]] {
		n := min(len(text), len(p.prefix))
		if !p.startsWith(text[:n]) {
			continue
		}
		for n >= len(p.prefix) && n < len(text) && p.class[text[n]] {
			n++
		}
		switch {
		case n >= len(p.prefix)+p.min:
			f := found{length: n, class: p.class}
			if p.name {
				f.keep = len(p.prefix)
			}
			return f
		case n == len(text) && !final:
			return found{more: true}
		}
	}
	return found{}
}

// startsWith reports whether head is the prefix or a beginning of it.
func (p pattern) startsWith(head []byte) bool {
	want := p.prefix[:len(head)]
	return string(head) == want || p.name && bytes.EqualFold(head, []byte(want))
}
