package systemd

// hardening returns the directives of systemd's sandbox that the scope
// enforces. In a user unit the file system stays open: its directives would be
// silently without effect there, and what does not hold is not written.
//
// Left out in both on purpose: MemoryDenyWriteExecute= (breaks programs with a
// just-in-time compiler, such as node) and RestrictNamespaces= (breaks the
// sandboxes that agents bring along).
func (s Service) hardening() []Entry {
	entries := []Entry{
		{"NoNewPrivileges", "yes"},
		{"LockPersonality", "yes"},
		{"RestrictRealtime", "yes"},
		{"RestrictSUIDSGID", "yes"},
		{"SystemCallArchitectures", "native"},
	}
	if s.Scope == User {
		return entries
	}
	entries = append(entries,
		Entry{"ProtectSystem", "full"},
		Entry{"PrivateDevices", "yes"},
		Entry{"ProtectClock", "yes"},
		Entry{"ProtectControlGroups", "yes"},
		Entry{"ProtectHostname", "yes"},
		Entry{"ProtectKernelLogs", "yes"},
		Entry{"ProtectKernelModules", "yes"},
		Entry{"ProtectKernelTunables", "yes"},
		Entry{"RestrictAddressFamilies", "AF_UNIX AF_INET AF_INET6 AF_NETLINK"},
	)
	if s.User != "" { // root without its capabilities could not read its users' files
		entries = append(entries, Entry{"CapabilityBoundingSet", ""})
	}
	return entries
}
