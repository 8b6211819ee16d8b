package expr

import (
	"errors"
	"testing"
)

func mustParse(t testing.TB, text, zone string) *Schedule {
	t.Helper()
	s, err := Parse(text, zone)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestOnCalendarListsValues(t *testing.T) {
	s := mustParse(t, "*/30 9-17 * * 1-5", "Europe/Stockholm")
	want := "Mon,Tue,Wed,Thu,Fri *-*-* 9,10,11,12,13,14,15,16,17:00,30:00 Europe/Stockholm"
	if got := s.OnCalendar(); len(got) != 1 || got[0] != want {
		t.Errorf("OnCalendar() = %q, want %q", got, want)
	}
}

func TestErrorMarksTheColumn(t *testing.T) {
	_, err := Parse("61 * * * *", "")
	if want := `schedule "61 * * * *": minute 61 is out of 0-59 (column 1)`; err == nil || err.Error() != want {
		t.Errorf("Parse: %v, want %s", err, want)
	}
	if _, ok := errors.AsType[*SyntaxError](err); !ok {
		t.Errorf("Parse: %T is no *SyntaxError", err)
	}
}
