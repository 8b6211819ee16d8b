package exitcodes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"sort"
	"syscall"
	"testing"
	"time"
)

func TestTableIsSortedAndComplete(t *testing.T) {
	rows := Table()
	if !sort.SliceIsSorted(rows, func(i, j int) bool { return rows[i].Code < rows[j].Code }) {
		t.Error("the table is not in ascending order")
	}
	seen := map[Code]bool{}
	for _, r := range rows {
		if seen[r.Code] {
			t.Errorf("code %d stands twice", r.Code)
		}
		seen[r.Code] = true
		if r.Name == "" || r.Again == "" || r.Meaning == "" {
			t.Errorf("row %d lacks a field: %+v", r.Code, r)
		}
		if r.Code < 0 || r.Code > 255 {
			t.Errorf("code %d does not fit an exit status", r.Code)
		}
		if got := r.Code.String(); got != r.Name {
			t.Errorf("Code(%d).String() = %q, want %q", r.Code, got, r.Name)
		}
	}
}

type typed struct{ error }

func (typed) ExitCode() Code { return Protocol }

func TestFrom(t *testing.T) {
	tests := []struct {
		err  error
		want Code
	}{
		{nil, OK},
		{errors.New("x"), Failure},
		{Errorf(Config, "x"), Config},
		{fmt.Errorf("a: %w", Errorf(RateLimited, "x")), RateLimited},
		{fmt.Errorf("a: %w", typed{errors.New("x")}), Protocol},
		{Errorf(Data, "a: %w", Errorf(IO, "x")), Data}, // the outermost decides
		{context.Canceled, Cancelled},
		{fmt.Errorf("a: %w", context.DeadlineExceeded), Timeout},
		{&fs.PathError{Op: "write", Path: "f", Err: syscall.ENOSPC}, IO},
		{&fs.PathError{Op: "write", Path: "f", Err: syscall.EDQUOT}, IO},
		{&fs.PathError{Op: "read", Path: "f", Err: syscall.EIO}, IO},
		{&fs.PathError{Op: "open", Path: "f", Err: syscall.EACCES}, CannotCreate},
		{&fs.PathError{Op: "open", Path: "f", Err: syscall.EROFS}, CannotCreate},
		{&fs.PathError{Op: "open", Path: "f", Err: syscall.ENOENT}, NoInput},
		{&exec.Error{Name: "x", Err: exec.ErrNotFound}, NotFound},
	}
	for _, tt := range tests {
		if got := From(tt.err); got != tt.want {
			t.Errorf("From(%v) = %d %s, want %d %s", tt.err, got, got, tt.want, tt.want)
		}
	}
}

func TestHintAndReset(t *testing.T) {
	reset := time.Date(2026, 12, 1, 9, 10, 0, 0, time.UTC)
	inner := &Error{Code: RateLimited, Err: errors.New("limit"), Hint: "inner", ResetAt: reset}
	if got := HintOf(fmt.Errorf("a: %w", inner)); got != "inner" {
		t.Errorf("HintOf = %q, want the wrapped hint", got)
	}
	if got := HintOf(Errorf(Failure, "a: %w", inner)); got != "inner" {
		t.Errorf("HintOf = %q, want the hint below an error without one", got)
	}
	if got := HintOf(Errorf(Failure, "a: %w", inner).WithHint("outer")); got != "outer" {
		t.Errorf("HintOf = %q, want the outermost", got)
	}
	if got := ResetOf(fmt.Errorf("a: %w", inner)); !got.Equal(reset) {
		t.Errorf("ResetOf = %v, want %v", got, reset)
	}
	if got := ResetOf(errors.New("x")); !got.IsZero() {
		t.Errorf("ResetOf without a reset = %v, want zero", got)
	}
}
