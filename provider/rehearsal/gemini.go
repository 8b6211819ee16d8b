package rehearsal

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"agentd/provider/message"
)

// geminiDialect speaks the streamGenerateContent method of the Gemini API. No
// engine of ours does: it is for the Gemini CLI.
type geminiDialect struct{}

const geminiMethod = ":streamGenerateContent"

func (geminiDialect) frames(s *script) []frame {
	chunk := func(p part, finish string, parts ...object) frame {
		if parts == nil {
			parts = []object{{"text": ""}}
		}
		candidate := object{"index": 0, "content": object{"role": "model", "parts": parts}}
		if finish != "" {
			candidate["finishReason"] = finish
		}
		return event(p, "", object{
			"responseId": s.id, "modelVersion": s.model, "candidates": []object{candidate},
			"usageMetadata": object{
				"promptTokenCount": s.usage.Input, "candidatesTokenCount": s.usage.Output, "cachedContentTokenCount": s.usage.Cached,
				"thoughtsTokenCount": s.usage.Reasoning, "totalTokenCount": s.usage.Input + s.usage.Output,
			},
		})
	}
	var out []frame
	for _, t := range pieces(s.reasoning, s.piece) {
		out = append(out, chunk(partReasoning, "", object{"text": t, "thought": true}))
	}
	for _, t := range pieces(s.text+s.refusal, s.piece) {
		out = append(out, chunk(partText, "", object{"text": t}))
	}
	for _, c := range s.calls {
		out = append(out, chunk(partArguments, "", object{"functionCall": object{"id": c.id, "name": c.name, "args": json.RawMessage(c.arguments)}}))
	}
	finish := map[string]string{"length": "MAX_TOKENS", "filtered": "SAFETY", "overflown": "MAX_TOKENS"}[s.finish]
	if finish == "" {
		finish = "STOP"
	}
	if s.raw != nil {
		finish = *s.raw
	}
	return append(out, chunk(partTerminal, finish))
}

func (geminiDialect) fault(e *errorKind, text string) []byte {
	b, err := encode(geminiFault(e, text))
	if err != nil {
		return nil
	}
	return b
}

func (geminiDialect) faultFrame(_ *script, e *errorKind, text string) frame {
	return event(partText, "", geminiFault(e, text))
}

func geminiFault(e *errorKind, text string) object {
	status := e.status
	if status == 0 {
		status = http.StatusBadRequest
	}
	name := map[int]string{
		401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 408: "DEADLINE_EXCEEDED",
		429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE",
	}[status]
	if name == "" {
		name = "INVALID_ARGUMENT"
	}
	details := []object{}
	switch {
	case e.name == "quota":
		details = append(details, object{
			"@type":      "type.googleapis.com/google.rpc.QuotaFailure",
			"violations": []object{{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}},
		})
	case e.name == "overflow" && text == e.openAIText:
		text = "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."
	}
	return object{"error": object{"code": status, "message": text, "status": name, "details": details}}
}

func (geminiDialect) resetHeaders(h http.Header, _ time.Time, in time.Duration) {
	h.Set("Retry-After", seconds(in))
}

func (geminiDialect) parse(body []byte, _ http.Header, r *Request) error {
	type content struct {
		Role  string `json:"role"`
		Parts []struct {
			Text         string `json:"text"`
			FunctionCall *struct {
				ID   string          `json:"id"`
				Name string          `json:"name"`
				Args json.RawMessage `json:"args"`
			} `json:"functionCall"`
			FunctionResponse *struct {
				ID       string          `json:"id"`
				Name     string          `json:"name"`
				Response json.RawMessage `json:"response"`
			} `json:"functionResponse"`
		} `json:"parts"`
	}
	var q struct {
		Contents []content `json:"contents"`
		System   content   `json:"systemInstruction"`
		Tools    []struct {
			Declarations []struct {
				Name string `json:"name"`
			} `json:"functionDeclarations"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return fmt.Errorf("the body is not a generateContent request: %w", err)
	}
	model, ok := strings.CutSuffix(r.Path[strings.LastIndex(r.Path, "/")+1:], geminiMethod)
	if !ok {
		return errors.New("only " + geminiMethod + " is answered")
	}
	r.Model = model
	for _, p := range q.System.Parts {
		r.System += p.Text
	}
	for _, t := range q.Tools {
		for _, d := range t.Declarations {
			r.Tools = append(r.Tools, d.Name)
		}
	}
	for i, c := range q.Contents {
		role := message.User
		switch c.Role {
		case "model":
			role = message.Assistant
		case "", "user", "function":
		default:
			return fmt.Errorf("contents[%d]: role %q is unknown", i, c.Role)
		}
		for _, p := range c.Parts {
			switch {
			case p.FunctionCall != nil:
				r.appendTo(role, message.Part{Kind: message.ToolCall, ID: p.FunctionCall.ID, Name: p.FunctionCall.Name, Arguments: string(p.FunctionCall.Args)})
			case p.FunctionResponse != nil:
				r.appendTo(message.Tool, message.Part{Kind: message.ToolResult, ID: p.FunctionResponse.ID, Text: string(p.FunctionResponse.Response)})
			case p.Text != "":
				r.appendTo(role, message.Part{Kind: message.Text, Text: p.Text})
			}
		}
	}
	return nil
}
