package scheduler

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agentd/atomicfile"
	"agentd/exitcodes"
	"agentd/systemd"
)

// write brings every file to what the plan says.
func (a *applying) write() error {
	for _, j := range a.plan.Jobs {
		for _, f := range j.Files {
			var err error
			switch f.Action {
			case Add, Change:
				err = a.replace(f)
			case Remove:
				err = a.remove(f)
			case Keep, Refuse:
			}
			if err != nil {
				return cannotCreate(err)
			}
		}
	}
	return nil
}

// cannotCreate gives an error of writing its code: a full disk passes by
// itself, all else does not.
func cannotCreate(err error) error {
	if exitcodes.From(err) == exitcodes.IO {
		return exitcodes.Errorf(exitcodes.IO, "%w", err).WithHint("make room on the disk, then: agentd install")
	}
	return exitcodes.Errorf(exitcodes.CannotCreate, "%w", err)
}

func (a *applying) replace(f FileChange) error {
	if err := a.makeFolder(filepath.Dir(f.Path)); err != nil {
		return err
	}
	if err := atomicfile.Write(f.Path, f.new, f.newMode); err != nil {
		return err
	}
	a.onUndo(func(context.Context) error {
		if f.old == nil {
			return os.Remove(f.Path)
		}
		return atomicfile.Write(f.Path, f.old, f.oldMode)
	})
	a.report.Written = append(a.report.Written, f.Path)
	return nil
}

func (a *applying) remove(f FileChange) error {
	if err := os.Remove(f.Path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // somebody was faster
		}
		return fmt.Errorf("cannot remove what was installed: %w", err)
	}
	a.onUndo(func(context.Context) error { return atomicfile.Write(f.Path, f.old, f.oldMode) })
	a.report.Removed = append(a.report.Removed, f.Path)
	return nil
}

// makeFolder makes a folder and those above it; an undo removes what it made.
func (a *applying) makeFolder(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	if parent := filepath.Dir(dir); parent != dir {
		if err := a.makeFolder(parent); err != nil {
			return err
		}
	}
	mode := fs.FileMode(0o755)
	if a.plan.Target.Scope == systemd.User && strings.HasPrefix(dir, a.plan.Target.Data) {
		mode = 0o700
	}
	if err := os.Mkdir(dir, mode); err != nil {
		if info, again := os.Stat(dir); again == nil && info.IsDir() {
			return nil // somebody was faster
		}
		return fmt.Errorf("cannot make a folder: %w", err)
	}
	a.onUndo(func(context.Context) error {
		_ = os.Remove(dir) // it stays if somebody else uses it by now
		return nil
	})
	return nil
}

// forget removes the stamp of a timer whose schedule changed: what the new
// schedule would have run in the past must not be made up for at once.
func (a *applying) forget(stamp string) error {
	info, err := os.Stat(stamp)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = os.Remove(stamp)
	}
	if err != nil {
		return fmt.Errorf("cannot forget when the timer fired: %w", err)
	}
	a.onUndo(func(context.Context) error { return putStamp(stamp, info.ModTime()) })
	return nil
}

func putStamp(path string, at time.Time) error {
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		return err
	}
	return os.Chtimes(path, at, at)
}

// tidy removes what is left of jobs that went. Nothing depends on it, so what
// cannot be done is left.
func (a *applying) tidy(ctx context.Context) {
	t := a.plan.Target
	a.cancelOnces(ctx)
	for _, j := range a.plan.Jobs {
		goes := false
		for _, f := range j.Files {
			if f.Action != Remove {
				continue
			}
			if filepath.Base(f.Path) == "run.sh" {
				_ = os.Remove(t.disabled(j.Name))
			}
			removeEmpty(filepath.Dir(f.Path), t)
			if unit := filepath.Base(f.Path); a.manager != nil && filepath.Dir(f.Path) == t.UnitDir {
				_ = a.manager.ResetFailed(ctx, unit)
			}
			goes = goes || filepath.Base(f.Path) == j.startsAtBoot()
		}
		if goes {
			_ = os.Remove(t.stamp(j.Name))
			for _, wants := range systemd.WantsFolders() {
				unlink(filepath.Join(t.UnitDir, wants, j.startsAtBoot()))
			}
		}
	}
	if t.Scope == systemd.User && len(a.report.Removed) > 0 {
		removeEmpty(t.StampDir, t)
		removeEmpty(t.UnitDir, t)
	}
}

// cancelOnces takes back the timers of pending runs whose jobs went.
func (a *applying) cancelOnces(ctx context.Context) {
	if a.manager == nil || len(a.report.Removed) == 0 {
		return
	}
	list, err := a.manager.Onces()
	if err != nil {
		return
	}
	for _, once := range list {
		gone := filepath.Join(a.plan.Target.UnitDir, once.Owner.Name.Service())
		if slices.Contains(a.report.Removed, gone) {
			_ = a.manager.CancelOnce(ctx, once.Name)
		}
	}
}

// unlink removes the link that once enabled a unit. systemd has done so, but
// where there is none now, nobody has.
func unlink(path string) {
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		_ = os.Remove(path)
		_ = os.Remove(filepath.Dir(path)) // if that was the last
	}
}

// removeEmpty removes a folder that install or systemd made for it, and those
// above that are agentd's or systemd's, as long as they are empty.
func removeEmpty(dir string, t Target) {
	for range 4 {
		switch base := filepath.Base(dir); {
		case strings.HasSuffix(dir, ".d") && filepath.Dir(dir) == t.UnitDir: // drop-ins
		case dir == t.UnitDir && t.Scope == systemd.System, dir == filepath.Dir(t.Data):
			return
		case strings.HasPrefix(dir, t.Data), base == "systemd", base == "user", base == "timers":
		default:
			return
		}
		if os.Remove(dir) != nil {
			return
		}
		dir = filepath.Dir(dir)
	}
}
