package provider

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"

	"agentd/provider/message"
	"agentd/recovery"
)

// fields is the body of a request in the making.
type fields map[string]any

func (f fields) set(key string, v any) { f[key] = v }

// merge adds the object extra; a null takes a field out.
func (f fields) merge(extra json.RawMessage) error {
	if len(bytes.TrimSpace(extra)) == 0 {
		return nil
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(extra, &m); err != nil {
		return fmt.Errorf("they are not a JSON object: %w", err)
	}
	for k, v := range m {
		if string(v) == "null" {
			delete(f, k)
			continue
		}
		f[k] = v
	}
	return nil
}

func (f fields) encode() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(f); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// shape says what an endpoint was found not to take for a model.
type shape struct {
	drop map[string]bool // names that are left out, at any depth
	most int             // the greatest output limit it allows; 0: not known
}

func (s shape) drops(name string) bool { return s.drop[name] }

// apply takes the dropped fields out of the top level of a body.
func (s shape) apply(f fields) fields {
	for name := range s.drop {
		delete(f, name)
	}
	return f
}

// limit returns n, or what the endpoint allows if that is less.
func (s shape) limit(n int) int {
	if s.most > 0 {
		return min(n, s.most)
	}
	return n
}

// optional lists what a request can do without. Tools are not among them: an
// agent that has silently lost its tools does something else than it was asked.
func optional() []string {
	return []string{
		"stream_options", "max_completion_tokens", "max_tokens", "max_output_tokens", "reasoning_effort", "include", "summary",
		"cache_control", "extra_content", "reasoning_details", "reasoning_content", "thinking", "reasoning", "store",
	}
}

var wholeNumber = regexp.MustCompile(`\d{2,9}`)

// without returns the shape that leaves out what the fault names, and whether
// there is such a thing in body.
func (s shape) without(f *recovery.Fault, body fields) (shape, bool) {
	if f.Kind != recovery.Invalid || f.Status != 400 && f.Status != 422 {
		return s, false
	}
	text, err := body.encode()
	if err != nil {
		return s, false
	}
	said := f.Type + " " + f.Message
	if most, ok := allowed(said, body); ok {
		s.most = most
		return s, true
	}
	for _, name := range optional() {
		if s.drop[name] || !names(said, name) || !bytes.Contains(text, []byte(`"`+name+`"`)) {
			continue
		}
		s.drop = maps.Clone(s.drop)
		if s.drop == nil {
			s.drop = map[string]bool{}
		}
		s.drop[name] = true
		return s, true
	}
	return s, false
}

// names reports whether a message names a parameter, in words of its own where
// providers have them.
func names(said, name string) bool {
	said = strings.ToLower(said)
	switch name {
	case "include":
		return strings.Contains(said, "encrypted content") || word(said, name)
	case "summary":
		return strings.Contains(said, "reasoning summar") || strings.Contains(said, "reasoning.summary")
	case "thinking":
		return strings.Contains(said, "thinking")
	}
	return word(said, name)
}

// word reports whether text contains name as a word.
func word(text, name string) bool {
	for rest := text; ; {
		i := strings.Index(rest, name)
		if i < 0 {
			return false
		}
		end := i + len(name)
		if (i == 0 || !letter(rest[i-1])) && (end == len(rest) || !letter(rest[end])) {
			return true
		}
		rest = rest[end:]
	}
}

func letter(b byte) bool { return b == '_' || b >= 'a' && b <= 'z' || b >= '0' && b <= '9' }

// allowed finds the output limit that a message allows instead of the one sent.
func allowed(said string, body fields) (int, bool) {
	for _, name := range []string{"max_tokens", "max_completion_tokens", "max_output_tokens"} {
		sent, ok := body[name].(int)
		if !ok || !strings.Contains(said, name) {
			continue
		}
		best := 0
		for _, text := range wholeNumber.FindAllString(said, -1) {
			if n, err := strconv.Atoi(text); err == nil && n < sent && n > best {
				best = n
			}
		}
		if best > 0 && strings.Contains(said, strconv.Itoa(sent)) || best >= 256 {
			return best, true
		}
	}
	return 0, false
}

// function is the description of a tool as both OpenAI wires have it.
func parameters(d message.Definition) json.RawMessage {
	if len(d.Schema) == 0 {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return d.Schema
}

// arguments returns the arguments of a tool call as a JSON object. A journal may
// hold a call that never was one; the provider must not choke on it.
func arguments(p message.Part) json.RawMessage {
	text := bytes.TrimSpace([]byte(p.Arguments))
	if len(text) > 0 && text[0] == '{' && validJSON(text) == nil {
		return json.RawMessage(text)
	}
	if len(text) == 0 || string(text) == "null" {
		return json.RawMessage("{}")
	}
	out, err := json.Marshal(map[string]string{"invalid_arguments": p.Arguments})
	if err != nil {
		return json.RawMessage("{}")
	}
	return out
}

// callID makes an id of a tool call fit for a wire that allows only letters,
// digits, _ and - and a length. Ids of another wire may not fit; the same id
// always becomes the same one.
func callID(id string, most int) string {
	fits := id != "" && len(id) <= most
	for i := 0; i < len(id) && fits; i++ {
		b := id[i] | 0x20
		fits = id[i] == '_' || id[i] == '-' || b >= 'a' && b <= 'z' || id[i] >= '0' && id[i] <= '9'
	}
	if fits {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "call_" + base64.RawURLEncoding.EncodeToString(sum[:])[:min(most-5, 22)]
}

var errEmpty = errors.New("the conversation is empty")
