package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"agentd/workspace"
)

// configTopic is a help topic, not a verb: every key of agentd.toml, made from
// the table that validates it.
func configTopic() *cobra.Command {
	var b strings.Builder
	b.WriteString("agentd.toml declares one agent and its jobs. Any key of a job, and its tables,\n" +
		"may also stand in [defaults]. `agentd validate` checks it.\n")
	table := ""
	for _, k := range workspace.Keys() {
		if k.Table != table {
			table = k.Table
			fmt.Fprintf(&b, "\n[%s]\n", table)
		}
		fmt.Fprintf(&b, "  %s (%s", k.Key, k.Type)
		if k.Default != "" {
			fmt.Fprintf(&b, "; default %s", k.Default)
		}
		fmt.Fprintf(&b, ")\n      %s\n", k.Meaning)
	}
	return &cobra.Command{Use: "config", Short: "Every key of agentd.toml", Long: b.String()}
}

// Command returns the tree of verbs, for programs that document it.
func Command() *cobra.Command { return System().command() }
