package provider

import (
	"bytes"
	"encoding/json"
	"html"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// report is what an error body says, whatever its shape.
type report struct {
	words  []string // types and codes, the most telling first
	text   string   // the provider's own message
	param  string   // the parameter it complains about
	status int      // a status inside the body, 0 if none
	after  time.Duration
	reset  time.Time
	header map[string]string // rate-limit headers repeated in the body (OpenRouter)
	json   bool              // the body is JSON that reports an error
}

// readReport understands an error body. A body that is not JSON is taken as
// text; of an HTML page the title is kept.
func readReport(body []byte, now time.Time) report {
	var r report
	var v any
	body = bytes.TrimSpace(body)
	if err := json.Unmarshal(body, &v); err != nil {
		r.text = pageText(body)
		return r
	}
	r.json = r.top(v, now)
	return r
}

// top reads the outermost value and reports whether it is an error at all.
func (r *report) top(v any, now time.Time) bool {
	switch v := v.(type) {
	case []any: // Gemini wraps the error in a list
		return len(v) > 0 && r.top(v[0], now)
	case string:
		r.text = v
		return v != ""
	case map[string]any:
		if resp, ok := v["response"].(map[string]any); ok && v["error"] == nil {
			v = resp // response.failed
		}
		return r.object(v, now)
	}
	return false
}

func (r *report) object(v map[string]any, now time.Time) bool {
	found := false
	switch e := v["error"].(type) {
	case map[string]any:
		found = true
		r.fields(e, now)
	case string:
		found = true
		r.say(e)
		if c, ok := v["code"].(string); ok && e != "" && strings.Contains(c, " ") {
			r.text = c + ": " + e // xAI: the code is a sentence
		}
	}
	flat := v["object"] == "error" || v["type"] == "error" || v["detail"] != nil ||
		v["__type"] != nil || v["message"] != nil || v["Message"] != nil || v["code"] != nil || v["Output"] != nil
	if !found && !flat {
		return false
	}
	r.fields(v, now)
	return true
}

// fields reads an error object: the type and code, the message, and what says
// when to come back.
func (r *report) fields(e map[string]any, now time.Time) {
	if inner, ok := e["innererror"].(map[string]any); ok { // Azure
		r.word(inner["code"])
	}
	for _, k := range []string{"code", "type", "status", "__type", "reason"} {
		r.word(e[k])
	}
	for _, k := range []string{"message", "Message", "detail", "error_message", "msg"} {
		r.say(e[k])
	}
	if p, ok := e["param"].(string); ok && r.param == "" {
		r.param = p
	}
	if n, ok := number(e["status_code"]); ok {
		r.setStatus(int(n))
	}
	if n, ok := number(e["resets_in_seconds"]); ok {
		r.after = seconds(n)
	}
	if n, ok := number(e["resets_at"]); ok {
		r.reset = unixTime(n, now)
	}
	if out, ok := e["Output"].(map[string]any); ok {
		r.word(out["__type"])
	}
	r.metadata(e["metadata"])
	r.details(e["details"])
}

// metadata reads what OpenRouter adds: the upstream provider's own error and
// the headers of the limit.
func (r *report) metadata(v any) {
	m, ok := v.(map[string]any)
	if !ok {
		return
	}
	r.word(m["error_type"])
	if raw, ok := m["raw"].(string); ok && raw != "" {
		up := readReport([]byte(raw), time.Time{})
		r.words = append(r.words, up.words...)
		if up.text != "" && !strings.Contains(r.text, up.text) {
			r.text = strings.TrimPrefix(r.text+": "+up.text, ": ")
		}
	}
	if reasons, ok := m["reasons"].([]any); ok && len(reasons) > 0 {
		r.words = append(r.words, "moderation")
	}
	if h, ok := m["headers"].(map[string]any); ok {
		r.header = map[string]string{}
		for k, v := range h {
			if s, ok := v.(string); ok {
				r.header[k] = s
			}
		}
	}
}

// details reads Google's list of typed details.
func (r *report) details(v any) {
	list, _ := v.([]any)
	for _, d := range list {
		m, ok := d.(map[string]any)
		if !ok {
			continue
		}
		r.word(m["reason"])
		if s, ok := m["retryDelay"].(string); ok {
			if d, err := time.ParseDuration(s); err == nil && d > 0 {
				r.after = d
			}
		}
	}
}

// word keeps a type or a code. A code that is a status is kept as such.
func (r *report) word(v any) {
	switch v := v.(type) {
	case float64:
		r.setStatus(int(v))
	case string:
		if n, err := strconv.Atoi(v); err == nil {
			r.setStatus(n)
			return
		}
		if i := strings.LastIndexByte(v, '#'); i >= 0 { // com.amazon...#Type
			v = v[i+1:]
		}
		if v != "" && v != "error" && len(v) <= 80 && !strings.Contains(v, " ") {
			r.words = append(r.words, v)
		}
	}
}

func (r *report) setStatus(n int) {
	if r.status == 0 && n >= 400 && n < 600 {
		r.status = n
	}
}

// say keeps the first message; one that is not a string is kept as JSON.
func (r *report) say(v any) {
	if r.text != "" || v == nil {
		return
	}
	switch v := v.(type) {
	case string:
		r.text = v
		r.unwrap()
	case map[string]any:
		for _, k := range []string{"message", "detail", "error"} {
			r.say(v[k])
		}
	case []any: // FastAPI: a list of what is wrong where
		if text, err := json.Marshal(v); err == nil {
			r.text = string(text)
		}
	}
}

// unwrap looks into a message that is itself an error body, which gateways make.
func (r *report) unwrap() {
	text := strings.TrimSpace(r.text)
	if !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[{") || strings.Count(text, "{") > 20 {
		return
	}
	inner := readReport([]byte(text), time.Time{})
	if !inner.json {
		return
	}
	r.words = append(r.words, inner.words...)
	if inner.text != "" {
		r.text = inner.text
	}
	r.setStatus(inner.status)
	r.after = max(r.after, inner.after)
}

// typ returns the most telling word.
func (r *report) typ() string {
	if len(r.words) == 0 {
		return ""
	}
	return r.words[0]
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case string:
		f, err := strconv.ParseFloat(v, 64)
		return f, err == nil
	}
	return 0, false
}

var (
	titleTag = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`)
	anyTag   = regexp.MustCompile(`(?s)<(script|style)[^>]*>.*?</(script|style)>|<[^>]*>`)
)

// pageText returns the readable part of a body that is not JSON.
func pageText(body []byte) string {
	text := string(body)
	if m := titleTag.FindStringSubmatch(text); m != nil {
		return html.UnescapeString(m[1])
	}
	if strings.HasPrefix(text, "<") {
		text = html.UnescapeString(anyTag.ReplaceAllString(text, " "))
	}
	return text
}

// maxMessage bounds a provider's message, in bytes.
const maxMessage = 1000

// oneLine makes a provider's words fit for an error: one line, no control
// characters, not too long.
func oneLine(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxMessage {
		s = strings.ToValidUTF8(s[:maxMessage], "") + "..."
	}
	return s
}

// excerpt shows the beginning of data in an error.
func excerpt(data []byte) string {
	if len(data) > 80 {
		return strconv.Quote(strings.ToValidUTF8(string(data[:80]), "")) + "..."
	}
	return strconv.Quote(string(data))
}
