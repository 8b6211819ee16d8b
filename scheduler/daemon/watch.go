package daemon

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"agentd/workspace"
)

const (
	// settled is how long a folder must be quiet before its file is read: an
	// editor may do several things to save one.
	settled = 200 * time.Millisecond
	// poll is how often the files are looked at all the same: some file systems
	// tell nothing, and the kernel tells only of so many folders.
	poll = time.Minute
)

// watcher tells that something about the workspaces may have changed.
type watcher struct {
	fs      *fsnotify.Watcher // nil: there is only the poll
	say     func(format string, args ...any)
	failed  bool
	Changed chan struct{} // once things have settled
	done    chan struct{}
	agents  string // the folder with the registry; "": it does not matter
}

// newWatcher watches the registry in agents.
func newWatcher(agents string, say func(string, ...any)) *watcher {
	w := &watcher{say: say, Changed: make(chan struct{}, 1), done: make(chan struct{}), agents: agents}
	fs, err := fsnotify.NewWatcher()
	if err != nil {
		w.complain(err)
		close(w.done)
		return w
	}
	w.fs = fs
	go w.run()
	return w
}

// Close ends the watch.
func (w *watcher) Close() {
	if w.fs != nil {
		_ = w.fs.Close()
	}
	<-w.done
}

// Add watches dir. A file that is replaced is another one; so it is folders
// that are watched.
func (w *watcher) Add(dir string) {
	if w.fs == nil {
		return
	}
	if err := w.fs.Add(dir); err != nil {
		w.complain(err)
	}
}

// Agents watches the registry; where that has not come yet, the nearest folder
// above, which says when it does.
func (w *watcher) Agents() {
	if w.fs == nil || w.agents == "" {
		return
	}
	for dir := w.agents; w.fs.Add(dir) != nil; dir = filepath.Dir(dir) {
		if dir == filepath.Dir(dir) {
			return
		}
	}
}

// Remove forgets dir.
func (w *watcher) Remove(dir string) {
	if w.fs != nil {
		_ = w.fs.Remove(dir) // it may be gone already
	}
}

func (w *watcher) complain(err error) {
	if !w.failed {
		w.failed = true
		w.say("cannot watch for changes, so they are found within %v: %v", poll, err)
	}
}

func (w *watcher) run() {
	defer close(w.done)
	quiet := time.NewTimer(time.Hour)
	quiet.Stop()
	defer quiet.Stop()
	for {
		select {
		case ev, ok := <-w.fs.Events:
			if !ok {
				return
			}
			if w.matters(ev.Name) {
				quiet.Reset(settled)
			}
		case _, ok := <-w.fs.Errors: // an overflow: something was lost
			if !ok {
				return
			}
			quiet.Reset(settled)
		case <-quiet.C:
			select {
			case w.Changed <- struct{}{}:
			default:
			}
		}
	}
}

// matters reports whether a change of path may be one of agentd.toml or of the
// registry. A mounted ConfigMap changes by a link beside the file, "..data".
func (w *watcher) matters(path string) bool {
	base := filepath.Base(path)
	if base == workspace.FileName || strings.HasPrefix(base, "..") {
		return true
	}
	return w.agents != "" && (path == w.agents || filepath.Dir(path) == w.agents ||
		strings.HasPrefix(w.agents, path+string(filepath.Separator)))
}
