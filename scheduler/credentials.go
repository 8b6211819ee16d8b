package scheduler

import (
	"os"
	"path/filepath"
	"strings"

	"agentd/systemd"
	"agentd/workspace"
)

// credentials returns what systemd has to hand to the job: the key of the
// provider that its model names, where that is a credential. Other providers'
// keys stay out of the job's reach.
func (t Target) credentials(ws *workspace.Workspace, job *workspace.Job) []systemd.Credential {
	provider, _, _ := strings.Cut(job.Model, "/")
	name := ws.Providers[provider].Credential
	if name == "" {
		return nil
	}
	return []systemd.Credential{t.credential(name)}
}

// credential looks for the file in the folders that systemd knows, and names it:
// by name alone, not every systemd finds one that is there. A name that is
// nowhere yet is left for systemd to look up at each start. Without it the job
// starts all the same, and says which key it misses.
func (t Target) credential(name string) systemd.Credential {
	for _, store := range t.credentialStores() {
		if path := filepath.Join(store, name); isFile(path) {
			return systemd.Credential{Name: name, Path: path, Encrypted: strings.HasSuffix(store, ".encrypted")}
		}
	}
	return systemd.Credential{Name: name}
}

// credentialStores returns the folders to look for credentials in. A user's
// manager reads only the user's own, and before systemd 256 decrypts nothing.
func (t Target) credentialStores() []string {
	var stores []string
	if t.Scope == systemd.User {
		if t.Version >= 256 {
			stores = append(stores, filepath.Join(t.Config, "credstore.encrypted"))
		}
		return append(stores, filepath.Join(t.Config, "credstore"))
	}
	for _, dir := range []string{"/etc", "/run", "/usr/local/lib", "/usr/lib"} {
		stores = append(stores, filepath.Join(dir, "credstore.encrypted"), filepath.Join(dir, "credstore"))
	}
	return stores
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
