package main

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
)

// order lists the packages from the outside in. A package imports only from
// rows below its own: whoever needs something from above has put it in the
// wrong place.
var order = []string{
	"cmd/agentd",
	"cli",
	"doctor",
	"scheduler/daemon",
	"scheduler",
	"scheduler/crontab",
	"runner",
	"systemd",
	"runscript",
	"backend",
	"generation",
	"tools",
	"provider/rehearsal",
	"provider",
	"provider/sse",
	"provider/jsonscan",
	"recovery",
	"session",
	"notify",
	"history",
	"firings",
	"lanes",
	"workspace",
	"templates",
	"scheduler/expr",
	"process",
	"redact",
	"provider/message",
	"exitcodes",
	"atomicfile",
}

func TestImportsFollowTheOrder(t *testing.T) {
	rank := map[string]int{}
	for i, p := range order {
		rank["agentd/"+p] = i
	}
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "agentd/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	dec := json.NewDecoder(strings.NewReader(string(out)))
	checked := 0
	for dec.More() {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(p.ImportPath, "agentd/internal/") {
			continue // test tools; nothing of the product imports them (checked below)
		}
		from, known := rank[p.ImportPath]
		if !known {
			t.Errorf("%s has no row in the order: give it one here and in ARCHITECTURE.md", p.ImportPath)
			continue
		}
		for _, imp := range p.Imports {
			if !strings.HasPrefix(imp, "agentd/") {
				continue
			}
			checked++
			if to, ok := rank[imp]; !ok || to <= from {
				t.Errorf("%s imports %s, which is not below it", p.ImportPath, imp)
			}
		}
	}
	if checked < 20 {
		t.Errorf("only %d imports were checked: the test looks at the wrong tree", checked)
	}
}
