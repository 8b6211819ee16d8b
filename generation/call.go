package generation

import (
	"context"
	"fmt"

	"agentd/exitcodes"
	"agentd/provider/message"
	"agentd/session"
	"agentd/tools"
)

// settle gives every open call of a former attempt its result. Calls are run
// only where the same work goes on: under a new prompt they would be yesterday's
// actions, so that the agent is told that they were not run.
func (t *turn) settle(ctx context.Context, goingOn bool) error {
	for _, p := range t.journal.Transcript().Pending {
		if goingOn && p.Repeatable() {
			what := "running a call that had not started"
			if p.Started {
				what = "running a call again whose outcome is unknown, since it is " + string(p.Effect)
			}
			t.engine.notify(Notice{Kind: NoticeResumed, Text: what, Tool: p.Call.Name, Args: p.Call.Arguments})
			if err := t.call(ctx, p.Call); err != nil {
				return err
			}
			continue
		}
		what, outcome := "the agent is told that a call was not run", session.OutcomeInterrupted
		if p.Started {
			what, outcome = "the agent is told that the outcome of a call is unknown", session.OutcomeUnknown
		}
		if err := t.journal.Result(p.Result(), outcome); err != nil {
			return err
		}
		t.engine.notify(Notice{Kind: NoticeResumed, Text: what, Tool: p.Call.Name, Args: p.Call.Arguments})
	}
	return nil
}

// call runs one tool call of a committed message: intent, body, result.
func (t *turn) call(ctx context.Context, c message.Part) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause // not started: a later attempt may run it
	}
	tool, effect := t.engine.Tools.Lookup(c.Name), session.Read
	if tool != nil {
		effect = tool.Effect()
	}
	if err := t.journal.Intent(c, effect); err != nil {
		return err
	}
	t.engine.notify(Notice{Kind: NoticeToolStart, Text: c.Name, Tool: c.Name, Args: c.Arguments})
	begun := t.engine.now()
	res, runErr := t.body(ctx, tool, c)
	took := t.engine.now().Sub(begun)
	result := message.Part{Kind: message.ToolResult, ID: c.ID, Name: c.Name, Text: res.Text, IsError: res.IsError}
	if err := t.journal.Result(result, res.Outcome()); err != nil {
		return err
	}
	t.engine.notify(Notice{Kind: NoticeToolEnd, Text: string(res.Outcome()), Tool: c.Name, Args: c.Arguments, Took: took, OK: res.Outcome() == session.OutcomeOK})
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return runErr
}

// body runs the tool. Its error ends the turn.
func (t *turn) body(ctx context.Context, tool tools.Tool, c message.Part) (tools.Result, error) {
	if tool == nil {
		return tools.Result{IsError: true, Text: fmt.Sprintf("There is no tool %q.%s", c.Name, t.toolNames())}, nil
	}
	res, err := tool.Run(ctx, tools.Call{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
	if err == nil {
		return res, nil
	}
	if res.Text == "" {
		res = tools.Result{Text: "The tool failed: " + err.Error(), IsError: true, Interrupted: res.Interrupted}
	}
	if ctx.Err() != nil {
		res.IsError, res.Interrupted = true, true
		return res, nil // the end of ctx is the reason, and call reports it
	}
	if exitcodes.From(err) == exitcodes.Failure {
		err = exitcodes.Errorf(exitcodes.Tool, "the tool %s ended the run: %w", c.Name, err)
	}
	return res, err
}

// toolNames lists what can be called.
func (t *turn) toolNames() string {
	text := " There are:"
	for _, d := range t.engine.Tools.Definitions() {
		text += " " + d.Name
	}
	return text + "."
}
