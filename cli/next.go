package cli

import (
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentd/exitcodes"
	"agentd/scheduler/expr"
	"agentd/workspace"
)

type nextOptions struct {
	count    int
	from     string
	timezone string
}

func (a *App) nextCommand() *cobra.Command {
	var o nextOptions
	cmd := &cobra.Command{
		Use:   "next EXPR|JOB",
		Short: "Show the next times of a schedule or a job, and its timer lines",
		Example: `  agentd next '*/30 9-17 * * 1-5' --timezone Europe/Stockholm
  agentd next 'OnCalendar: Mon..Fri 09:00'
  agentd next triage --count 3`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.next(args[0], o)
		},
	}
	f := cmd.Flags()
	f.IntVarP(&o.count, "count", "n", 5, "how many times to show, 1 to 1000")
	f.StringVar(&o.from, "from", "", "start after this `TIME` (RFC 3339) instead of now")
	f.StringVar(&o.timezone, "timezone", "", "read the schedule in `ZONE` (default: the machine's, or the job's)")
	return cmd
}

// nextAnswer is the documented shape of `agentd next --json`.
type nextAnswer struct {
	Schedule   string            `json:"schedule"`
	OnCalendar []string          `json:"on_calendar"`
	Timer      map[string]string `json:"timer"`
	Next       []string          `json:"next"`
	Warnings   []string          `json:"warnings"`
}

func (a *App) next(arg string, o nextOptions) error {
	if o.count < 1 || o.count > 1000 {
		return exitcodes.Errorf(exitcodes.Usage, "--count %d is not between 1 and 1000", o.count)
	}
	from, err := a.fromTime(o.from)
	if err != nil {
		return err
	}
	schedules, text, err := a.schedules(arg, o.timezone)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(answerNext(schedules, text, from, o.count))
	}
	for _, s := range schedules {
		a.printf("%s, %s\n", s.Describe(), s.Location())
	}
	a.printTimes(schedules, from, o.count)
	for _, s := range schedules {
		for _, line := range s.OnCalendar() {
			a.printf("OnCalendar=%s\n", line)
		}
		for _, setting := range s.Timer() {
			a.printf("%s=%s\n", setting.Key, setting.Value)
		}
	}
	for _, s := range schedules {
		for _, w := range s.Warnings(from) {
			a.printf("warning: %s\n", w)
		}
	}
	return nil
}

// fromTime reads the value of --from, which is now by default.
func (a *App) fromTime(text string) (time.Time, error) {
	if text == "" {
		return a.Now(), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, exitcodes.Errorf(exitcodes.Usage, "--from %q is not a time like 2026-12-01T09:00:00Z", text)
	}
	return t, nil
}

// schedules reads arg as a job's name where it can be one, else as a schedule.
func (a *App) schedules(arg, zone string) (list []*expr.Schedule, text string, err error) {
	_, slug, qualified := strings.Cut(arg, "/")
	if !qualified {
		slug = arg
	}
	if workspace.CheckSlug(slug) == nil {
		_, job, err := a.job(arg)
		if err != nil {
			return nil, "", err
		}
		if len(job.Schedules) == 0 {
			return nil, "", exitcodes.Errorf(exitcodes.NoInput, "job %s has no schedule: it only runs by hand", job.Address())
		}
		text := strings.Join(job.ScheduleText, "; ")
		if zone == "" {
			return job.Schedules, text, nil
		}
		for _, t := range job.ScheduleText {
			s, err := expr.Parse(t, zone)
			if err != nil {
				return nil, "", usageOfSchedule(err)
			}
			list = append(list, s)
		}
		return list, text, nil
	}
	s, err := expr.Parse(arg, zone)
	if err != nil {
		return nil, "", usageOfSchedule(err)
	}
	return []*expr.Schedule{s}, arg, nil
}

// usageOfSchedule is a schedule's error as one of the command line, with the
// place marked below it.
func usageOfSchedule(err error) error {
	e := exitcodes.Errorf(exitcodes.Usage, "%w", err)
	if syntax, ok := errors.AsType[*expr.SyntaxError](err); ok && syntax.Column > 0 {
		e.Hint = "  " + oneLine(syntax.Text) + "\n  " + strings.Repeat(" ", syntax.Column-1) + "^"
	}
	return e
}

func answerNext(schedules []*expr.Schedule, text string, from time.Time, n int) nextAnswer {
	answer := nextAnswer{Schedule: text, OnCalendar: []string{}, Timer: map[string]string{}, Next: []string{}, Warnings: []string{}}
	for _, s := range schedules {
		answer.OnCalendar = append(answer.OnCalendar, s.OnCalendar()...)
		for _, setting := range s.Timer() {
			answer.Timer[setting.Key] = setting.Value
		}
		answer.Warnings = append(answer.Warnings, s.Warnings(from)...)
	}
	for _, t := range nextTimes(schedules, from, n) {
		answer.Next = append(answer.Next, t.Format(time.RFC3339))
	}
	return answer
}

func nextTimes(schedules []*expr.Schedule, from time.Time, n int) []time.Time {
	var times []time.Time
	for range n {
		from = expr.Earliest(from, schedules)
		if from.IsZero() {
			break
		}
		times = append(times, from)
	}
	return times
}

// printTimes prints one line a day.
func (a *App) printTimes(schedules []*expr.Schedule, from time.Time, n int) {
	day := ""
	for _, t := range nextTimes(schedules, from, n) {
		if d := t.Format("Mon 2 Jan 2006"); d != day {
			if day != "" {
				a.printf("\n")
			}
			day = d
			a.printf("%s %s", d, wallTime(t))
			continue
		}
		a.printf(", %s", wallTime(t))
	}
	a.printf("\n")
}

// wallTime is the time of day, with its seconds where there are any.
func wallTime(t time.Time) string {
	if t.Second() != 0 {
		return t.Format(time.TimeOnly)
	}
	return t.Format("15:04")
}
