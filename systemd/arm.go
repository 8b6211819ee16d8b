package systemd

import (
	"fmt"
	"time"
)

// Arm is what an agent's own service depends on. It runs once when the
// machine or the session starts, and sets the timers of pending runs again,
// which a boot takes away.
type Arm struct {
	Agent     string
	Workspace string   // absolute
	Agentd    string   // absolute path of the program
	Env       []string // NAME=VALUE
	Scope     Scope
}

// armLimit bounds it: it asks systemd for a timer a pending run.
const armLimit = 5 * time.Minute

// Bytes returns the text of the service unit.
func (a Arm) Bytes() ([]byte, error) {
	name := JobName{Agent: a.Agent}
	command, err := execStart(a.Agentd, "resume", "--arm", "--agent", a.Agent)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	service := Section{Name: "Service", Entries: []Entry{{"Type", "oneshot"}, {"ExecStart", command}}}
	if a.Scope == System {
		service.add("User", "root") // without it there is no HOME
	}
	for _, e := range a.Env {
		value, err := assignment(e)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		service.add("Environment", value)
	}
	service.add("TimeoutStartSec", span(armLimit))
	service.Entries = append(service.Entries, common()...)
	target := "default.target"
	if a.Scope == System {
		target = "multi-user.target"
	}
	return sealed(&File{Comments: header, Sections: []Section{
		{"Unit", []Entry{{"Description", describe("pending runs of agentd agent "+a.Agent, "")}}},
		service,
		{"Install", []Entry{{"WantedBy", target}}},
	}}, name, a.Workspace)
}
