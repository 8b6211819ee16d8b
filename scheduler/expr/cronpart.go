package expr

import (
	"fmt"
	"iter"
	"maps"
	"strconv"
	"strings"
)

// parsePart reads one field: a list of elements.
func parsePart(src source, w word, f cronField) (cronPart, *SyntaxError) {
	part := cronPart{word: w}
	for _, element := range w.split(",") {
		if element.text == "" {
			return part, src.errorAt(element.off, "%s has an empty place in the list %q", f.name, w.text)
		}
		if ref, ok, err := parseDayRef(src, element, f); err != nil {
			return part, err
		} else if ok {
			part.days = append(part.days, ref)
			continue
		}
		if err := part.add(src, element, f); err != nil {
			return part, err
		}
	}
	if part.star {
		part.days = nil
	}
	return part, nil
}

// add reads one element: *, a value, a range, each with a step if need be.
func (p *cronPart) add(src source, element word, f cronField) *SyntaxError {
	pieces := element.split("/")
	if len(pieces) > 2 {
		return src.errorAt(pieces[2].off-1, "%s %q has two steps", f.name, element.text)
	}
	lo, hi, open, err := parseRange(src, pieces[0], f)
	if err != nil {
		return err
	}
	step := 1
	if len(pieces) == 2 {
		if step, err = parseStep(src, pieces[1], f); err != nil {
			return err
		}
		if lo == hi && !strings.Contains(pieces[0].text, "-") {
			hi = f.max
			if lo > hi { // 7 is Sunday, and the last day of a week
				lo, hi = 0, 0
			}
		}
		open = hi == f.max && lo < f.min+step
	}
	p.star = p.star || open && step == 1 && isStar(pieces[0].text)
	p.stepped = p.stepped || open && step > 1
	values, count := wrapSpan(lo, hi, step, f)
	p.values |= values
	if len(pieces) == 2 {
		p.noteStep(element.text, step, count, lo, hi, f)
	}
	return nil
}

func isStar(s string) bool { return s == "*" || s == "?" }

// parseRange reads *, ?, a value or a range; open says it is the whole range.
func parseRange(src source, w word, f cronField) (lo, hi int, open bool, err *SyntaxError) {
	if isStar(w.text) {
		return f.min, f.max, true, nil
	}
	ends := w.split("-")
	if len(ends) > 2 {
		return 0, 0, false, src.errorAt(ends[2].off-1, "%s range %q has more than two ends", f.name, w.text)
	}
	if lo, err = parseValue(src, ends[0], f); err != nil || len(ends) == 1 {
		return lo, lo, false, err
	}
	if hi, err = parseValue(src, ends[1], f); err != nil {
		return 0, 0, false, err
	}
	return lo, hi, lo == f.min && hi == f.max, nil
}

func parseValue(src source, w word, f cronField) (int, *SyntaxError) {
	switch {
	case w.text == "":
		return 0, src.errorAt(w.off, "%s has a value missing", f.name)
	case isDigits(w.text):
		n, err := strconv.Atoi(w.text)
		if err != nil || n < f.min || n > f.top {
			return 0, src.errorAt(w.off, "%s %s is out of %d-%d", f.name, w.text, f.min, f.top)
		}
		return n, nil
	case len(f.names) == 0:
		return 0, src.errorAt(w.off, "%s %q is not a number", f.name, w.text)
	}
	lower := strings.ToLower(w.text)
	for n, name := range f.names {
		if len(lower) >= 3 && strings.HasPrefix(name, lower) {
			return n, nil
		}
	}
	return 0, src.errorAt(w.off, "%s %q is neither %d-%d nor a name%s", f.name, w.text, f.min, f.top, didYouMean(lower, f.names))
}

func parseStep(src source, w word, f cronField) (int, *SyntaxError) {
	if !isDigits(w.text) {
		return 0, src.errorAt(w.off, "the step of %s, %q, is not a number", f.name, w.text)
	}
	n, err := strconv.Atoi(w.text)
	if err != nil || n > 100_000 {
		return 0, src.errorAt(w.off, "the step of %s, %s, is too large", f.name, w.text)
	}
	if n == 0 {
		return 0, src.errorAt(w.off, "the step of %s is 0; it is at least 1", f.name)
	}
	return n, nil
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// wrapSpan returns lo, lo+step, ... up to hi and how many they are; when hi is
// below lo the range runs over the end, as 22-2 does.
func wrapSpan(lo, hi, step int, f cronField) (set, int) {
	size := f.max - f.min + 1
	length := hi - lo
	if lo > hi {
		length += size
	}
	var values set
	count := 0
	for d := 0; d <= length; d += step {
		values |= 1 << (f.min + (lo-f.min+d)%size)
		count++
	}
	return values, count
}

// noteStep says so when a step does not do what it looks like.
func (p *cronPart) noteStep(text string, step, count, lo, hi int, f cronField) {
	size := f.max - f.min + 1
	whole := hi == f.max && lo < f.min+step
	switch {
	case step > 1 && count == 1:
		p.notes = append(p.notes, fmt.Sprintf("%s %q is only ever %s: the step of %d is larger than the range, and starts over every %s",
			f.name, text, valueText(lo, f), step, f.cycle))
	case whole && f.cycle == "month" && step > 1:
		p.notes = append(p.notes, fmt.Sprintf("%s %q starts over on day %d of every month", f.name, text, lo))
	case whole && size%step != 0:
		last := lo + (count-1)*step
		p.notes = append(p.notes, fmt.Sprintf("%s %q is not even: it starts over every %s, so after %s the next is %s",
			f.name, text, f.cycle, valueText(last, f), valueText(lo, f)))
	}
}

func valueText(n int, f cronField) string {
	if len(f.names) > 0 {
		return title(f.names[n%len(f.names)])
	}
	return strconv.Itoa(n)
}

func mapKeys[V any](m map[string]V) iter.Seq[string] { return maps.Keys(m) }
