package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"agentd/exitcodes"
	"agentd/history"
	"agentd/lanes"
	"agentd/provider/rehearsal"
	"agentd/session"
)

// completeArgs has the shell complete the jobs, sessions and lanes that stand
// on the command lines of c and its subcommands, and the values of flags that
// are from a list.
func (a *App) completeArgs(c *cobra.Command) {
	if c.ValidArgsFunction == nil {
		switch takes := c.Use; {
		case strings.Contains(takes, "SESSION"):
			c.ValidArgsFunction = noFiles(func() []string { return append(a.jobsToComplete(strings.Contains(takes, "JOB")), a.sessionNames()...) })
		case strings.Contains(takes, "JOB"):
			c.ValidArgsFunction = noFiles(func() []string { return a.jobsToComplete(true) })
		case strings.Contains(takes, "LANE"):
			c.ValidArgsFunction = noFiles(a.laneNames)
		case strings.Contains(takes, "CODE"):
			c.ValidArgsFunction = noFiles(codeNames)
		}
	}
	for flag, values := range map[string]func() []string{
		"code":     codeNames,
		"scenario": rehearsal.Names,
		"scope":    func() []string { return []string{"user", "system"} },
		"trigger":  history.Triggers,
		"resume":   a.sessionNames,
	} {
		if c.Flags().Lookup(flag) != nil {
			_ = c.RegisterFlagCompletionFunc(flag, noFiles(values)) // only a missing flag is an error
		}
	}
	for _, sub := range c.Commands() {
		a.completeArgs(sub)
	}
}

// noFiles offers a list, without what stands on the command line already, and
// no names of files.
func noFiles(list func() []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
		var fit []string
		for _, s := range list() {
			if strings.HasPrefix(s, start) && !slices.Contains(args, s) {
				fit = append(fit, s)
			}
		}
		return fit, cobra.ShellCompDirectiveNoFileComp
	}
}

// jobsToComplete lists the jobs of the workspace, if they are wanted. A completion
// has nobody to tell of a mistake.
func (a *App) jobsToComplete(wanted bool) []string {
	ws, err := a.workspace()
	if err != nil || !wanted {
		return nil
	}
	var names []string
	for _, j := range ws.Jobs {
		names = append(names, j.Name)
	}
	return names
}

func (a *App) sessionNames() []string {
	store, agent, err := a.sessionStore()
	if err != nil {
		return nil
	}
	list, err := store.Of(agent)
	if err != nil {
		return nil
	}
	return names(list, func(i session.Info) string { return i.Name })
}

func (a *App) laneNames() []string {
	folders, err := a.folders()
	if err != nil {
		return nil
	}
	list, err := lanes.Dir(folders.Lanes()).List()
	if err != nil {
		return nil
	}
	return names(list, func(s lanes.Status) string { return s.Name })
}

func codeNames() []string {
	return slices.Compact(names(exitcodes.Table(), func(e exitcodes.Entry) string { return e.Name }))
}

func names[T any](list []T, name func(T) string) []string {
	all := make([]string, len(list))
	for i, t := range list {
		all[i] = name(t)
	}
	return all
}
