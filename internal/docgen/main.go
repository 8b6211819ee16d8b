// Command docgen writes the manual pages of agentd into a folder: one for
// each verb and help topic, made from the help texts.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra/doc"

	"agentd/cli"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "docgen:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: docgen FOLDER")
	}
	if err := os.MkdirAll(args[0], 0o755); err != nil {
		return err
	}
	root := cli.Command()
	root.DisableAutoGenTag = true
	date := time.Unix(0, 0) // the same pages from the same source
	header := &doc.GenManHeader{Section: "1", Source: "agentd", Manual: "agentd", Date: &date}
	if err := doc.GenManTree(root, header, args[0]); err != nil {
		return err
	}
	for _, c := range root.Commands() {
		if !c.IsAdditionalHelpTopicCommand() { // the tree leaves these out
			continue
		}
		var page bytes.Buffer
		topic := *header
		topic.Title = "AGENTD-" + strings.ToUpper(c.Name())
		if err := doc.GenMan(c, &topic, &page); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(args[0], "agentd-"+c.Name()+".1"), page.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}
