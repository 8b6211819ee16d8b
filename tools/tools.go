// Package tools holds what the engine offers to a model: a shell and files of
// the workspace. Each tool declares what running it twice would do.
package tools

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"agentd/exitcodes"
	"agentd/provider/message"
	"agentd/redact"
	"agentd/session"
)

// Call is a tool call from a committed message.
type Call struct {
	ID        string
	Name      string
	Arguments string // the JSON text as it was received
}

// Result is what the model is told.
type Result struct {
	Text        string // valid UTF-8
	IsError     bool
	Interrupted bool // the context ended while the tool ran
}

// Outcome returns how the journal calls the result.
func (r Result) Outcome() session.Outcome {
	switch {
	case r.Interrupted:
		return session.OutcomeInterrupted
	case r.IsError:
		return session.OutcomeError
	}
	return session.OutcomeOK
}

// Tool is something that a model may call. Whatever the model can know or mend
// (wrong arguments, a missing file, a command that fails) is a Result; an error
// means that the run must end. When an error is returned, the Result is still
// what happened.
type Tool interface {
	Definition() message.Definition
	Effect() session.Effect
	Run(ctx context.Context, c Call) (Result, error)
}

// Set is the tools that are offered, in the order in which they are described.
type Set []Tool

// Lookup returns the tool with the name, or nil.
func (s Set) Lookup(name string) Tool {
	for _, t := range s {
		if t.Definition().Name == name {
			return t
		}
	}
	return nil
}

// Definitions returns the descriptions of all tools.
func (s Set) Definitions() []message.Definition {
	defs := make([]message.Definition, 0, len(s))
	for _, t := range s {
		defs = append(defs, t.Definition())
	}
	return defs
}

// Options say where and how the built-in tools work.
type Options struct {
	Dir    string        // the workspace, which file paths may not leave
	RunDir string        // for output that is too long to tell; empty: it is lost
	Env    []string      // the complete environment of commands
	RunID  string        // marks the processes of commands
	Grace  time.Duration // between SIGTERM and SIGKILL when a command is ended
	Redact *redact.Redactor
	// ShellTimeout is the time of a command that asks for none; 0 means 5 minutes.
	ShellTimeout time.Duration
}

// Builtin returns shell, read_file, write_file and edit_file.
func Builtin(o Options) Set {
	if o.ShellTimeout <= 0 {
		o.ShellTimeout = defaultShellTimeout
	}
	if o.Redact == nil {
		o.Redact = redact.New(nil)
	}
	f := files{o.Dir}
	return Set{
		Guard(shellTool(o)),
		Guard(f.readTool(o.Redact)),
		Guard(f.writeTool()),
		Guard(f.editTool()),
	}
}

// Guard returns a tool that turns a panic of t into a result for the model and
// an error with code 70.
func Guard(t Tool) Tool { return guarded{t} }

type guarded struct{ Tool }

func (g guarded) Run(ctx context.Context, c Call) (r Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			r = Result{Text: fmt.Sprintf("The tool %s crashed; this is a fault of agentd. It may have done part of its work.", c.Name), IsError: true}
			err = exitcodes.Errorf(exitcodes.Software, "the tool %s panicked: %v (%s)", c.Name, p, panicPlace(debug.Stack()))
		}
	}()
	return g.Tool.Run(ctx, c)
}

// panicPlace returns the function and line that panicked, from a stack trace.
func panicPlace(stack []byte) string {
	lines := strings.Split(string(stack), "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, "panic(") && i+3 < len(lines) {
			place, _, _ := strings.Cut(strings.TrimSpace(lines[i+3]), " +0x")
			return place
		}
	}
	return "unknown place"
}

// failed returns a result that tells the model what went wrong.
func failed(format string, args ...any) Result {
	return Result{Text: clean(fmt.Sprintf(format, args...)), IsError: true}
}

// clean makes any text fit for a wire: valid UTF-8 without NUL, which some
// providers refuse.
func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
