package cli

import (
	"text/tabwriter"

	"github.com/spf13/cobra"

	"agentd/exitcodes"
)

func (a *App) exitcodesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "exitcodes",
		Short: "List the exit codes and what they mean",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			rows := exitcodes.Table()
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
