// Package daemon compares agentd's daemon with supercronic and with bare
// robfig/cron: what many jobs cost, and how late a burst of them starts.
//
//	cd bench && go test ./daemon -bench . -benchtime 1x
//
// It lives in a module of its own, so that the program does not depend on them.
package daemon
