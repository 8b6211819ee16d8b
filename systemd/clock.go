package systemd

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// monotonic returns the time since boot without suspend, as systemd counts it.
func monotonic() (time.Duration, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0, fmt.Errorf("cannot read the monotonic clock: %w", err)
	}
	return time.Duration(ts.Nano()), nil
}
