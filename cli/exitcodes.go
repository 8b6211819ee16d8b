package cli

import (
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"agentd/exitcodes"
)

func (a *App) exitcodesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "exitcodes [CODE...]",
		Short: "List the exit codes and what they mean",
		Long: `Exitcodes lists what agentd and its jobs can end with, or the CODEs, numbers or
names, that are asked for. AGAIN is when it makes sense to try the same again.`,
		Example: "  agentd exitcodes 75",
		RunE: func(_ *cobra.Command, args []string) error {
			rows := exitcodes.Table()
			for _, arg := range args {
				if _, err := parseCode(arg); err != nil {
					return err
				}
			}
			rows = slices.DeleteFunc(rows, func(e exitcodes.Entry) bool {
				return len(args) > 0 && !slices.Contains(args, e.Name) && !slices.Contains(args, itoa(int(e.Code)))
			})
			if a.json {
				return a.printJSON(rows)
			}
			w := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
			tabf(w, "CODE\tNAME\tAGAIN\tMEANING\n")
			for _, r := range rows {
				tabf(w, "%d\t%s\t%s\t%s\n", r.Code, r.Name, r.Again, r.Meaning)
			}
			return w.Flush()
		},
	}
}
