package daemon

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"agentd/exitcodes"
)

// Config is what a daemon is made of.
type Config struct {
	Dirs     []string                 // the workspaces; nil: the registered ones
	Agents   string                   // the folder with the registry
	List     func() ([]string, error) // the registered workspaces' folders
	Book     Book
	Pending  func() ([]Firing, error) // runs that are to go on, with Due set
	Disabled func(Name) bool
	Argv     func(Firing) []string // the command line of a run
	Closer   []string              // the command line that closes the records of crashed runs
	Environ  []string
	MaxRuns  int
	Boot     string
	Stdout   io.Writer // the lines of runs
	Stderr   io.Writer // what the daemon has to say
}

// Daemon is a running daemon.
type Daemon struct {
	Config
	engine   *Engine
	pool     *Pool
	children *Children
	spaces   *workspaces
	lines    *Lines
	watcher  *watcher
	untidy   bool // there may be memory to give back
	idle     sync.WaitGroup
}

// Run runs a daemon until a signal ends it: SIGHUP has it read the workspaces
// again, SIGTERM and SIGINT end it in good order, and one more of those at
// once. The error has the code of the signal; or one of the given Dirs is not
// a workspace.
func Run(c Config, signals <-chan os.Signal) error {
	d := &Daemon{Config: c, lines: NewLines(c.Stderr)}
	children, err := NewChildren(d.argv, c.Environ, NewLines(c.Stdout))
	if err != nil {
		return fmt.Errorf("cannot start runs: %w", err)
	}
	d.children = children
	defer children.Close()
	watchdog, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		d.say("the watchdog is not served: %v", err)
	}
	d.pool = NewPool(children, c.MaxRuns, d.ready, d.ended, d.say)
	d.engine = NewEngine(Options{
		Wall: func() time.Time { return time.Now().Round(0) }, Book: c.Book, Dispatch: d.pool.Dispatch, Say: d.say,
		Pending: d.pending, Disabled: c.Disabled, Tick: pinger(watchdog), Recheck: min(recheck, orElse(watchdog/3, recheck)),
		Boot: c.Boot, First: os.Getpid() == 1,
	})
	d.watch()
	defer d.watcher.Close()
	if err := d.refresh(false); err != nil && c.Dirs != nil {
		d.pool.Close(context.Background())
		return err
	}
	if len(d.spaces.known) == 0 {
		d.say("no workspace is registered yet: agentd install, in a workspace, does it")
	}
	return d.serve(signals)
}

func orElse(d, zero time.Duration) time.Duration {
	if d == 0 {
		return zero
	}
	return d
}

// pinger tells the watchdog that the engine goes on.
func pinger(watchdog time.Duration) func() {
	if watchdog == 0 {
		return func() {}
	}
	var last time.Time
	return func() {
		if now := time.Now(); now.Sub(last) > watchdog/4 {
			last = now
			notify(daemon.SdNotifyWatchdog)
		}
	}
}

// notify tells the service manager, if there is one.
func notify(state string) { _, _ = daemon.SdNotify(false, state) }

func (d *Daemon) watch() {
	agents, list := d.Agents, d.List
	if d.Dirs != nil {
		agents, list = "", func() ([]string, error) { return d.Dirs, nil }
	}
	d.watcher = newWatcher(agents, d.say)
	d.watcher.Agents()
	d.spaces = &workspaces{
		list: list, engine: d.engine, watch: d.watcher.Add, forget: d.watcher.Remove, say: d.say, known: map[string]*known{},
	}
}

// serve is the time between the start and the end.
func (d *Daemon) serve(signals <-chan os.Signal) error {
	ctx, stop := context.WithCancel(context.Background())
	d.idle.Go(func() { d.engine.Run(ctx) })
	d.closeCrashed()
	d.status("READY=1\n")
	sig := d.loop(signals)
	stop()
	d.idle.Wait()
	d.stop(sig, signals)
	code := exitcodes.Terminated
	if sig == syscall.SIGINT {
		code = exitcodes.Cancelled
	}
	return exitcodes.Errorf(code, "stopped by %s", name(sig))
}

// loop keeps the jobs up to date until a signal ends it.
func (d *Daemon) loop(signals <-chan os.Signal) os.Signal {
	polled := time.NewTicker(poll)
	defer polled.Stop()
	for {
		select {
		case sig := <-signals:
			if sig != syscall.SIGHUP {
				return sig
			}
			d.reload(true)
		case <-d.watcher.Changed:
			d.reload(false)
		case <-polled.C:
			d.watcher.Agents()
			_ = d.spaces.refresh(false) // it has been said
			d.engine.LookAgain()
			if d.untidy {
				d.untidy = false
				debug.FreeOSMemory()
			}
		}
	}
}

func (d *Daemon) reload(all bool) {
	if all {
		notify("RELOADING=1\n" + daemon.SdNotifyMonotonicUsec())
	}
	d.watcher.Agents()
	_ = d.refresh(all) // it has been said
	if all {
		d.say("read again: %s", d.summary())
		d.engine.LookAgain()
	}
	d.status("READY=1\n")
}

// refresh reads the workspaces that have changed, or all, and gives the memory
// back: reading takes much more than is kept.
func (d *Daemon) refresh(all bool) error {
	usual := debug.SetGCPercent(20)
	defer func() {
		debug.SetGCPercent(usual)
		debug.FreeOSMemory()
		d.untidy = true // the book is still written
	}()
	return d.spaces.refresh(all)
}

func (d *Daemon) status(also string) { notify(also + "STATUS=" + d.summary()) }

func (d *Daemon) summary() string {
	n, next := d.engine.Jobs()
	text := count(n)
	if !next.IsZero() {
		text += ", the next fires at " + next.Format("Mon 2 Jan 15:04:05 MST")
	}
	return text
}

func count(n int) string {
	if n == 1 {
		return "1 job"
	}
	return fmt.Sprintf("%d jobs", n)
}

// stop ends the runs in good order; another signal ends them at once.
func (d *Daemon) stop(sig os.Signal, signals <-chan os.Signal) {
	notify(daemon.SdNotifyStopping)
	if n := d.pool.Running(); n > 0 {
		d.say("%s: runs that are to end: %d; again: at once", name(sig), n)
	}
	ctx, now := context.WithCancel(context.Background())
	closed := make(chan struct{})
	d.idle.Go(func() {
		defer close(closed)
		d.pool.Close(ctx)
	})
	for {
		select {
		case <-closed:
			now()
			d.idle.Wait()
			return
		case sig := <-signals:
			if sig != syscall.SIGHUP {
				now()
			}
		}
	}
}

func name(sig os.Signal) string {
	if sig == syscall.SIGINT {
		return "SIGINT"
	}
	return "SIGTERM"
}

// say writes what a person should know, in one piece.
func (d *Daemon) say(format string, args ...any) {
	fmt.Fprintf(d.lines, "agentd: "+format+"\n", args...)
}

// ready reports whether a firing may run: the job may have been disabled.
func (d *Daemon) ready(f Firing) bool {
	d.engine.Settle(f.Name)
	return !d.Disabled(f.Name)
}

// ended is called after each run: it may be to go on later, and one that died
// has left its record open.
func (d *Daemon) ended(code exitcodes.Code) {
	if code > 128 && code != exitcodes.Cancelled && code != exitcodes.Terminated {
		d.closeCrashed()
		return
	}
	d.engine.LookAgain()
}

// closeCrashed closes the records of runs whose agentd died, some of which are
// to go on.
func (d *Daemon) closeCrashed() {
	_, err := d.children.Start(Firing{Trigger: crashed}, func(exitcodes.Code) { d.engine.LookAgain() })
	if err != nil {
		d.say("cannot look for runs that have crashed: %v", err)
	}
}

func (d *Daemon) argv(f Firing) []string {
	if f.Trigger == crashed {
		return d.Closer
	}
	return d.Argv(f)
}

// pending returns the runs that are to go on, except those of jobs that are
// disabled.
func (d *Daemon) pending() []Firing {
	list, err := d.Pending()
	if err != nil {
		d.say("%v", err)
	}
	kept := list[:0]
	for _, f := range list {
		if !d.Disabled(f.Name) {
			kept = append(kept, f)
		}
	}
	return kept
}
