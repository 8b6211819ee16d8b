package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentd/exitcodes"
	"agentd/generation"
	"agentd/provider"
	"agentd/provider/message"
	"agentd/provider/rehearsal"
	"agentd/recovery"
	"agentd/workspace"
)

type generateOptions struct {
	wire      string
	baseURL   string
	provider  string
	model     string
	system    string
	keyEnv    string
	tools     []string
	once      bool
	done      bool
	maxTokens int
	requests  int
	deadline  time.Duration
	timeout   time.Duration
	bytesIdle time.Duration
	eventIdle time.Duration
}

func (a *App) generateCommand() *cobra.Command {
	var o generateOptions
	cmd := &cobra.Command{
		Use:   "generate --model MODEL PROMPT",
		Short: "Ask a model once, outside any workspace",
		Long: `Generate makes one noninteractive turn and prints the reply as it comes. The
provider is that of the model's name (anthropic/claude-sonnet-4-5), or --provider,
or any server that speaks one of the wires (--wire and --base-url; its key, if it
wants one, is in AGENTD_API_KEY). PROMPT may be "-" for standard input.`,
		Example: `  agentd generate --model anthropic/claude-sonnet-4-5 "What is a lane lock?"
  agentd generate --wire chat --base-url http://localhost:8080/v1 --model m --once --json Hello`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.generate(cmd, o, args[0])
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.wire, "wire", "", "the server's protocol: `chat, responses or anthropic`")
	f.StringVar(&o.baseURL, "base-url", "", "the server's `URL`, without the wire's own path")
	f.StringVar(&o.provider, "provider", "", "a known provider's `NAME`")
	f.StringVar(&o.model, "model", "", "the model's `NAME`, or PROVIDER/NAME")
	f.StringVar(&o.system, "system", "", "the system prompt's `TEXT`")
	f.StringVar(&o.keyEnv, "api-key-env", "AGENTD_API_KEY", "with --base-url: the `VARIABLE` that holds the key")
	f.StringArrayVar(&o.tools, "tool", nil, "offer a tool by `NAME`; it is described, not run (repeatable)")
	f.BoolVar(&o.once, "once", false, "one generation, whatever it is")
	f.BoolVar(&o.done, "done-is-terminal", false, "chat: the server's [DONE] alone proves that a reply is complete")
	f.IntVar(&o.maxTokens, "max-tokens", 0, "at most `N` output tokens")
	f.IntVar(&o.requests, "requests", 0, "at most `N` physical requests (default 11)")
	f.DurationVar(&o.deadline, "deadline", 0, "no new request and no wait after `TIME` (default 10m)")
	f.DurationVar(&o.timeout, "request-timeout", 0, "one request may take at most `TIME` (default 10m)")
	f.DurationVar(&o.bytesIdle, "bytes-idle", 0, "give a stream up after `TIME` without a byte (default 2m)")
	f.DurationVar(&o.eventIdle, "event-idle", 0, "give a stream up after `TIME` without an event (default 5m)")
	return cmd
}

func (a *App) generate(cmd *cobra.Command, o generateOptions, prompt string) error {
	endpoint, model, stop, err := a.endpoint(o)
	if err != nil {
		return err
	}
	defer stop()
	if prompt, err = a.promptText(prompt); err != nil {
		return err
	}
	budget, err := recovery.OptionsFromEnv(a.Getenv)
	if err != nil {
		return err
	}
	if o.requests > 0 {
		budget.Requests = o.requests
	}
	budget.Deadline = o.deadline
	options := generation.Options{
		Endpoint: endpoint, Model: model, System: o.system, Prompt: prompt, Once: o.once,
		Offered: offered(o.tools), MaxOutputTokens: o.maxTokens, Recovery: budget,
		Timeouts: provider.Timeouts{Request: o.timeout, BytesIdle: o.bytesIdle, EventIdle: o.eventIdle},
	}
	if !a.json {
		options.Preview = generation.Plain(a.Stdout)
		options.Notice = func(n generation.Notice) {
			if n.Kind == generation.NoticeReplay || n.Kind == generation.NoticeWait || n.Kind == generation.NoticeOverflow {
				fmt.Fprintf(a.Stderr, "%s\n", oneLine(n.Text))
			}
		}
	}
	answer, err := generation.Run(cmd.Context(), options)
	if a.json {
		if jsonErr := a.printJSON(answer); jsonErr != nil && err == nil {
			return jsonErr
		}
		if err != nil {
			return reported{err}
		}
		return nil
	}
	for _, c := range answer.ToolCalls {
		a.printf("%s %s\n", c.Name, c.Arguments)
	}
	return err
}

// endpoint finds where to send the request. stop ends a scripted provider.
func (a *App) endpoint(o generateOptions) (e provider.Endpoint, model string, stop func(), err error) {
	stop = func() {}
	wire := provider.Wire(o.wire)
	scenario, rehearsed := strings.CutPrefix(o.model, workspace.Rehearsal+"/")
	switch {
	case o.model == "":
		err = exitcodes.Errorf(exitcodes.Usage, "--model is missing").WithHint("Try: agentd generate --help")
	case o.wire != "" && wire != provider.Chat && wire != provider.Responses && wire != provider.Anthropic:
		err = exitcodes.Errorf(exitcodes.Usage, "there is no wire %q", o.wire).WithHint("Wires: chat, responses, anthropic")
	case rehearsed && o.provider == "" && o.baseURL == "":
		return scripted(scenario, wire)
	case o.provider != "" && (o.wire != "" || o.baseURL != ""):
		err = exitcodes.Errorf(exitcodes.Usage, "--provider and --wire with --base-url are two ways to say the same: give one")
	case o.wire == "" && o.baseURL == "":
		name := o.model
		if o.provider != "" {
			name = o.provider + "/" + o.model
		}
		e, model, err = provider.Resolve(name, nil, a.Getenv)
		e.DoneIsTerminal = e.DoneIsTerminal || o.done
	case o.wire == "" || o.baseURL == "":
		err = exitcodes.Errorf(exitcodes.Usage, "--wire and --base-url go together")
	case !strings.HasPrefix(o.baseURL, "http://") && !strings.HasPrefix(o.baseURL, "https://"):
		err = exitcodes.Errorf(exitcodes.Usage, "--base-url %q does not start with http:// or https://", o.baseURL)
	default:
		e = provider.Endpoint{
			Name: "custom", Wire: wire, BaseURL: strings.TrimRight(o.baseURL, "/"),
			APIKey: a.Getenv(o.keyEnv), DoneIsTerminal: o.done,
		}
		model = o.model
	}
	return e, model, stop, err
}

// scripted starts a scripted provider for one scenario.
func scripted(scenario string, wire provider.Wire) (provider.Endpoint, string, func(), error) {
	sc, err := rehearsal.Load(scenario)
	if err != nil {
		return provider.Endpoint{}, "", nil, err
	}
	if wire == "" {
		wire = provider.Chat
	}
	if sc.Wire != "" {
		wire = provider.Wire(sc.Wire)
	}
	s, err := rehearsal.Serve(sc)
	if err != nil {
		return provider.Endpoint{}, "", nil, err
	}
	e := provider.Endpoint{Name: workspace.Rehearsal, Wire: wire, BaseURL: s.BaseURL(rehearsal.Wire(wire))}
	return e, scenario, func() { _ = s.Close() }, nil // nobody is left to answer
}

// offered describes tools by name, with a schema that takes anything.
func offered(names []string) []message.Definition {
	var list []message.Definition
	for _, name := range names {
		list = append(list, message.Definition{
			Name: name, Description: "The tool " + name + ".",
			Schema: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":true}`),
		})
	}
	return list
}
