package session

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"agentd/exitcodes"
)

// Info is what a list says of a session.
type Info struct {
	Agent     string          `json:"agent"`
	Name      string          `json:"name"`
	Messages  int             `json:"messages"` // ever said; hidden ones too
	Runs      int             `json:"runs"`
	Tokens    int64           `json:"tokens"` // in and out
	StartedAt time.Time       `json:"started_at"`
	UpdatedAt time.Time       `json:"updated_at"`
	Bytes     int64           `json:"bytes"`     // of the folder
	LastCode  *exitcodes.Code `json:"last_code"` // of the last attempt that ended
	Locked    bool            `json:"locked"`
	Holder    *Holder         `json:"holder,omitempty"`
	Pending   int             `json:"pending"` // tool calls without a result
	Damage    string          `json:"damage,omitempty"`
}

// metaFile caches Info, so that a list need not read every journal. It counts
// only if the journal is as large as it says.
const metaFile = "meta"

type meta struct {
	Journal int64 `json:"journal_bytes"`
	Info    Info  `json:"info"`
}

func (s *state) info(agent, name string) Info {
	return Info{
		Agent: agent, Name: name,
		Messages: s.messages, Runs: len(s.attempts),
		Tokens:    s.total.Usage.InputTokens + s.total.Usage.OutputTokens,
		StartedAt: s.started, UpdatedAt: s.updated,
		LastCode: s.lastCode, Pending: len(s.pending()),
	}
}

// cacheInfo writes the cache. A list works without it, only slower.
func (s *Session) cacheInfo() {
	data, err := json.Marshal(meta{Journal: journalBytes(s.dir), Info: s.state.info(s.agent, s.name)})
	if err == nil {
		_ = s.journal.disk.WriteWhole(filepath.Join(s.dir, metaFile), append(data, '\n'), 0o600)
	}
}

// journalBytes is the size of all journal files in dir.
func journalBytes(dir string) int64 {
	var sum int64
	for n := 1; ; n++ {
		fi, err := os.Stat(segmentPath(dir, n))
		if err != nil {
			return sum
		}
		sum += fi.Size()
	}
}

// List returns all sessions, by agent and name. One that is damaged is in the
// list, with what is wrong.
func (st Store) List() ([]Info, error) { return st.Of("") }

// Of returns the sessions of one agent, as List does; "" is all agents.
func (st Store) Of(agent string) ([]Info, error) {
	names, err := st.names(agent)
	if err != nil {
		return nil, err
	}
	var all []Info
	for _, n := range names {
		info, err := st.Info(n.agent, n.name)
		if exitcodes.From(err) == exitcodes.NoInput {
			continue // removed meanwhile, or never begun
		}
		if err != nil {
			return nil, err
		}
		all = append(all, info)
	}
	return all, nil
}

// Info returns what a list says of one session. Damage is in it, not an error.
func (st Store) Info(agent, name string) (Info, error) {
	if err := checkNames(agent, name); err != nil {
		return Info{}, err
	}
	dir := st.dir(agent, name)
	info, ok := cachedInfo(dir)
	if !ok {
		s, _, err := st.read(agent, name)
		d, isDamage := errors.AsType[*Damage](err)
		if err != nil && !isDamage {
			return Info{}, readError(err, agent, name)
		}
		info = s.info(agent, name)
		if isDamage {
			info.Damage = d.Error()
			info.UpdatedAt = lastWrite(dir)
		}
	}
	info.Agent, info.Name = agent, name
	info.Bytes = folderBytes(dir)
	info.Locked, info.Holder = locked(dir)
	return info, nil
}

func cachedInfo(dir string) (Info, bool) {
	data, err := os.ReadFile(filepath.Join(dir, metaFile))
	var m meta
	if err != nil || json.Unmarshal(data, &m) != nil {
		return Info{}, false
	}
	return m.Info, m.Journal > 0 && m.Journal == journalBytes(dir)
}

// lastWrite is when the newest journal file was written.
func lastWrite(dir string) time.Time {
	fi, err := os.Stat(segmentPath(dir, max(1, lastSegment(dir))))
	if err != nil {
		return time.Time{}
	}
	return fi.ModTime().UTC()
}

// folderBytes is the size of all files in dir.
func folderBytes(dir string) int64 {
	var sum int64
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // files come and go under a writer
		}
		if fi, err := d.Info(); err == nil && fi.Mode().IsRegular() {
			sum += fi.Size()
		}
		return nil
	})
	return sum
}
