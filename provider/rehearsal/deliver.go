package rehearsal

import (
	"bytes"
	"net"
	"net/http"
	"slices"
	"time"
)

// keepaliveEvery is the distance of comments under cut = "keepalive".
const keepaliveEvery = 20 * time.Millisecond

// answer sends the reply, with the faults it asks for.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, d dialect, step *Reply, seen *Request, n int) {
	if !s.wait(r, time.Duration(step.Delay)) {
		return
	}
	if step.Cut != "" && step.CutIn == "headers" {
		s.breakOff(w, r, step.Cut)
		return
	}
	sc, err := s.script(step, seen, n)
	if err != nil {
		s.refuse(w, d, "rehearsal_bad_scenario", err.Error())
		return
	}
	h := w.Header()
	h.Set("Request-Id", "req_"+sc.id)
	if step.ResetIn > 0 {
		d.resetHeaders(h, s.now(), time.Duration(step.ResetIn))
	}
	if !step.streams() {
		s.plain(w, r, d, step)
		return
	}
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	setHeaders(h, step.Headers)
	s.remember(sc)
	s.stream(w, r, step, frames(d, sc, step))
}

// plain answers with a body that is no stream.
func (s *Server) plain(w http.ResponseWriter, r *http.Request, d dialect, step *Reply) {
	status, body := step.Status, []byte(nil)
	w.Header().Set("Content-Type", "application/json")
	switch {
	case step.Error != "":
		e := errorNamed(step.Error)
		text := e.openAIText
		if _, ok := d.(anthropicDialect); ok {
			text = e.anthropicText
		}
		if step.Message != "" {
			text = step.Message
		}
		body = d.fault(e, text)
		if status == 0 {
			status = e.status
			if _, ok := d.(anthropicDialect); ok {
				status = e.anthropic
			}
		}
	case step.Body != nil:
		body = []byte(*step.Body)
	}
	if status == 0 {
		status = http.StatusOK
	}
	setHeaders(w.Header(), step.Headers)
	w.WriteHeader(status)
	if step.Cut == "" {
		_, _ = w.Write(body) // the client may be gone
		return
	}
	at := len(body) / 2
	if step.CutAt != nil {
		at = min(*step.CutAt, len(body))
	}
	_, _ = w.Write(body[:at])
	s.breakOff(w, r, step.Cut)
}

// frames renders the reply and applies what it omits or damages.
func frames(d dialect, sc *script, step *Reply) []frame {
	out := slices.DeleteFunc(d.frames(sc), func(f frame) bool { return slices.Contains(step.Omit, string(f.part)) })
	if step.InStream {
		e := errorNamed(step.Error)
		text := e.openAIText
		if _, ok := d.(anthropicDialect); ok {
			text = e.anthropicText
		}
		if step.Message != "" {
			text = step.Message
		}
		end := slices.IndexFunc(out, func(f frame) bool {
			return f.part == partFinish || f.part == partTerminal || f.part == partUsage || f.part == partDone
		})
		if end < 0 {
			end = len(out)
		}
		out = append(out[:end:end], d.faultFrame(sc, e, text))
	}
	if step.Malformed {
		i := middleOf(out, partText, partArguments, partReasoning)
		f := out[i]
		f.data = append(bytes.TrimRight(f.data[:len(f.data)*2/3], "\n"), "\n\n"...)
		out[i] = f
	}
	return out
}

// middleOf returns the index of the middle event among those of the first part
// that occurs, or of all events.
func middleOf(all []frame, parts ...part) int {
	for _, p := range parts {
		var at []int
		for i, f := range all {
			if f.part == p {
				at = append(at, i)
			}
		}
		if len(at) > 0 {
			return at[len(at)/2]
		}
	}
	return len(all) / 2
}

// stream writes the events up to the cut.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, step *Reply, all []frame) {
	rc := http.NewResponseController(w)
	w.WriteHeader(http.StatusOK)
	_ = rc.Flush() // a client that is gone shows at the next write
	cut := cutOffset(step, all)
	sent := 0
	for i, f := range all {
		data := f.data
		if sent+len(data) > cut {
			data = data[:cut-sent]
		}
		if i > 0 && len(data) > 0 && !s.wait(r, time.Duration(step.EventDelay)) {
			return
		}
		for len(data) > 0 {
			k := len(data)
			if step.WriteBytes > 0 {
				k = min(k, step.WriteBytes)
			}
			if _, err := w.Write(data[:k]); err != nil {
				return
			}
			if rc.Flush() != nil {
				return
			}
			sent, data = sent+k, data[k:]
		}
		if sent >= cut {
			break
		}
	}
	if step.Cut != "" || step.CutAt != nil || step.CutIn != "" {
		s.breakOff(w, r, step.Cut)
	}
}

// cutOffset returns the byte of the body at which to break off.
func cutOffset(step *Reply, all []frame) int {
	total := 0
	starts := make([]int, len(all))
	for i, f := range all {
		starts[i] = total
		total += len(f.data)
	}
	if step.Cut == "" && step.CutAt == nil && step.CutIn == "" {
		return total
	}
	if step.CutAt != nil {
		return min(*step.CutAt, total)
	}
	within := func(i int) int {
		if step.Cut == "keepalive" { // comments go between events
			return starts[i] + len(all[i].data)
		}
		return starts[i] + len(all[i].data)/2
	}
	switch step.CutIn {
	case "start":
		return 0
	case "after_terminal":
		return total
	case "before_terminal":
		if i := slices.IndexFunc(all, func(f frame) bool { return f.part == partTerminal }); i >= 0 {
			return starts[i]
		}
		return total
	case "", "middle":
		if len(all) == 0 {
			return 0
		}
		return within(len(all) / 2)
	}
	if len(all) == 0 {
		return 0
	}
	return within(middleOf(all, part(step.CutIn)))
}

// breakOff ends the exchange in the way that cut names.
func (s *Server) breakOff(w http.ResponseWriter, r *http.Request, cut string) {
	rc := http.NewResponseController(w)
	switch cut {
	case "end":
		return
	case "stall":
		_ = rc.Flush()
		s.wait(r, time.Hour)
		return
	case "keepalive":
		for s.wait(r, keepaliveEvery) {
			if _, err := w.Write([]byte(": keepalive\n\n")); err != nil {
				return
			}
			if rc.Flush() != nil {
				return
			}
		}
		return
	}
	_ = rc.Flush()
	conn, _, err := rc.Hijack()
	if err != nil {
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok && cut == "reset" {
		_ = tcp.SetLinger(0) // makes Close send RST
	}
	_ = conn.Close()
}

// wait sleeps; it returns false if the client went away or the server closes.
func (s *Server) wait(r *http.Request, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.Context().Done():
	case <-s.closing:
	}
	return false
}

func setHeaders(h http.Header, extra map[string]string) {
	for k, v := range extra {
		h.Set(k, v)
	}
}
