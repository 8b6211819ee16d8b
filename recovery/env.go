package recovery

import (
	"strconv"

	"agentd/exitcodes"
)

// EnvRequests names the environment variable that sets how many physical
// requests one generation may make, the first included.
const EnvRequests = "AGENTD_LLM_MAX_REQUESTS"

// OptionsFromEnv returns the options that the environment sets; a field that it
// does not set is zero.
func OptionsFromEnv(getenv func(string) string) (Options, error) {
	var o Options
	text := getenv(EnvRequests)
	if text == "" {
		return o, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return o, exitcodes.Errorf(exitcodes.Usage, "%s is %q: it has to be a whole number from 1", EnvRequests, text)
	}
	o.Requests = n
	return o, nil
}
