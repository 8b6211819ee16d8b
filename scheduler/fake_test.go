package scheduler

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentd/systemd"
)

// fakeManager is a systemd that reads the unit folder like the real one, and
// can fail at any call.
type fakeManager struct {
	dir     string
	enabled map[string]bool
	active  map[string]bool
	calls   []string
	failAt  int // fail the n-th changing call, counting from 1
	onces   []systemd.Once
	refused map[string]string // why it does not take a unit
}

func newFake(target Target) *fakeManager {
	return &fakeManager{dir: target.UnitDir, enabled: map[string]bool{}, active: map[string]bool{}}
}

var errFake = errors.New("the fake systemd fails")

func (m *fakeManager) step(call string, args ...string) error {
	m.calls = append(m.calls, strings.Join(append([]string{call}, args...), " "))
	if len(m.calls) == m.failAt {
		return errFake
	}
	return nil
}

func (m *fakeManager) UnitPath(context.Context) ([]string, error) {
	return []string{"/etc/systemd/user", m.dir}, nil
}

func (m *fakeManager) States(_ context.Context, jobs ...systemd.JobName) ([]systemd.JobStatus, error) {
	var list []systemd.JobStatus
	for _, j := range jobs {
		_, err := os.Stat(filepath.Join(m.dir, j.Service()))
		list = append(list, systemd.JobStatus{
			Name: j, Installed: err == nil, Refused: m.refused[j.Service()], Enabled: m.enabled[j.Timer()] || j.Job == "" && m.enabled[j.Service()], Waiting: m.active[j.Timer()], Running: m.active[j.Service()],
		})
	}
	return list, nil
}

func (m *fakeManager) Reload(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return m.step("reload")
}

func (m *fakeManager) Enable(_ context.Context, units ...string) error {
	for _, u := range units {
		if _, err := os.Stat(filepath.Join(m.dir, u)); err != nil {
			return err
		}
		m.enabled[u] = true
	}
	return m.step("enable", units...)
}

func (m *fakeManager) Disable(_ context.Context, units ...string) error {
	for _, u := range units {
		delete(m.enabled, u)
	}
	return m.step("disable", units...)
}

func (m *fakeManager) Start(_ context.Context, unit string) error {
	if _, err := os.Stat(filepath.Join(m.dir, unit)); err != nil {
		return err
	}
	m.active[unit] = true
	return m.step("start", unit)
}

func (m *fakeManager) Stop(_ context.Context, unit string) error {
	delete(m.active, unit)
	return m.step("stop", unit)
}

func (m *fakeManager) Trigger(ctx context.Context, unit string) error { return m.Start(ctx, unit) }

func (m *fakeManager) ResetFailed(context.Context, string) error { return nil }

func (m *fakeManager) Onces() ([]systemd.Once, error) { return m.onces, nil }

func (m *fakeManager) CancelOnce(_ context.Context, name string) error {
	m.onces = slices.DeleteFunc(slices.Clone(m.onces), func(o systemd.Once) bool { return o.Name == name })
	return nil
}
