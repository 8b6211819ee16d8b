package provider

import (
	"net/http"
)

type responsesWire struct{}

func (responsesWire) path() string { return "/v1/responses" }

func (responsesWire) header(h http.Header, e *Endpoint) { bearer(h, e) }

func (responsesWire) body(r *Request, e *Endpoint, s shape) (fields, error) { return fields{}, nil }

func newResponsesReply(o *StreamOptions) accumulator { return newChatReply(o) }
