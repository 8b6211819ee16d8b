package cli

import (
	"text/tabwriter"

	"github.com/spf13/cobra"

	"agentd/lanes"
)

func (a *App) lanesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "lanes",
		Short: "Show who holds which lane, and who waits",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			folders, err := a.folders()
			if err != nil {
				return err
			}
			list, err := lanes.Dir(folders.Lanes()).List()
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(list)
			}
			return a.printLanes(list)
		},
	}
}

func (a *App) printLanes(list []lanes.Status) error {
	if len(list) == 0 {
		a.printf("No lane was ever taken.\n")
		return nil
	}
	now := a.Now()
	w := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	tabf(w, "LANE\tSTATE\tJOB\tRUN\tSINCE\n")
	for _, l := range list {
		if len(l.Holders) == 0 {
			tabf(w, "%s\tfree\t\t\t\n", l.Name)
		}
		for _, h := range l.Holders {
			tabf(w, "%s\theld\t%s\t%s\t%s\n", l.Name, h.Job, short(h.RunID), distance(h.Since, now))
		}
		for _, h := range l.Waiters {
			tabf(w, "%s\twaits\t%s\t%s\t%s\n", l.Name, h.Job, short(h.RunID), distance(h.Since, now))
		}
	}
	return w.Flush()
}
