package systemd

import "strings"

// JobName names a job and so its units.
type JobName struct {
	Agent, Job string
}

// Service returns the name of the job's service unit.
func (n JobName) Service() string { return n.base() + ".service" }

// Timer returns the name of the job's timer unit.
func (n JobName) Timer() string { return n.base() + ".timer" }

// String returns "agent/job".
func (n JobName) String() string { return n.Agent + "/" + n.Job }

// base is agentd-AGENT-JOB. A "-" of the agent is doubled, so that the end of
// the agent is the first single one, and a-b/c is not a/b-c. (A job never
// begins with "-".)
func (n JobName) base() string {
	return unitPrefix + strings.ReplaceAll(n.Agent, "-", "--") + "-" + n.Job
}

const unitPrefix = "agentd-"

// Pattern matches the units of every job of an agent, and maybe those of
// others: ParseName tells.
func Pattern(agent string) string {
	return unitPrefix + strings.ReplaceAll(agent, "-", "--") + "-*"
}

// ParseName returns the job that a unit name stands for; ok is false for a
// unit that no job can have.
func ParseName(unit string) (name JobName, ok bool) {
	base, isTimer := strings.CutSuffix(unit, ".timer")
	if !isTimer {
		if base, ok = strings.CutSuffix(unit, ".service"); !ok {
			return JobName{}, false
		}
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
