package systemd

import (
	"testing"

	"pgregory.net/rapid"
)

func TestNames(t *testing.T) {
	for _, c := range []struct{ agent, job, service string }{
		{"bob", "triage", "agentd-bob-triage.service"},
		{"my-bot", "nightly-build", "agentd-my--bot-nightly-build.service"},
		{"my", "bot-nightly", "agentd-my-bot-nightly.service"},
		{"a-", "b", "agentd-a---b.service"},
		{"my-bot", "", "agentd--arm-my-bot.service"},
		{Daemon.Agent, Daemon.Job, "agentd-daemon.service"},
	} {
		if got := (JobName{c.agent, c.job}).Service(); got != c.service {
			t.Errorf("%s/%s: %s, want %s", c.agent, c.job, got, c.service)
		}
	}
	if n, ok := ParseName("agentd-daemon.service"); !ok || n != Daemon {
		t.Errorf("the daemon's unit is that of %v, %v", n, ok)
	}
	for _, unit := range []string{"bob.service", "agentd-bob.service", "agentd-bob-x.socket", "agentd--x.timer", "agentd-bob-.timer", "agentd-daemon.timer", "agentd--arm-.service", "agentd--arm-bob.timer", "agentd--armbob.service"} {
		if n, ok := ParseName(unit); ok {
			t.Errorf("ParseName(%q) = %v", unit, n)
		}
	}
}

// Every job has units of its own.
func TestNamesAreInjective(t *testing.T) {
	slug := rapid.StringMatching(`[a-z0-9][a-z0-9_-]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		n := JobName{slug.Draw(t, "agent"), slug.Draw(t, "job")}
		self := JobName{Agent: n.Agent}
		if back, ok := ParseName(self.Service()); !ok || back != self {
			t.Fatalf("%s is %v", self.Service(), back)
		}
		for _, unit := range []string{n.Service(), n.Timer()} {
			if back, ok := ParseName(unit); !ok || back != n {
				t.Fatalf("%s is %v, not %v", unit, back, n)
			}
		}
	})
}
