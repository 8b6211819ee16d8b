package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"agentd/exitcodes"
	"agentd/workspace"
)

func (a *App) validateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "validate",
		Short: "Check agentd.toml and name every mistake at once",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			ws, err := a.workspace()
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(map[string]any{"file": ws.File, "agent": ws.Agent, "jobs": len(ws.Jobs), "mistakes": []any{}})
			}
			for _, w := range ws.Warnings {
				a.printf("%s\n", w)
			}
			a.printf("%s is fine: agent %s, %s\n", a.shown(ws.File), ws.Agent, count(len(ws.Jobs), "job"))
			return nil
		},
	}
}

// explainInvalid prints the mistakes of an agentd.toml, and reports whether
// err was that.
func (a *App) explainInvalid(err error) bool {
	invalid, ok := errors.AsType[*workspace.Invalid](err)
	if !ok {
		return false
	}
	if a.json {
		type mistake struct {
			File    string `json:"file"`
			Line    int    `json:"line"`
			Column  int    `json:"column"`
			Message string `json:"message"`
		}
		list := []mistake{}
		for _, m := range invalid.Mistakes {
			list = append(list, mistake{m.File, m.Line, m.Column, m.Message})
		}
		_ = a.printJSON(map[string]any{"file": invalid.File, "mistakes": list, "code": exitcodes.Config, "name": exitcodes.Config.String()})
		return true
	}
	for _, line := range invalid.Lines() {
		fmt.Fprintln(a.Stderr, line)
	}
	fmt.Fprintf(a.Stderr, "%s. Nothing was changed.\n", count(len(invalid.Mistakes), "mistake"))
	return true
}

// count is "1 job", "2 jobs".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
