package expr

import "strings"

// Describe says the schedule in plain words, without its time zone.
func (s *Schedule) Describe() string {
	switch s.kind {
	case Every:
		return "every " + seconds(s.every)
	case Boot:
		return "once after each start of the machine"
	case At:
		return "once, on " + s.at.Format("Mon 2 Jan 2006 at 15:04:05")
	}
	return strings.Join(s.OnCalendar(), " or ")
}
