// Package clis tries the presets with the real agent CLIs, against the scripted
// provider: "make test-clis" installs pinned versions of them from the npm
// registry into a cache, and runs the tests in a network namespace that has
// nothing but loopback.
package clis
