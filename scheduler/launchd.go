package scheduler

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"agentd/exitcodes"
	"agentd/scheduler/expr"
	"agentd/systemd"
	"agentd/workspace"
)

// maxCalendar bounds the times of a launchd job: every one of them is written.
const maxCalendar = 2000

// LaunchdLabel returns what launchd knows the job by.
func LaunchdLabel(job systemd.JobName) string { return "agentd." + job.Agent + "." + job.Job }

// launchdPause is how soon launchd starts a job again at the earliest.
const launchdPause = 10 * time.Second

// Launchd returns the property list that has launchd run the job's script; log
// is the file for its output. It was never tried on a macOS. launchd has no years, no
// time zones, no seconds and no jitter: a schedule that it cannot express is an error
// with the code exitcodes.Config. A time that passes while the machine sleeps
// is made up for once; one that passes while it is off is not.
func Launchd(job *workspace.Job, script, log string) ([]byte, error) {
	p := &plist{}
	p.line(`<?xml version="1.0" encoding="UTF-8"?>`)
	p.line(`<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">`)
	p.line(`<!-- Made by agentd out of agentd.toml. Never tried on a macOS. -->`)
	p.line(`<plist version="1.0">`)
	p.open("dict")
	p.text("Label", LaunchdLabel(NameOf(job)))
	p.key("ProgramArguments")
	p.open("array")
	p.value("/bin/bash")
	p.value(script)
	p.close("array")
	p.text("WorkingDirectory", job.Dir)
	p.key("EnvironmentVariables")
	p.open("dict")
	p.text("AGENTD_TRIGGER", "timer")
	p.close("dict")
	if err := p.schedule(job); err != nil {
		return nil, exitcodes.Errorf(exitcodes.Config, "launchd cannot run %s on its schedule: %w", job.Address(), err)
	}
	p.number("ExitTimeOut", int((job.Grace+closing)/time.Second))
	if job.Unit.Nice != 0 {
		p.number("Nice", job.Unit.Nice)
	}
	p.text("StandardOutPath", log)
	p.text("StandardErrorPath", log)
	p.close("dict")
	p.line("</plist>")
	return p.b.Bytes(), p.err
}

// plist is a property list under way.
type plist struct {
	b     bytes.Buffer
	depth int
	err   error // the first text that XML cannot carry
}

func (p *plist) line(s string) {
	p.b.WriteString(strings.Repeat("\t", p.depth) + s + "\n")
}

func (p *plist) open(element string) {
	p.line("<" + element + ">")
	p.depth++
}

func (p *plist) close(element string) {
	p.depth--
	p.line("</" + element + ">")
}

func (p *plist) key(name string) { p.line("<key>" + name + "</key>") }

func (p *plist) value(s string) {
	for i, r := range s {
		notText := r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD")
		if (r < ' ' && r != '\t' && r != '\n' || r == '\ufffe' || r == '\uffff' || notText) && p.err == nil {
			p.err = exitcodes.Errorf(exitcodes.Config, "cannot write %q in a property list", s)
		}
	}
	var escaped strings.Builder
	_ = xml.EscapeText(&escaped, []byte(s)) // a builder takes all
	p.line("<string>" + escaped.String() + "</string>")
}

func (p *plist) text(key, value string) {
	p.key(key)
	p.value(value)
}

func (p *plist) number(key string, n int) {
	p.key(key)
	p.line("<integer>" + strconv.Itoa(n) + "</integer>")
}

// schedule writes what makes launchd start the job, nothing for a job that
// only runs by hand.
func (p *plist) schedule(job *workspace.Job) error {
	if !Scheduled(job) {
		return nil
	}
	var times []calendarTime
	for _, s := range job.Schedules {
		switch s.Kind() {
		case expr.Boot:
			p.key("RunAtLoad")
			p.line("<true/>")
		case expr.Every:
			if len(job.Schedules) > 1 {
				return fmt.Errorf("it takes a fixed distance (%s) only by itself", s)
			}
			start := time.Unix(0, 0)
			every := s.Next(start).Sub(start)
			if every < launchdPause || every%time.Second != 0 {
				return fmt.Errorf("it takes whole seconds, %v and more, not %s", launchdPause, s)
			}
			p.number("StartInterval", int(every/time.Second))
		case expr.At:
			return fmt.Errorf("it knows no years: %s", s)
		case expr.Calendar:
			if !local(s) {
				return fmt.Errorf("it goes by the machine's time zone, not %s", s.Location())
			}
			for _, line := range s.OnCalendar() {
				more, err := calendarTimes(line)
				if err != nil {
					return err
				}
				times = append(times, more...)
			}
		}
	}
	return p.calendar(times)
}

func (p *plist) calendar(times []calendarTime) error {
	if len(times) > maxCalendar {
		return fmt.Errorf("it needs each of the %d times of a year written out, more than %d", len(times), maxCalendar)
	}
	if len(times) == 0 {
		return nil
	}
	p.key("StartCalendarInterval")
	p.open("array")
	for _, t := range times {
		p.open("dict")
		for _, f := range t {
			p.number(f.key, f.n)
		}
		p.close("dict")
	}
	p.close("array")
	return nil
}

// calendarTime is one dictionary of StartCalendarInterval; what is not in it
// matches any.
type calendarTime []calendarField

type calendarField struct {
	key string
	n   int
}

// calendarTimes returns the times of an OnCalendar= line as agentd writes it:
// [DAYS] YEAR-MONTHS-DAYS HOURS:MINUTES:SECONDS [ZONE], each a "*" or a list.
func calendarTimes(line string) ([]calendarTime, error) {
	refuse := fmt.Errorf("it cannot express %q", line)
	words := strings.Fields(line)
	if last := words[len(words)-1]; !strings.Contains(last, ":") {
		words = words[:len(words)-1] // the machine's zone, see local
	}
	if len(words) == 2 {
		words = append([]string{"*"}, words...)
	}
	if len(words) != 3 {
		return nil, refuse
	}
	date, clock := strings.Split(words[1], "-"), strings.Split(words[2], ":")
	if len(date) != 3 || len(clock) != 3 || date[0] != "*" || strings.Trim(clock[2], "0") != "" {
		return nil, refuse
	}
	if words[0] != "*" && date[2] != "*" { // launchd takes either where both are given
		return nil, refuse
	}
	times := []calendarTime{nil}
	for _, part := range []struct{ key, list string }{
		{"Month", date[1]}, {"Day", date[2]}, {"Weekday", words[0]}, {"Hour", clock[0]}, {"Minute", clock[1]},
	} {
		if part.list == "*" {
			continue
		}
		numbers, ok := numbersOf(part.list)
		if !ok {
			return nil, refuse
		}
		var more []calendarTime
		for _, t := range times {
			for _, n := range numbers {
				more = append(more, append(slices.Clone(t), calendarField{part.key, n}))
			}
		}
		times = more
	}
	if len(times) == 1 && times[0] == nil { // each minute
		return []calendarTime{{}}, nil
	}
	return times, nil
}

// numbersOf reads "1,2,5..9" or "Mon,Tue".
func numbersOf(list string) (numbers []int, ok bool) {
	for _, word := range strings.Split(list, ",") {
		first, last, isRange := strings.Cut(word, "..")
		if !isRange {
			last = first
		}
		from, to := numberOf(first), numberOf(last)
		if from < 0 || to < from || to > 59 {
			return nil, false
		}
		for n := from; n <= to; n++ {
			numbers = append(numbers, n)
		}
	}
	return numbers, true
}

// numberOf returns a number or that of a weekday, -1 if it is neither.
func numberOf(word string) int {
	if n, err := strconv.Atoi(word); err == nil {
		return n
	}
	return slices.Index([]string{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"}, word)
}

// local reports whether the schedule goes by the machine's zone.
func local(s *expr.Schedule) bool {
	daily, err := expr.Parse("@daily", "")
	return err == nil && s.Location().String() == daily.Location().String()
}
