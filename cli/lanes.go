package cli

import (
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"agentd/exitcodes"
	"agentd/lanes"
	"agentd/workspace"
)

func (a *App) lanesCommand() *cobra.Command {
	var past bool
	cmd := &cobra.Command{
		Use:   "lanes [LANE]",
		Short: "Show who holds which lane, who waits, and who held it before",
		Long: `Lanes shows who holds which lane and who waits for it, in the order of their
turns. Of one lane it shows the past holds too.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			folders, err := a.folders()
			if err != nil {
				return err
			}
			dir := lanes.Dir(folders.Lanes())
			list, err := a.knownLanes(dir, args)
			if err != nil {
				return err
			}
			switch {
			case past:
				return a.lanePast(dir, list)
			case a.json:
				return a.printJSON(list)
			}
			if err := a.printLanes(list); err != nil || len(args) == 0 {
				return err
			}
			a.printf("\nBefore:\n")
			return a.lanePast(dir, list)
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

// knownLanes returns the lane that is named, or all that were ever taken.
func (a *App) knownLanes(dir lanes.Dir, args []string) ([]lanes.Status, error) {
	list, err := dir.List()
	if err != nil || len(args) == 0 {
		return list, err
	}
	name := args[0]
	if !lanes.ValidName(name) {
		return nil, exitcodes.Errorf(exitcodes.Usage, "%q is not the name of a lane", name)
	}
	for _, l := range list {
		if l.Name == name {
			return []lanes.Status{l}, nil
		}
	}
	if ws, err := a.workspace(); err == nil && slices.ContainsFunc(ws.Jobs, func(j *workspace.Job) bool { return j.Lane == name }) {
		return []lanes.Status{{Name: name, Holders: []lanes.Holder{}, Waiters: []lanes.Waiter{}}}, nil
	}
	return nil, exitcodes.Errorf(exitcodes.NoInput, "there is no lane %q", name).WithHint("All that were ever taken: agentd lanes")
}

// lanePast lists past holds, the latest last.
func (a *App) lanePast(dir lanes.Dir, of []lanes.Status) error {
	holds := []laneHold{}
	for _, l := range of {
		list, err := dir.History(l.Name, 0)
		if err != nil {
			return err
		}
		for _, h := range list {
			holds = append(holds, laneHold{l.Name, h})
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
