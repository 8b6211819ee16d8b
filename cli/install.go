package cli

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"agentd/exitcodes"
	"agentd/scheduler"
	"agentd/scheduler/expr"
	"agentd/systemd"
	"agentd/workspace"
)

type installOptions struct {
	scope  string
	user   string
	dryRun bool
	force  bool
	format string
	daemon bool
}

func (a *App) installCommand() *cobra.Command {
	var o installOptions
	cmd := &cobra.Command{
		Use:   "install [JOB...]",
		Short: "Write the run scripts and systemd units of the jobs, and start the timers",
		Long: `Install makes run.sh, a service and a timer for each job (or for those named),
and has systemd enable and start the timers. Run it again after each change of
agentd.toml: it writes only what differs, and takes away the units of jobs that
are gone. It touches only files that carry its own mark.

Drop-ins that the workspace has in its folder systemd go along: service.conf and
timer.conf for the units of all jobs, JOB.service.conf and JOB.timer.conf for one.

Without systemd it writes the same files and says how to start the jobs: from
cron, or with agentd daemon.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.install(cmd.Context(), o, args)
		},
	}
	f := cmd.Flags()
	scopeFlag(cmd, &o.scope)
	f.StringVar(&o.user, "user", "", "with --scope system: run the jobs as `USER` (default: the workspace's owner)")
	f.BoolVar(&o.dryRun, "dry-run", false, "show what would change, and change nothing")
	f.BoolVar(&o.force, "force", false, "also overwrite files of agentd that were edited by hand")
	f.BoolVar(&o.daemon, "daemon", false, "no timers: a service that runs agentd daemon on all workspaces so installed")
	f.StringVar(&o.format, "format", formatSystemd, "\"launchd\" or \"crontab\": only print what that `SCHEDULER` needs")
	return cmd
}

func scopeFlag(cmd *cobra.Command, scope *string) {
	cmd.Flags().StringVar(scope, "scope", "user", "whose systemd: `user or system`")
}

// target returns where the files of the scope go, and a connection to its
// systemd. Where no systemd runs the connection is nil and the reason is given.
func (a *App) target(ctx context.Context, scopeText string) (scheduler.Target, *systemd.Conn, error, error) {
	none := scheduler.Target{}
	scope, err := systemd.ParseScope(scopeText)
	if err != nil {
		return none, nil, nil, exitcodes.Errorf(exitcodes.Usage, "%w", err)
	}
	target, err := a.targetIn(scope)
	if err != nil {
		return none, nil, nil, err
	}
	conn, err := systemd.Connect(ctx, scope, a.Getenv)
	if err != nil {
		if _, absent := errors.AsType[*systemd.NoManager](err); absent {
			return target, nil, err, nil
		}
		return none, nil, nil, err
	}
	if target.Version, err = conn.Version(ctx); err != nil {
		conn.Close()
		return none, nil, nil, err
	}
	return target, conn, nil, nil
}

// targetIn is where the files of a scope go.
func (a *App) targetIn(scope systemd.Scope) (scheduler.Target, error) {
	folders, err := a.folders()
	if err != nil {
		return scheduler.Target{}, err
	}
	program, err := os.Executable()
	if err != nil {
		return scheduler.Target{}, exitcodes.Errorf(exitcodes.Failure, "cannot tell where agentd itself is: %w", err)
	}
	return scheduler.NewTarget(scope, folders, program, a.Getenv)
}

func (a *App) install(ctx context.Context, o installOptions, jobs []string) error {
	if err := checkFormat(o.format); err != nil {
		return err
	}
	if o.daemon && (len(jobs) > 0 || o.format != formatSystemd) {
		return exitcodes.Errorf(exitcodes.Usage, "--daemon is for all jobs of the workspace, and for systemd only")
	}
	ws, err := a.workspace()
	if err != nil {
		return err
	}
	target, conn, absent, err := a.target(ctx, o.scope)
	if err != nil {
		return err
	}
	if conn != nil {
		defer conn.Close()
	}
	if o.format != formatSystemd && !o.daemon {
		return a.showFormat(ws, target, o.format, jobs)
	}
	if target.User, err = a.systemUser(target.Scope, o.user, ws.Dir); err != nil {
		return err
	}
	if o.daemon {
		return a.installDaemon(ctx, o, ws, target, conn, absent)
	}
	plan, err := scheduler.NewPlan(ws, target, scheduler.Options{Jobs: jobs, Force: o.force})
	if err != nil {
		return err
	}
	refused := cmp.Or(a.ownName(ws.Agent, ws.Dir), plan.Blocked())
	if o.dryRun {
		return errors.Join(a.printPlan(plan, absent, planned(refused)), refused)
	}
	if refused != nil {
		return refused
	}
	if err := a.register(ws); err != nil {
		return err
	}
	if err := apply(ctx, plan, conn); err != nil {
		return err
	}
	return a.printPlan(plan, absent, done)
}

// register makes the workspace known to status, doctor and the daemon.
func (a *App) register(ws *workspace.Workspace) error {
	folders, err := a.folders()
	if err != nil {
		return err
	}
	return folders.Register(ws.Agent, ws.Dir)
}

// ownName refuses the agent's name where it stands for another workspace, whose
// units would be meant.
func (a *App) ownName(agent, dir string) error {
	folders, err := a.folders()
	if err != nil {
		return err
	}
	return folders.CheckOwner(agent, dir)
}

// apply keeps a missing connection a missing manager.
func apply(ctx context.Context, plan *scheduler.Plan, conn *systemd.Conn) error {
	var m scheduler.Manager
	if conn != nil {
		m = conn
	}
	_, err := plan.Apply(ctx, m)
	return err
}

// systemUser returns who runs the jobs of a system unit. In the user scope it
// is whoever installs; root for another would make that one's agent root.
func (a *App) systemUser(scope systemd.Scope, name, dir string) (string, error) {
	if scope == systemd.System {
		if name != "" {
			return name, nil
		}
		return ownerOf(dir)
	}
	switch owner, err := ownerOf(dir); {
	case name != "" && os.Geteuid() != 0:
		return "", exitcodes.Errorf(exitcodes.Usage, "--user goes with --scope system: a user's systemd runs everything as that user")
	case name != "":
		return "", asUser(exitcodes.Errorf(exitcodes.Usage, "root's own systemd cannot run jobs as %s", name), name, dir)
	case os.Geteuid() == 0 && err == nil && owner != "":
		return "", asUser(exitcodes.Errorf(exitcodes.NoPermission, "%s belongs to %s, and root's own systemd would run its jobs as root", dir, owner), owner, dir)
	}
	return "", nil
}

// asUser tells root how to install for somebody else.
func asUser(err *exitcodes.Error, name, dir string) error {
	command := "agentd -C " + shellWord(dir) + " install"
	return err.WithHint("as " + name + ": runuser -l " + shellWord(name) + " -c " + shellWord(command) + "; from the machine's systemd: " + command + " --scope system --user " + shellWord(name))
}

// stage is how far a plan has come when it is shown.
type stage int

const (
	refusal stage = iota // a dry run of what would be refused
	dryRun               // a dry run of what would be done
	done
)

// planned is the stage of a dry run.
func planned(refused error) stage {
	if refused != nil {
		return refusal
	}
	return dryRun
}

// printPlan says what install did or would do.
func (a *App) printPlan(p *scheduler.Plan, absent error, at stage) error {
	if a.json {
		return a.printJSON(p.Jobs)
	}
	for _, j := range p.Jobs {
		a.printJobChange(j, at != done)
	}
	added, changed, removed := p.Count()
	if at == done {
		a.printf("%d added, %d changed, %d removed.\n", added, changed, removed)
	} else {
		a.printf("%d to add, %d to change, %d to remove.\n", added, changed, removed)
	}
	if at == refusal {
		return nil
	}
	if at == dryRun && added+changed+removed > 0 {
		command := "agentd install"
		if p.Agent == systemd.Daemon.Agent {
			command += " --daemon"
		}
		a.printf("To do it: %s\n", command)
	}
	if absent != nil {
		a.printWithoutSystemd(p, absent)
		return nil
	}
	if p.Target.Scope == systemd.System && p.Target.OwnState() && added+changed > 0 {
		a.printf("These jobs run as root. To run them as somebody else: --user USER\n")
	}
	if on, name, err := systemd.Linger(); err == nil && !on && p.Target.Scope == systemd.User {
		a.printf("Linger is off: jobs stop when you log out. To keep them running: loginctl enable-linger %s\n", name)
	}
	return nil
}

func (a *App) printJobChange(j scheduler.JobChange, dry bool) {
	self := j.Name.Job == "" && !slices.ContainsFunc(j.Files, func(f scheduler.FileChange) bool { return f.Action == scheduler.Remove })
	switch {
	case j.Name == systemd.Daemon && self:
		a.printf("%s  runs the jobs of all workspaces that are installed for it\n", j.Name)
		if j.Unchanged() {
			a.printf("  unchanged\n")
		}
	case self && j.Unchanged():
		return
	case self:
		a.printf("%s  lets runs that wait for a limit go on after a boot\n", j.Name)
	case j.Job == nil:
		a.printf("%s  no longer in %s\n", j.Name, workspace.FileName)
	default:
		a.printf("%s  %s\n", j.Name, a.whenNext(j.Job))
	}
	if j.Disabled {
		a.printf("  stays disabled; to undo that: agentd enable %s\n", j.Name.Job)
	}
	if j.Unchanged() && j.Job != nil {
		a.printf("  unchanged\n")
		return
	}
	signs := map[scheduler.Action]string{scheduler.Add: "+", scheduler.Change: "~", scheduler.Remove: "-", scheduler.Refuse: "!", scheduler.Keep: " "}
	for _, f := range j.Files {
		if f.Action == scheduler.Keep {
			continue
		}
		a.printf("  %s %s\n", signs[f.Action], a.shown(f.Path))
		if f.Reason != "" {
			a.printf("    %s\n", f.Reason)
		}
		if dry {
			a.printf("%s", f.Diff)
		}
	}
	if j.Job == nil || !scheduler.Scheduled(j.Job) {
		return
	}
	for _, s := range j.Job.Schedules {
		for _, w := range s.Warnings(a.Now()) {
			a.printf("  warning: %s\n", w)
		}
	}
}

// whenNext is the job's schedule and its next time.
func (a *App) whenNext(job *workspace.Job) string {
	switch {
	case len(job.Schedules) == 0:
		return "no schedule: runs by hand"
	case !job.Enabled:
		return "switched off (enabled = false): runs by hand"
	}
	s := ""
	for _, text := range job.ScheduleText {
		s += text + "  "
	}
	now := a.Now()
	next := expr.Earliest(now, job.Schedules)
	if next.IsZero() {
		return s + "never again"
	}
	return s + "next " + clock(next, now) + " (" + distance(next, now) + ")"
}

// printWithoutSystemd says why nothing starts the jobs, and what can.
func (a *App) printWithoutSystemd(p *scheduler.Plan, absent error) {
	a.printf("No timer was started: %s\n", oneLine(absent.Error()))
	if hint := exitcodes.HintOf(absent); hint != "" {
		a.printf("%s\n", hint)
	}
	for _, j := range p.Jobs {
		if j.Job == nil || !scheduler.Scheduled(j.Job) {
			continue
		}
		script := p.Target.Script(j.Name)
		lines, err := scheduler.CrontabLines(j.Job, script)
		for _, line := range lines {
			a.printf("From cron (crontab -e): %s\n", line)
		}
		if err != nil {
			a.printf("By hand: %s   (%s)\n", shellWord(script), oneLine(err.Error()))
		}
	}
}
