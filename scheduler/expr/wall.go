package expr

import "time"

const (
	// maxOffset is more than any zone is away from UTC.
	maxOffset = 26 * time.Hour
	// maxChanges bounds the clock changes one search looks at: those within
	// maxOffset of a time, and some to spare.
	maxChanges = 16
)

// wallOf returns what the clocks of a zone show, held as a time in UTC.
func wallOf(t time.Time, loc *time.Location) time.Time {
	_, offset := t.In(loc).Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// period returns the bounds of the time around t in which the clocks of a zone
// do not change; zero is open. Go has the end too early on the last day of a
// leap year beyond its table of changes, where clocks do not change.
func period(t time.Time, loc *time.Location) (start, end time.Time) {
	start, end = t.In(loc).ZoneBounds()
	if !end.IsZero() && !end.After(t) {
		end = t.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
	}
	return start, end
}

// moment is when a wall time comes.
type moment struct {
	first  time.Time // in a gap: the gap's end
	second time.Time // zero unless the wall time comes twice
	gap    bool      // the wall time does not come at all
}

// momentOf finds the instants at which the clocks of a zone show w.
func momentOf(w time.Time, loc *time.Location) moment {
	var m moment
	at := w.Add(-maxOffset)
	for at.Before(w.Add(maxOffset)) {
		start, end := period(at, loc)
		_, offset := at.In(loc).Zone()
		t := w.Add(-time.Duration(offset) * time.Second)
		switch {
		case t.Before(start):
			if m.first.IsZero() {
				m = moment{first: start.UTC(), gap: true}
			}
			return m
		case !end.IsZero() && !t.Before(end):
		case m.first.IsZero():
			m.first = t
		default:
			m.second = t
		}
		if end.IsZero() {
			break
		}
		at = end
	}
	return m
}

// wall returns the first wall time after w at which the schedule fires.
func (s *Schedule) wall(w time.Time, n *counter) time.Time {
	if s.cron != nil {
		return s.cronWall(w, n)
	}
	return firstWall(s.rules, w, n)
}

func firstWall(rules []rule, w time.Time, n *counter) time.Time {
	var first time.Time
	for i := range rules {
		t := rules[i].next(w, n)
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	return first
}

// cronWall asks robfig/cron, in UTC, where it is exact. It looks five years
// ahead; 29 February can be eight years away.
func (s *Schedule) cronWall(w time.Time, n *counter) time.Time {
	for range 3 {
		*n++
		t := s.cron.Next(w)
		if t.Year() > maxYear {
			break
		}
		if !t.IsZero() {
			return t
		}
		w = time.Date(w.Year()+5, time.December, 31, 23, 59, 59, 0, time.UTC)
	}
	return time.Time{}
}

// nextFixed gives each wall time one instant: the first at which the clocks
// show it, or the end of the gap it falls in.
func (s *Schedule) nextFixed(after time.Time, n *counter) time.Time {
	loc := s.zone.loc
	w := wallOf(after, loc)
	// After the clocks went back they show times that have had their turn.
	if start, _ := period(after, loc); !start.IsZero() {
		shown := wallOf(start.Add(-time.Nanosecond), loc)
		if w.Before(shown) {
			w = shown
		}
	}
	for range maxChanges {
		*n++
		if w = s.wall(w, n); w.IsZero() {
			return w
		}
		if t := momentOf(w, loc).first; t.After(after) {
			return t
		}
	}
	return time.Time{}
}

// nextReal returns the next instant at which the clocks show a time of the
// schedule. Between two clock changes wall times and instants run alike; so it
// goes to the next change, and from there to where the next wall time can be.
func (s *Schedule) nextReal(after time.Time, n *counter) time.Time {
	loc := s.zone.loc
	w := s.wall(wallOf(after, loc), n)
	for range maxChanges {
		*n++
		_, end := period(after, loc)
		_, offset := after.In(loc).Zone()
		t := w.Add(-time.Duration(offset) * time.Second)
		if !w.IsZero() && (end.IsZero() || t.Before(end)) {
			return t
		}
		if end.IsZero() {
			break
		}
		shown := wallOf(end, loc)
		back := shown.Before(wallOf(end.Add(-time.Nanosecond), loc))
		if back || w.Before(shown) {
			if w.IsZero() && !back {
				break
			}
			w = s.wall(shown.Add(-time.Nanosecond), n)
		}
		after = end
		if near := w.Add(-maxOffset); !w.IsZero() && near.After(after) {
			after = near
		}
	}
	return time.Time{}
}
