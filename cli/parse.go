package cli

import (
	"strconv"
	"strings"
	"time"

	"agentd/exitcodes"
)

// parseAge reads "30d", "12h" or a Go duration; "" is 0.
func parseAge(s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 15); err == nil && n > 0 {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	if d, err := time.ParseDuration(s); err == nil && d > 0 {
		return d, nil
	}
	return 0, exitcodes.Errorf(exitcodes.Usage, "%q is not an age such as 30d or 12h", s)
}

// parseSize reads "500M" or "2G" (powers of 1024); "" is 0.
func parseSize(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	shift := 0
	digits := strings.TrimSuffix(strings.ToUpper(s), "B")
	for i, unit := range "KMGT" {
		if n, ok := strings.CutSuffix(digits, string(unit)); ok {
			digits, shift = n, 10*(i+1)
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n <= 0 || n > (1<<62)>>shift {
		return 0, exitcodes.Errorf(exitcodes.Usage, "%q is not a size such as 500M or 2G", s)
	}
	return n << shift, nil
}

// bytesText is a size for people.
func bytesText(n int64) string {
	for _, u := range []struct {
		size int64
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= u.size {
			return strconv.FormatFloat(float64(n)/float64(u.size), 'f', 1, 64) + " " + u.name
		}
	}
	return strconv.FormatInt(n, 10) + " bytes"
}
