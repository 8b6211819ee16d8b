package expr

import "time"

func (s *Schedule) clockChanges(from time.Time) []string { return nil }
