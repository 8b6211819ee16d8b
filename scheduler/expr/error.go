package expr

import (
	"fmt"
	"unicode/utf8"
)

// SyntaxError says what is wrong with a schedule and where.
type SyntaxError struct {
	Text   string // the schedule as given
	Column int    // from 1, in runes of Text
	Reason string // without the schedule, without the column
}

// maxShown is how much of a schedule an error repeats, in runes.
const maxShown = 120

func (e *SyntaxError) Error() string {
	text := e.Text
	if utf8.RuneCountInString(text) > maxShown {
		text = string([]rune(text)[:maxShown]) + "..."
	}
	return fmt.Sprintf("schedule %q: %s (column %d)", text, e.Reason, e.Column)
}

// errorAt makes the error for the byte offset off.
func (src source) errorAt(off int, format string, args ...any) *SyntaxError {
	off = min(max(off, 0), len(src))
	return &SyntaxError{
		Text:   string(src),
		Column: utf8.RuneCountInString(string(src[:off])) + 1,
		Reason: fmt.Sprintf(format, args...),
	}
}
