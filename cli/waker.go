package cli

import (
	"context"
	"os"

	"agentd/history"
	"agentd/runner"
	"agentd/systemd"
)

// waker has systemd start the service of a pending run's job, with a timer that
// fires once. run.sh tells agentd that it is for a pending run; should somebody
// have gone on with that by then, nothing runs.
type waker struct{ app *App }

var _ runner.Waker = waker{}

// Wake sets the timer. Where the job is not installed it does nothing: the run
// goes on with the job's next firing. A disabled job's run waits for enable.
func (w waker) Wake(ctx context.Context, run *history.Run) error {
	conn, scope := w.connect(ctx, run)
	if conn == nil {
		return nil
	}
	defer conn.Close()
	target, err := w.app.targetIn(scope)
	if err != nil {
		return err
	}
	if !target.DisabledSince(jobName(run)).IsZero() {
		return conn.CancelOnce(ctx, systemd.OnceName(run.RunID))
	}
	return conn.StartOnce(ctx, systemd.OnceTimer{
		Name:        systemd.OnceName(run.RunID),
		At:          run.PendingResume.NotBefore,
		Unit:        jobName(run).Service(),
		Description: "agentd goes on with a run of " + run.Address(),
		Workspace:   run.Workspace,
	})
}

// Forget takes the timer back.
func (w waker) Forget(ctx context.Context, run *history.Run) error {
	conn, _ := w.connect(ctx, run)
	if conn == nil {
		return nil
	}
	defer conn.Close()
	return conn.CancelOnce(ctx, systemd.OnceName(run.RunID))
}

func jobName(run *history.Run) systemd.JobName {
	return systemd.JobName{Agent: run.Agent, Job: run.Job}
}

// connect returns the systemd that knows the job's service, or nil.
func (w waker) connect(ctx context.Context, run *history.Run) (*systemd.Conn, systemd.Scope) {
	scopes := []systemd.Scope{systemd.User}
	if os.Geteuid() == 0 {
		scopes = append(scopes, systemd.System)
	}
	for _, scope := range scopes {
		conn, err := systemd.Connect(ctx, scope, w.app.Getenv)
		if err != nil {
			continue
		}
		states, err := conn.States(ctx, jobName(run))
		if err == nil && states[0].Installed {
			return conn, scope
		}
		conn.Close()
	}
	return nil, systemd.User
}
