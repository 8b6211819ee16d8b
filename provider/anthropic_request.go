package provider

import (
	"net/http"
)

type anthropicWire struct{}

func (anthropicWire) path() string { return "/v1/messages" }

func (anthropicWire) header(h http.Header, e *Endpoint) {}

func (anthropicWire) body(r *Request, e *Endpoint, s shape) (fields, error) { return fields{}, nil }

func newAnthropicReply(o *StreamOptions) accumulator { return newChatReply(o) }
