package cli

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"agentd/exitcodes"
	"agentd/scheduler"
	"agentd/systemd"
	"agentd/workspace"
)

type calendarOptions struct {
	days int
	from string
	all  bool
}

func (a *App) calendarCommand() *cobra.Command {
	var o calendarOptions
	cmd := &cobra.Command{
		Use:   "calendar [JOB]",
		Short: "Show the coming week of all jobs, and where they meet in a lane",
		Long: `Calendar shows when the jobs of this workspace fire in the coming week; outside
of one, or with --all, those of all agents that are installed. Times are in the
machine's zone.

A firing that finds its lane held is marked: it waits, where the job's lane_wait
is long enough, or is skipped with code 80. One that finds the job's former run
still at work is merged into it. How long a job holds its lane is the
median of its last ten runs, a minute before its first, and its jitter on top.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.calendar(o, args)
		},
	}
	f := cmd.Flags()
	f.IntVarP(&o.days, "days", "n", 7, "how many days to show, 1 to 366")
	f.StringVar(&o.from, "from", "", "start after this `TIME` (RFC 3339) instead of now")
	f.BoolVarP(&o.all, "all", "a", false, "the jobs of all agents, not only of this workspace's")
	return cmd
}

// occasion is the documented shape of one element of `agentd calendar --json`.
type occasion struct {
	At      time.Time `json:"at"`
	Agent   string    `json:"agent"`
	Job     string    `json:"job"`
	Lane    string    `json:"lane"`
	Takes   float64   `json:"takes_s"`
	Jitter  float64   `json:"jitter_s"`
	Fate    string    `json:"fate"`    // runs, waits, skipped or merged
	Holders []string  `json:"holders"` // of the lane, if it is full
}

func (a *App) calendar(o calendarOptions, args []string) error {
	if o.days < 1 || o.days > 366 {
		return exitcodes.Errorf(exitcodes.Usage, "--days %d is not between 1 and 366", o.days)
	}
	from, err := a.fromTime(o.from)
	if err != nil {
		return err
	}
	jobs, broken, err := a.statusJobs(o.all, args)
	if err != nil {
		return err
	}
	target, err := a.targetIn(systemd.User)
	if err != nil {
		return err
	}
	store, err := a.store()
	if err != nil {
		return err
	}
	defer store.Close()
	lengths, err := scheduler.Lengths(store, jobs)
	if err != nil {
		return err
	}
	silent := func(j *workspace.Job) bool {
		return !scheduler.Scheduled(j) || !target.DisabledSince(scheduler.NameOf(j)).IsZero()
	}
	var idle []string
	for _, j := range jobs {
		if silent(j) {
			idle = append(idle, j.Address())
		}
	}
	jobs = slices.DeleteFunc(slices.Clone(jobs), silent)
	list, cut := scheduler.Calendar(jobs, lengths, from, from.AddDate(0, 0, o.days))
	for _, b := range broken {
		fmt.Fprintf(a.Stderr, "agentd: %s\n", oneLine(b.Error()))
	}
	for _, j := range cut {
		fmt.Fprintf(a.Stderr, "agentd: %s fires more than %d times: the rest is not shown\n", j.Address(), scheduler.MaxOccasions)
	}
	if a.json {
		return a.printJSON(occasions(list))
	}
	a.printCalendar(list, idle)
	return nil
}

func occasions(list []scheduler.Occasion) []occasion {
	shown := make([]occasion, len(list))
	for i, o := range list {
		shown[i] = occasion{
			At: o.At, Agent: o.Job.Agent, Job: o.Job.Name, Lane: o.Job.Lane,
			Takes: o.Takes.Seconds(), Jitter: o.Job.Jitter.Seconds(), Fate: string(o.Fate), Holders: o.Holders,
		}
		if o.Holders == nil {
			shown[i].Holders = []string{}
		}
	}
	return shown
}

// printCalendar prints a row for each job on each day.
func (a *App) printCalendar(list []scheduler.Occasion, idle []string) {
	w := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	defer w.Flush()
	for day, rest := "", list; len(rest) > 0; {
		date := func(o scheduler.Occasion) string { return o.At.Local().Format("Mon 2 Jan 2006") }
		if day != "" {
			tabf(w, "\n")
		}
		day = date(rest[0])
		tabf(w, "%s\n", day)
		end := slices.IndexFunc(rest, func(o scheduler.Occasion) bool { return date(o) != day })
		if end < 0 {
			end = len(rest)
		}
		for _, row := range byJob(rest[:end]) {
			text := fmt.Sprintf("  %s\t%s\tlane %s", timesText(row), row[0].Job.Address(), row[0].Job.Lane)
			if met := meetText(row); met != "" {
				text += "\t" + met
			}
			tabf(w, "%s\n", text)
		}
		rest = rest[end:]
	}
	if len(list) == 0 {
		a.printf("No job fires in that time.\n")
	}
	if len(idle) > 0 {
		w.Flush()
		a.printf("\nNot by themselves: %s\n", strings.Join(idle, ", "))
	}
}

// byJob groups a day's firings, in the order of each job's first.
func byJob(day []scheduler.Occasion) [][]scheduler.Occasion {
	var rows [][]scheduler.Occasion
	index := map[*workspace.Job]int{}
	for _, o := range day {
		i, ok := index[o.Job]
		if !ok {
			i = len(rows)
			index[o.Job] = i
			rows = append(rows, nil)
		}
		rows[i] = append(rows[i], o)
	}
	return rows
}

// timesText is "09:00, 12:00", or for many "09:00 - 17:30, 18 times".
func timesText(row []scheduler.Occasion) string {
	const most = 3
	if len(row) > most {
		return fmt.Sprintf("%s - %s, %d times", wallTime(row[0].At.Local()), wallTime(row[len(row)-1].At.Local()), len(row))
	}
	times := make([]string, len(row))
	for i, o := range row {
		times[i] = wallTime(o.At.Local())
	}
	return strings.Join(times, ", ")
}

// meetText says which of a day's firings do not run at once, and why.
func meetText(row []scheduler.Occasion) string {
	var parts []string
	for _, fate := range []scheduler.Fate{scheduler.Skipped, scheduler.Waits, scheduler.Merged} {
		var met []scheduler.Occasion
		var holders []string
		for _, o := range row {
			if o.Fate == fate {
				met = append(met, o)
				holders = append(holders, o.Holders...)
			}
		}
		if len(met) == 0 {
			continue
		}
		text := "! " + string(fate)
		if len(row) > 1 {
			text += " " + timesText(met)
		}
		if fate == scheduler.Merged {
			text += ": a run takes " + span(met[0].Takes)
		} else {
			slices.Sort(holders)
			text += ": lane held by " + strings.Join(slices.Compact(holders), ", ")
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}
