//go:build tools

package bench

import _ "github.com/aptible/supercronic" // built by the benchmarks
