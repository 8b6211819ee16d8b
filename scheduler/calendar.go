package scheduler

import (
	"container/heap"
	"slices"
	"time"

	"agentd/history"
	"agentd/scheduler/expr"
	"agentd/workspace"
)

// Occasion is one firing of a job in a calendar.
type Occasion struct {
	At    time.Time
	Job   *workspace.Job
	Takes time.Duration // how long its runs hold the lane; see Lengths

	Fate    Fate
	Holders []string // the addresses of the jobs that hold the lane then, if it is full
}

// Fate is what comes of a firing.
type Fate string

// The fates.
const (
	Runs    Fate = "runs"
	Waits   Fate = "waits"   // the lane is held, and free within the job's lane_wait
	Skipped Fate = "skipped" // the lane is held: it ends with exitcodes.LaneBusy
	Merged  Fate = "merged"  // the job's former run is not over
)

// assumedLength is that of a job's runs before one of them is on record.
const assumedLength = time.Minute

// MaxOccasions is how many firings of one job a calendar lists.
const MaxOccasions = 20_000

// Calendar lists the firings of the jobs after from and before until, by their
// time, and works out which of them meet a lane that is held. A job that fires
// more often than MaxOccasions times is cut there, and is in cut. Nothing of a
// job that is switched off, or fires at the start of the machine, is in it.
func Calendar(jobs []*workspace.Job, lengths map[string]time.Duration, from, until time.Time) (list []Occasion, cut []*workspace.Job) {
	var queue upcoming
	fired := map[*workspace.Job]int{}
	for _, j := range jobs {
		if t := expr.Earliest(from, j.Schedules); Scheduled(j) && !t.IsZero() {
			queue = append(queue, firing{t, j})
		}
	}
	heap.Init(&queue)
	lanes := map[string][]holder{}
	for len(queue) > 0 && queue[0].at.Before(until) {
		at, j := queue[0].at, queue[0].job
		takes, known := lengths[j.Address()]
		if !known {
			takes = min(assumedLength, expr.Earliest(at, j.Schedules).Sub(at)) // nothing says that it meets itself
		}
		o := Occasion{At: at, Job: j, Takes: takes, Fate: Runs}
		lanes[j.Lane] = o.take(lanes[j.Lane])
		list = append(list, o)
		next := expr.Earliest(at, j.Schedules)
		if fired[j]++; fired[j] == MaxOccasions && !next.IsZero() && next.Before(until) {
			cut, next = append(cut, j), time.Time{}
		}
		if next.IsZero() {
			heap.Pop(&queue)
			continue
		}
		queue[0].at = next
		heap.Fix(&queue, 0)
	}
	return list, cut
}

// holder is a run that may hold a slot of a lane.
type holder struct {
	address string
	until   time.Time // the latest, with its jitter
}

// take gives o its place among the holders of its lane, which it returns.
func (o *Occasion) take(held []holder) []holder {
	held = slices.DeleteFunc(held, func(h holder) bool { return !h.until.After(o.At) })
	if slices.ContainsFunc(held, func(h holder) bool { return h.address == o.Job.Address() }) {
		o.Fate = Merged
		return held
	}
	begin := o.At
	if len(held) >= max(1, o.Job.LaneSlots) {
		slices.SortStableFunc(held, func(a, b holder) int { return a.until.Compare(b.until) })
		for _, h := range held {
			o.Holders = append(o.Holders, h.address)
		}
		begin = held[0].until
		if begin.Sub(o.At) > o.Job.LaneWait {
			o.Fate = Skipped
			return held
		}
		o.Fate = Waits
		held = held[1:]
	}
	return append(held, holder{o.Job.Address(), begin.Add(o.Job.Jitter + o.Takes)})
}

// Lengths returns how long the lately ended runs of each job held their lane,
// the median of up to ten, by the job's address. A job without one is not in it.
func Lengths(store *history.Store, jobs []*workspace.Job) (map[string]time.Duration, error) {
	const lately = 10
	lengths := map[string]time.Duration{}
	for _, j := range jobs {
		runs, err := store.List(history.Filter{Agent: j.Agent, Job: j.Name, Limit: lately})
		if err != nil {
			return nil, err
		}
		var took []time.Duration
		for _, r := range runs {
			if d := worked(r); d > 0 {
				took = append(took, d)
			}
		}
		if len(took) > 0 {
			slices.Sort(took)
			lengths[j.Address()] = took[len(took)/2]
		}
	}
	return lengths, nil
}

// worked is how long the attempts of a run took: the lane is free between them.
func worked(r *history.Run) (total time.Duration) {
	for _, a := range r.Attempts {
		if a.EndedAt != nil {
			total += a.EndedAt.Sub(a.StartedAt)
		}
	}
	return total
}

// firing is the next time of a job.
type firing struct {
	at  time.Time
	job *workspace.Job
}

// upcoming is a heap of the next firings, the earliest first, those of one time
// by the order of their addresses.
type upcoming []firing

func (u upcoming) Len() int      { return len(u) }
func (u upcoming) Swap(i, j int) { u[i], u[j] = u[j], u[i] }
func (u *upcoming) Push(x any)   { *u = append(*u, x.(firing)) }
func (u upcoming) Less(i, j int) bool {
	if !u[i].at.Equal(u[j].at) {
		return u[i].at.Before(u[j].at)
	}
	return u[i].job.Address() < u[j].job.Address()
}

func (u *upcoming) Pop() any {
	last := (*u)[len(*u)-1]
	*u = (*u)[:len(*u)-1]
	return last
}
