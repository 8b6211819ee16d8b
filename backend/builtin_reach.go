package backend

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"agentd/exitcodes"
	"agentd/provider"
	"agentd/provider/rehearsal"
	"agentd/workspace"
)

// EnvRehearsalURL names the environment variable with the URL of a scripted
// provider that runs elsewhere, for models of the provider "rehearsal".
const EnvRehearsalURL = "AGENTD_REHEARSAL_URL"

// reached is where the requests of an attempt go.
type reached struct {
	endpoint provider.Endpoint
	model    string // the provider's own name for it
	close    func()
}

// reach finds the endpoint of the job's model, and starts it if it is a
// rehearsal.
func (b *builtin) reach(a Attempt) (reached, error) {
	if a.Job.Model == "" {
		return reached{}, exitcodes.Errorf(exitcodes.Config, "job %s has no model", a.Job.Address()).
			WithHint(`set model = "provider/model" in agentd.toml`)
	}
	if name, model, _ := strings.Cut(a.Job.Model, "/"); name == workspace.Rehearsal {
		return b.rehearse(a, model)
	}
	custom, err := presets(b.Providers)
	if err != nil {
		return reached{}, err
	}
	e, model, err := provider.Resolve(a.Job.Model, custom, b.Getenv)
	return reached{endpoint: e, model: model, close: func() {}}, err
}

// rehearse returns a scripted provider. One of its own goes on where the
// attempt before it in the same run stopped.
func (b *builtin) rehearse(a Attempt, name string) (reached, error) {
	e := provider.Endpoint{Name: workspace.Rehearsal, Wire: provider.Chat}
	if w := b.Providers[workspace.Rehearsal].Wire; w != "" {
		e.Wire = provider.Wire(w)
	}
	if url := b.Getenv(EnvRehearsalURL); url != "" {
		e.BaseURL = strings.TrimRight(url, "/")
		return reached{endpoint: e, model: name, close: func() {}}, nil
	}
	path := name
	if strings.HasSuffix(name, ".toml") && !filepath.IsAbs(name) {
		path = filepath.Join(a.Dir, name)
	}
	sc, err := rehearsal.Load(path)
	if err != nil {
		return reached{}, err
	}
	if sc.Wire != "" {
		e.Wire = provider.Wire(sc.Wire)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	sc.From = b.used
	s, err := rehearsal.Serve(sc)
	if err != nil {
		return reached{}, err
	}
	e.BaseURL = s.BaseURL(rehearsal.Wire(e.Wire))
	return reached{endpoint: e, model: name, close: func() {
		_ = s.Close() // nobody is left to answer
		b.mu.Lock()
		defer b.mu.Unlock()
		b.used = s.Used()
	}}, nil
}

// presets makes the providers of agentd.toml known to package provider.
func presets(all map[string]workspace.Provider) (map[string]provider.Preset, error) {
	out := make(map[string]provider.Preset, len(all))
	for name, p := range all {
		if err := checkKeyFile(name, p.APIKeyFile); err != nil {
			return nil, err
		}
		h := http.Header{}
		for k, v := range p.Headers {
			h.Set(k, v)
		}
		out[name] = provider.Preset{
			Endpoint: provider.Endpoint{
				Name: name, Wire: provider.Wire(p.Wire), BaseURL: p.BaseURL, Header: h, DoneIsTerminal: p.DoneIsTerminal,
			},
			KeyEnv: p.APIKeyEnv, KeyFile: p.APIKeyFile, Credential: p.Credential,
		}
	}
	return out, nil
}

// checkKeyFile refuses a key that others can read: it is no secret any more.
func checkKeyFile(name, path string) error {
	if path == "" {
		return nil
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it may not be the provider of this job
	}
	if err != nil {
		return exitcodes.Errorf(exitcodes.NoPermission, "cannot read the key for provider %s: %w", name, err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return exitcodes.Errorf(exitcodes.NoPermission, "the key file %s of provider %s can be read by others (mode %04o)", path, name, mode).
			WithHint("chmod 600 " + path)
	}
	return nil
}
