package backend

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"agentd/exitcodes"
	"agentd/workspace"
)

// classifier turns what a CLI says about a failure into a code.
type classifier struct {
	rules  []rule
	lost   []*regexp.Regexp
	status map[int]exitcodes.Code
	now    func() time.Time
	local  *time.Location // the zone of times that a program prints without one
}

// rule is a pattern of a preset.
type rule struct {
	match *regexp.Regexp
	code  exitcodes.Code
}

func newClassifier(b workspace.Backend, now func() time.Time, local *time.Location) (*classifier, error) {
	c := &classifier{status: map[int]exitcodes.Code{}, now: now, local: local}
	for _, p := range b.Patterns {
		re, err := regexp.Compile("(?i)" + p.Match)
		e, ok := exitcodes.ByName(p.Code)
		if err != nil || !ok {
			return nil, exitcodes.Errorf(exitcodes.Config, "backend %s: bad pattern %q", b.Name, p.Match)
		}
		c.rules = append(c.rules, rule{re, e.Code})
	}
	for _, p := range b.SessionLost {
		re, err := regexp.Compile("(?i)" + p)
		if err != nil {
			return nil, exitcodes.Errorf(exitcodes.Config, "backend %s: bad pattern %q", b.Name, p)
		}
		c.lost = append(c.lost, re)
	}
	for status, name := range b.ExitCodes {
		if e, ok := exitcodes.ByName(name); ok {
			c.status[status] = e.Code
		}
	}
	return c, nil
}

// fault is a failure as a CLI reports it. Fields that it did not tell are zero.
type fault struct {
	code   exitcodes.Code // where the report itself says which
	status int            // of HTTP
	text   string         // for people
	reset  time.Time
}

// codeOf decides on the code of a reported fault; false if it says nothing that
// is known.
func (c *classifier) codeOf(f fault) (exitcodes.Code, bool) {
	if f.code != exitcodes.OK {
		return f.code, true
	}
	status, text := f.status, f.text
	if s, inner, ok := embedded(text); ok {
		text = inner
		if status == 0 {
			status = s
		}
	}
	if status != 0 {
		return c.byHTTP(status, text), true
	}
	return c.byText(f.text)
}

// byHTTP decides by the provider's status first: what its text speaks of does
// not turn a 401 into a limit.
func (c *classifier) byHTTP(status int, text string) exitcodes.Code {
	said, known := c.byText(text)
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return exitcodes.NoPermission
	case status == http.StatusPaymentRequired:
		return exitcodes.Quota
	case status == http.StatusNotFound:
		return exitcodes.Config
	case status == http.StatusRequestEntityTooLarge:
		return exitcodes.Overflow
	case status == http.StatusTooManyRequests:
		if known && said == exitcodes.Quota {
			return said
		}
		return exitcodes.RateLimited
	case status == http.StatusRequestTimeout, status >= 500:
		return exitcodes.Unavailable
	case known:
		return said
	}
	return exitcodes.Failure
}

// lead is what stands before the words of an error.
var lead = regexp.MustCompile(`^(?i:\[|error\b:?|fatal\b:?|warning\b:?|api error:?|err:|✖|✗|×|■|⚠️?|\w*(?:Error|Exception):|[\s:]+)`)

// forms returns the line, and what is left of it without each lead.
func forms(line string) []string {
	all := []string{line}
	for cut := lead.FindString(line); cut != ""; cut = lead.FindString(line) {
		line = line[len(cut):]
		all = append(all, line)
	}
	return all
}

// byText tries the patterns on one line.
func (c *classifier) byText(line string) (exitcodes.Code, bool) {
	all := forms(line)
	for _, r := range c.rules {
		for _, f := range all {
			if r.match.MatchString(f) {
				return r.code, true
			}
		}
	}
	return exitcodes.OK, false
}

// byLines looks for the last line that says something known, and returns it.
func (c *classifier) byLines(lines []string) (code exitcodes.Code, line string, ok bool) {
	for i := len(lines) - 1; i >= 0; i-- {
		if strings.TrimSpace(lines[i]) == "" {
			continue
		}
		if code, ok = c.codeOf(fault{text: strings.TrimSpace(lines[i])}); ok {
			return code, lines[i], true
		}
	}
	return exitcodes.OK, "", false
}

// isLost reports whether a line says that the session is not there.
func (c *classifier) isLost(lines ...string) bool {
	for _, line := range lines {
		all := forms(strings.TrimSpace(line))
		for _, re := range c.lost {
			if slices.ContainsFunc(all, re.MatchString) {
				return true
			}
		}
	}
	return false
}

// reset finds the end of a limit in the text of a fault.
func (c *classifier) reset(text string) time.Time {
	t, _ := resetTime(text, c.now(), c.local)
	return t
}

// embedded finds the provider's own JSON in the text of an error: the HTTP
// status and what it says. Only the shapes of providers count.
func embedded(text string) (status int, message string, ok bool) {
	at := strings.IndexByte(text, '{')
	if at < 0 || at > 200 {
		return 0, "", false
	}
	var body struct {
		Error struct {
			Code    any    `json:"code"`
			Type    string `json:"type"`
			Message string `json:"message"`
			Status  string `json:"status"`
		} `json:"error"`
	}
	if json.NewDecoder(strings.NewReader(text[at:])).Decode(&body) != nil {
		return 0, "", false
	}
	e := body.Error
	if n, isNumber := e.Code.(float64); isNumber && n >= 400 && n < 600 {
		return int(n), e.Message, true
	}
	switch e.Type {
	case "overloaded_error":
		return 529, e.Message, true
	case "rate_limit_error":
		return http.StatusTooManyRequests, e.Message, true
	case "authentication_error":
		return http.StatusUnauthorized, e.Message, true
	case "permission_error":
		return http.StatusForbidden, e.Message, true
	case "billing_error":
		return http.StatusPaymentRequired, e.Message, true
	case "not_found_error":
		return http.StatusNotFound, e.Message, true
	case "invalid_request_error":
		return http.StatusBadRequest, e.Message, true
	case "api_error":
		return http.StatusInternalServerError, e.Message, true
	case "insufficient_quota":
		return http.StatusTooManyRequests, "insufficient_quota", true
	}
	return 0, "", false
}

// ending is how the program ended by itself.
type ending struct {
	status int
	signal string // that ended it, not sent by us
	oom    bool
}

// verdict is what an attempt comes to.
type verdict struct {
	code  exitcodes.Code
	text  string // why, for people; empty if all is well
	reset time.Time
}

// judge decides how the attempt went, for a program that was not stopped by
// us: a signal, the structured end, the exit status, the text, in this order.
func (c *classifier) judge(r *reading, e ending, looked bool) verdict {
	switch {
	case e.oom:
		return verdict{code: exitcodes.Failure, text: "was killed by the kernel: out of memory"}
	case e.signal != "":
		return verdict{code: exitcodes.Failure, text: "was ended by " + e.signal + r.saidLast()}
	}
	if f, ok := r.failure(); ok {
		return c.failed(f, e)
	}
	if e.status == 0 && r.ended && r.said {
		if !looked {
			return verdict{}
		}
		if code, line, ok := c.byLines(r.errorLines()); ok {
			return c.limited(verdict{code: code, text: line}, line)
		}
		return verdict{}
	}
	if code, ok := c.status[e.status]; ok {
		text := fmt.Sprintf("ended with status %d%s", e.status, r.saidLast())
		if said, line, ok := c.byLines(r.errorLines()); ok && refines(said, code) {
			code, text = said, line
		}
		return c.limited(verdict{code: code, text: text}, strings.Join(r.errorLines(), "\n"))
	}
	if e.status != 0 || looked {
		if code, line, ok := c.byLines(r.errorLines()); ok {
			return c.limited(verdict{code: code, text: line}, line)
		}
	}
	switch {
	case e.status != 0:
		return verdict{code: exitcodes.Failure, text: fmt.Sprintf("ended with status %d%s", e.status, r.saidLast())}
	case !r.ended:
		return verdict{code: exitcodes.Failure, text: "ended with status 0, but never said that it was done" + r.saidLast()}
	}
	return verdict{code: exitcodes.Failure, text: "ended with status 0 and said nothing"}
}

// refines reports whether the text may turn the code of a status into a closer
// one: a limit into a quota, a bad request into an overflow.
func refines(said, status exitcodes.Code) bool {
	return status == exitcodes.RateLimited && said == exitcodes.Quota || status == exitcodes.Config && said != exitcodes.RateLimited
}

// failed is the verdict on a fault that the structured output reports. What it
// leaves open the exit status and the text may say.
func (c *classifier) failed(f fault, e ending) verdict {
	code, ok := c.codeOf(f)
	if !ok {
		code, ok = c.status[e.status]
	}
	if !ok {
		code = exitcodes.Failure
	}
	v := verdict{code: code, text: f.text, reset: f.reset}
	if v.text == "" {
		v.text = fmt.Sprintf("failed with HTTP status %d", f.status)
	}
	return c.limited(v, f.text)
}

// repeated is the verdict on a request that a program sends again and again.
func (c *classifier) repeated(why string) verdict {
	code, ok := c.codeOf(fault{text: why})
	if !ok || code == exitcodes.Failure {
		code = exitcodes.Unavailable // it would not repeat what cannot come right
	}
	return c.limited(verdict{code: code, text: why}, why)
}

// limited adds the reset time to the verdict on a limit.
func (c *classifier) limited(v verdict, text string) verdict {
	if v.code != exitcodes.RateLimited {
		v.reset = time.Time{}
		return v
	}
	if t, ok := reasonable(v.reset, c.now()); ok && !v.reset.IsZero() {
		v.reset = t
		return v
	}
	v.reset = c.reset(text)
	return v
}

// httpReason describes an HTTP status for people.
func httpReason(status int, class string) string {
	text := http.StatusText(status)
	switch {
	case status == 0 && class == "":
		return "no reply"
	case status == 0:
		return class
	case class == "" && text == "":
		return fmt.Sprintf("HTTP %d", status)
	case class == "":
		return fmt.Sprintf("HTTP %d %s", status, text)
	}
	return fmt.Sprintf("HTTP %d %s", status, class)
}
