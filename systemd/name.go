package systemd

import "strings"

// JobName names a job and so its units. Without a Job it stands for the agent
// itself, which has a service too: see Arm. Daemon is the daemon's.
type JobName struct {
	Agent, Job string
}

// Service returns the name of the job's service unit.
func (n JobName) Service() string { return n.base() + ".service" }

// Timer returns the name of the job's timer unit.
func (n JobName) Timer() string { return n.base() + ".timer" }

// String returns "agent/job", or "agent".
func (n JobName) String() string {
	if n.Job == "" {
		return n.Agent
	}
	return n.Agent + "/" + n.Job
}

// base is agentd-AGENT-JOB. A "-" of the agent is doubled, so that the end of
// the agent is the first single one, and a-b/c is not a/b-c. (A job never
// begins with "-".)
func (n JobName) base() string {
	if n == Daemon {
		return daemonBase
	}
	if n.Job == "" {
		return armPrefix + n.Agent
	}
	return unitPrefix + strings.ReplaceAll(n.Agent, "-", "--") + "-" + n.Job
}

const unitPrefix = "agentd-"

// armPrefix begins the names of agents' own services; no job's begins so, as
// no agent's name begins with "-".
const armPrefix = "agentd--arm-"

// ParseName returns the job that a unit name stands for; ok is false for a
// unit that no job can have.
func ParseName(unit string) (name JobName, ok bool) {
	base, isTimer := strings.CutSuffix(unit, ".timer")
	if !isTimer {
		if base, ok = strings.CutSuffix(unit, ".service"); !ok {
			return JobName{}, false
		}
	}
	if base == daemonBase {
		return Daemon, !isTimer
	}
	if agent, ok := strings.CutPrefix(base, armPrefix); ok {
		return JobName{Agent: agent}, agent != "" && !isTimer
	}
	rest, ok := strings.CutPrefix(base, unitPrefix)
	if !ok {
		return JobName{}, false
	}
	for i := 0; i < len(rest); i++ {
		if rest[i] != '-' {
			continue
		}
		if i+1 < len(rest) && rest[i+1] == '-' {
			i++ // a "-" of the agent
			continue
		}
		name = JobName{strings.ReplaceAll(rest[:i], "--", "-"), rest[i+1:]}
		return name, name.Agent != "" && name.Job != "" && name.base() == base
	}
	return JobName{}, false
}
