// Package cli holds the verbs of the command line, one file each. A verb
// parses, calls, and prints text or JSON; it has no logic of its own.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"agentd/exitcodes"
	"agentd/workspace"
)

// App is the world that the verbs act in, so that tests can give them another.
type App struct {
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Environ func() []string
	Now     func() time.Time

	// Set by the global flags.
	dir  string // the folder to look for a workspace from
	json bool
}

// System returns the real world.
func System() *App {
	return &App{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ, Now: time.Now}
}

// Getenv returns a variable of the environment, "" if it is not set.
func (a *App) Getenv(name string) string {
	value := ""
	for _, kv := range a.Environ() { // the last one counts, as in exec
		if n, v, ok := strings.Cut(kv, "="); ok && n == name {
			value = v
		}
	}
	return value
}

// Main runs the verb that args name and returns the exit status. It is the one
// place where an error becomes a message for the user.
func Main(a *App, args []string) (code exitcodes.Code) {
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(a.Stderr, "agentd: a bug in agentd: panic: %v\n%s", p, debug.Stack())
			code = exitcodes.Software
		}
	}()
	ctx, stop := cancelOnSignal(context.Background())
	defer stop()
	root := a.command()
	root.SetArgs(args)
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	err := root.ExecuteContext(ctx)
	a.explain(err)
	return exitcodes.From(err)
}

// cancelOnSignal returns a context that SIGINT, SIGTERM and SIGHUP cancel; its cause
// is an error with the code for that signal.
func cancelOnSignal(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	done := make(chan struct{})
	go func() {
		defer close(done)
		sig, ok := <-signals
		if !ok {
			return
		}
		code := exitcodes.Terminated
		if sig == syscall.SIGINT {
			code = exitcodes.Cancelled
		}
		cancel(exitcodes.Errorf(code, "stopped by %s", signalName(sig)))
		for range signals { // the orderly stop is under way; its own limits end it
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		<-done
		cancel(nil)
	}
}

// outliveReader keeps a reader of the output that goes away, as "| head" does,
// from ending the process by SIGPIPE. Handled, not ignored: children would
// inherit that.
func outliveReader() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}

func signalName(s os.Signal) string {
	switch s {
	case syscall.SIGINT:
		return "SIGINT"
	case syscall.SIGHUP:
		return "SIGHUP"
	}
	return "SIGTERM"
}

// reported marks an error whose message the user has already seen.
type reported struct{ error }

func (r reported) Unwrap() error { return r.error }

// explain prints err: what happened and where, then what to do next.
func (a *App) explain(err error) {
	if err == nil {
		return
	}
	if _, done := errors.AsType[reported](err); done {
		return
	}
	if a.explainInvalid(err) {
		return
	}
	code := exitcodes.From(err)
	if a.json {
		fmt.Fprintln(a.Stderr, a.errorJSON(err))
		return
	}
	fmt.Fprintf(a.Stderr, "agentd: %s\n", oneLine(err.Error()))
	if hint := exitcodes.HintOf(err); hint != "" {
		fmt.Fprintln(a.Stderr, hint)
	}
	if code == exitcodes.Failure {
		return
	}
	if a.terminal(a.Stderr) {
		fmt.Fprintf(a.Stderr, "[exit %d, %s]\n", code, code)
	}
}

func (a *App) errorJSON(err error) string {
	code := exitcodes.From(err)
	b, _ := json.Marshal(struct {
		Error string         `json:"error"`
		Hint  string         `json:"hint,omitempty"`
		Code  exitcodes.Code `json:"code"`
		Name  string         `json:"name"`
	}{oneLine(err.Error()), exitcodes.HintOf(err), code, code.String()})
	return string(b)
}

// oneLine keeps a message on one line, whatever a cause put into it.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

// terminal reports whether w is a terminal.
func (a *App) terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// printJSON writes v as one JSON document.
func (a *App) printJSON(v any) error {
	enc := json.NewEncoder(a.Stdout)
	enc.SetEscapeHTML(false)
	if a.terminal(a.Stdout) {
		enc.SetIndent("", "  ")
	}
	return enc.Encode(v)
}

// printf writes to stdout. A reader that went away (a closed pager) is not an
// error of the verb.
func (a *App) printf(format string, args ...any) {
	fmt.Fprintf(a.Stdout, format, args...)
}

func (a *App) folders() (workspace.Folders, error) {
	return workspace.FoldersFromEnv(a.Getenv)
}

// command builds the tree of verbs.
func (a *App) command() *cobra.Command {
	root := &cobra.Command{
		Use:           "agentd",
		Short:         "Run autonomous agents with nobody watching",
		Long:          rootLong,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          knownVerb,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}
	root.PersistentFlags().StringVarP(&a.dir, "workspace", "C", "", "look for agentd.toml in `DIR` and its parents instead of the current folder")
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print JSON for programs")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return exitcodes.Errorf(exitcodes.Usage, "%s", numberError.ReplaceAllString(err.Error(), ": $1")).WithHint("Try: " + cmd.CommandPath() + " --help")
	})
	root.Version = version
	root.SetVersionTemplate(a.versionLine())
	root.AddCommand(a.verbs()...)
	a.completeArgs(root)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	strictDefaults(root)
	argsAreUsage(root)
	return root
}

// strictDefaults has the verbs that cobra adds refuse what they do not know.
func strictDefaults(root *cobra.Command) {
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Args = func(_ *cobra.Command, args []string) error {
				at := root
				for _, name := range args {
					next := slices.IndexFunc(at.Commands(), func(c *cobra.Command) bool { return c.Name() == name || c.HasAlias(name) })
					if next < 0 {
						return knownVerb(at, []string{name})
					}
					at = at.Commands()[next]
				}
				return nil
			}
		case "completion":
			c.Args = func(_ *cobra.Command, args []string) error {
				if len(args) > 0 {
					return fmt.Errorf("there is no completion for %q: bash, fish, powershell and zsh have one", args[0])
				}
				return nil
			}
			c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
		}
	}
}

// knownVerb refuses what is no verb, with the one that was perhaps meant.
func knownVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("there is no command %q", args[0])
	cmd.SuggestionsMinimumDistance = 2
	if meant := cmd.SuggestionsFor(args[0]); len(meant) > 0 {
		err = fmt.Errorf("%w: did you mean %q?", err, meant[0])
	}
	return err
}

// verbs lists all commands.
func (a *App) verbs() []*cobra.Command {
	return append([]*cobra.Command{
		a.initCommand(), a.validateCommand(), a.runCommand(),
		a.installCommand(), a.uninstallCommand(),
		a.statusCommand(), a.historyCommand(), a.logsCommand(),
		a.nextCommand(), a.calendarCommand(), a.lanesCommand(), a.daemonCommand(),
		a.generateCommand(), a.rehearseCommand(),
		a.sessionsCommand(), a.resumeCommand(), a.importCommand(),
		a.doctorCommand(), a.exitcodesCommand(), a.versionCommand(),
		configTopic(),
	}, a.switchCommands()...)
}

// numberError is what the flag package passes on from strconv and time.
var numberError = regexp.MustCompile(`: (?:strconv\.\w+: parsing "[^"]*"|time): (.*)$`)

// argsAreUsage gives a wrong number of arguments the code for a bad command
// line, in c and all its subcommands.
func argsAreUsage(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				if !cmd.HasSubCommands() && strings.HasPrefix(err.Error(), "unknown command ") {
					err = fmt.Errorf("%s takes no argument; it got %q", cmd.CommandPath(), args[0])
				}
				return exitcodes.Errorf(exitcodes.Usage, "%w", err).WithHint("Try: " + cmd.CommandPath() + " --help")
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		argsAreUsage(sub)
	}
}

const rootLong = `agentd runs autonomous agents with nobody watching: on systemd timers, on
cron-style schedules, or once by hand. A workspace is a folder with an
agentd.toml; each of its jobs is a prompt with a schedule, a backend, a lane
and limits.

  agentd init ~/agents/bob      make a workspace
  agentd run hello              run a job now
  agentd install                write and start its systemd timers

Every failure has an exit code of its own: see agentd exitcodes.`
