// Package exitcodes holds the one table of exit statuses that agentd ends
// with. Documentation, units, run records and `agentd exitcodes` are all made
// from it, so a code never means two things.
package exitcodes

import "fmt"

// Code is a process exit status from the table.
type Code int

// The codes. Those from 64 to 78 keep the meaning of sysexits.h where it has
// one; 124, 126, 127, 130 and 143 keep that of timeout(1) and the shell.
const (
	OK            Code = 0
	Failure       Code = 1
	Usage         Code = 64
	Data          Code = 65
	NoInput       Code = 66
	Unavailable   Code = 69
	Software      Code = 70
	CannotCreate  Code = 73
	IO            Code = 74
	RateLimited   Code = 75
	Protocol      Code = 76
	NoPermission  Code = 77
	Config        Code = 78
	Quota         Code = 79
	LaneBusy      Code = 80
	Overflow      Code = 81
	Limit         Code = 82
	Tool          Code = 83
	Refused       Code = 84
	Interrupted   Code = 85
	Timeout       Code = 124
	NotExecutable Code = 126
	NotFound      Code = 127
	Cancelled     Code = 130
	Terminated    Code = 143
)

// Again says when it makes sense to try the same work again.
type Again string

const (
	AgainNever      Again = "no"           // the same run fails the same way
	AgainLater      Again = "later"        // the cause passes by itself
	AgainAfterReset Again = "after_reset"  // when the provider's limit resets
	AgainPerson     Again = "after_person" // a person has to act first
	AgainNextTime   Again = "next_time"    // nothing ran; the next firing will
	AgainDone       Again = "-"            // nothing is left to do
)

// Entry is one row of the table.
type Entry struct {
	Code    Code   `json:"code"`
	Name    string `json:"name"`
	Again   Again  `json:"again"`
	Meaning string `json:"meaning"`
}

// Table returns the rows in ascending order of code.
func Table() []Entry {
	return []Entry{
		{OK, "ok", AgainDone, "the agent finished its turn"},
		{Failure, "failure", AgainNever, "anything unclassified"},
		{Usage, "usage", AgainNever, "bad command line"},
		{Data, "data", AgainNever, "damaged journal, unreadable state"},
		{NoInput, "no_input", AgainNever, "workspace, job, prompt or session missing"},
		{Unavailable, "unavailable", AgainLater, "provider unreachable, 5xx or cut streams, and recovery is exhausted"},
		{Software, "software", AgainNever, "a bug or a panic of agentd"},
		{CannotCreate, "cannot_create", AgainNever, "an output file or unit cannot be written"},
		{IO, "io", AgainLater, "disk full or I/O error"},
		{RateLimited, "rate_limited", AgainAfterReset, "429 or a usage limit; carries the reset time when known"},
		{Protocol, "protocol", AgainNever, "the provider broke its own protocol in a way that asking again cannot mend"},
		{NoPermission, "no_permission", AgainPerson, "authentication, permission or billing"},
		{Config, "config", AgainNever, "agentd.toml or what it refers to is wrong, or the provider does not know the model"},
		{Quota, "quota", AgainPerson, "a hard quota or spend limit; waiting does not help"},
		{LaneBusy, "lane_busy", AgainNextTime, "the lane is held and the job does not wait: nothing ran"},
		{Overflow, "overflow", AgainNever, "the context does not fit even after overflow recovery"},
		{Limit, "limit", AgainNever, "max steps, tokens, cost or budget reached"},
		{Tool, "tool", AgainNever, "a hook or a tool ended the run"},
		{Refused, "refused", AgainNever, "the model or a filter refused"},
		{Interrupted, "interrupted", AgainNever, "a former attempt died and resuming is not allowed or not possible"},
		{Timeout, "timeout", AgainNever, "the run's timeout passed"},
		{NotExecutable, "not_executable", AgainNever, "the backend's program cannot be executed"},
		{NotFound, "not_found", AgainNever, "the backend's program was not found"},
		{Cancelled, "cancelled", AgainDone, "SIGINT (Ctrl-C), after an orderly stop"},
		{Terminated, "cancelled", AgainDone, "SIGTERM, after an orderly stop"},
	}
}

// Lookup returns the row for c, and whether the table has one.
func Lookup(c Code) (Entry, bool) {
	for _, e := range Table() {
		if e.Code == c {
			return e, true
		}
	}
	return Entry{}, false
}

// ByName returns the row whose name is name, and whether the table has one.
func ByName(name string) (Entry, bool) {
	for _, e := range Table() {
		if e.Name == name {
			return e, true
		}
	}
	return Entry{}, false
}

// String returns the code's name, or "status N" for a status that is not in
// the table.
func (c Code) String() string {
	if e, ok := Lookup(c); ok {
		return e.Name
	}
	return fmt.Sprintf("status %d", int(c))
}
