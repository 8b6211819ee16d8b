package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"agentd/exitcodes"
	"agentd/scheduler/crontab"
	"agentd/workspace"
)

func (a *App) importCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Make jobs of what another scheduler runs",
		Args:  knownVerb,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}
	cmd.AddCommand(a.importCrontabCommand())
	return cmd
}

type importOptions struct {
	write, system bool
}

func (a *App) importCrontabCommand() *cobra.Command {
	var o importOptions
	cmd := &cobra.Command{
		Use:   "crontab FILE",
		Short: "Make jobs of the lines of a crontab",
		Long: `Crontab prints the jobs that do what the lines of a crontab do, as tables of
agentd.toml, and says what it could not carry over. FILE is - for standard
input. With --write the jobs are added to the agentd.toml of this workspace; a
name that it has already gets a number.

Each job keeps to what cron does: a lane of its own, the home folder, nothing
made up for after downtime, and no limit of its own but 24 hours. Other than
cron, agentd does not start a job while its former run is still at work.

The crontab itself stays as it is: take the lines out of it when the jobs are
installed, or both will run them.`,
		Example: `  crontab -l | agentd import crontab -
  agentd import crontab /etc/cron.d/backup
  crontab -l | agentd import crontab - --write`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.importCrontab(args[0], o)
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&o.write, "write", "w", false, "add the jobs to this workspace's agentd.toml")
	f.BoolVar(&o.system, "system", false, "the lines name a user, as in /etc/crontab (known for /etc/crontab and /etc/cron.d)")
	return cmd
}

// imported is the documented shape of `agentd import crontab --json`.
type imported struct {
	Jobs  []importedJob  `json:"jobs"`
	Notes []importedNote `json:"notes"`
}

type importedJob struct {
	Job      string `json:"job"`
	Line     int    `json:"line"`
	Schedule string `json:"schedule"`
	TOML     string `json:"toml"`
}

type importedNote struct {
	Line int    `json:"line"`
	Text string `json:"text"`
	Lost bool   `json:"lost"` // the line made no job
}

func (a *App) importCrontab(file string, o importOptions) error {
	text, err := a.readCrontab(file)
	if err != nil {
		return err
	}
	dir, taken, err := a.jobNames(o.write)
	if err != nil {
		return err
	}
	entries, notes := crontab.Parse(text, o.system || systemCrontab(file))
	jobs, more, err := crontab.Jobs(entries, taken, a.Now())
	if err != nil {
		return err
	}
	notes = append(notes, more...)
	slices.SortStableFunc(notes, func(x, y crontab.Note) int { return x.Line - y.Line })
	tables := make([]string, len(jobs))
	for i, j := range jobs {
		tables[i] = j.TOML
	}
	if o.write && len(jobs) > 0 {
		if err := workspace.AddJobs(dir, strings.Join(tables, "\n")); err != nil {
			return err
		}
	}
	switch {
	case a.json:
		if err := a.printJSON(importAnswer(jobs, notes)); err != nil {
			return err
		}
	case !o.write:
		a.printf("%s", strings.Join(tables, "\n"))
	default:
		a.printImported(jobs, filepath.Join(dir, workspace.FileName))
	}
	return a.explainImport(file, jobs, notes)
}

// readCrontab reads the file, or standard input for "-".
func (a *App) readCrontab(file string) (string, error) {
	const most = 1 << 20
	in := a.Stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return "", exitcodes.Errorf(exitcodes.NoInput, "cannot read the crontab: %w", err)
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, most+1))
	switch {
	case err != nil:
		return "", exitcodes.Errorf(exitcodes.NoInput, "cannot read the crontab %s: %w", file, err)
	case len(text) > most:
		return "", exitcodes.Errorf(exitcodes.NoInput, "the crontab %s is larger than 1 MiB", file)
	}
	return string(text), nil
}

// systemCrontab reports whether the lines of a file name a user.
func systemCrontab(file string) bool {
	abs, err := filepath.Abs(file)
	return err == nil && (abs == "/etc/crontab" || filepath.Dir(abs) == "/etc/cron.d")
}

// jobNames tells which names this workspace has already. Without a workspace
// none is taken, unless there has to be one.
func (a *App) jobNames(needed bool) (dir string, taken func(string) bool, err error) {
	ws, err := a.workspace()
	if err != nil {
		if needed || exitcodes.From(err) != exitcodes.NoInput || a.dir != "" {
			return "", nil, err
		}
		return "", func(string) bool { return false }, nil
	}
	return ws.Dir, func(name string) bool {
		return slices.ContainsFunc(ws.Jobs, func(j *workspace.Job) bool { return j.Name == name })
	}, nil
}

func importAnswer(jobs []crontab.Job, notes []crontab.Note) imported {
	answer := imported{Jobs: []importedJob{}, Notes: []importedNote{}}
	for _, j := range jobs {
		answer.Jobs = append(answer.Jobs, importedJob{j.Name, j.Entry.Line, j.Entry.Schedule, j.TOML})
	}
	for _, n := range notes {
		answer.Notes = append(answer.Notes, importedNote(n))
	}
	return answer
}

func (a *App) printImported(jobs []crontab.Job, file string) {
	a.printf("Added to %s:\n", a.shown(file))
	for _, j := range jobs {
		a.printf("  %s  %s  (line %d)\n", j.Name, j.Entry.Schedule, j.Entry.Line)
	}
	a.printf("Next: agentd validate, agentd install, and then take the lines out of the crontab\n")
}

// explainImport says on stderr what is different, and fails where a line made
// no job.
func (a *App) explainImport(file string, jobs []crontab.Job, notes []crontab.Note) error {
	lost := 0
	for _, n := range notes {
		if n.Lost {
			lost++
		}
		if a.json {
			continue
		}
		kind := "note"
		if n.Lost {
			kind = "left out"
		}
		fmt.Fprintf(a.Stderr, "%s:%d: %s: %s\n", file, n.Line, kind, oneLine(n.Text))
	}
	switch {
	case lost > 0:
		err := exitcodes.Errorf(exitcodes.Failure, "%s of %s could not be carried over", count(lost, "line"), file)
		if a.json {
			return reported{err}
		}
		return err
	case len(jobs) == 0:
		return exitcodes.Errorf(exitcodes.NoInput, "there is no line in %s that starts a command", file)
	}
	return nil
}
