package cli

import (
	"errors"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"agentd/exitcodes"
	"agentd/redact"
	"agentd/session"
)

func (a *App) sessionsCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "List, show, export, check and prune the conversations of agents",
		Long: `Sessions lists the sessions of this workspace's agent; outside of one, or with
--all, those of all agents. SESSION is a name, AGENT/NAME, or the start of one.`,
		Args: knownVerb,
		RunE: func(*cobra.Command, []string) error { return a.listSessions(all) },
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "the sessions of all agents, not only of this workspace's")
	list := &cobra.Command{
		Use: "list", Short: "List the sessions", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.listSessions(all) },
	}
	list.Flags().BoolVarP(&all, "all", "a", false, "the sessions of all agents")
	show := &cobra.Command{
		Use: "show SESSION", Short: "Show a session as Markdown", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return a.exportSession(args[0], a.format(""), "") },
	}
	cmd.AddCommand(list, show, a.exportCommand(), a.removeSessionCommand(), a.renameSessionCommand(),
		a.pruneCommand(), a.verifyCommand(), a.repairCommand())
	return cmd
}

func (a *App) exportCommand() *cobra.Command {
	var format, output string
	cmd := &cobra.Command{
		Use: "export SESSION", Short: "Write a session as Markdown or JSON", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			f := a.format(format)
			if f != session.Markdown && f != session.JSON {
				return exitcodes.Errorf(exitcodes.Usage, "there is no format %q", format).WithHint("Formats: markdown, json")
			}
			return a.exportSession(args[0], f, output)
		},
	}
	cmd.Flags().StringVar(&format, "format", "", "`markdown or json` (default: markdown, or json with --json)")
	cmd.Flags().StringVarP(&output, "output", "o", "", "write to `FILE` instead of standard output")
	return cmd
}

func (a *App) format(name string) session.Format {
	switch {
	case name != "":
		return session.Format(name)
	case a.json:
		return session.JSON
	}
	return session.Markdown
}

func (a *App) removeSessionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "rm SESSION...", Short: "Delete sessions, each by its whole name", Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			st, agent, err := a.sessionStore()
			if err != nil {
				return err
			}
			var found []session.Info
			for _, arg := range args {
				info, err := st.FindWhole(agent, arg)
				if err != nil {
					return err
				}
				found = append(found, info)
			}
			for _, info := range found {
				if err := st.Remove(info.Agent, info.Name); err != nil {
					return err
				}
				a.say("Deleted %s/%s.\n", info.Agent, info.Name)
			}
			return nil
		},
	}
}

func (a *App) renameSessionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "rename SESSION NAME", Short: "Give a session another name", Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			st, agent, err := a.sessionStore()
			if err != nil {
				return err
			}
			info, err := st.Find(agent, args[0])
			if err != nil {
				return err
			}
			if err := st.Rename(info.Agent, info.Name, args[1]); err != nil {
				return err
			}
			a.say("%s/%s is now %s/%s.\n", info.Agent, info.Name, info.Agent, args[1])
			return nil
		},
	}
}

func (a *App) pruneCommand() *cobra.Command {
	var age, size string
	var all bool
	var o session.PruneOptions
	cmd := &cobra.Command{
		Use: "prune", Short: "Delete sessions by age and size", Args: cobra.NoArgs,
		Long: `Prune deletes those of the agent's sessions in which nothing was recorded for
--older-than, and then the longest unused until the rest fits into --max-size.
Outside of a workspace, or with --all, it is about the sessions of all agents
together. A session that is in use, or that a run is to go on with, stays.`,
		Example: "  agentd sessions prune --older-than 30d --max-size 2G",
		RunE: func(*cobra.Command, []string) (err error) {
			if o.OlderThan, err = parseAge(age); err != nil {
				return err
			}
			if o.MaxBytes, err = parseSize(size); err != nil {
				return err
			}
			return a.prune(o, all)
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&all, "all", "a", false, "the sessions of all agents, not only of this workspace's")
	f.StringVar(&age, "older-than", "", "an `AGE` such as 30d or 12h")
	f.StringVar(&size, "max-size", "", "a `SIZE` such as 500M or 2G")
	f.BoolVar(&o.DryRun, "dry-run", false, "only say what would go")
	return cmd
}

func (a *App) verifyCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "verify [SESSION...]", Short: "Read every byte of sessions and say what is wrong",
		Long: `Verify reads the named sessions, or without a name all of this workspace's agent;
outside of one, or with --all, those of all agents.`,
		RunE: func(_ *cobra.Command, args []string) error { return a.verify(args, all) },
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "the sessions of all agents, not only of this workspace's")
	return cmd
}

func (a *App) repairCommand() *cobra.Command {
	return &cobra.Command{
		Use: "repair SESSION", Short: "Make a damaged session usable again, and say what was lost", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return a.repair(args[0]) },
	}
}

// say prints for people; with --json the answer is enough.
func (a *App) say(format string, args ...any) {
	if !a.json {
		a.printf(format, args...)
	}
}

// sessionStore returns the store, and the agent of the workspace at hand ("" if
// there is none: all agents are meant).
func (a *App) sessionStore() (session.Store, string, error) {
	folders, err := a.folders()
	if err != nil {
		return session.Store{}, "", err
	}
	agent := ""
	if ws, err := a.workspace(); err == nil {
		agent = ws.Agent
	}
	return session.Store{Dir: folders.Sessions()}, agent, nil
}

// sessionRow has the field names of a run record beside those of the session.
type sessionRow struct {
	Session string `json:"session"`
	session.Info
}

func (a *App) listSessions(all bool) error {
	st, agent, err := a.sessionStore()
	if err != nil {
		return err
	}
	if all {
		agent = ""
	}
	list, err := st.Of(agent)
	if err != nil {
		return err
	}
	rows := []sessionRow{}
	for _, info := range list {
		rows = append(rows, sessionRow{info.Name, info})
	}
	if a.json {
		return a.printJSON(rows)
	}
	if len(rows) == 0 {
		a.printf("No sessions.\n")
		return nil
	}
	now := a.Now()
	w := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	tabf(w, "SESSION\tUSED\tRUNS\tMESSAGES\tTOKENS\tSIZE\tSTATE\n")
	for _, r := range rows {
		tabf(w, "%s/%s\t%s\t%d\t%d\t%d\t%s\t%s\n", r.Agent, r.Name, distance(r.UpdatedAt, now), r.Runs, r.Messages, r.Tokens, bytesText(r.Bytes), sessionState(r.Info))
	}
	return w.Flush()
}

func sessionState(i session.Info) string {
	switch {
	case i.Damage != "":
		return "damaged"
	case i.Locked:
		return "in use"
	case i.LastCode != nil:
		return i.LastCode.String()
	}
	return "-"
}

func (a *App) exportSession(part string, format session.Format, output string) error {
	st, agent, err := a.sessionStore()
	if err != nil {
		return err
	}
	info, err := st.Find(agent, part)
	if err != nil {
		return err
	}
	var to io.Writer = a.Stdout
	if output != "" {
		f, err := os.OpenFile(output, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return exitcodes.Errorf(exitcodes.CannotCreate, "cannot export to %s: %w", output, err)
		}
		defer f.Close()
		to = f
	}
	// Known patterns only: the values of a job's keys are not at hand here.
	masked := redact.New(nil).Writer(to)
	return errors.Join(st.Export(masked, info.Agent, info.Name, format), masked.Close())
}

func (a *App) prune(o session.PruneOptions, all bool) error {
	st, agent, err := a.sessionStore()
	if err != nil {
		return err
	}
	if o.Now = a.Now; !all {
		o.Agent = agent
	}
	if o.OlderThan == 0 && o.MaxBytes == 0 {
		return exitcodes.Errorf(exitcodes.Usage, "prune needs --older-than or --max-size")
	}
	store, err := a.store()
	if err != nil {
		return err
	}
	defer store.Close()
	pending, err := store.PendingRuns()
	if err != nil {
		return err
	}
	for _, r := range pending {
		o.Keep = append(o.Keep, r.Agent+"/"+r.Session)
	}
	gone, err := st.Prune(o)
	if err != nil {
		return err
	}
	if a.json {
		rows := []sessionRow{}
		for _, info := range gone {
			rows = append(rows, sessionRow{info.Name, info})
		}
		return a.printJSON(rows)
	}
	for _, info := range gone {
		a.printf("%s/%s  %s\n", info.Agent, info.Name, bytesText(info.Bytes))
	}
	verb := "deleted"
	if o.DryRun {
		verb = "to delete"
	}
	a.printf("%s %s.\n", count(len(gone), "session"), verb)
	return nil
}

func (a *App) verify(args []string, all bool) error {
	st, agent, err := a.sessionStore()
	if err != nil {
		return err
	}
	if all {
		agent = ""
	}
	var list []session.Info
	if len(args) == 0 {
		if list, err = st.Of(agent); err != nil {
			return err
		}
	}
	for _, arg := range args {
		info, err := st.Find(agent, arg)
		if err != nil {
			return err
		}
		list = append(list, info)
	}
	reports, bad := []*session.Report{}, []string{}
	for _, info := range list {
		r, err := st.Verify(info.Agent, info.Name)
		if err != nil {
			return err
		}
		reports = append(reports, r)
		if !r.Good() {
			bad = append(bad, info.Agent+"/"+info.Name)
		}
	}
	if a.json {
		if err := a.printJSON(reports); err != nil {
			return err
		}
	} else {
		a.printReports(reports)
	}
	if len(bad) > 0 {
		return exitcodes.Errorf(exitcodes.Data, "%s damaged: %s", count(len(bad), "session"), strings.Join(bad, ", ")).
			WithHint("To use one again: agentd sessions repair " + bad[0])
	}
	return nil
}

func (a *App) printReports(reports []*session.Report) {
	for _, r := range reports {
		state := "good"
		if !r.Good() {
			state = "damaged"
		}
		a.printf("%s/%s  %s  %s, %s\n", r.Agent, r.Name, state, count(r.Records, "record"), bytesText(r.Bytes))
		if r.Damage != "" {
			a.printf("  %s; %s readable behind it\n", r.Damage, count(r.Lost, "record"))
		}
		for _, p := range r.Problems {
			a.printf("  %s\n", p)
		}
	}
}

func (a *App) repair(part string) error {
	st, agent, err := a.sessionStore()
	if err != nil {
		return err
	}
	info, err := st.Find(agent, part)
	if err != nil {
		return err
	}
	r, err := st.Repair(info.Agent, info.Name, a.Now)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(r)
	}
	if !r.Changed() {
		a.printf("%s/%s is good: nothing was changed.\n", r.Agent, r.Name)
		return nil
	}
	a.printf("%s/%s: %s kept, %s lost (%s cut off)\n", r.Agent, r.Name, count(r.Kept, "record"), count(r.Lost, "record"), bytesText(r.Bytes))
	for _, f := range r.Files {
		a.printf("  kept aside: %s\n", a.shown(f))
	}
	return nil
}
