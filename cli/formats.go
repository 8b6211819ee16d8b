package cli

import (
	"fmt"
	"path/filepath"
	"strings"

	"agentd/exitcodes"
	"agentd/scheduler"
	"agentd/workspace"
)

// The formats of install besides systemd's, which are shown only.
const (
	formatSystemd = "systemd"
	formatLaunchd = "launchd"
	formatCrontab = "crontab"
)

// rendered is the documented shape of `agentd install --format ... --json`.
type rendered struct {
	Agent string `json:"agent"`
	Job   string `json:"job"`
	File  string `json:"file,omitempty"`  // where it goes
	Text  string `json:"text,omitempty"`  // "" for a job that runs by hand only
	Error string `json:"error,omitempty"` // why the format has no such schedule
	Note  string `json:"note,omitempty"`  // what of the job the format cannot say
}

// showFormat prints what another scheduler needs to run the jobs, and changes
// nothing. Jobs that it cannot run are named, and make it fail.
func (a *App) showFormat(ws *workspace.Workspace, target scheduler.Target, format string, names []string) error {
	jobs, err := scheduler.Selected(ws, names)
	if err != nil {
		return err
	}
	var list []rendered
	failed := 0
	for _, job := range jobs {
		r := rendered{Agent: job.Agent, Job: job.Name}
		if err := r.render(job, target, format); err != nil {
			r.Error = oneLine(err.Error())
			failed++
		} else if job.Jitter > 0 && r.Text != "" {
			r.Note = fmt.Sprintf("%s has no jitter: the %s of %s/%s is left out", format, workspace.FormatDuration(job.Jitter), job.Agent, job.Name)
		}
		list = append(list, r)
	}
	if a.json {
		err = a.printJSON(list)
	} else {
		a.printRendered(list, format)
	}
	if err == nil && failed > 0 {
		err = reported{exitcodes.Errorf(exitcodes.Config, "%s cannot run %s", format, count(failed, "job"))}
	}
	return err
}

func (r *rendered) render(job *workspace.Job, target scheduler.Target, format string) error {
	script := target.Script(scheduler.NameOf(job))
	if format == formatCrontab {
		lines, err := scheduler.CrontabLines(job, script)
		r.Text = strings.Join(lines, "\n")
		return err
	}
	text, err := scheduler.Launchd(job, script, filepath.Join(filepath.Dir(script), "launchd.log"))
	r.Text, r.File = strings.TrimSuffix(string(text), "\n"), "~/Library/LaunchAgents/"+scheduler.LaunchdLabel(scheduler.NameOf(job))+".plist"
	return err
}

// printRendered keeps stdout to what another scheduler reads.
func (a *App) printRendered(list []rendered, format string) {
	for _, r := range list {
		switch {
		case r.Error != "":
			fmt.Fprintf(a.Stderr, "agentd: %s\n", r.Error)
		case r.Text != "":
			a.printf("%s\n", r.Text)
		}
		if r.Note != "" {
			fmt.Fprintf(a.Stderr, "%s\n", r.Note)
		}
		if r.Error == "" && r.File != "" {
			fmt.Fprintf(a.Stderr, "%s/%s  save it as %s, then: launchctl bootstrap gui/$UID %s\n", r.Agent, r.Job, r.File, r.File)
		}
	}
	if format == formatLaunchd {
		fmt.Fprintf(a.Stderr, "Never tried on a macOS, which agentd itself does not run on yet.\n")
	} else {
		fmt.Fprintf(a.Stderr, "The scripts are written by: agentd install\n")
	}
}

func checkFormat(format string) error {
	switch format {
	case formatSystemd, formatLaunchd, formatCrontab:
		return nil
	}
	return exitcodes.Errorf(exitcodes.Usage, "there is no format %q: it is %s, %s or %s", format, formatSystemd, formatLaunchd, formatCrontab)
}
