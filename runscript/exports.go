package runscript

import (
	"bytes"
	"fmt"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// Exports returns what a script of agentd exports, as NAME=VALUE.
func Exports(text []byte) ([]string, error) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(bytes.NewReader(text), "run.sh")
	if err != nil {
		return nil, fmt.Errorf("cannot parse the run script: %w", err)
	}
	var out []string
	for _, s := range file.Stmts {
		export, ok := s.Cmd.(*syntax.DeclClause)
		if !ok || export.Variant.Value != "export" {
			continue
		}
		for _, a := range export.Args {
			if a.Name == nil || a.Value == nil {
				continue
			}
			value, err := expand.Literal(nil, a.Value)
			if err != nil {
				return nil, fmt.Errorf("cannot read %s in the run script: %w", a.Name.Value, err)
			}
			out = append(out, a.Name.Value+"="+value)
		}
	}
	return out, nil
}
