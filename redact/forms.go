package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"
)

// minLine is the length from which a line of a value of several lines counts as
// a secret of its own: logs are written by lines.
const minLine = 12

// forms returns the ways in which a secret may be written.
func forms(secret string) []string {
	secret = strings.TrimRight(secret, "\r\n")
	if len(strings.TrimSpace(secret)) < minSecret {
		return nil
	}
	list := []string{
		secret,
		url.QueryEscape(secret), lowerHex(url.QueryEscape(secret)),
		url.PathEscape(secret), lowerHex(url.PathEscape(secret)),
		hex.EncodeToString([]byte(secret)), strings.ToUpper(hex.EncodeToString([]byte(secret))),
		jsonForm(secret, true), jsonForm(secret, false),
	}
	list = append(list, base64Forms(secret)...)
	if strings.Contains(secret, "\n") {
		list = append(list, strings.ReplaceAll(secret, "\n", "\r\n"))
		for line := range strings.Lines(secret) {
			// The frame of a PEM block is no secret.
			line = strings.TrimRight(line, "\r\n")
			if len(strings.TrimSpace(line)) >= minLine && !strings.HasPrefix(line, "-----") {
				list = append(list, line)
			}
		}
	}
	return list
}

// jsonForm is the value inside a JSON string.
func jsonForm(secret string, html bool) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(html)
	if e.Encode(secret) != nil {
		return secret
	}
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSuffix(b.String(), "\n"), `"`), `"`)
}

// base64Forms returns what is certain of the secret in base64, alone or inside
// a longer text: there it begins at one of three places within a group, and the
// characters that it shares with its neighbours are not known.
func base64Forms(secret string) []string {
	var list []string
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		raw := enc.WithPadding(base64.NoPadding)
		list = append(list, enc.EncodeToString([]byte(secret)), raw.EncodeToString([]byte(secret)))
		for shift := range 3 {
			text := raw.EncodeToString(append(make([]byte, shift), secret...))
			first := (shift*8 + 5) / 6            // the first character of the secret's own bits
			last := (shift + len(secret)) * 8 / 6 // the end of these
			if last-first >= minSecret {
				list = append(list, text[first:last])
			}
		}
	}
	return list
}

// lowerHex writes %2F as %2f.
func lowerHex(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:], bytes.ToLower(b[i+1:i+3]))
		}
	}
	return string(b)
}
