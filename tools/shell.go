package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"agentd/exitcodes"
	"agentd/process"
	"agentd/session"
)

const (
	defaultShellTimeout = 5 * time.Minute
	maxShellTimeout     = time.Hour
)

// errShellTimeout is the cause when a command's own time has passed.
var errShellTimeout = errors.New("the command's time has passed")

func shellTool(o Options) *builtin {
	return &builtin{
		name: "shell",
		about: fmt.Sprintf("Run a command with bash in the workspace and return its output and exit status. Nobody can answer a question: "+
			"its input is empty and it has no terminal. Processes that it leaves in the background are ended when it ends. "+
			"Of output longer than %d KiB you see the beginning and the end.", outputLimit>>10),
		effect: session.Unknown,
		parameters: []parameter{
			{name: "command", kind: "string", about: "the command line, as for bash -c", required: true},
			{name: "timeout_s", kind: "integer", min: 1, max: int(maxShellTimeout / time.Second),
				about: fmt.Sprintf("seconds after which it is ended; %d if not given", int(o.ShellTimeout/time.Second))},
		},
		run: func(ctx context.Context, _ Call, a arguments) (Result, error) {
			timeout := time.Duration(a.number("timeout_s", int(o.ShellTimeout/time.Second))) * time.Second
			return o.shell(ctx, a.text["command"], timeout)
		},
	}
}

func (o Options) shell(ctx context.Context, command string, timeout time.Duration) (Result, error) {
	if strings.TrimSpace(command) == "" {
		return failed("The command is empty."), nil
	}
	limited, cancel := context.WithTimeoutCause(ctx, timeout, errShellTimeout)
	defer cancel()
	out := &capture{dir: o.RunDir}
	defer out.close()
	masked := o.Redact.Writer(out)
	spec := process.Spec{
		Argv: []string{"bash", "-c", command}, Dir: o.Dir, Env: o.Env,
		Stdout: masked, Stderr: masked, Grace: o.Grace, Mark: o.RunID,
	}
	res, err := process.Run(limited, spec)
	if exitcodes.From(err) == exitcodes.NotFound { // no bash here
		spec.Argv[0] = "sh"
		res, err = process.Run(limited, spec)
	}
	_ = masked.Close() // the capture takes everything
	switch {
	case err != nil && ctx.Err() != nil && !errors.Is(err, process.ErrNotEnded):
		return Result{Text: "The command was not run: the work was interrupted.", IsError: true, Interrupted: true}, nil
	case err != nil:
		r := failed("%s", o.Redact.String(withHint(err)))
		if errors.Is(err, process.ErrNotEnded) {
			return r, err // it would work on beside whatever comes next
		}
		return r, nil
	}
	return o.describe(ctx, res, out, timeout), nil
}

// withHint joins an error and its hint into a text for the model.
func withHint(err error) string {
	text := err.Error() + "."
	if hint := exitcodes.HintOf(err); hint != "" {
		text += " " + strings.ToUpper(hint[:1]) + hint[1:] + "."
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// describe writes the output, and after it in brackets how the command ended.
func (o Options) describe(ctx context.Context, res process.Result, out *capture, timeout time.Duration) Result {
	r := Result{IsError: res.Status != 0}
	var notes []string
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf("["+format+"]", args...)) }
	switch {
	case res.Stopped && ctx.Err() != nil:
		r.IsError, r.Interrupted = true, true
		note("interrupted: the command was ended before it was done")
	case res.Stopped:
		r.IsError = true
		note("timeout: the command was ended after %v", timeout)
	case res.OOM:
		note("killed: out of memory")
	case res.Signal != "":
		note("ended by %s", res.Signal)
	default:
		note("exit status %d", res.Status)
	}
	if !res.Stopped && len(res.Ended) > 0 {
		note("ended what it left in the background: %s", names(res.Ended))
	}
	if res.OutputErr != nil {
		note("output lost: %v", res.OutputErr)
	}
	if n := out.note(); n != "" {
		note("%s", n)
	}
	text := clean(out.text())
	switch {
	case text == "":
		text = "(no output)\n"
	case !strings.HasSuffix(text, "\n"):
		text += "\n"
	}
	r.Text = text + strings.Join(notes, "\n")
	return r
}

// names lists processes for people, each name once.
func names(ended []process.Ended) string {
	count := map[string]int{}
	var order []string
	for _, e := range ended {
		if count[e.Name] == 0 {
			order = append(order, e.Name)
		}
		count[e.Name]++
	}
	for i, n := range order {
		if count[n] > 1 {
			order[i] = fmt.Sprintf("%s (%d times)", n, count[n])
		}
	}
	return clean(strings.Join(order, ", "))
}
