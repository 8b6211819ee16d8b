package workspace

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"agentd/scheduler/expr"
)

// checkDefaults checks what does not depend on a job, for a file without jobs.
func (d *draft) checkDefaults(l *loader) {
	backend, said := d.at["backend"]
	if said && !l.found.wrong[backend.value] {
		if err := l.checkBackend(d.Backend); err != nil {
			l.found.mistake(backend.value, "backend %s: %v", quote(d.Backend), err)
		}
	}
	if s, ok := d.at["model"]; ok && d.Model != "" && !d.External() {
		if err := l.checkModel(d.Model); err != nil {
			l.found.mistake(s.value, "model %s: %v", quote(d.Model), err)
		}
	}
	d.checkPromptChoice(l.found)
	d.parseSchedules(l.found)
}

// check looks at the keys of a job together.
func (d *draft) check(l *loader) {
	f := l.found
	d.checkPromptChoice(f)
	d.checkWork(l)
	d.parseSchedules(f)
	if d.Resume.Attempts > 1 && d.Resume.Cooldown > d.Resume.MaxWait {
		f.warn(d.pos("resume.cooldown"), "resume.cooldown %s is longer than resume.max_wait %s: no run of %s waits, each leaves a pending resume",
			FormatDuration(d.Resume.Cooldown), FormatDuration(d.Resume.MaxWait), d.Name)
	}
}

func (d *draft) checkPromptChoice(f *findings) {
	prompt, hasPrompt := d.at["prompt"]
	file, hasFile := d.at["prompt_file"]
	if hasPrompt && hasFile && prompt.own == file.own {
		f.mistake(max(prompt.key, file.key), "prompt and prompt_file exclude each other: keep one")
	}
}

// checkWork checks prompt, backend, model and command.
func (d *draft) checkWork(l *loader) {
	f := l.found
	s, said := d.at["backend"]
	if said && !f.wrong[s.value] {
		if err := l.checkBackend(d.Backend); err != nil {
			f.mistake(s.value, "backend %s: %v", quote(d.Backend), err)
		}
	}
	if d.Model != "" && !(said && d.External()) {
		if err := l.checkModel(d.Model); err != nil {
			f.mistake(d.pos("model"), "model %s: %v", quote(d.Model), err)
		}
	}
	switch {
	case said && f.wrong[s.value]: // what else is needed depends on it
	case d.Backend == commandBackend:
		d.checkCommand(f)
	case d.Backend == builtinBackend:
		d.checkBuiltin(f)
	default:
		d.checkExternal(l)
	}
}

// lacks reports whether a key is missing, also under a mistyped name.
func (d *draft) lacks(f *findings, key string) bool {
	_, said := d.at[key]
	return !said && !f.meant["jobs."+d.Name+"."+key] && !f.meant["defaults."+key]
}

func (d *draft) checkBuiltin(f *findings) {
	d.needsPrompt(f)
	if model, said := d.at["model"]; said && d.Model == "" && !f.wrong[model.value] {
		f.mistake(model.value, "model is empty")
	} else if d.lacks(f, "model") {
		f.mistake(d.pos("."), `jobs.%s needs a model, such as model = "anthropic/claude-sonnet-4-5"`, d.Name)
	}
	d.refuseCommand(f)
}

func (d *draft) needsPrompt(f *findings) {
	_, hasFile := d.at["prompt_file"]
	prompt, hasPrompt := d.at["prompt"]
	switch {
	case d.lacks(f, "prompt") && d.lacks(f, "prompt_file"):
		f.mistake(d.pos("."), "jobs.%s needs a prompt or a prompt_file", d.Name)
	case hasPrompt && !hasFile && strings.TrimSpace(d.Prompt) == "" && !f.wrong[prompt.value]:
		f.mistake(prompt.value, "prompt is empty")
	}
}

// refuseCommand refuses what only the command backend has a use for.
func (d *draft) refuseCommand(f *findings) {
	for _, key := range []string{"command", "prompt_via"} {
		if s, said := d.at[key]; said && s.own {
			f.mistake(s.key, `%s is only for backend = "command"`, key)
		}
	}
}

func (d *draft) checkCommand(f *findings) {
	s, said := d.at["command"]
	switch {
	case d.lacks(f, "command"):
		f.mistake(d.pos("backend"), `jobs.%s needs a command, such as command = ["prog", "arg"]`, d.Name)
	case said && (len(d.Command) == 0 || d.Command[0] == "") && !f.wrong[s.value]:
		f.mistake(s.value, "command must name a program")
	}
}

// parseSchedules parses the texts in the job's zone.
func (d *draft) parseSchedules(f *findings) {
	if s, ok := d.at["timezone"]; ok && f.wrong[s.value] {
		return // the schedules are not to blame for their zone
	}
	d.Schedules = nil
	for i, text := range d.ScheduleText {
		if slices.Contains(d.ScheduleText[:i], text) {
			f.warn(d.schedulePos[i], "schedule %s of %s is there twice: it fires once", quote(text), d.Name)
		}
		s, err := expr.Parse(text, d.Timezone)
		if err == nil {
			d.Schedules = append(d.Schedules, s)
			continue
		}
		f.mistake(d.schedulePos[i], "schedule %s: %s", quote(text), scheduleReason(err))
	}
}

func scheduleReason(err error) string {
	s, ok := errors.AsType[*expr.SyntaxError](err)
	switch {
	case !ok:
		return err.Error()
	case s.Column > 0:
		return fmt.Sprintf("%s (column %d)", s.Reason, s.Column)
	}
	return s.Reason
}
