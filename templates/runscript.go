package templates

import _ "embed"

// RunScript is the text/template of a job's run.sh. Package runscript fills
// it in; every value it gets is quoted for bash already.
//
//go:embed run.sh.tmpl
var RunScript string
