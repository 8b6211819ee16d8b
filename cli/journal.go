package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"agentd/exitcodes"
	"agentd/history"
	"agentd/process"
	"agentd/scheduler"
	"agentd/systemd"
)

// jobJournal prints what the journal has of the job's service.
func (a *App) jobJournal(ctx context.Context, o logsOptions, name string) error {
	_, job, err := a.job(name)
	if err != nil {
		return err
	}
	unit, err := unitMatch(o.scope, scheduler.NameOf(job))
	if err != nil {
		return err
	}
	args := []string{unit}
	for _, f := range []struct{ name, value string }{{"--since", o.since}, {"--until", o.until}} {
		t, err := parseTime(f.name, f.value, a.Now())
		if err != nil {
			return err
		}
		if !t.IsZero() {
			args = append(args, f.name+"="+journalTime(t))
		}
	}
	if o.follow {
		args = append(args, "--follow")
	}
	return a.journal(ctx, o.lines, args...)
}

// runJournal prints what the journal has of the service that the run was in.
func (a *App) runJournal(ctx context.Context, o logsOptions, run *history.Run) error {
	name := systemd.JobName{Agent: run.Agent, Job: run.Job}
	unit, err := unitMatch(o.scope, name)
	if err != nil {
		return err
	}
	window := []string{unit, "--since=" + journalTime(run.StartedAt)}
	if run.EndedAt != nil {
		window = append(window, "--until="+journalTime(run.EndedAt.Add(time.Second)))
	}
	// What agentd said names the invocation, of which there is more: what systemd
	// and run.sh said before the run had begun.
	window = append(window, "--output-fields=_SYSTEMD_INVOCATION_ID", "SYSLOG_IDENTIFIER="+strings.TrimSuffix(name.Service(), ".service"))
	out, err := a.ask(ctx, append(journalctl("json"), window...)...)
	if err != nil {
		return journalError(err)
	}
	var entry struct {
		Invocation string `json:"_SYSTEMD_INVOCATION_ID"`
	}
	for line := range strings.Lines(out) {
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Invocation != "" {
			id := entry.Invocation
			return a.journal(ctx, o.lines, "_SYSTEMD_INVOCATION_ID="+id, "+", "INVOCATION_ID="+id, "+", "USER_INVOCATION_ID="+id)
		}
	}
	return exitcodes.Errorf(exitcodes.NoInput, "the journal has nothing of run %s: systemd did not start it, or you may not read it", run.RunID).
		WithHint("Its output: agentd logs --run " + run.RunID)
}

// journal prints what journalctl finds, only the last lines of it if lines is
// not negative, and as JSON if that is asked for.
func (a *App) journal(ctx context.Context, lines int, matches ...string) error {
	format := "short-iso"
	if a.json {
		format = "json"
	}
	if lines >= 0 {
		matches = append([]string{"--lines=" + itoa(lines)}, matches...)
	}
	var trouble bytes.Buffer
	result, err := process.Run(ctx, process.Spec{
		Argv: append(journalctl(format), matches...), Env: a.Environ(), Stdout: a.Stdout, Stderr: &trouble, Grace: time.Second,
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return journalError(err)
	case result.Status != 0:
		return journalError(fmt.Errorf("journalctl ended with status %d: %s", result.Status, oneLine(trouble.String())))
	}
	return nil
}

func journalctl(format string) []string {
	return []string{"journalctl", "--no-pager", "--quiet", "--no-hostname", "--output=" + format}
}

// unitMatch works for those who may read the machine's journal and for those
// who have one of their own.
func unitMatch(scopeText string, job systemd.JobName) (string, error) {
	scope, err := systemd.ParseScope(scopeText)
	if err != nil {
		return "", exitcodes.Errorf(exitcodes.Usage, "%w", err)
	}
	if scope == systemd.User {
		return "--user-unit=" + job.Service(), nil
	}
	return "--unit=" + job.Service(), nil
}

// journalTime is t for journalctl, to the microsecond.
func journalTime(t time.Time) string {
	return fmt.Sprintf("@%d.%06d", t.Unix(), t.Nanosecond()/1000)
}

func journalError(err error) error {
	hint := "Without the journal, agentd has what runs printed: agentd logs JOB"
	if _, missing := exec.LookPath("journalctl"); missing != nil {
		return exitcodes.Errorf(exitcodes.Unavailable, "cannot read the journal: journalctl is not installed").WithHint(hint)
	}
	return exitcodes.Errorf(exitcodes.Unavailable, "cannot read the journal: %w", err).WithHint(hint)
}
