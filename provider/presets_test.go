package provider

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentd/exitcodes"
)

func env(m map[string]string) func(string) string { return func(k string) string { return m[k] } }

func TestEveryPresetResolves(t *testing.T) {
	if n := len(Presets()); n != 15 {
		t.Errorf("there are %d presets, want 15", n)
	}
	for name, p := range Presets() {
		vars := map[string]string{p.KeyEnv: " key \n"}
		if name == "azure" {
			vars["AZURE_OPENAI_ENDPOINT"] = "https://r.openai.azure.com/"
		}
		e, model, err := Resolve(name+"/org/model", nil, env(vars))
		if err != nil || e.APIKey != "key" || model != "org/model" || e.Name != name || e.Wire == "" {
			t.Errorf("%s resolves to %+v, %q, %v", name, e, model, err)
		}
		if _, err := e.url(wireOf(e.Wire).path()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		_, _, err = Resolve(name+"/m", nil, env(map[string]string{"AZURE_OPENAI_ENDPOINT": "https://r"}))
		if p.KeyOptional != (err == nil) || err != nil && exitcodes.From(err) != exitcodes.NoPermission {
			t.Errorf("%s without a key gives %v", name, err)
		}
		if err != nil && !strings.Contains(exitcodes.HintOf(err), p.KeyEnv) {
			t.Errorf("%s: the hint %q does not name %s", name, exitcodes.HintOf(err), p.KeyEnv)
		}
	}
}

func TestResolve(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"file", "cred"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("key-of-"+name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	custom := map[string]Preset{
		"mine":      {Endpoint: Endpoint{Wire: Anthropic, BaseURL: "http://mine"}, KeyFile: filepath.Join(dir, "file")},
		"cred":      {Endpoint: Endpoint{BaseURL: "http://cred"}, Credential: "cred", KeyEnv: "CRED_KEY"},
		"open":      {Endpoint: Endpoint{BaseURL: "http://open", DoneIsTerminal: true}},
		"anthropic": {Endpoint: Endpoint{BaseURL: "http://proxy"}},
		"bare":      {KeyOptional: true},
		"lost":      {Endpoint: Endpoint{BaseURL: "http://lost"}, KeyFile: filepath.Join(dir, "none")},
	}
	vars := map[string]string{"ANTHROPIC_API_KEY": "ak", "ANTHROPIC_BASE_URL": "http://env", "OPENAI_API_KEY": "ok", "OPENAI_BASE_URL": "http://env/v1", "CREDENTIALS_DIRECTORY": dir}
	for _, tt := range []struct {
		model, base, key string
		wire             Wire
		code             exitcodes.Code
	}{
		{"mine/m", "http://mine", "key-of-file", Anthropic, 0},
		{"cred/m", "http://cred", "key-of-cred", Chat, 0},
		{"open/m", "http://open", "", Chat, 0},
		{"anthropic/m", "http://proxy", "ak", Anthropic, 0},
		{"openai/m", "http://env/v1", "ok", Responses, 0},
		{"bare/m", "", "", "", exitcodes.Config},
		{"lost/m", "", "", "", exitcodes.NoPermission},
		{"nobody/m", "", "", "", exitcodes.Config},
		{"m", "", "", "", exitcodes.Config},
		{"/m", "", "", "", exitcodes.Config},
		{"openai/", "", "", "", exitcodes.Config},
	} {
		e, _, err := Resolve(tt.model, custom, env(vars))
		if exitcodes.From(err) != tt.code {
			t.Errorf("%s gives %v, want code %s", tt.model, err, tt.code)
			continue
		}
		if err == nil && (e.BaseURL != tt.base || e.APIKey != tt.key || e.Wire != tt.wire) {
			t.Errorf("%s resolves to %+v", tt.model, e)
		}
		if err != nil && exitcodes.HintOf(err) == "" && tt.model != "lost/m" {
			t.Errorf("%s: %v has no hint", tt.model, err)
		}
	}
	vars["CREDENTIALS_DIRECTORY"], vars["CRED_KEY"] = "", "from-env"
	if e, _, err := Resolve("cred/m", custom, env(vars)); err != nil || e.APIKey != "from-env" {
		t.Errorf("without credentials the key is %q (%v), want that of the environment", e.APIKey, err)
	}
}
