package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"agentd/exitcodes"
)

// maxSlots bounds how many runs may share a lane.
const maxSlots = 64

func anyText(string) error { return nil }

func checkLine(s string) error {
	for _, c := range s {
		if c < ' ' && c != '\t' || c == 0x7f {
			return errors.New("must be one line without control characters")
		}
	}
	return nil
}

// oneOf accepts the given words only.
func oneOf(words ...string) check {
	return func(s string) error {
		for _, w := range words {
			if s == w {
				return nil
			}
		}
		if best := nearest(s, words); best != "" {
			return fmt.Errorf("did you mean %q? It is one of %s", best, listed(words))
		}
		return fmt.Errorf("must be %s", listed(words))
	}
}

func checkPath(s string) error {
	switch {
	case s == "":
		return errors.New("must not be empty")
	case s == "~" || strings.HasPrefix(s, "~/"):
		return errors.New("~ is not expanded here: write the whole path, or one relative to the workspace")
	}
	return nil
}

func checkEnvFile(s string) error { return checkPath(strings.TrimPrefix(s, "-")) }

// runIDVariable marks what belongs to a run; it is not a setting.
const runIDVariable = "AGENTD_RUN_ID"

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func checkEnvName(s string) error {
	switch {
	case s == runIDVariable:
		return errors.New("agentd sets this variable itself")
	case !envName.MatchString(s):
		return errors.New("not a variable name: letters, digits and _, starting with a letter or _")
	}
	return nil
}

func checkResumable(s string) error {
	var names []string
	for _, e := range exitcodes.Table() {
		switch e.Code {
		case exitcodes.OK, exitcodes.Cancelled, exitcodes.Terminated, exitcodes.LaneBusy:
			if s == e.Name {
				return errors.New("there is nothing to continue after it")
			}
		default:
			if s == e.Name {
				return nil
			}
			names = append(names, e.Name)
		}
	}
	if best := nearest(s, names); best != "" {
		return fmt.Errorf("unknown exit code name: did you mean %q?", best)
	}
	return errors.New(`unknown exit code name; "agentd exitcodes" lists them`)
}

func checkZone(s string) error {
	if s == "" || s == "Local" {
		return errors.New("leave the key out for the machine's time zone")
	}
	if _, err := time.LoadLocation(s); err == nil {
		return nil
	}
	if best := nearest(s, zoneNames()); best != "" {
		return fmt.Errorf("unknown time zone: did you mean %q?", best)
	}
	return errors.New(`unknown time zone; names look like "Europe/Stockholm"`)
}

// zoneNames lists the machine's time zones, or nothing where it has no list.
func zoneNames() []string {
	names := []string{"UTC"}
	for _, table := range []string{"zone1970.tab", "zone.tab"} {
		data, err := os.ReadFile(filepath.Join("/usr/share/zoneinfo", table))
		if err != nil {
			continue // only the suggestion is lost
		}
		for line := range strings.Lines(string(data)) {
			if cols := strings.Fields(line); len(cols) >= 3 && line[0] != '#' {
				names = append(names, cols[2])
			}
		}
	}
	return names
}

var (
	memorySize = regexp.MustCompile(`^([0-9]+(\.[0-9]+)?[KMGTPE]?|[0-9]{1,2}(\.[0-9]+)?%|100%|infinity)$`)
	quota      = regexp.MustCompile(`^[1-9][0-9]{0,5}%$`)
	tasks      = regexp.MustCompile(`^([1-9][0-9]{0,6}|[1-9][0-9]?%|100%|infinity)$`)
	unitName   = regexp.MustCompile(`^[A-Za-z0-9:_.@%\\-]+\.(service|target|timer|path|socket)$`)
)

func checkMemory(s string) error {
	if !memorySize.MatchString(s) {
		return errors.New(`must be a size such as "512M" or "2G", a share such as "50%", or "infinity"`)
	}
	return nil
}

func checkQuota(s string) error {
	if !quota.MatchString(s) {
		return errors.New(`must be a percentage of one processor such as "50%" or "200%"`)
	}
	return nil
}

func checkTasks(s string) error {
	if !tasks.MatchString(s) {
		return errors.New(`must be a number above 0, a share such as "10%", or "infinity"`)
	}
	return nil
}

func checkUnitName(s string) error {
	switch {
	case len(s) <= 255 && unitName.MatchString(s):
		return nil
	case unitName.MatchString(s + ".service"):
		return fmt.Errorf("not a unit's name: did you mean %q?", s+".service")
	}
	return errors.New(`not a unit's name such as "alert@%n.service"`)
}
