package cli

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestRunnerAudit is about the faults that were found in runners of this kind:
// a pipeline that masks the status, no resume of a named session, a guard that
// knows only the old form of a rate limit, cut streams that are not resumed, a
// timeout that looks like success, a lane that is not taken again.
func TestRunnerAudit(t *testing.T) {
	testscript.Run(t, params("testdata/audit"))
}
