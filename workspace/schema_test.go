package workspace

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestKeysAreDocumented(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, k := range Keys() {
		id := k.Table + "." + k.Key
		if seen[id] {
			t.Errorf("%s is there twice", id)
		}
		seen[id] = true
		if k.Type == "" || k.Meaning == "" || strings.HasSuffix(k.Meaning, ".") || !envName.MatchString(k.Key) {
			t.Errorf("%s: type %q, meaning %q", id, k.Type, k.Meaning)
		}
	}
	for _, id := range []string{"agent.name", "jobs.NAME.prompt", "jobs.NAME.recovery.deadline", "jobs.NAME.resume.on", "jobs.NAME.unit.wake", "lanes.NAME.slots", "providers.NAME.wire"} {
		if !seen[id] {
			t.Errorf("%s is missing", id)
		}
	}
}

// The defaults of the reference are those that a job gets.
func TestDocumentedDefaults(t *testing.T) {
	t.Parallel()
	d := newDraft()
	want := map[string]string{
		"enabled": strconv.FormatBool(d.Enabled), "catch_up": strconv.FormatBool(d.CatchUp), "backend": d.Backend, "prompt_via": d.PromptVia,
		"jitter": FormatDuration(d.Jitter), "lane_slots": strconv.Itoa(d.LaneSlots), "lane_wait": FormatDuration(d.LaneWait),
		"timeout": FormatDuration(d.Timeout), "grace": FormatDuration(d.Grace), "max_steps": strconv.Itoa(d.MaxSteps),
		"requests": strconv.Itoa(d.Recovery.Requests), "deadline": FormatDuration(d.Recovery.Deadline),
		"request_timeout": FormatDuration(d.Recovery.RequestTimeout), "bytes_idle": FormatDuration(d.Recovery.BytesIdle), "event_idle": FormatDuration(d.Recovery.EventIdle),
		"attempts": strconv.Itoa(d.Resume.Attempts), "on": strings.Join(d.Resume.On, ", "), "cooldown": FormatDuration(d.Resume.Cooldown),
		"max_wait": FormatDuration(d.Resume.MaxWait), "crashed": strconv.FormatBool(d.Resume.Crashed), "nice": strconv.Itoa(d.Unit.Nice),
		"hardening": strconv.FormatBool(d.Unit.Hardening), "network_online": strconv.FormatBool(d.Unit.NetworkOnline), "wake": strconv.FormatBool(d.Unit.Wake),
	}
	words := []string{"", "no limit", "the machine's", "the system's", "the agent's name", "one a run", ".env and .env.local where they exist"}
	for _, k := range Keys() {
		if !strings.HasPrefix(k.Table, "jobs.") {
			continue
		}
		if value, ok := want[k.Key]; ok && k.Default != value || !ok && !slices.Contains(words, k.Default) {
			t.Errorf("%s.%s: documented default %q, a job gets %q", k.Table, k.Key, k.Default, value)
		}
	}
}

func TestReference(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, k := range Keys() {
		fmt.Fprintf(&b, "%s.%s\t%s\t%s\t%s\n", k.Table, k.Key, k.Type, k.Default, k.Meaning)
	}
	compareGolden(t, "testdata/keys.golden", b.String())
}
