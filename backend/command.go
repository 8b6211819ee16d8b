package backend

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"agentd/atomicfile"
	"agentd/exitcodes"
	"agentd/process"
	"agentd/workspace"
)

const (
	// promptFileMark in an argument is replaced by the path of the prompt's file.
	promptFileMark = "{prompt_file}"
	// maxArgument is what the kernel takes as one argument, its NUL included.
	maxArgument = 128 << 10
	// logLimit is how many bytes of output go to the log before it is cut.
	logLimit = 64 << 20
)

// command runs a job's own program.
type command struct {
	logLimit int64
}

// NewCommand returns the backend that runs Job.Command, followed by
// Attempt.Args. The prompt goes to the program as Job.PromptVia says:
//
//   - stdin (or empty): it is written there, and the input closed;
//   - arg: it is the last argument. One that starts with - would be taken for
//     an option: a program that knows -- should have it at the end of command;
//   - file: the path of a file with it is the last argument, or stands where an
//     argument has {prompt_file}.
//
// In each case that path is in the variable AGENTD_PROMPT_FILE. The program
// runs in a session without a terminal; when it ends, or ctx does, everything it
// started is ended too.
//
// An exit status that is in the table of exit codes is passed through; any
// other is code 1. Outcome.Err and Outcome.Text repeat what the program printed
// last: the caller redacts them as it does the output.
func NewCommand() Backend { return command{logLimit: logLimit} }

func (c command) Run(ctx context.Context, a Attempt) Outcome {
	spec, err := commandSpec(a)
	if err != nil {
		return Outcome{Code: exitcodes.From(err), Err: err}
	}
	out := newLineWriter(a.Output, c.logLimit)
	spec.Stdout, spec.Stderr = out, out
	res, err := process.Run(ctx, spec)
	if closeErr := out.close(); closeErr != nil && res.OutputErr == nil {
		res.OutputErr = closeErr
	}
	o := Outcome{Status: res.Status, Signal: res.Signal}
	switch {
	case err != nil:
		o.Err = err
	case res.Stopped:
		o.Err = stopped(ctx, spec.Argv[0], res)
	default:
		o.Err = ended(spec.Argv[0], res, out.last())
	}
	o.Code = exitcodes.From(o.Err)
	if o.Err == nil {
		o.Text = out.tail()
	}
	tellProblems(a, res)
	return o
}

// tellProblems reports what does not change the outcome but should be known.
func tellProblems(a Attempt, res process.Result) {
	if len(res.Ended) > 0 && !res.Stopped {
		var who []string
		for _, e := range res.Ended {
			who = append(who, fmt.Sprintf("%s (pid %d, %s)", e.Name, e.PID, e.Signal))
		}
		a.Events(Event{Kind: "process", Text: "ended what the program left behind: " + strings.Join(who, ", "),
			Data: map[string]any{"ended": res.Ended}})
	}
	if res.OutputErr != nil {
		a.Events(Event{Kind: "warning", Text: fmt.Sprintf("output of the program was lost: %v", res.OutputErr)})
	}
}

// commandSpec says how to start the program for an attempt.
func commandSpec(a Attempt) (process.Spec, error) {
	job := a.Job
	argv := append(append([]string(nil), job.Command...), a.Args...)
	if len(argv) == 0 {
		return process.Spec{}, exitcodes.Errorf(exitcodes.Config, "job %s has no command", job.Name)
	}
	if strings.ContainsRune(a.Prompt, 0) {
		return process.Spec{}, exitcodes.Errorf(exitcodes.Config, "the prompt of job %s contains a NUL byte", job.Name).
			WithHint("save the prompt as UTF-8 text")
	}
	file, err := promptFile(a)
	if err != nil {
		return process.Spec{}, err
	}
	spec := process.Spec{
		Dir: a.Dir, Grace: job.Grace, Mark: a.RunID,
		Env: append(append([]string(nil), a.Env...), "AGENTD_PROMPT_FILE="+file, "AGENTD_ATTEMPT="+strconv.Itoa(a.N)),
	}
	spec.Argv, err = passPrompt(&spec, argv, job, a.Prompt, file)
	return spec, err
}

// passPrompt gives the prompt to the program in the way the job says.
func passPrompt(spec *process.Spec, argv []string, job *workspace.Job, prompt, file string) ([]string, error) {
	switch job.PromptVia {
	case "", "stdin":
		spec.Stdin = strings.NewReader(prompt)
		return argv, nil
	case "arg":
		if len(prompt) >= maxArgument {
			return nil, exitcodes.Errorf(exitcodes.Config, "the prompt of job %s has %d bytes, and an argument may have %d",
				job.Name, len(prompt), maxArgument-1).WithHint(`set prompt_via = "stdin" or "file"`)
		}
		return append(argv, prompt), nil
	case "file":
		marked := false
		for i, arg := range argv {
			if strings.Contains(arg, promptFileMark) {
				argv[i], marked = strings.ReplaceAll(arg, promptFileMark, file), true
			}
		}
		if !marked {
			argv = append(argv, file)
		}
		return argv, nil
	}
	return nil, exitcodes.Errorf(exitcodes.Config, "job %s: prompt_via %q is none of stdin, arg, file", job.Name, job.PromptVia)
}

// promptFile writes the prompt into the run's folder, for its owner only.
func promptFile(a Attempt) (string, error) {
	path, err := filepath.Abs(filepath.Join(a.RunDir, fmt.Sprintf("prompt-%d.txt", a.N)))
	if err != nil {
		return "", fmt.Errorf("cannot find the run's folder: %w", err)
	}
	return path, atomicfile.Write(path, []byte(a.Prompt), 0o600)
}

// stopped is the error of a program that was ended because ctx had ended: its
// cause has the code.
func stopped(ctx context.Context, name string, res process.Result) error {
	cause := context.Cause(ctx)
	how := "it ended in good order"
	switch {
	case res.Signal != "":
		how = "ended by " + res.Signal
	case res.Status != 0:
		how = fmt.Sprintf("it ended with status %d", res.Status)
	}
	if errors.Is(cause, context.DeadlineExceeded) {
		return exitcodes.Errorf(exitcodes.From(cause), "%s was stopped because its time had passed (%s)", name, how)
	}
	return exitcodes.Errorf(exitcodes.From(cause), "%s was stopped: %w (%s)", name, cause, how)
}

// ended is the error of a program that ended by itself, or nil. last is the last
// line that it printed.
func ended(name string, res process.Result, last string) error {
	said := ""
	if last != "" {
		said = ": " + last
	}
	switch {
	case res.OOM:
		return exitcodes.Errorf(exitcodes.Failure, "%s was killed by the kernel: out of memory", name).
			WithHint("give the machine or the unit more memory (MemoryMax=), or the program less to do")
	case res.Signal != "":
		return exitcodes.Errorf(exitcodes.Failure, "%s was ended by %s%s", name, res.Signal, said)
	case res.Status == 0:
		return nil
	}
	code := exitcodes.Code(res.Status)
	if _, known := exitcodes.Lookup(code); !known {
		code = exitcodes.Failure
	}
	return exitcodes.Errorf(code, "%s ended with status %d%s", name, res.Status, said)
}
