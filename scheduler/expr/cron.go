package expr

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// cronField is one of the fields of a cron line.
type cronField struct {
	name     string
	min, max int
	top      int      // the largest number that may be written: 7 for weekdays
	names    []string // names[n] stands for n, lower case
	cycle    string   // what starts over after max
}

var monthNames = []string{"", "january", "february", "march", "april", "may", "june", "july",
	"august", "september", "october", "november", "december"}

var weekdayNames = []string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}

// The fields in the order of a line, seconds first.
const (
	fieldSecond = iota
	fieldMinute
	fieldHour
	fieldDay
	fieldMonth
	fieldWeekday
	fieldCount
)

func cronFields() [fieldCount]cronField {
	return [fieldCount]cronField{
		{name: "second", max: 59, top: 59, cycle: "minute"},
		{name: "minute", max: 59, top: 59, cycle: "hour"},
		{name: "hour", max: 23, top: 23, cycle: "day"},
		{name: "day of the month", min: 1, max: 31, top: 31, cycle: "month"},
		{name: "month", min: 1, max: 12, top: 12, names: monthNames, cycle: "year"},
		{name: "weekday", max: 6, top: 7, names: weekdayNames, cycle: "week"},
	}
}

// cronPart is a field as written.
type cronPart struct {
	word
	values  set
	star    bool     // has * or ?: does not restrict
	stepped bool     // has a step over the whole range, as */2
	days    []dayRef // L, W and #
	notes   []string
}

// full reports whether the part matches every value.
func (p *cronPart) full(f cronField) bool { return p.values == span(f.min, f.max, 1) }

var shorthands = map[string]string{
	"@hourly":   "0 * * * *",
	"@daily":    "0 0 * * *",
	"@midnight": "0 0 * * *",
	"@weekly":   "0 0 * * 0",
	"@monthly":  "0 0 1 * *",
	"@yearly":   "0 0 1 1 *",
	"@annually": "0 0 1 1 *",
}

func (s *Schedule) parseCron(src source, words []word) *SyntaxError {
	if strings.HasPrefix(words[0].text, "@") {
		return s.parseShorthand(src, words)
	}
	return s.parseFields(src, words)
}

// zonePrefix takes TZ=Zone or CRON_TZ=Zone off the front.
func (s *Schedule) zonePrefix(src source, words []word) ([]word, *SyntaxError) {
	key, name, ok := strings.Cut(words[0].text, "=")
	if !ok || (key != "TZ" && key != "CRON_TZ") {
		return words, nil
	}
	off := words[0].off + len(key) + 1
	if name == "" {
		return nil, src.errorAt(off, "%s= names no time zone", key)
	}
	z, err := findZone(name)
	if err != nil {
		return nil, src.errorAt(off, "time zone %s", err)
	}
	if len(words) == 1 {
		return nil, src.errorAt(len(src), "there is no schedule after %s", words[0].text)
	}
	s.zone = z
	return words[1:], nil
}

func (s *Schedule) parseShorthand(src source, words []word) *SyntaxError {
	first := words[0]
	name := strings.ToLower(first.text)
	if name == "@every" {
		return s.parseEvery(src, words)
	}
	if len(words) > 1 {
		return src.errorAt(words[1].off, "%q does not belong after %s", words[1].text, first.text)
	}
	if name == "@reboot" {
		s.kind = Boot
		return nil
	}
	line, ok := shorthands[name]
	if !ok {
		known := append(slices.Sorted(mapKeys(shorthands)), "@every", "@reboot")
		return src.errorAt(first.off, "%s is not known%s", first.text, didYouMean(name, known))
	}
	expanded := source(line)
	return s.parseFields(expanded, expanded.words(0))
}

func (s *Schedule) parseFields(src source, words []word) *SyntaxError {
	if err := checkFieldCount(src, words); err != nil {
		return err
	}
	if len(words) == fieldCount-1 {
		words = append([]word{{"0", words[0].off}}, words...)
	}
	var parts [fieldCount]cronPart
	for i, f := range cronFields() {
		part, err := parsePart(src, words[i], f)
		if err != nil {
			return err
		}
		parts[i] = part
		s.notes = append(s.notes, part.notes...)
	}
	return s.setCron(src, &parts)
}

func checkFieldCount(src source, words []word) *SyntaxError {
	switch n := len(words); {
	case n < fieldCount-1:
		hint := ""
		if n > 1 && len(words[0].text) == 10 && words[0].text[4] == '-' {
			hint = `: a single time is written "at ` + words[0].text + ` 18:00"`
		}
		return src.errorAt(words[0].off, "it has %d of the 5 fields minute, hour, day, month, weekday%s", n, hint)
	case n == fieldCount && strings.ContainsAny(words[n-1].text[:1], "/.~"):
		return src.errorAt(words[n-1].off, "%q looks like a command, which does not belong here", words[n-1].text)
	case n > fieldCount:
		return src.errorAt(words[fieldCount].off, "it has %d fields, more than 6; a command or a year does not belong here", n)
	}
	return nil
}

// setCron turns the parts into rules, and into what robfig/cron computes.
func (s *Schedule) setCron(src source, parts *[fieldCount]cronPart) *SyntaxError {
	day, weekday := &parts[fieldDay], &parts[fieldWeekday]
	base := rule{
		weekdays: allWeekdays,
		months:   parts[fieldMonth].values,
		days:     allDays,
		hours:    parts[fieldHour].values,
		minutes:  parts[fieldMinute].values,
		seconds:  parts[fieldSecond].values,
	}
	s.hours = hourKindOf(parts[fieldHour].values, parts[fieldHour].star || parts[fieldHour].stepped)
	s.shape = shape{minutes: parts[fieldMinute].star || parts[fieldMinute].stepped}
	s.rules = cronRules(base, day, weekday)
	if len(day.days)+len(weekday.days) == 0 {
		s.cron = robfigSpec(parts)
	}
	if !day.star && !weekday.star {
		s.notes = append(s.notes, eitherDayNote(day, weekday)...)
	}
	alive := slices.DeleteFunc(slices.Clone(s.rules), func(r rule) bool { return r.never() })
	switch {
	case len(alive) == 0:
		return src.errorAt(day.off, "it never fires: %s", neverReason(base.months, day))
	case len(alive) < len(s.rules):
		s.notes = append(s.notes, neverReason(base.months, day)+", so only the weekday counts")
	}
	s.rules = alive
	return nil
}

// cronRules gives one rule for each way the two day fields can match.
func cronRules(base rule, day, weekday *cronPart) []rule {
	byDay, byWeekday := base, base
	byDay.days, byWeekday.weekdays = day.values, weekday.values
	fields := cronFields()
	var rules []rule
	switch {
	case day.star && weekday.star:
		return []rule{base}
	case !day.star && day.full(fields[fieldDay]), !weekday.star && weekday.full(fields[fieldWeekday]):
		return []rule{base}
	}
	if !day.star && day.values != 0 {
		rules = append(rules, byDay)
	}
	if !day.star {
		for _, ref := range day.days {
			rules = append(rules, ref.rules(base)...)
		}
	}
	if !weekday.star && weekday.values != 0 {
		rules = append(rules, byWeekday)
	}
	if !weekday.star {
		for _, ref := range weekday.days {
			rules = append(rules, ref.rules(base)...)
		}
	}
	return rules
}

// robfigSpec is the schedule as robfig/cron holds it. Bit 63 marks a field
// that does not restrict.
func robfigSpec(parts *[fieldCount]cronPart) *cron.SpecSchedule {
	bits := func(field int) uint64 {
		n := uint64(parts[field].values)
		if parts[field].star {
			n |= 1 << 63
		}
		return n
	}
	return &cron.SpecSchedule{
		Second:   bits(fieldSecond),
		Minute:   bits(fieldMinute),
		Hour:     bits(fieldHour),
		Dom:      bits(fieldDay),
		Month:    bits(fieldMonth),
		Dow:      bits(fieldWeekday),
		Location: time.UTC,
	}
}

// hourKindOf decides what hours are; open says that they were written with *
// or with a step over the whole day, perhaps among others.
func hourKindOf(hours set, open bool) hourKind {
	if hours == allHours || open && hours.len() > 1 && hours.wholeStep(0, 23) > 0 {
		return everyHour
	}
	return fixedHours
}

func eitherDayNote(day, weekday *cronPart) []string {
	fields := cronFields()
	for _, p := range []struct{ all, other *cronPart }{{day, weekday}, {weekday, day}} {
		f := fields[fieldDay]
		if p.all == weekday {
			f = fields[fieldWeekday]
		}
		if p.all.full(f) {
			return []string{"either day field will do and " + strconv.Quote(p.all.text) + " is every day, so " +
				strconv.Quote(p.other.text) + " changes nothing: write * for " + strconv.Quote(p.all.text)}
		}
	}
	if day.stepped || weekday.stepped {
		return []string{"both day fields are restricted and either will do; some crons want both when one starts with *"}
	}
	return nil
}

func neverReason(months set, day *cronPart) string {
	names := make([]string, 0, months.len())
	for _, m := range months.list() {
		names = append(names, title(monthNames[m]))
	}
	return and(names) + plural(len(names), " has", " have") + " no day " + day.text
}
