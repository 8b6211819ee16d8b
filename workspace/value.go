package workspace

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// setter reads a value of the file into a T. name is the key as messages call
// it. What is wrong goes into the findings.
type setter[T any] func(f *findings, name string, n *node, t *T)

// check refuses a text for a reason that reads well after `key "text": `.
type check func(string) error

// concealed is a reason that is told without the value, which may be a secret.
type concealed string

func (c concealed) Error() string { return string(c) }

func wrongType(f *findings, name string, n *node, want string) {
	f.mistake(n.pos, "%s must be %s, not %s", name, want, n.describe())
}

// describe names a value for people.
func (n *node) describe() string {
	switch n.kind {
	case kindText:
		return "the text " + quote(n.text)
	case kindInteger, kindFloat:
		return "the number " + n.text
	case kindBool:
		return n.text
	}
	return "a " + string(n.kind)
}

// quote shows a value of the file within a message, shortened.
func quote(s string) string {
	const most = 60
	if utf8.RuneCountInString(s) > most {
		s = string([]rune(s)[:most]) + "..."
	}
	return strconv.Quote(s)
}

func (n *node) checked(f *findings, name string, checks []check) bool {
	if strings.ContainsRune(n.text, 0) {
		f.mistake(n.pos, "%s must not hold a NUL character", name)
		return false
	}
	for _, c := range checks {
		err := c(n.text)
		if _, ok := errors.AsType[concealed](err); ok {
			f.mistake(n.pos, "%s %v", name, err)
			return false
		}
		if err != nil {
			f.mistake(n.pos, "%s %s: %v", name, quote(n.text), err)
			return false
		}
	}
	return true
}

// text reads a text that passes the checks.
func text[T any](ref func(*T) *string, checks ...check) setter[T] {
	return func(f *findings, name string, n *node, t *T) {
		if n.kind != kindText {
			wrongType(f, name, n, "text in quotes")
			return
		}
		if n.checked(f, name, checks) {
			*ref(t) = n.text
		}
	}
}

// texts reads a list of texts that each pass the checks.
func texts[T any](ref func(*T) *[]string, checks ...check) setter[T] {
	return func(f *findings, name string, n *node, t *T) {
		if n.kind != kindArray {
			wrongType(f, name, n, `a list of texts such as ["a", "b"]`)
			return
		}
		list := make([]string, 0, len(n.items))
		for _, item := range n.items {
			if item.kind != kindText {
				wrongType(f, "each item of "+name, item, "text in quotes")
			} else if item.checked(f, name, checks) {
				list = append(list, item.text)
			}
		}
		*ref(t) = list
	}
}

// textOrTexts reads one text or a list of them.
func textOrTexts[T any](ref func(*T) *[]string, checks ...check) setter[T] {
	list := texts(ref, checks...)
	return func(f *findings, name string, n *node, t *T) {
		switch n.kind {
		case kindText:
			list(f, name, &node{kind: kindArray, pos: n.pos, items: []*node{n}}, t)
		case kindArray:
			list(f, name, n, t)
		default:
			wrongType(f, name, n, "text in quotes or a list of texts")
		}
	}
}

func boolean[T any](ref func(*T) *bool) setter[T] {
	return func(f *findings, name string, n *node, t *T) {
		if n.kind != kindBool {
			wrongType(f, name, n, "true or false (without quotes)")
			return
		}
		*ref(t) = n.text == "true"
	}
}

// integer reads a whole number from low to high.
func integer[T any, I int | int64](ref func(*T) *I, low, high I) setter[T] {
	return func(f *findings, name string, n *node, t *T) {
		if n.kind != kindInteger {
			wrongType(f, name, n, "a whole number (without quotes)")
			return
		}
		v, err := strconv.ParseInt(n.text, 0, 64)
		if err != nil || v < int64(low) || v > int64(high) {
			f.mistake(n.pos, "%s %s is out of %d to %d", name, n.text, low, high)
			return
		}
		*ref(t) = I(v)
	}
}

// amount reads a number above zero and up to high.
func amount[T any](ref func(*T) *float64, high float64) setter[T] {
	return func(f *findings, name string, n *node, t *T) {
		if n.kind != kindFloat && n.kind != kindInteger {
			wrongType(f, name, n, "a number (without quotes)")
			return
		}
		v, err := strconv.ParseFloat(strings.ReplaceAll(n.text, "_", ""), 64)
		if err != nil || !(v > 0) || v > high {
			f.mistake(n.pos, "%s %s must be above 0 and at most %g", name, n.text, high)
			return
		}
		*ref(t) = v
	}
}

// duration reads a text such as "30m" from low to high.
func duration[T any](ref func(*T) *time.Duration, low, high time.Duration) setter[T] {
	return func(f *findings, name string, n *node, t *T) {
		if n.kind != kindText {
			wrongType(f, name, n, `a duration in quotes such as "90s", "30m" or "1d"`)
			return
		}
		d, err := parseDuration(n.text)
		switch {
		case err != nil:
			f.mistake(n.pos, "%s %s: %v", name, quote(n.text), err)
		case d < low:
			f.mistake(n.pos, "%s %s: must be at least %s", name, quote(n.text), FormatDuration(low))
		case d > high:
			f.mistake(n.pos, "%s %s: must be at most %s", name, quote(n.text), FormatDuration(high))
		default:
			*ref(t) = d
		}
	}
}

// units of a duration. A day is 24 hours here: these are spans, not dates.
var units = []struct {
	name string
	size time.Duration
}{
	{"ms", time.Millisecond},
	{"s", time.Second},
	{"m", time.Minute},
	{"h", time.Hour},
	{"d", 24 * time.Hour},
	{"w", 7 * 24 * time.Hour},
}

// parseDuration reads numbers with units: "90s", "1h30m", "1.5h", "2d", "0".
func parseDuration(s string) (time.Duration, error) {
	rest, total := strings.TrimSpace(s), 0.0
	switch {
	case rest == "":
		return 0, fmt.Errorf(`empty; write a duration such as "30m"`)
	case rest == "0":
		return 0, nil
	case strings.HasPrefix(rest, "-"):
		return 0, fmt.Errorf("must not be negative")
	}
	for rest != "" {
		i := strings.IndexFunc(rest, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
		if i < 0 {
			return 0, fmt.Errorf(`%q has no unit: write %q or %q`, rest, rest+"s", rest+"m")
		}
		number, err := strconv.ParseFloat(rest[:i], 64)
		if err != nil {
			return 0, fmt.Errorf(`not a duration such as "90s", "30m", "1h30m" or "1d"`)
		}
		rest = strings.TrimLeft(rest[i:], " ")
		j := strings.IndexFunc(rest, func(r rune) bool { return r < 'a' || r > 'z' })
		if j < 0 {
			j = len(rest)
		}
		size, ok := unitSize(rest[:j])
		if !ok {
			return 0, fmt.Errorf("unknown unit %q: use ms, s, m, h, d or w", firstWord(rest))
		}
		total += number * float64(size)
		rest = strings.TrimLeft(rest[j:], " ")
	}
	if total > math.MaxInt64/2 {
		return 0, fmt.Errorf("too long")
	}
	return time.Duration(math.Round(total)), nil
}

func unitSize(name string) (time.Duration, bool) {
	for _, u := range units {
		if u.name == name {
			return u.size, true
		}
	}
	return 0, false
}

func firstWord(s string) string {
	if i := strings.IndexAny(s, " 0123456789"); i > 0 {
		return s[:i]
	}
	return s
}

// FormatDuration writes d the way agentd.toml does: "1h30m", "2d", "0s".
func FormatDuration(d time.Duration) string {
	if d <= 0 {
		return "0s"
	}
	var b strings.Builder
	for i := len(units) - 2; i >= 0; i-- { // days are clear enough: no weeks
		u := units[i]
		if n := d / u.size; n > 0 {
			fmt.Fprintf(&b, "%d%s", n, u.name)
			d -= n * u.size
		}
	}
	if b.Len() == 0 {
		return d.String()
	}
	return b.String()
}
