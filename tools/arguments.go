package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"agentd/provider/message"
	"agentd/session"
)

// parameter is one argument that a built-in tool takes.
type parameter struct {
	name     string
	kind     string // "string" or "integer"
	about    string
	required bool
	min, max int // of an integer; max 0: no limit
}

// builtin is a tool whose schema and checks come from one list of parameters.
type builtin struct {
	name, about string
	effect      session.Effect
	parameters  []parameter
	run         func(context.Context, Call, arguments) (Result, error)
}

func (b *builtin) Effect() session.Effect { return b.effect }

func (b *builtin) Definition() message.Definition {
	properties := map[string]any{}
	required := []string{}
	for _, p := range b.parameters {
		schema := map[string]any{"type": p.kind, "description": p.about}
		if p.kind == "integer" {
			schema["minimum"] = p.min
			if p.max > 0 {
				schema["maximum"] = p.max
			}
		}
		properties[p.name] = schema
		if p.required {
			required = append(required, p.name)
		}
	}
	schema, err := json.Marshal(map[string]any{
		"type": "object", "properties": properties, "required": required, "additionalProperties": false,
	})
	if err != nil {
		schema = json.RawMessage(`{"type":"object"}`) // strings and numbers always marshal
	}
	return message.Definition{Name: b.name, Description: b.about, Schema: schema}
}

func (b *builtin) Run(ctx context.Context, c Call) (Result, error) {
	args, err := b.parse(c.Arguments)
	if err != nil {
		return failed("The arguments of %s are wrong, and it was not run: %v.", b.name, err), nil
	}
	return b.run(ctx, c, args)
}

// arguments are checked ones.
type arguments struct {
	text map[string]string
	num  map[string]int
}

// number returns an integer, or instead if it was not given.
func (a arguments) number(name string, instead int) int {
	if n, ok := a.num[name]; ok {
		return n
	}
	return instead
}

// parse checks arguments against the parameters. Its errors are for the model.
func (b *builtin) parse(text string) (arguments, error) {
	args := arguments{text: map[string]string{}, num: map[string]int{}}
	fields, err := object(text)
	if err != nil {
		return args, err
	}
	var wrong []string
	for _, f := range fields {
		if err := b.set(&args, f); err != nil {
			wrong = append(wrong, err.Error())
		}
	}
	for _, p := range b.parameters {
		_, isText := args.text[p.name]
		_, isNum := args.num[p.name]
		if p.required && !isText && !isNum && !mentioned(fields, p.name) {
			wrong = append(wrong, fmt.Sprintf("%q is missing", p.name))
		}
	}
	if wrong != nil {
		return args, errors.New(strings.Join(wrong, "; "))
	}
	return args, nil
}

func mentioned(fields []field, name string) bool {
	for _, f := range fields {
		if f.name == name && string(f.value) != "null" {
			return true
		}
	}
	return false
}

func (b *builtin) set(args *arguments, f field) error {
	for _, p := range b.parameters {
		if p.name != f.name {
			continue
		}
		if string(f.value) == "null" {
			return nil // as if it was not given
		}
		if p.kind == "string" {
			var s string
			if json.Unmarshal(f.value, &s) != nil {
				return fmt.Errorf("%q must be a string, not %s", p.name, kindOf(f.value))
			}
			args.text[p.name] = s
			return nil
		}
		n, err := integer(p, f.value)
		args.num[p.name] = n
		return err
	}
	var names []string
	for _, p := range b.parameters {
		names = append(names, p.name)
	}
	return fmt.Errorf("there is no argument %q, only %s", f.name, strings.Join(names, ", "))
}

func integer(p parameter, value json.RawMessage) (int, error) {
	var n float64
	if json.Unmarshal(value, &n) != nil {
		return 0, fmt.Errorf("%q must be an integer, not %s", p.name, kindOf(value))
	}
	if n != math.Trunc(n) || math.Abs(n) > 1<<53 {
		return 0, fmt.Errorf("%q must be an integer, not %s", p.name, value)
	}
	if n < float64(p.min) {
		return 0, fmt.Errorf("%q must be at least %d", p.name, p.min)
	}
	if p.max > 0 && n > float64(p.max) {
		return 0, fmt.Errorf("%q must be at most %d", p.name, p.max)
	}
	return int(n), nil
}

// kindOf names the type of a JSON value.
func kindOf(value json.RawMessage) string {
	switch value[0] {
	case '"':
		return "a string"
	case '{':
		return "an object"
	case '[':
		return "an array"
	case 't', 'f':
		return "a boolean"
	}
	return "a number"
}

type field struct {
	name  string
	value json.RawMessage
}

// object splits the JSON text of an object. Unlike encoding/json it refuses a
// name that stands twice.
func object(text string) ([]field, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil // how some models write a call without arguments
	}
	d := json.NewDecoder(strings.NewReader(text))
	if open, err := d.Token(); err != nil {
		return nil, errors.New("they are not JSON")
	} else if open != json.Delim('{') {
		return nil, errors.New("they must be a JSON object")
	}
	var fields []field
	seen := map[string]bool{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, errors.New("they are not complete JSON")
		}
		f := field{name: fmt.Sprint(name)}
		if err := d.Decode(&f.value); err != nil {
			return nil, errors.New("they are not complete JSON")
		}
		if seen[f.name] {
			return nil, fmt.Errorf("%q stands twice", f.name)
		}
		seen[f.name] = true
		f.value = bytes.TrimSpace(f.value)
		fields = append(fields, f)
	}
	if _, err := d.Token(); err != nil {
		return nil, errors.New("they are not complete JSON")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON object")
	}
	return fields, nil
}
