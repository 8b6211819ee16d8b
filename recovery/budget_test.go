package recovery

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"agentd/exitcodes"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// top makes every backoff as long as it can be.
func top() float64 { return 0.999999 }

// exhausted runs f in a bubble of fake time and returns its error as *Exhausted.
func exhausted(t *testing.T, err error) *Exhausted {
	t.Helper()
	e, ok := errors.AsType[*Exhausted](err)
	if !ok {
		t.Fatalf("error is %v, want *Exhausted", err)
	}
	return e
}

func TestReserveCountsUpToTheLimit(t *testing.T) {
	b := New(Options{Requests: 3})
	for range 3 {
		if err := b.Reserve(); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if e := exhausted(t, b.Reserve()); e.Code != exitcodes.Unavailable {
			t.Errorf("code is %s, want unavailable", e.Code)
		}
	}
	if s := b.Stats(); s.Requests != 3 || s.Replays != 0 {
		t.Errorf("stats are %+v, want 3 requests", s)
	}
}

func TestReserveIsSafeForConcurrentUse(t *testing.T) {
	b := New(Options{Requests: 11})
	var wg sync.WaitGroup
	var mu sync.Mutex
	sent := 0
	for range 50 {
		wg.Go(func() {
			if b.Reserve() == nil {
				mu.Lock()
				sent++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if sent != 11 {
		t.Errorf("%d requests were admitted, want 11", sent)
	}
}

func TestReserveEndsWithTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(Options{})
		time.Sleep(20 * time.Minute)
		if err := b.Reserve(); err != nil {
			t.Errorf("the first request is refused: %v", err)
		}
		if e := exhausted(t, b.Reserve()); e.Code != exitcodes.Unavailable {
			t.Errorf("code is %s, want unavailable", e.Code)
		}
	})
}

func TestReplayWaitsWithFullJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(Options{Rand: func() float64 { return 0.5 }})
		want := []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second}
		for i, w := range want {
			_ = b.Reserve()
			begin := time.Now()
			if err := b.Replay(t.Context(), &Fault{Kind: Server, Status: 500}); err != nil {
				t.Fatal(err)
			}
			if got := time.Since(begin); got != w {
				t.Errorf("wait %d is %s, want %s", i, got, w)
			}
		}
		if s := b.Stats(); s.Replays != 8 || s.Waited != 91500*time.Millisecond || len(s.Why) != 8 || s.Why[0] != "server (HTTP 500)" {
			t.Errorf("stats are %+v", s)
		}
	})
}

func TestReplayHonoursTheWaitAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(Options{Rand: top})
		_ = b.Reserve()
		begin := time.Now()
		f := &Fault{Kind: RateLimited, Status: 429, RetryAfter: 90 * time.Second}
		if err := b.Replay(t.Context(), f); err != nil {
			t.Fatal(err)
		}
		if got := time.Since(begin); got != 90*time.Second {
			t.Errorf("wait is %s, want 90s", got)
		}
		// A reset time counts from now, not from when the answer came.
		f = &Fault{Kind: Server, Status: 503, RetryAfter: 60 * time.Second, ResetAt: time.Now().Add(60 * time.Second)}
		time.Sleep(45 * time.Second)
		begin = time.Now()
		if err := b.Replay(t.Context(), f); err != nil {
			t.Fatal(err)
		}
		if got := time.Since(begin); got != 15*time.Second {
			t.Errorf("wait is %s, want 15s", got)
		}
	})
}

func TestReplayEndsNowWhenTheWaitDoesNotFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, kind := range []Kind{RateLimited, Server} {
			b := New(Options{Deadline: time.Minute})
			_ = b.Reserve()
			begin := time.Now()
			reset := begin.Add(time.Hour)
			e := exhausted(t, b.Replay(t.Context(), &Fault{Kind: kind, RetryAfter: time.Hour, ResetAt: reset}))
			if e.Code != exitcodes.RateLimited || !e.ResetAt.Equal(reset) || time.Since(begin) != 0 {
				t.Errorf("%s: code %s, reset %s after %s; want rate_limited, %s, at once", kind, e.Code, e.ResetAt, time.Since(begin), reset)
			}
			if exitcodes.From(e) != exitcodes.RateLimited || !exitcodes.ResetOf(e).Equal(reset) {
				t.Errorf("%s: the exit code and reset time do not come through", kind)
			}
		}
	})
}

func TestReplayEndsNowWhenTheBackoffDoesNotFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(Options{Deadline: 10 * time.Second, Rand: top, Requests: 100})
		begin := time.Now()
		for {
			_ = b.Reserve()
			err := b.Replay(t.Context(), &Fault{Kind: Truncated})
			if err == nil {
				continue
			}
			if e := exhausted(t, err); e.Code != exitcodes.Unavailable {
				t.Errorf("code is %s, want unavailable", e.Code)
			}
			break
		}
		if d := time.Since(begin); d > 10*time.Second {
			t.Errorf("it took %s, over the deadline", d)
		}
	})
}

func TestReplayRefusesWhatCannotBeMended(t *testing.T) {
	for _, kind := range []Kind{Quota, Auth, Invalid, NotFound, Overflow, Refused, Malformed, TooLarge} {
		b := New(Options{})
		f := &Fault{Kind: kind}
		if err := b.Replay(t.Context(), f); err != error(f) {
			t.Errorf("%s: error is %v, want the fault itself", kind, err)
		}
		if s := b.Stats(); s.Replays != 0 || s.Waited != 0 {
			t.Errorf("%s: stats are %+v, want none", kind, s)
		}
	}
}

func TestReplayIsRefusedWhenNoRequestIsLeft(t *testing.T) {
	b := New(Options{Requests: 1})
	_ = b.Reserve()
	reset := time.Now().Add(time.Minute)
	e := exhausted(t, b.Replay(t.Context(), &Fault{Kind: RateLimited, ResetAt: reset}))
	if e.Code != exitcodes.RateLimited || !e.ResetAt.Equal(reset) {
		t.Errorf("got code %s and reset %s, want rate_limited and %s", e.Code, e.ResetAt, reset)
	}
	if e := exhausted(t, b.Reserve()); e.Code != exitcodes.RateLimited {
		t.Errorf("the code of a later request is %s, want rate_limited", e.Code)
	}
}

func TestReplayCanBeTurnedOff(t *testing.T) {
	b := New(Options{})
	b.DisableReplay("a hook has spoken the reply")
	if e := exhausted(t, b.Replay(t.Context(), &Fault{Kind: Truncated})); e.Code != exitcodes.Unavailable {
		t.Errorf("code is %s, want unavailable", e.Code)
	}
	b = New(Options{})
	ctx := WithoutReplay(t.Context(), "the reader cannot take back")
	if e := exhausted(t, b.Replay(ctx, &Fault{Kind: RateLimited})); e.Code != exitcodes.RateLimited {
		t.Errorf("code is %s, want rate_limited", e.Code)
	}
	if err := b.Reserve(); err != nil {
		t.Errorf("requests are refused too: %v", err)
	}
}

func TestCancellationLeavesAnyWaitAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("stopped by a person")
		ctx, cancel := context.WithCancelCause(t.Context())
		b := New(Options{})
		_ = b.Reserve()
		begin := time.Now()
		time.AfterFunc(5*time.Second, func() { cancel(why) })
		err := b.Replay(ctx, &Fault{Kind: RateLimited, RetryAfter: 5 * time.Minute})
		if !errors.Is(err, why) || time.Since(begin) != 5*time.Second {
			t.Errorf("error is %v after %s, want the cause after 5s", err, time.Since(begin))
		}
		if err := b.Replay(ctx, &Fault{Kind: Server}); !errors.Is(err, why) {
			t.Errorf("error is %v, want the cause", err)
		}
		if s := b.Stats(); s.Replays != 0 || s.Waited != 5*time.Second {
			t.Errorf("stats are %+v, want no replay and 5s", s)
		}
	})
}

func TestNestedScopesShareOneBudget(t *testing.T) {
	ctx, outer := Ensure(t.Context(), Options{Requests: 2})
	_ = From(ctx).Reserve()
	inner, b := Ensure(ctx, Options{Requests: 50})
	if b != outer || From(inner) != outer {
		t.Fatal("the nested scope has a budget of its own")
	}
	_ = b.Reserve()
	if err := From(ctx).Reserve(); err == nil {
		t.Error("nested requests did not count")
	}
	if From(t.Context()) != nil {
		t.Error("a context without a budget has one")
	}
}

func TestOptionsFromEnv(t *testing.T) {
	for text, want := range map[string]int{"": 0, "1": 1, "30": 30} {
		o, err := OptionsFromEnv(func(string) string { return text })
		if err != nil || o.Requests != want {
			t.Errorf("%q gives %d and %v, want %d", text, o.Requests, err, want)
		}
	}
	for _, text := range []string{"0", "-1", "many", "1.5"} {
		if _, err := OptionsFromEnv(func(string) string { return text }); exitcodes.From(err) != exitcodes.Usage {
			t.Errorf("%q gives %v, want a usage error", text, err)
		}
	}
}

// TestNoHistoryOutrunsTheBudget plays random histories against the model: what
// is admitted never passes the allowance or the deadline, and every refusal
// carries a code that is right.
func TestNoHistoryOutrunsTheBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1_800_000_000, 0)
		begin := now
		o := Options{
			Requests: rapid.IntRange(1, 20).Draw(t, "requests"),
			Deadline: time.Duration(rapid.IntRange(1, 700).Draw(t, "deadline")) * time.Second,
			Now:      func() time.Time { return now },
			Rand:     func() float64 { return 0.75 },
			Wait:     func(_ context.Context, d time.Duration) error { now = now.Add(d); return nil },
		}
		b := New(o)
		sent := 0
		for i := range rapid.IntRange(1, 40).Draw(t, "steps") {
			if b.Reserve() == nil {
				sent++
				if sent > 1 && now.Sub(begin) >= o.Deadline {
					t.Fatalf("a request was admitted after the deadline")
				}
			}
			now = now.Add(time.Duration(rapid.IntRange(0, 60).Draw(t, fmt.Sprint("flight", i))) * time.Second)
			f := &Fault{
				Kind:       rapid.SampledFrom([]Kind{Transport, Truncated, Server, RateLimited, Auth, Invalid}).Draw(t, "kind"),
				RetryAfter: time.Duration(rapid.IntRange(0, 900).Draw(t, "after")) * time.Second,
			}
			before := now
			err := b.Replay(context.Background(), f)
			if err == nil {
				if !f.Transient() || sent >= o.Requests || now.Sub(begin) >= o.Deadline || now.Sub(before) < f.RetryAfter {
					t.Fatalf("a replay was admitted: %v after %s, %d sent, %s gone", f, now.Sub(before), sent, now.Sub(begin))
				}
				continue
			}
			if code := exitcodes.From(err); code != f.ExitCode() && code != exitcodes.RateLimited {
				t.Fatalf("code is %s for %v", code, f)
			}
			if now != before {
				t.Fatalf("a refusal took %s", now.Sub(before))
			}
		}
		if s := b.Stats(); s.Requests != sent || sent > o.Requests || s.Replays != len(s.Why) {
			t.Fatalf("stats are %+v, sent %d of %d", s, sent, o.Requests)
		}
	})
}
