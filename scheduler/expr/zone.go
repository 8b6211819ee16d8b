package expr

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// zone is a time zone and the name systemd knows it by.
type zone struct {
	loc  *time.Location
	name string // "" if only the machine knows it
	note string // what is surprising about it
}

// findZone returns the zone of that name, the machine's for "".
func findZone(name string) (zone, error) {
	if name == "" || strings.EqualFold(name, "local") {
		tz, set := os.LookupEnv("TZ")
		return localZone(tz, set, os.Readlink, os.ReadFile), nil
	}
	loc, err := loadZone(name)
	if err != nil {
		return zone{}, err
	}
	return zone{loc: loc, name: zoneName(loc)}, nil
}

// zonesByName has the zones that were asked for, by name. There are some hundred, of
// some kB each: thousands of schedules must not each have their own.
var zonesByName sync.Map

// loadZone is time.LoadLocation with plain errors and without its special
// names.
func loadZone(name string) (*time.Location, error) {
	if strings.EqualFold(name, "utc") {
		return time.UTC, nil
	}
	if name == "" || strings.EqualFold(name, "local") {
		return nil, errors.New("has no name")
	}
	if loc, ok := zonesByName.Load(name); ok {
		return loc.(*time.Location), nil
	}
	if loc, err := time.LoadLocation(name); err == nil {
		zonesByName.Store(name, loc)
		return loc, nil
	}
	if guess := titleZone(name); guess != name {
		if _, err := time.LoadLocation(guess); err == nil {
			return nil, fmt.Errorf("%q is not known: did you mean %s?", name, guess)
		}
	}
	return nil, fmt.Errorf("%q is not known; it has a name such as Europe/Stockholm", name)
}

// titleZone writes a zone as the database does: each word with a capital.
func titleZone(name string) string {
	upper := true
	return strings.Map(func(r rune) rune {
		was := upper
		upper = r == '/' || r == '_' || r == '-' || r == ' '
		switch {
		case r == ' ':
			return '_'
		case was:
			return []rune(strings.ToUpper(string(r)))[0]
		default:
			return []rune(strings.ToLower(string(r)))[0]
		}
	}, name)
}

// zoneName is what to call a zone in a calendar expression.
func zoneName(loc *time.Location) string {
	switch name := loc.String(); name {
	case "Etc/UTC", "Etc/UCT", "Etc/Zulu", "UCT", "Zulu":
		return "UTC"
	default:
		return name
	}
}

// localZone finds the name of the machine's zone the way Go finds the zone:
// TZ if it is set, otherwise /etc/localtime.
func localZone(tz string, set bool, readlink func(string) (string, error), readFile func(string) ([]byte, error)) zone {
	if set {
		name := strings.TrimPrefix(tz, ":")
		if _, after, ok := strings.Cut(name, "zoneinfo/"); ok {
			name = after
		}
		if name == "" {
			return zone{loc: time.UTC, name: "UTC"}
		}
		loc, err := loadZone(name)
		if err != nil {
			return zone{loc: time.Local, note: fmt.Sprintf("the time zone of TZ=%s has no name that a timer could carry: set timezone", tz)}
		}
		return zone{loc: loc, name: zoneName(loc)}
	}
	var names []string
	if target, err := readlink("/etc/localtime"); err == nil {
		if _, name, ok := strings.Cut(target, "zoneinfo/"); ok {
			names = append(names, name)
		}
	} else if text, err := readFile("/etc/timezone"); err == nil {
		names = append(names, strings.TrimSpace(string(text)))
	}
	for _, name := range names {
		if loc, err := loadZone(name); err == nil {
			return zone{loc: loc, name: zoneName(loc)}
		}
	}
	return zone{loc: time.Local}
}
