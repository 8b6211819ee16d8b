package provider

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentd/exitcodes"
)

// Preset is how to reach a provider: an Endpoint without its key, and where the
// key comes from.
type Preset struct {
	Endpoint
	KeyEnv      string // environment variable with the key
	KeyFile     string // file with the key
	Credential  string // name of a systemd credential with the key
	BaseURLEnv  string // environment variable that sets the base URL
	KeyOptional bool   // the server may run without a key
}

// Presets returns the providers that need no configuration beyond a key, by
// name.
func Presets() map[string]Preset {
	list := []Preset{
		preset("openai", Responses, "https://api.openai.com/v1", "OPENAI_API_KEY"),
		preset("anthropic", Anthropic, "https://api.anthropic.com", "ANTHROPIC_API_KEY"),
		preset("openrouter", Chat, "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
		preset("groq", Chat, "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
		preset("mistral", Chat, "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
		preset("deepseek", Chat, "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
		preset("xai", Chat, "https://api.x.ai/v1", "XAI_API_KEY"),
		preset("together", Chat, "https://api.together.xyz/v1", "TOGETHER_API_KEY"),
		preset("fireworks", Chat, "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
		preset("gemini", Chat, "https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY"),
		preset("azure", Chat, "", "AZURE_OPENAI_API_KEY"),
		local("ollama", "http://localhost:11434/v1", "OLLAMA"),
		local("vllm", "http://localhost:8000/v1", "VLLM"),
		local("llamacpp", "http://localhost:8080/v1", "LLAMACPP"),
		local("lmstudio", "http://localhost:1234/v1", "LMSTUDIO"),
	}
	m := make(map[string]Preset, len(list))
	for _, p := range list {
		m[p.Name] = p
	}
	return m
}

func preset(name string, w Wire, base, key string) Preset {
	url := strings.TrimSuffix(key, "_API_KEY") + "_BASE_URL"
	if name == "azure" {
		url = "AZURE_OPENAI_ENDPOINT"
	}
	return Preset{Endpoint: Endpoint{Name: name, Wire: w, BaseURL: base}, KeyEnv: key, BaseURLEnv: url}
}

func local(name, base, env string) Preset {
	return Preset{
		Endpoint: Endpoint{Name: name, Wire: Chat, BaseURL: base},
		KeyEnv:   env + "_API_KEY", BaseURLEnv: env + "_BASE_URL", KeyOptional: true,
	}
}

// Resolve finds the endpoint for a model name of the form provider/model, and
// returns it with its key and with the model's own name, which may hold slashes.
// custom adds providers to the presets, or overrides what they say field by
// field. getenv reads the environment of the run.
func Resolve(model string, custom map[string]Preset, getenv func(string) string) (Endpoint, string, error) {
	name, rest, ok := strings.Cut(model, "/")
	if !ok || name == "" || rest == "" {
		return Endpoint{}, "", exitcodes.Errorf(exitcodes.Config, "the model %q does not name its provider", model).
			WithHint("write it as provider/model, for instance anthropic/claude-sonnet-4-5")
	}
	p, known := Presets()[name]
	own, mine := custom[name]
	if !known && !mine {
		return Endpoint{}, "", unknownProvider(name, custom)
	}
	p = p.override(name, own)
	p.Endpoint.BaseURL = p.base(getenv, mine && own.BaseURL != "")
	if p.Endpoint.BaseURL == "" {
		return Endpoint{}, "", exitcodes.Errorf(exitcodes.Config, "provider %s has no base URL", name).
			WithHint("set " + p.BaseURLEnv + " or base_url in [providers." + name + "]")
	}
	key, err := p.key(getenv)
	if err != nil {
		return Endpoint{}, "", err
	}
	p.Endpoint.APIKey = key
	return p.Endpoint, rest, nil
}

func unknownProvider(name string, custom map[string]Preset) error {
	names := slices.Collect(maps.Keys(Presets()))
	for n := range custom {
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return exitcodes.Errorf(exitcodes.Config, "there is no provider %q", name).
		WithHint("known: " + strings.Join(names, ", ") + "; others need a [providers." + name + "] section")
}

// override returns p with the fields that own sets.
func (p Preset) override(name string, own Preset) Preset {
	p.Endpoint.Name = name
	if own.Wire != "" {
		p.Endpoint.Wire = own.Wire
	}
	if p.Endpoint.Wire == "" {
		p.Endpoint.Wire = Chat
	}
	if own.BaseURL != "" {
		p.Endpoint.BaseURL = own.BaseURL
	}
	if own.KeyEnv != "" || own.KeyFile != "" || own.Credential != "" {
		p.KeyEnv, p.KeyFile, p.Credential = own.KeyEnv, own.KeyFile, own.Credential
	} else if p.KeyEnv == "" {
		p.KeyOptional = true // a provider of one's own that names no key has none
	}
	if len(own.Header) > 0 {
		p.Endpoint.Header = own.Header.Clone()
	}
	p.Endpoint.DoneIsTerminal = p.Endpoint.DoneIsTerminal || own.DoneIsTerminal
	p.KeyOptional = p.KeyOptional || own.KeyOptional
	return p
}

// base returns the base URL; what agentd.toml says wins over the environment.
func (p Preset) base(getenv func(string) string, fixed bool) string {
	if p.BaseURLEnv == "" || fixed {
		return p.Endpoint.BaseURL
	}
	v := strings.TrimSpace(getenv(p.BaseURLEnv))
	if v == "" {
		return p.Endpoint.BaseURL
	}
	if p.Endpoint.Name == "azure" && !strings.Contains(v, "/openai") {
		v = strings.TrimRight(v, "/") + "/openai/v1"
	}
	return v
}

// key reads the key from the first place that has one.
func (p Preset) key(getenv func(string) string) (string, error) {
	if dir := getenv("CREDENTIALS_DIRECTORY"); p.Credential != "" && dir != "" {
		return readKey(p.Endpoint.Name, filepath.Join(dir, p.Credential))
	}
	if p.KeyEnv != "" {
		if key := strings.TrimSpace(getenv(p.KeyEnv)); key != "" {
			return key, nil
		}
	}
	if p.KeyFile != "" {
		return readKey(p.Endpoint.Name, p.KeyFile)
	}
	if p.KeyOptional {
		return "", nil
	}
	where := p.KeyEnv
	if where == "" {
		where = "the credential " + p.Credential
	}
	return "", exitcodes.Errorf(exitcodes.NoPermission, "there is no key for provider %s", p.Endpoint.Name).WithHint("set " + where)
}

func readKey(name, path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", exitcodes.Errorf(exitcodes.NoPermission, "cannot read the key for provider %s: %w", name, err)
	}
	return strings.TrimSpace(string(text)), nil
}
