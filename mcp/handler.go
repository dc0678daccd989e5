package mcp

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/interlockdev/interlock/internal/agent"
	"github.com/interlockdev/interlock/internal/api"
	"github.com/interlockdev/interlock/internal/invisible"
)

// The headers that name a conversation.
const (
	// agentHeader is one that a user configures: the name of the agent.
	agentHeader = "Interlock-Agent"
	// sessionHeader is the one of the revisions before 2026-07-28.
	sessionHeader = "Mcp-Session-Id"
	// sessionMark ends the client's name in a session's id.
	sessionMark = "~"
)

const (
	// sessionTTL is how long a conversation lives after its last call, and a lease without one.
	sessionTTL = 5 * time.Minute
	// answerTime is how long an answer may take to be sent.
	answerTime = 30 * time.Second
	// lastRevision is the newest one with sessions.
	lastRevision = "2025-11-25"
)

// HandlerConfig describes a door over HTTP.
type HandlerConfig struct {
	// API is the HTTP API. Each call of it has the host, the credential and the namespace of the
	// agent's own request.
	API http.Handler
	// Version is that of the program.
	Version string
	// Unread has lost called if the client of a request with this context resets its connection before another request
	// comes over it: it has not read the answer. nil: that is not noticed.
	Unread func(ctx context.Context, lost func())
	// Log receives what goes wrong without a caller; nil discards it.
	Log *slog.Logger
}

// Handler is the door over HTTP.
type Handler struct {
	door     *door
	protocol http.Handler
	close    context.CancelFunc

	unread func(context.Context, func())
	talks  *talks

	large atomic.Int64 // bytes of large bodies under way
}

// NewHandler returns the door over HTTP: a streamable HTTP endpoint without sessions of its own, so
// that any of several servers can answer each request. Close it.
func NewHandler(cfg HandlerConfig) *Handler {
	client := api.New(api.Config{
		Bases: []*url.URL{{Scheme: "http", Host: "localhost"}}, Transport: agent.Local(cfg.API), UserAgent: "interlock-mcp",
	})
	open, cancel := context.WithCancel(context.Background())
	h := &Handler{
		door: newDoor(open, agent.Config{API: client, TTL: sessionTTL, Log: cfg.Log}, cfg.Version), close: cancel,
		unread: cfg.Unread, talks: newTalks(),
	}
	h.door.talks = h.talks
	s := h.door.server()
	h.protocol = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{
		Stateless: true, MaxRequestBodyBytes: maxMessage, PropagateRequestCancellation: true,
		// The API has checked the host, and knows names that the server has beside localhost.
		DisableLocalhostProtection: true,
	})
	return h
}

// Close ends the calls that wait, and stops following tickets.
func (h *Handler) Close() {
	h.close()
	h.door.deliveries.busy.Wait()
	h.door.hub.Close()
}

// ServeHTTP answers a request. Before each one, the API answers a small call under the request's own
// credential and host: its refusal is the answer.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.admit(w, r) {
		return
	}
	gone, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(h.door.open, cancel)()
	from := &arrival{origin: agent.OriginOf(r), header: r.Header, gone: gone}
	switch r.Method {
	case http.MethodDelete:
		h.end(w, r, from)
		return
	case http.MethodPost:
		h.post(w, r, from)
		return
	}
	h.protocol.ServeHTTP(w, r)
}

// post answers a message.
func (h *Handler) post(w http.ResponseWriter, r *http.Request, from *arrival) {
	if h.talks.isOver(h.conversation(from)) {
		refuse(w, http.StatusNotFound, "this conversation has ended: begin another one with initialize")
		return
	}
	free, ok := h.reserve(w, r)
	if !ok {
		return
	}
	defer free()
	body, ok := readBody(w, r)
	if !ok {
		return
	}
	list, many, err := readMessages(body)
	if many && err == nil && r.Header.Get("Mcp-Protocol-Version") > lastBatches {
		err = &wrong{code: invalidRequest, text: onlyOne + " a request"}
	}
	if bad, ok := errors.AsType[*wrong](err); ok {
		refuseAs(w, http.StatusBadRequest, bad)
		return
	}
	for range len(list) - 1 { // each message counts as a request
		if !h.admit(w, r) {
			return
		}
	}
	for i := range list {
		if h.peek(w, from, &list[i], len(list) == 1) {
			w.WriteHeader(http.StatusAccepted)
			return
		}
	}
	r.Body = io.NopCloser(bytes.NewReader(bytes.TrimPrefix(body, mark)))
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // else the server takes a long call's client for gone
	_ = control.SetWriteDeadline(time.Now().Add(maxCall + answerTime))
	out := &response{ResponseWriter: w, from: from, door: h.door, list: list, modern: r.Header.Get(
		"Mcp-Protocol-Version",
	) > lastRevision}
	h.protocol.ServeHTTP(out, r.WithContext(context.WithValue(r.Context(), arrivalKey{}, from)))
	out.end()
	from.each(h.door.deliveries.settle)
	if h.unread != nil && r.ProtoMajor == 1 {
		h.unread(r.Context(), func() { from.each(h.door.deliveries.lose) })
	}
}

// admit asks the API whether it would answer this caller.
func (h *Handler) admit(w http.ResponseWriter, r *http.Request) bool {
	caller := h.door.hub.Caller(agent.Identity{Origin: agent.OriginOf(r)})
	answer, err := caller.Do(r.Context(), api.Request{Method: http.MethodGet, Path: "/v1/namespace"})
	if err == nil {
		return true
	}
	if answer == nil {
		if r.Context().Err() == nil {
			h.door.log.Error("the API does not answer the door", "error", err)
		}
		http.Error(w, "the API does not answer", http.StatusBadGateway)
		return false
	}
	for name, values := range answer.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Status)
	_, _ = w.Write(answer.Body)
	return false
}

const (
	// smallBody is so small that it does not count.
	smallBody = 16 << 10
	// maxLarge bounds the bytes of large bodies under way: a call that waits keeps its own.
	maxLarge = 64 << 20
)

// reserve makes room for a large body, or answers that there is none.
func (h *Handler) reserve(w http.ResponseWriter, r *http.Request) (free func(), ok bool) {
	size := r.ContentLength
	if size < 0 || size > maxMessage {
		size = maxMessage
	}
	if size <= smallBody {
		return func() {}, true
	}
	free = func() { h.large.Add(-size) }
	if h.large.Add(size) > maxLarge {
		free()
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, "too many large bodies are under way: send it again in a moment")
		return nil, false
	}
	return free, true
}

// readBody reads the body of a request.
func readBody(w http.ResponseWriter, r *http.Request) (body []byte, ok bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMessage))
	if err == nil {
		return body, true
	}
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		refuse(w, http.StatusRequestEntityTooLarge, "the body is too large: send at most 1 MiB in one call")
	} else {
		refuse(w, http.StatusBadRequest, "the body did not arrive completely")
	}
	return nil, false
}

// refuse answers a request that the protocol does not get to see with an error of JSON-RPC.
func refuse(w http.ResponseWriter, status int, message string) {
	refuseAs(w, status, &wrong{code: invalidRequest, text: message})
}

func refuseAs(w http.ResponseWriter, status int, bad *wrong) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(bad.answers()[0], '\n'))
}

// peek looks at a message, since revisions with sessions need more: a new conversation gets an id, a message of a
// conversation proves that its agent lives, and can cancel a call of it. done means that the message needs no answer.
func (h *Handler) peek(w http.ResponseWriter, from *arrival, m *message, alone bool) (done bool) {
	conversation, name := h.conversation(from), named(from)
	if m.method == "initialize" {
		if alone && revisionOf(m) <= lastRevision {
			session := newSessionID(clientOf(m))
			w.Header().Set(sessionHeader, session)
			if name != "" {
				h.talks.begin(name, scoped(from, session))
			}
		}
		return false
	}
	if conversation != "" && name != "" {
		apart, several := h.talks.hear(name, conversation, m.method == "tools/call")
		from.apart, from.several = apart, several
	}
	switch {
	case m.method == "notifications/cancelled":
		h.door.deliveries.cancel(callOf(conversation, cancelledID(m)))
		return alone
	case alone && m.isCall():
		from.call = callOf(conversation, string(m.id))
	}
	return false
}

// callOf names a call of a conversation, "" where a message cannot cancel it.
func callOf(conversation, id string) string {
	if conversation == "" || id == "" {
		return ""
	}
	return conversation + id
}

// clientOf is what the client of an initialize calls itself.
func clientOf(m *message) string {
	var params struct {
		ClientInfo struct {
			Name string `json:"name"`
		} `json:"clientInfo"`
	}
	_ = json.Unmarshal(m.params, &params)
	return params.ClientInfo.Name
}

// scoped is the fingerprint of a text of a caller: with another credential or namespace it is another one.
func scoped(from *arrival, text string) string {
	return fingerprint(from.header.Get("Authorization"), from.header.Get("Interlock-Namespace"), text)
}

// named is the key of an agent with a name, "" for one without.
func named(from *arrival) string {
	name := from.header.Get(agentHeader)
	if name == "" {
		return ""
	}
	return scoped(from, "agent:"+name)
}

// conversation is the key of a conversation with a session, "" for a request without one.
func (h *Handler) conversation(from *arrival) string {
	session := from.header.Get(sessionHeader)
	if session == "" {
		return ""
	}
	return scoped(from, session)
}

// newSessionID makes an id that no other client can guess. It begins with the client's name, since a
// server without sessions does not know that of a later request.
func newSessionID(client string) string {
	name := strings.Map(func(r rune) rune {
		if r > ' ' && r < 0x7f && r != '~' && !invisible.Is(r) {
			return r
		}
		return '-'
	}, short(client, maxName-5))
	return name + sessionMark + rand.Text()
}

// end ends a conversation at its client's request: all that it holds is released. An agent with a later conversation,
// which has taken its leases over, keeps them.
func (h *Handler) end(w http.ResponseWriter, r *http.Request, from *arrival) {
	conversation, name := h.conversation(from), named(from)
	var list []agent.Identity
	last := true
	if conversation != "" {
		if name != "" {
			from.apart, _ = h.talks.hear(name, conversation, false)
		}
		list, last = h.talks.end(name, conversation)
	}
	who := h.door.identify(from, nil, nil)
	if who.Key == "" {
		refuse(
			w, http.StatusBadRequest, "DELETE ends a conversation: name it with the header "+sessionHeader+" or "+agentHeader,
		)
		return
	}
	if last {
		list = append(list, who.Identity)
	}
	if err := h.endAll(r.Context(), list); err != nil {
		h.door.log.Warn("a conversation could not be ended", "error", err)
		refuse(w, http.StatusServiceUnavailable, "the session could not be ended now: it ends by itself in a few minutes")
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
