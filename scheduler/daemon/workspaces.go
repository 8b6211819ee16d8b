package daemon

import (
	"slices"
)

// workspaces keeps the engine's jobs as the files of the workspaces have them.
// One goroutine uses it.
type workspaces struct {
	list   func() ([]string, error) // the folders
	engine *Engine
	watch  func(dir string) // may fail: then the poll finds changes
	forget func(dir string)
	say    func(format string, args ...any)

	known map[string]*known
	wrong string // what was said about the list
}

// known is a workspace that has been looked at.
type known struct {
	stamp stamp
	wrong string // what was said about it; "" when it is right
	jobs  int
	good  bool // it has been right once
}

// refresh reads the workspaces that have changed; with all, every one. It
// returns the first error.
func (w *workspaces) refresh(all bool) error {
	dirs, err := w.list()
	if err != nil {
		if err.Error() != w.wrong {
			w.wrong = err.Error()
			w.say("%v; the workspaces stay as they are", err)
		}
		return err
	}
	w.wrong = ""
	for dir := range w.known {
		if !slices.Contains(dirs, dir) {
			w.drop(dir)
		}
	}
	for _, dir := range dirs {
		if e := w.look(dir, all); e != nil && err == nil {
			err = e
		}
	}
	return err
}

func (w *workspaces) drop(dir string) {
	w.forget(dir)
	w.engine.Unset(dir)
	w.say("%s is no longer registered", dir)
	delete(w.known, dir)
}

// look reads a workspace if it has changed. One that is wrong stays as it was.
func (w *workspaces) look(dir string, anyway bool) error {
	k := w.known[dir]
	if k == nil {
		k = &known{}
		w.known[dir] = k
		w.watch(dir)
		anyway = true
	}
	now := stampOf(dir)
	if now == k.stamp && !anyway {
		return nil
	}
	k.stamp = now
	agent, jobs, others, err := load(dir)
	if err == nil {
		err = w.engine.Set(agent, dir, jobs, others...)
	}
	if err != nil {
		w.complain(dir, k, err)
		return err
	}
	switch {
	case k.wrong != "":
		w.say("%s is right again: %s", dir, count(len(jobs)))
	case k.good:
		w.say("%s has changed: %s", dir, count(len(jobs)))
	default:
		w.say("%s: %s", dir, count(len(jobs)))
	}
	k.wrong, k.good, k.jobs = "", true, len(jobs)
	return nil
}

// complain says once what is wrong.
func (w *workspaces) complain(dir string, k *known, err error) {
	text := complaint(dir, err)
	if text == k.wrong {
		return
	}
	k.wrong = text
	if k.good {
		w.say("%s\n%s has mistakes: its %s as before", text, dir, stay(k.jobs))
		return
	}
	w.say("%s\n%s has mistakes: its jobs do not run until they are mended", text, dir)
}

func stay(n int) string {
	if n == 1 {
		return "1 job stays"
	}
	return count(n) + " stay"
}
