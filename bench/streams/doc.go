// Package streams compares decoding and accumulating of recorded provider
// streams with the SDKs of the providers, on the same bytes in one run:
//
//	cd bench && go test ./streams -bench .
//
// It lives in a module of its own, so that the program does not depend on them.
package streams
