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
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/interlockdev/interlock"
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
	// maxBody leaves room for a body of the API and what the protocol puts around it.
	maxBody = interlock.MaxBodyBytes + 64<<10
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
	// Log receives what goes wrong without a caller; nil discards it.
	Log *slog.Logger
}

// Handler is the door over HTTP.
type Handler struct {
	door     *door
	protocol http.Handler
	close    context.CancelFunc

	large atomic.Int64 // bytes of large bodies under way

	mu     sync.Mutex
	active map[string]context.CancelFunc // calls of a conversation, by its key and the request's id
	ended  map[string]time.Time          // conversations that their clients have ended
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
		active: map[string]context.CancelFunc{}, ended: map[string]time.Time{},
	}
	s := h.door.server()
	h.protocol = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{
		Stateless: true, MaxRequestBodyBytes: maxBody, PropagateRequestCancellation: true,
		// The API has checked the host, and knows names that the server has beside localhost.
		DisableLocalhostProtection: true,
	})
	return h
}

// Close ends the calls that wait, and stops following tickets.
func (h *Handler) Close() {
	h.close()
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
		if h.isOver(from) {
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
		if !json.Valid(body) {
			refuseAs(w, http.StatusBadRequest, parseError, "the body is not JSON: send one message of JSON-RPC 2.0")
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		defer h.peek(w, from, body, cancel)()
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // else the server takes a long call's client for gone
	_ = control.SetWriteDeadline(time.Now().Add(maxCall + answerTime))
	h.protocol.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), arrivalKey{}, from)))
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
	if size < 0 || size > maxBody {
		size = maxBody
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
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
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
	refuseAs(w, status, invalidRequest, message)
}

// The codes of JSON-RPC.
const (
	parseError     = -32700
	invalidRequest = -32600
)

func refuseAs(w http.ResponseWriter, status, code int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": code, "message": message},
	})
}

// peek handles what revisions with sessions need: a new conversation gets an id, and a later message
// can cancel a call of the same conversation. The caller calls over when the message is answered.
func (h *Handler) peek(w http.ResponseWriter, from *arrival, body []byte, cancel context.CancelFunc) (over func()) {
	var message struct {
		Method string          `json:"method"`
		ID     json.RawMessage `json:"id"`
		Params struct {
			ProtocolVersion string          `json:"protocolVersion"`
			RequestID       json.RawMessage `json:"requestId"`
			ClientInfo      struct {
				Name string `json:"name"`
			} `json:"clientInfo"`
		} `json:"params"`
	}
	over = func() {}
	if json.Unmarshal(body, &message) != nil {
		return over // the protocol refuses it, or it is a batch
	}
	conversation := h.conversation(from)
	switch {
	case message.Method == "initialize" && message.Params.ProtocolVersion <= lastRevision:
		w.Header().Set(sessionHeader, newSessionID(message.Params.ClientInfo.Name))
	case conversation == "":
	case message.Method == "notifications/cancelled":
		h.mu.Lock()
		stop := h.active[conversation+string(message.Params.RequestID)]
		h.mu.Unlock()
		if stop != nil {
			stop()
		}
	case len(message.ID) > 0:
		key := conversation + string(message.ID)
		h.mu.Lock()
		h.active[key] = cancel
		h.mu.Unlock()
		over = func() {
			h.mu.Lock()
			delete(h.active, key)
			h.mu.Unlock()
		}
	}
	return over
}

// conversation is the key of a conversation with a session, "" for a request without one.
func (h *Handler) conversation(from *arrival) string {
	session := from.header.Get(sessionHeader)
	if session == "" {
		return ""
	}
	return fingerprint(from.header.Get("Authorization"), from.header.Get("Interlock-Namespace"), session)
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

// end ends a conversation at its client's request: all that it holds is released.
func (h *Handler) end(w http.ResponseWriter, r *http.Request, from *arrival) {
	who := h.door.identify(from, nil, nil)
	if who.Key == "" {
		refuse(
			w, http.StatusBadRequest, "DELETE ends a conversation: name it with the header "+sessionHeader+" or "+agentHeader,
		)
		return
	}
	if err := h.door.hub.Caller(who.Identity).End(r.Context()); err != nil {
		h.door.log.Warn("a conversation could not be ended", "error", err)
		refuse(w, http.StatusServiceUnavailable, "the session could not be ended now: it ends by itself in a few minutes")
		return
	}
	if conversation := h.conversation(from); conversation != "" {
		h.remember(conversation)
	}
	w.WriteHeader(http.StatusNoContent)
}

const (
	// rememberEnded is how many ended conversations are known at most, and rememberEndedFor how long at
	// least if they are fewer.
	rememberEnded    = 4096
	rememberEndedFor = 10 * time.Minute
)

// remember notes that a conversation is over. What is forgotten may begin again, with nothing in hand.
func (h *Handler) remember(conversation string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.ended) >= rememberEnded {
		for key, at := range h.ended {
			if time.Since(at) > rememberEndedFor || len(h.ended) >= 2*rememberEnded {
				delete(h.ended, key)
			}
		}
	}
	h.ended[conversation] = time.Now()
}

// isOver reports whether the client has ended this conversation.
func (h *Handler) isOver(from *arrival) bool {
	conversation := h.conversation(from)
	h.mu.Lock()
	defer h.mu.Unlock()
	_, over := h.ended[conversation]
	return over
}
