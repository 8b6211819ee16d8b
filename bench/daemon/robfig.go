package daemon

import (
	"fmt"
	"os"
	"os/exec"

	"github.com/robfig/cron/v3"
)

// runRobfig is a program that runs jobs with robfig/cron: each starts argv on
// the spec, which has seconds. It never returns.
func runRobfig(spec string, jobs int, argv []string) error {
	c := cron.New(cron.WithSeconds())
	for range jobs {
		_, err := c.AddFunc(spec, func() {
			cmd := exec.Command(argv[0], argv[1:]...)
			cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
			if err := cmd.Run(); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		})
		if err != nil {
			return err
		}
	}
	c.Run()
	return nil
}
