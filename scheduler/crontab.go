package scheduler

import (
	"errors"
	"strings"

	"agentd/exitcodes"
	"agentd/workspace"
)

// maxCrontab is the longest command that every cron takes, in bytes.
const maxCrontab = 998

// CrontabLines returns the lines that have cron run the job's script, for
// machines without systemd, none for a job that only runs by hand. What cron
// cannot express is an error with the code exitcodes.Config.
func CrontabLines(job *workspace.Job, script string) ([]string, error) {
	if !Scheduled(job) {
		return nil, nil
	}
	command, err := crontabCommand(script)
	if err != nil {
		return nil, exitcodes.Errorf(exitcodes.Config, "cron cannot run %s: %w", job.Address(), err)
	}
	var lines []string
	for _, s := range job.Schedules {
		when, ok := s.Cron()
		if !ok {
			return nil, exitcodes.Errorf(exitcodes.Config, "cron cannot run %s on its schedule: it has no such times as %q", job.Address(), s)
		}
		if !local(s) && when != "@reboot" {
			return nil, exitcodes.Errorf(exitcodes.Config, "cron cannot run %s on its schedule: it goes by the machine's time zone, not %s", job.Address(), s.Zone())
		}
		lines = append(lines, when+" "+command)
	}
	return lines, nil
}

// crontabCommand quotes twice: for sh, and for cron itself, which takes "%" for
// the end of the line and a backslash before it for a mere "%".
func crontabCommand(script string) (string, error) {
	quoted := "'" + strings.ReplaceAll(script, "'", `'\''`) + "'"
	command := "/bin/bash " + strings.ReplaceAll(quoted, "%", `\%`)
	switch {
	case strings.ContainsAny(script, "\n\r\x00"):
		return "", errors.New("the path of its run.sh is not one line")
	case strings.Contains(script, `\`): // some crons make one of two, others do not
		return "", errors.New("the path of its run.sh has a backslash in it")
	case len(command) > maxCrontab:
		return "", errors.New("the path of its run.sh is too long")
	}
	return command, nil
}
