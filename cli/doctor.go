package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentd/doctor"
	"agentd/exitcodes"
	"agentd/process"
	"agentd/scheduler/daemon"
)

type doctorOptions struct {
	scope string
	fix   bool
}

func (a *App) doctorCommand() *cobra.Command {
	var o doctorOptions
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what makes unattended runs fail, and mend it with --fix",
		Long: `Doctor looks at the machine (systemd, linger, clock, disk) and at every agent that
is installed: its programs on the PATH of timers, its keys, its units and
timers, its schedules, its lanes. It changes nothing, but with --fix what
needs no decision of yours. It ends with 78 if something fails.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.doctor(cmd.Context(), o)
		},
	}
	scopeFlag(cmd, &o.scope)
	cmd.Flags().BoolVar(&o.fix, "fix", false, "mend what needs no decision")
	return cmd
}

func (a *App) doctor(ctx context.Context, o doctorOptions) error {
	target, conn, absent, err := a.target(ctx, o.scope)
	if err != nil {
		return err
	}
	folders, err := a.folders()
	if err != nil {
		return err
	}
	p := doctor.Patient{
		Target: target, Folders: folders, Absent: absent, Getenv: a.Getenv, Now: a.Now(),
		LoginPath: a.loginPath, EnableLinger: a.enableLinger, UserOf: ownerOf,
		Daemon: daemon.Held(folders.State),
	}
	if conn != nil {
		defer conn.Close()
		p.Manager = conn
	}
	list := p.Examine(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if o.fix {
		a.mend(ctx, list)
	}
	if a.json {
		if err := a.printJSON(list); err != nil {
			return err
		}
	} else {
		a.printFindings(list)
	}
	if err := doctor.Verdict(list); err != nil {
		return reported{err}
	}
	return nil
}

// mend repairs what it can. What fails stays a finding, and says why.
func (a *App) mend(ctx context.Context, list []doctor.Finding) {
	for i := range list {
		if err := list[i].Repair(ctx); err != nil {
			list[i].Text += "; mending it failed: " + oneLine(err.Error())
		}
	}
}

func (a *App) printFindings(list []doctor.Finding) {
	mendable := 0
	for _, f := range list {
		level := string(f.Level)
		if f.Fixed {
			level = "mended"
		}
		a.printf("%-6s  %s\n", level, oneLine(f.Text))
		if f.Level == doctor.OK || f.Fixed {
			continue
		}
		if f.Fix != "" {
			a.printf("        fix: %s\n", f.Fix)
		}
		if f.Repairable() {
			mendable++
		}
	}
	if mendable > 0 {
		a.printf("%s can be mended by: agentd doctor --fix\n", count(mendable, "finding"))
	}
}

// helperLimit bounds a program that doctor asks something.
const helperLimit = 10 * time.Second

// loginPath asks the login shell for its PATH. A profile may print as well, so
// the answer is marked.
func (a *App) loginPath(ctx context.Context) (string, error) {
	shell := cmp.Or(a.Getenv("SHELL"), "/bin/sh")
	out, err := a.ask(ctx, shell, "-l", "-c", `printf '\nagentd PATH=%s\n' "$PATH"`)
	if err != nil {
		return "", err
	}
	_, path, ok := strings.Cut(out, "\nagentd PATH=")
	if !ok {
		return "", fmt.Errorf("cannot make out the PATH of %s", shell)
	}
	path, _, _ = strings.Cut(path, "\n")
	return path, nil
}

func (a *App) enableLinger(ctx context.Context) error {
	_, err := a.ask(ctx, "loginctl", "enable-linger")
	return err
}

// ask runs a program and returns what it printed.
func (a *App) ask(ctx context.Context, argv ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, helperLimit)
	defer cancel()
	var out, trouble bytes.Buffer
	result, err := process.Run(ctx, process.Spec{
		Argv: argv, Env: a.Environ(), Stdout: &out, Stderr: &trouble, Grace: time.Second,
	})
	if err != nil {
		return "", err
	}
	if result.Status != 0 || result.Stopped {
		return "", exitcodes.Errorf(exitcodes.Failure, "%s ended with status %d: %s", argv[0], result.Status, oneLine(trouble.String()))
	}
	return out.String(), nil
}
