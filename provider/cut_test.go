package provider

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentd/recovery"
)

// chunked reads n bytes at a time; n = 0 is a random number.
type chunked struct {
	r io.Reader
	n int
}

func (c chunked) Read(p []byte) (int, error) {
	n := c.n
	if n == 0 {
		n = 1 + rand.IntN(40)
	}
	return c.r.Read(p[:min(n, len(p))])
}

func TestChunksDoNotChangeTheReply(t *testing.T) {
	for _, rec := range corpus(t) {
		for _, n := range []int{1, 2, 3, 7, 0, 0} {
			reply, err := ReadStream(rec.Wire, chunked{bytes.NewReader(rec.data), n}, StreamOptions{})
			if err != nil {
				t.Fatalf("%s by %d: %v", rec.File, n, err)
			}
			if diff := cmp.Diff(rec.Want, resultOf(reply)); diff != "" {
				t.Errorf("%s by %d: result differs (-want +got):\n%s", rec.File, n, diff)
			}
		}
	}
}

var everyByte = flag.Bool("everybyte", false, "cut the large streams at every byte too, which takes a minute")

// TestEveryByteCut cuts every stream at every byte. What comes out is either the
// manifest's result, where the terminal had arrived, or a truncation; a cut
// never gives less than the whole reply, and never another tool call.
//
// The time grows with the square of the size: the two streams above 32 KiB are
// cut at every byte around the end of each event, where something changes, and
// at every so many between, unless -everybyte is given.
func TestEveryByteCut(t *testing.T) {
	var jobs sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for _, rec := range corpus(t) {
		for from := 0; from <= len(rec.data); from += 4096 {
			slots <- struct{}{}
			jobs.Go(func() {
				defer func() { <-slots }()
				for at := from; at < min(from+4096, len(rec.data)+1); at++ {
					if rec.passes(at) {
						continue
					}
					if err := cut(rec, at); err != nil {
						t.Errorf("%s at %d: %v", rec.File, at, err)
						return
					}
				}
			})
		}
	}
	jobs.Wait()
}

// passes reports whether a cut is left out.
func (rec recording) passes(at int) bool {
	step, near := 1, 3
	switch {
	case raceDetector, testing.Short():
		step, near = 97, 0
	case len(rec.data) > 32<<10 && !*everyByte:
		step = 13
	}
	around := rec.data[max(at-near, 0):min(at+near, len(rec.data))]
	return at%step != 0 && at != len(rec.data) && !bytes.Contains(around, []byte("\n\n"))
}

// cut reads the first bytes of a stream, which end cleanly, and says what is
// wrong with the outcome.
func cut(rec recording, at int) error {
	reply, err := ReadStream(rec.Wire, bytes.NewReader(rec.data[:at]), StreamOptions{})
	return judge(rec, at, reply, err)
}

func judge(rec recording, at int, reply *Reply, err error) error {
	had := at >= rec.terminal
	if err != nil {
		f, ok := errors.AsType[*recovery.Fault](err)
		switch {
		case !ok || f.Kind != recovery.Truncated:
			return fmt.Errorf("error is %v, want a truncation", err)
		case reply != nil:
			return errors.New("there is a reply beside the error")
		case had:
			return fmt.Errorf("error is %v although the terminal had arrived", err)
		}
		return nil
	}
	if !had {
		return errors.New("a reply without the terminal")
	}
	got, want := resultOf(reply), rec.Want
	if got.InputTokens == 0 && got.OutputTokens == 0 { // the cut was before the usage
		want.InputTokens, want.OutputTokens = 0, 0
	}
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("result differs (-want +got):\n%s", diff)
	}
	return nil
}

func TestResetAfterTheTerminalIsADrainFailure(t *testing.T) {
	reset := errors.New("read: connection reset by peer")
	for _, rec := range corpus(t) {
		for _, at := range []int{0, rec.terminal - 1, rec.terminal, (rec.terminal + len(rec.data)) / 2, len(rec.data)} {
			in := io.MultiReader(bytes.NewReader(rec.data[:at]), failing{reset})
			reply, err := ReadStream(rec.Wire, in, StreamOptions{})
			f, ok := errors.AsType[*recovery.Fault](err)
			if reply != nil || !ok || f.Kind != recovery.Truncated || !f.Transient() {
				t.Errorf("%s reset at %d: got %v and %v, want a truncation", rec.File, at, reply, err)
			}
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
