package process

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// oomKills returns how many processes the kernel has killed for want of
// memory: in our own cgroup where that is known, else on the whole machine.
// It is -1 where the kernel does not tell.
func oomKills() int {
	for _, file := range oomFiles("/proc/self/cgroup", "/sys/fs/cgroup") {
		if n := counter(file, "oom_kill"); n >= 0 {
			return n
		}
	}
	return counter("/proc/vmstat", "oom_kill")
}

// oomFiles returns where the counters of our cgroup may be, for cgroup v2 and
// v1.
func oomFiles(self, mount string) []string {
	data, err := os.ReadFile(self)
	if err != nil {
		return nil
	}
	var files []string
	for line := range strings.Lines(string(data)) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		switch {
		case len(f) < 3:
		case f[1] == "":
			files = append(files, filepath.Join(mount, f[2], "memory.events"))
		case strings.Contains(","+f[1]+",", ",memory,"):
			files = append(files, filepath.Join(mount, "memory", f[2], "memory.oom_control"))
		}
	}
	return files
}

// counter reads "NAME NUMBER" from a file of such lines; -1 if it is not there.
func counter(file, name string) int {
	data, err := os.ReadFile(file)
	if err != nil {
		return -1
	}
	for line := range bytes.Lines(data) {
		f := bytes.Fields(line)
		if len(f) == 2 && string(f[0]) == name {
			if n, err := strconv.Atoi(string(f[1])); err == nil {
				return n
			}
		}
	}
	return -1
}
