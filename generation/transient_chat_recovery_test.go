package generation

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"agentd/exitcodes"
	"agentd/provider"
	"agentd/recovery"
)

// Each transient status is repeated until it passes, and told when it does not.
func TestTransientStatusesOfChat(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]exitcodes.Code{
		"408": exitcodes.Unavailable, "429": exitcodes.RateLimited, "500": exitcodes.Unavailable,
		"502": exitcodes.Unavailable, "503": exitcodes.Unavailable, "504": exitcodes.Unavailable, "529": exitcodes.Unavailable,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fault := "[[reply]]\nstatus = " + name + "\nbody = '{\"error\":{\"message\":\"words of the provider\"}}'\n"
			r := newRig(t, provider.Chat, fault+"times = 3\n"+good)
			res, err := r.turn("go")
			if err != nil || res.Stats.Replays != 3 || !slices.Equal(r.texts(), goodTexts) {
				t.Errorf("passing: %v, stats %+v, session %q", err, res.Stats, r.texts())
			}
			r = newRig(t, provider.Chat, fault+"repeat = true\n")
			res, err = r.turn("go")
			if got := exitcodes.From(err); got != code {
				t.Errorf("lasting: code %v (%v), want %v", got, err, code)
			}
			if n := len(r.server.Requests()); n != recovery.DefaultRequests || res.Stats.Requests != n || res.Stats.Replays != n-1 {
				t.Errorf("lasting: %d requests, stats %+v", n, res.Stats)
			}
			if !strings.Contains(err.Error(), "words of the provider") || !strings.Contains(err.Error(), "11 requests") {
				t.Errorf("lasting: error %q", err)
			}
		})
	}
}

func TestRetryAfterIsKept(t *testing.T) {
	t.Parallel()
	r := newRig(t, provider.Chat, "[[reply]]\nerror = 'rate_limit'\nheaders = { Retry-After = '7' }\n[[reply]]\nerror = 'rate_limit'\nheaders = { retry-after-ms = '1500' }\n"+good)
	if _, err := r.turn("go"); err != nil {
		t.Fatal(err)
	}
	want := []time.Duration{7 * time.Second, 1500 * time.Millisecond}
	if len(r.waits) != 2 {
		t.Fatalf("waits %v", r.waits)
	}
	for i, w := range want {
		if d := w - r.waits[i]; d < 0 || d > time.Second {
			t.Errorf("wait %d was %v, want %v", i+1, r.waits[i], w)
		}
	}
}

// A wait that does not fit ends the turn at once, with the time.
func TestLongRetryAfterEndsWithTheResetTime(t *testing.T) {
	t.Parallel()
	r := newRig(t, provider.Chat, "[[reply]]\nerror = 'overloaded'\nheaders = { Retry-After = '3600' }\n"+good)
	_, err := r.turn("go")
	if got := exitcodes.From(err); got != exitcodes.RateLimited {
		t.Errorf("code %v (%v)", got, err)
	}
	if at := exitcodes.ResetOf(err); time.Until(at) < 50*time.Minute || time.Until(at) > 61*time.Minute {
		t.Errorf("reset at %v", at)
	}
	if len(r.waits) != 0 || len(r.server.Requests()) != 1 {
		t.Errorf("waits %v, %d requests", r.waits, len(r.server.Requests()))
	}
}

func TestNoServerAtAll(t *testing.T) {
	t.Parallel()
	r := newRig(t, provider.Chat, good)
	if err := r.server.Close(); err != nil {
		t.Fatal(err)
	}
	res, err := r.turn("go")
	if got := exitcodes.From(err); got != exitcodes.Unavailable || res.Stats.Requests != 11 {
		t.Errorf("code %v (%v), stats %+v", got, err, res.Stats)
	}
}

// Silence is a transport fault, whether or not comments keep the line open.
func TestStallsAreTimedOut(t *testing.T) {
	t.Parallel()
	for _, cut := range []string{"stall", "keepalive"} {
		for _, w := range wires {
			t.Run(cut+"/"+string(w), func(t *testing.T) {
				t.Parallel()
				r := newRig(t, w, "[[reply]]\ntext = 'and then nothing more was heard'\ncut_in = 'text'\ncut = '"+cut+"'\n"+good)
				r.timeouts(w, provider.Timeouts{EventIdle: 400 * time.Millisecond, BytesIdle: 300 * time.Millisecond})
				res, err := r.turn("go")
				if err != nil || res.Stats.Replays != 1 || !slices.Equal(r.texts(), goodTexts) {
					t.Errorf("%v, stats %+v, session %q", err, res.Stats, r.texts())
				}
			})
		}
	}
}

func (r *rig) timeouts(w provider.Wire, to provider.Timeouts) {
	r.client.Close()
	r.client = provider.NewClient(provider.Endpoint{Name: "rehearsal", Wire: w, BaseURL: r.base(w)}, to)
	r.engine.Client = r.client
	r.t.Cleanup(r.client.Close)
}

// broken is a client with a fault of its own.
type broken struct{ sends int }

func (b *broken) Send(context.Context, *provider.Request, func(provider.Event)) (*provider.Reply, error) {
	b.sends++
	return nil, errors.New("a rate limit of 429, says a local error")
}

// A local error is neither repeated nor taken for the provider's.
func TestLocalErrorsAreNotRepeated(t *testing.T) {
	t.Parallel()
	r := newRig(t, provider.Chat, good)
	b := &broken{}
	r.engine.Client = b
	_, err := r.turn("go")
	if exitcodes.From(err) != exitcodes.Failure || b.sends != 1 {
		t.Errorf("error %v, %d sends", err, b.sends)
	}
}
