package mcp

import (
	"bytes"
	"net/http"
	"strings"
)

// response is the answer to a message over HTTP, as its client needs it: errors are those of JSON-RPC, and the last
// event of a stream leaves together with its end, so that a client which has read it leaves nothing unread behind.
type response struct {
	http.ResponseWriter
	from   *arrival
	door   *door
	list   []message
	modern bool // of a revision without sessions: its errors have other statuses

	plain int // the status of an error in plain words, 0 for none
	words bytes.Buffer
	held  bool // what was written waits for the end
}

// Unwrap is for http.ResponseController.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w *response) WriteHeader(status int) {
	if status >= http.StatusBadRequest && strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		w.plain = status
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *response) Write(b []byte) (int, error) {
	if w.plain != 0 {
		return w.words.Write(b)
	}
	n, err := w.ResponseWriter.Write(b)
	w.held = !bytes.Contains(b, []byte(`"method"`))
	if err == nil && w.from.gone.Err() == nil { // the client is still there
		w.from.each(w.door.deliveries.wasSent)
	}
	return n, err
}

// Flush implements http.Flusher: an answer waits for the end of its stream.
func (w *response) Flush() {
	if !w.held {
		_ = http.NewResponseController(w.ResponseWriter).Flush()
	}
}

// end ends the response.
func (w *response) end() {
	if w.plain == 0 {
		return
	}
	said := strings.TrimSpace(w.words.String())
	bad := &wrong{code: invalidRequest, text: said}
	_, what, unknown := strings.Cut(said, "JSON RPC not handled: ")
	if unknown {
		bad.code, bad.text = methodNotFound, "this server has no method "+strings.TrimSuffix(what, " unsupported")
	}
	calls := 0
	for i := range w.list {
		if w.list[i].isCall() {
			calls++
			bad.ids = append(bad.ids, w.list[i].id)
		}
	}
	status := w.plain
	switch {
	case unknown && calls == 0: // as JSON-RPC wants it
		w.Header().Del("Content-Type")
		w.ResponseWriter.WriteHeader(http.StatusAccepted)
		return
	case calls > 0 && !w.modern: // clients of these revisions read the body of a success alone
		status = http.StatusOK
	}
	refuseAs(w.ResponseWriter, status, bad)
}
