package generation

import (
	"context"
	"strings"

	"agentd/exitcodes"
	"agentd/provider"
	"agentd/provider/message"
	"agentd/recovery"
	"agentd/session"
)

// Result is what a turn came to, also one that failed.
type Result struct {
	Text   string          // the last thing the agent said
	Finish provider.Finish // of the last reply
	// RawFinish is the provider's own word for it.
	RawFinish string
	Calls     []message.Part // calls that ended the turn, because the engine has no tools
	Steps     int            // replies
	Usage     message.Usage
	Stats     recovery.Stats // of all generations together
}

// What the agent is told where its reply cannot stand. The model sees these
// words; they are recorded as messages of the user.
const (
	sayEmpty = "Your reply was empty. If the work is done, say in one or two sentences what you did. Otherwise go on."
	sayCut   = "Your reply reached the output limit and was cut off there; a tool call that was not complete was not run. Go on from there, in smaller pieces."
	sayGoOn  = "The work was interrupted here. Go on. If it was done already, say in one or two sentences what you did."
)

const (
	maxEmpty = 1 // how often in a row an empty reply is asked to be mended
	maxCut   = 3 // the same for one at the output limit

	maxPauses = 50 // in a row, without a tool call
)

// Turn asks for replies and runs the tools that they call until the agent
// stops. A prompt that is not empty is said first; without one the turn goes on
// where the session stopped. Open calls of a former attempt are settled before
// that. If the turn goes on, one that was not started is run, and one whose
// outcome is unknown is run again only if its effect allows that; all others are
// told to the agent.
//
// The order in the journal is: the reply; for each call its intent, then the
// body runs, then its result. An error carries its exit code.
func (e *Engine) Turn(ctx context.Context, j Journal, prompt string) (Result, error) {
	t := &turn{engine: e, journal: j}
	err := t.run(ctx, prompt)
	return t.result, err
}

// turn is a turn in progress.
type turn struct {
	engine  *Engine
	journal Journal
	result  Result
	step    int // least step of shortening that every request takes; -1: none
	empties int // empty replies in a row
	cuts    int // replies at the output limit in a row
	pauses  int // pauses of the provider in a row
}

func (t *turn) run(ctx context.Context, prompt string) error {
	t.step = -1
	if err := t.settle(ctx, prompt == ""); err != nil {
		return err
	}
	if err := t.open(prompt); err != nil {
		return err
	}
	for {
		if err := t.withinLimits(); err != nil {
			return err
		}
		done, err := t.reply(ctx)
		if done || err != nil {
			return err
		}
	}
}

// open says the prompt, or finds that the session asks for a reply.
func (t *turn) open(prompt string) error {
	if prompt != "" {
		return t.say(prompt)
	}
	all := t.journal.Transcript().Messages
	if len(all) == 0 {
		return exitcodes.Errorf(exitcodes.NoInput, "there is no prompt, and the session is empty")
	}
	if all[len(all)-1].Role == message.Assistant {
		// It may have been the last word, or a reply that was paused or cut.
		return t.say(sayGoOn)
	}
	return nil
}

// say records a message of the user.
func (t *turn) say(text string) error {
	return t.journal.Message(message.NewText(message.User, text), message.Usage{}, "")
}

// withinLimits is asked before each reply.
func (t *turn) withinLimits() error {
	l := t.engine.Limits
	steps := t.engine.Spent.Steps + t.result.Steps
	used := t.engine.Spent.Usage.Add(t.result.Usage)
	tokens := used.InputTokens + used.OutputTokens
	switch {
	case l.Steps > 0 && steps >= l.Steps:
		return exitcodes.Errorf(exitcodes.Limit, "the turn reached its limit of %d steps", l.Steps).
			WithHint("raise max_steps, or let a later run continue the session")
	case l.Tokens > 0 && tokens >= l.Tokens:
		return exitcodes.Errorf(exitcodes.Limit, "the turn reached its limit of %d tokens", l.Tokens).
			WithHint("raise max_tokens, or let a later run continue the session")
	case l.CostUSD > 0 && used.CostUSD >= l.CostUSD:
		return exitcodes.Errorf(exitcodes.Limit, "the turn reached its limit of $%.2f", l.CostUSD).
			WithHint("raise max_cost_usd, or let a later run continue the session")
	}
	return nil
}

// reply gets one reply, commits it and does what follows from it.
func (t *turn) reply(ctx context.Context) (done bool, err error) {
	now := t.journal.Transcript()
	a := &asking{engine: t.engine, whole: now.Messages}
	if t.step >= 0 {
		a.view = viewAt(now.Messages, t.step)
	}
	r, stats, err := a.run(ctx)
	t.result.Stats = sum(t.result.Stats, stats)
	if err != nil {
		return false, err
	}
	t.count(r)
	t.result.Finish, t.result.RawFinish = r.Finish, r.RawFinish
	if r.Finish == provider.Filtered {
		t.engine.preview(provider.Event{Kind: provider.Reset, Text: "the model refused"})
		return false, t.refused(r)
	}
	if err := t.keepView(now, a.view); err != nil {
		return false, err
	}
	if empty(r.Message) {
		t.engine.preview(provider.Event{Kind: provider.Reset, Text: "the reply was empty"})
		return false, t.mend(r)
	}
	if err := t.journal.Message(r.Message, r.Usage, string(r.Finish)); err != nil {
		return false, err
	}
	t.engine.preview(provider.Event{Kind: Commit})
	t.empties = 0
	if text := r.Message.Text(); text != "" {
		t.result.Text = text
		t.engine.notify(Notice{Kind: NoticeReply, Text: text})
	}
	return t.follow(ctx, r)
}

// follow does what a committed reply asks for.
func (t *turn) follow(ctx context.Context, r *provider.Reply) (done bool, err error) {
	calls := r.Message.ToolCalls()
	if len(calls) > 0 && len(t.engine.Tools) == 0 {
		t.result.Calls = calls
		return true, nil
	}
	for _, c := range calls {
		if err := t.call(ctx, c); err != nil {
			return false, err
		}
	}
	switch {
	case r.Finish == provider.Length:
		return false, t.goOn(r)
	case r.Finish == provider.Paused && len(calls) == 0:
		if t.pauses++; t.pauses > maxPauses {
			return false, exitcodes.Errorf(exitcodes.Limit, "the provider paused %d times in a row", t.pauses)
		}
		return false, nil
	}
	t.cuts, t.pauses = 0, 0
	return len(calls) == 0, nil
}

// count adds up what a reply used.
func (t *turn) count(r *provider.Reply) {
	if r.Usage.CostUSD == 0 && t.engine.Price != nil {
		if usd, known := t.engine.Price(r.Usage); known {
			r.Usage.CostUSD = usd
		}
	}
	t.result.Steps++
	t.result.Usage = t.result.Usage.Add(r.Usage)
}

// refused ends the turn. Nothing of the reply is committed: the next attempt
// would be refused because of it.
func (t *turn) refused(r *provider.Reply) error {
	said := r.Message.Text()
	for _, p := range r.Message.Parts {
		if p.Kind == message.Refusal {
			said += p.Text
		}
	}
	t.result.Text = said
	if said == "" {
		said = "the provider's filter ended the reply (" + r.RawFinish + ")"
	}
	return exitcodes.Errorf(exitcodes.Refused, "the model refused: %s", oneLine(said))
}

// mend asks once more after a reply that says nothing, which is not committed.
func (t *turn) mend(r *provider.Reply) error {
	if r.Finish == provider.Length {
		return t.goOn(r)
	}
	if t.empties++; t.empties > maxEmpty {
		return exitcodes.Errorf(exitcodes.Failure, "the model gave an empty reply %d times (finish %q)", t.empties, r.RawFinish)
	}
	t.engine.notify(Notice{Kind: NoticeContinuing, Text: "the reply was empty; asking the agent to go on"})
	return t.say(sayEmpty)
}

// goOn asks for the rest of a reply that reached the output limit.
func (t *turn) goOn(r *provider.Reply) error {
	if t.cuts++; t.cuts > maxCut {
		return exitcodes.Errorf(exitcodes.Limit, "%d replies in a row reached the output limit (finish %q)", t.cuts, r.RawFinish).
			WithHint("raise the model's output limit, or ask for smaller steps")
	}
	t.engine.notify(Notice{Kind: NoticeContinuing, Text: "the reply reached the output limit; asking the agent to go on"})
	return t.say(sayCut)
}

// keepView records what overflow recovery left out, once a reply has shown that
// it was enough. Dropped messages are hidden for good; shortened results are
// shortened again for every further request.
func (t *turn) keepView(now *session.Transcript, v *view) error {
	if v == nil || v.step <= t.step {
		return nil
	}
	t.step = min(v.step, keepDropping-1)
	if v.dropped == 0 {
		return t.journal.Note("overflow", "the context did not fit: "+v.note)
	}
	return t.journal.Compaction(now.Seqs[v.dropped+1], v.messages[0])
}

// sum adds the figures of two generations.
func sum(a, b recovery.Stats) recovery.Stats {
	a.Requests += b.Requests
	a.Replays += b.Replays
	a.Waited += b.Waited
	a.Why = append(a.Why, b.Why...)
	return a
}

// oneLine makes text fit for an error.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > 300 {
		return string(r[:300]) + " ..."
	}
	return text
}
