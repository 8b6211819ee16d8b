package workspace

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Rehearsal is the provider that answers from a script, without network or
// key: "rehearsal/NAME" or "rehearsal/path.toml".
const Rehearsal = "rehearsal"

// ProviderPresets names the providers that need no [providers.NAME] table.
func ProviderPresets() []string {
	return []string{
		"anthropic", "azure", "deepseek", "fireworks", "gemini", "groq", "llamacpp", "lmstudio", "mistral",
		"ollama", "openai", "openrouter", Rehearsal, "together", "vllm", "xai",
	}
}

func providerFields() []field[Provider] {
	return []field[Provider]{
		{"wire", "text", "the preset's, else chat", "protocol: chat (OpenAI Chat Completions and all that is compatible), responses or anthropic", text(func(p *Provider) *string { return &p.Wire }, oneOf("chat", "responses", "anthropic"))},
		{"base_url", "text", "the preset's", "where requests go, without the protocol's own path", text(func(p *Provider) *string { return &p.BaseURL }, checkURL)},
		{"api_key_env", "text", "the preset's", "variable that holds the key, from env_files or the environment", text(func(p *Provider) *string { return &p.APIKeyEnv }, checkKeyVariable)},
		{"api_key_file", "text", "", "file that holds the key, relative to the workspace", text(func(p *Provider) *string { return &p.APIKeyFile }, checkPath)},
		{"credential", "text", "", "systemd credential that holds the key", text(func(p *Provider) *string { return &p.Credential }, checkCredential)},
		{"headers", "table of texts", "", "more headers for every request", func(f *findings, name string, n *node, p *Provider) {
			readTexts(f, name, n, &p.Headers, checkHeaderName, checkLine)
		}},
		{"done_is_terminal", "true or false", "false", "chat: [DONE] alone proves that a reply is complete; only for servers that send no finish_reason", boolean(func(p *Provider) *bool { return &p.DoneIsTerminal })},
	}
}

func checkURL(s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return concealed("is not a URL")
	case u.User != nil:
		return concealed("must not hold a user or a password: use api_key_env")
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.Hostname() == "":
		return errors.New(`must start with "https://" or "http://" and name a host`)
	case u.Fragment != "":
		return errors.New("must not have a #fragment")
	}
	return nil
}

var (
	credentialName = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,254}$`)
	headerName     = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
)

// checkKeyVariable catches a key in the place of its variable's name, and does
// not show it.
func checkKeyVariable(s string) error {
	if !envName.MatchString(s) {
		return concealed("must be the name of a variable (letters, digits and _), not the key itself")
	}
	return nil
}

func checkCredential(s string) error {
	if !credentialName.MatchString(s) {
		return errors.New("a credential's name is made of letters, digits, dots, - and _")
	}
	return nil
}

func checkHeaderName(s string) error {
	if !headerName.MatchString(s) {
		return errors.New("not the name of a header")
	}
	return nil
}

// readProviders reads the [providers] table.
func (l *loader) readProviders(n *node) {
	for _, name := range n.names {
		e := n.keys[name]
		if !l.named(e, "provider", "providers", name) {
			continue
		}
		p := Provider{Name: name}
		at := map[string]int{}
		decode(l.found, "providers."+name, "", providerFields(), e.value, &p, func(key string, k *entry) { at[key] = k.pos })
		l.checkProvider(&p, e, at)
		if p.APIKeyFile != "" {
			if !filepath.IsAbs(p.APIKeyFile) {
				p.APIKeyFile = filepath.Join(l.ws.Dir, p.APIKeyFile)
			}
			l.keyFiles = append(l.keyFiles, keyFile{pos: at["api_key_file"], path: p.APIKeyFile})
		}
		l.ws.Providers[name] = p
	}
}

func (l *loader) checkProvider(p *Provider, e *entry, at map[string]int) {
	where := "providers." + p.Name
	if p.Name == Rehearsal {
		l.found.mistake(e.pos, "%s cannot be set: %q is agentd's own scripted provider", where, Rehearsal)
		return
	}
	if !slices.Contains(ProviderPresets(), p.Name) {
		if _, ok := at["base_url"]; !ok && !l.found.meant[where+".base_url"] {
			l.found.mistake(e.pos, "%s needs a base_url, because %q is not a provider that agentd knows%s", where, p.Name, didYouMean(p.Name, ProviderPresets()))
		}
		if _, ok := at["wire"]; !ok {
			p.Wire = "chat"
		}
	}
	if p.DoneIsTerminal && p.Wire != "" && p.Wire != "chat" {
		l.found.mistake(at["done_is_terminal"], "done_is_terminal is only for wire = \"chat\"")
	}
	var keys []string
	for _, key := range []string{"api_key_env", "api_key_file", "credential"} {
		if _, ok := at[key]; ok {
			keys = append(keys, key)
		}
	}
	if len(keys) > 1 {
		l.found.mistake(at[keys[1]], "%s names the key twice: keep one of %s", where, strings.Join(keys, ", "))
	}
}

// checkModel refuses a model whose provider nobody knows.
func (l *loader) checkModel(model string) error {
	provider, name, ok := strings.Cut(model, "/")
	known := append(sortedKeys(l.ws.Providers), ProviderPresets()...)
	switch {
	case !ok && slices.Contains(known, model):
		return fmt.Errorf("names no model: write %q", model+"/MODEL")
	case !ok:
		return errors.New(`must be provider/model, such as "anthropic/claude-sonnet-4-5"`)
	case !slices.Contains(known, provider):
		hint := didYouMean(provider, known)
		if hint == "" {
			hint = fmt.Sprintf(": add a [providers.%s] table, or use one of %s", shownName(provider), strings.Join(ProviderPresets(), ", "))
		}
		return fmt.Errorf("unknown provider %s%s", quote(provider), hint)
	case name == "":
		return fmt.Errorf("names no model: write %q", provider+"/MODEL")
	case strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return errors.New("a model's name has no spaces or control characters")
	}
	return nil
}

func shownName(name string) string {
	if isSlug(name) {
		return name
	}
	return "NAME"
}
