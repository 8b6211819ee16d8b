package cli

import (
	"text/tabwriter"

	"github.com/spf13/cobra"

	"agentd/exitcodes"
	"agentd/lanes"
)

func (a *App) lanesCommand() *cobra.Command {
	var past bool
	cmd := &cobra.Command{
		Use:   "lanes [LANE]",
		Short: "Show who holds which lane, who waits, and who held it before",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			folders, err := a.folders()
			if err != nil {
				return err
			}
			if len(args) == 1 || past {
				return a.lanePast(lanes.Dir(folders.Lanes()), args)
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
	cmd.Flags().BoolVar(&past, "history", false, "list past holds, of LANE or of all: who, how long, and how it ended")
	return cmd
}

// laneHold is a past hold of a lane.
type laneHold struct {
	Lane string `json:"lane"`
	lanes.Hold
}

// lanePast lists past holds, the latest last.
func (a *App) lanePast(dir lanes.Dir, names []string) error {
	if len(names) == 0 {
		list, err := dir.List()
		if err != nil {
			return err
		}
		for _, l := range list {
			names = append(names, l.Name)
		}
	}
	holds := []laneHold{}
	for _, name := range names {
		if !lanes.ValidName(name) {
			return exitcodes.Errorf(exitcodes.Usage, "%q is not the name of a lane", name)
		}
		list, err := dir.History(name, 0)
		if err != nil {
			return err
		}
		for _, h := range list {
			holds = append(holds, laneHold{name, h})
		}
	}
	if a.json {
		return a.printJSON(holds)
	}
	w := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	tabf(w, "LANE\tJOB\tRUN\tFROM\tHELD\tEND\n")
	for _, h := range holds {
		tabf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", h.Lane, h.Job, short(h.RunID), clock(h.Since, a.Now()), span(h.Until.Sub(h.Since)), h.End)
	}
	return w.Flush()
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
