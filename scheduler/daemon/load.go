package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"agentd/scheduler/expr"
	"agentd/workspace"
)

// load reads the jobs that fire by themselves of the workspace in dir.
func load(dir string) (agent string, jobs []Job, others []Name, err error) {
	ws, err := workspace.LoadJobs(dir)
	if err != nil {
		return "", nil, nil, err
	}
	shared := map[[2]string]*expr.Schedule{}
	agent = strings.Clone(ws.Agent) // what is cut out of the file would keep all of it
	for _, j := range ws.Jobs {
		if !j.Enabled || len(j.Schedules) == 0 {
			others = append(others, Name{agent, strings.Clone(j.Name)})
			continue
		}
		job := Job{
			Name: Name{agent, strings.Clone(j.Name)}, Dir: dir, Zone: strings.Clone(j.Timezone),
			CatchUp: j.CatchUp, Jitter: j.Jitter, Grace: j.Grace,
		}
		for _, s := range j.Schedules {
			own, err := share(shared, s.String(), job.Zone)
			if err != nil {
				return "", nil, nil, err
			}
			job.Schedules = append(job.Schedules, own)
		}
		jobs = append(jobs, job)
	}
	return agent, jobs, others, nil
}

// share has jobs with the same schedule share one.
func share(known map[[2]string]*expr.Schedule, text, zone string) (*expr.Schedule, error) {
	if s, ok := known[[2]string{text, zone}]; ok {
		return s, nil
	}
	text = strings.Clone(text)
	s, err := expr.Parse(text, zone)
	if err != nil {
		return nil, err
	}
	known[[2]string{text, zone}] = s
	return s, nil
}

// stamp tells versions of a file apart.
type stamp struct {
	modified time.Time
	size     int64
	inode    uint64
}

// stampOf returns the zero stamp for a file that is not there.
func stampOf(dir string) stamp {
	info, err := os.Stat(filepath.Join(dir, workspace.FileName))
	if err != nil {
		return stamp{}
	}
	s := stamp{modified: info.ModTime(), size: info.Size()}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		s.inode = sys.Ino
	}
	return s
}

// complaint says what is wrong with a workspace, in one line a mistake.
func complaint(dir string, err error) string {
	if invalid, ok := errors.AsType[*workspace.Invalid](err); ok {
		return strings.Join(prefixed(dir+"/", invalid.Lines()), "\n")
	}
	return err.Error()
}

func prefixed(prefix string, lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = prefix + l
	}
	return out
}
