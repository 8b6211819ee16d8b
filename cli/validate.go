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
		Long: `Validate reads agentd.toml and the files that it names, and tells every mistake
with its place, and what is allowed but probably not meant. Whether the programs
are found, the keys are safe and the timers run: agentd doctor.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			ws, err := a.workspace()
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(map[string]any{"file": ws.File, "agent": ws.Agent, "jobs": len(ws.Jobs), "mistakes": places(nil), "warnings": places(ws.Warnings)})
			}
			for _, w := range ws.Warnings {
				a.printf("%s warning: %s\n", w.Position(), w.Message)
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
		_ = a.printJSON(map[string]any{
			"file": invalid.File, "mistakes": places(invalid.Mistakes), "warnings": places(invalid.Warnings),
			"code": exitcodes.Config, "name": exitcodes.Config.String(),
		})
		return true
	}
	for _, line := range invalid.Lines() {
		fmt.Fprintln(a.Stderr, line)
	}
	for _, w := range invalid.Warnings {
		fmt.Fprintf(a.Stderr, "%s warning: %s\n", w.Position(), w.Message)
	}
	fmt.Fprintf(a.Stderr, "%s. Nothing was changed.\n", count(len(invalid.Mistakes), "mistake"))
	return true
}

// place is a finding in agentd.toml, as JSON.
type place struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
}

func places(list []workspace.Mistake) []place {
	out := []place{}
	for _, m := range list {
		out = append(out, place{m.File, m.Line, m.Column, m.Message})
	}
	return out
}

// count is "1 job", "2 jobs".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
