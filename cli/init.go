package cli

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"agentd/exitcodes"
	"agentd/workspace"
)

func (a *App) initCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Make a workspace",
		Long: `Init makes a workspace in DIR (default: the current folder): a commented
agentd.toml with one job, AGENTS.md, prompts/, journal/, tasks/ and .gitignore.
It never overwrites a file.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir := a.dir
			if len(args) == 1 {
				dir = args[0]
			}
			return a.init(dir, name)
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "the agent's `NAME` (default: from the folder's name)")
	return cmd
}

func (a *App) init(dir, name string) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return exitcodes.Errorf(exitcodes.NoInput, "cannot tell where %s is: %w", dir, err)
	}
	ws, err := workspace.Create(abs, workspace.CreateOptions{Name: name})
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]string{"agent": ws.Agent, "workspace": ws.Dir})
	}
	a.printf("Created workspace %s in %s\n", ws.Agent, a.shown(ws.Dir))
	a.printf("  agentd.toml      one job, \"hello\", every 30 minutes, switched off\n")
	a.printf("  AGENTS.md        who the agent is; goes into every session\n")
	next := "agentd run hello"
	if dir != "" && dir != "." {
		next = "cd " + shellWord(dir) + " && " + next
	}
	a.printf("Next: %s\n", next)
	return nil
}
