// Command agentd runs autonomous agents with nobody watching.
package main

import (
	"os"

	"agentd/cli"
)

func main() {
	os.Exit(int(cli.Main(cli.System(), os.Args[1:])))
}
