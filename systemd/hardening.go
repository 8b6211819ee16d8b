package systemd

import (
	"slices"
	"strings"
)

// hardening returns the directives of systemd's sandbox that the scope
// enforces. In a user unit the file system stays open: its directives would be
// silently without effect there, and what does not hold is not written.
//
// Left out in both on purpose: MemoryDenyWriteExecute= (breaks programs with a
// just-in-time compiler, such as node) and RestrictNamespaces= (breaks the
// sandboxes that agents bring along).
func (s Service) hardening() []Entry {
	entries := common()
	if s.Scope == User {
		return entries
	}
	entries = append(entries,
		Entry{"ProtectSystem", "full"},
		Entry{"ProtectProc", "invisible"},
		Entry{"PrivateMounts", "yes"},
		Entry{"PrivateDevices", "yes"},
		Entry{"ProtectClock", "yes"},
		Entry{"ProtectControlGroups", "yes"},
		Entry{"ProtectHostname", "yes"},
		Entry{"ProtectKernelLogs", "yes"},
		Entry{"ProtectKernelModules", "yes"},
		Entry{"ProtectKernelTunables", "yes"},
		Entry{"RestrictAddressFamilies", "AF_UNIX AF_INET AF_INET6 AF_NETLINK"},
		// @mount: the sandboxes again. A call that is not allowed fails instead of killing.
		Entry{"SystemCallFilter", "@system-service @mount"},
		Entry{"SystemCallErrorNumber", "EPERM"},
	)
	if !slices.ContainsFunc(append([]string{s.Workspace, s.Script}, s.Needs...), temporary) {
		entries = append(entries, Entry{"PrivateTmp", "yes"})
	}
	if s.User != "" { // root without its capabilities could not read its users' files
		entries = append(entries, Entry{"CapabilityBoundingSet", ""})
	}
	return entries
}

// common returns what every scope enforces.
func common() []Entry {
	return []Entry{
		{"NoNewPrivileges", "yes"},
		{"LockPersonality", "yes"},
		{"RestrictRealtime", "yes"},
		{"RestrictSUIDSGID", "yes"},
		{"SystemCallArchitectures", "native"},
	}
}

// temporary reports whether a private /tmp would hide the path.
func temporary(path string) bool {
	return strings.HasPrefix(path, "/tmp/") || strings.HasPrefix(path, "/var/tmp/")
}
