package agent

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/interlockdev/interlock/internal/api"
)

// Config describes a door: a protocol through which agents reach the API.
type Config struct {
	// API is how the HTTP API is reached: with Transport Local within the server's process.
	API *api.Client
	// Door is the name of the protocol. Sessions of different doors are different.
	Door string
	// TTL is how long a session lives after the last call of its agent; 0 means 5 min.
	TTL time.Duration
	// Reserve is how long a lease is kept for an agent that was not there when its turn came; 0 means
	// 60 s. Then it is released with the note "not taken up".
	Reserve time.Duration
	// Alone means that no other process acts for the door's agents. Their heartbeats then tell which leases the door
	// knows, so that one ends if its grant was lost on its way.
	Alone bool
	// Memory makes what the door remembers of an agent with a key; nil makes nothing. Party.Memory has it.
	Memory func() any
	// Log receives what goes wrong without a caller; nil discards it.
	Log *slog.Logger
}

// Hub knows the callers of one door. Its methods may be called concurrently.
type Hub struct {
	cfg  Config
	ctx  context.Context
	stop context.CancelFunc
	busy sync.WaitGroup // followers

	mu       sync.Mutex
	parties  map[string]*Party // by the digest of credential, namespace and key
	followed map[string]*place // by the digits of ticket and lease
	swept    time.Time
}

// NewHub returns a Hub. Close it.
func NewHub(cfg Config) *Hub {
	cfg.TTL = cmp.Or(cfg.TTL, 5*time.Minute)
	cfg.Reserve = cmp.Or(cfg.Reserve, time.Minute)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	h := &Hub{cfg: cfg, parties: map[string]*Party{}, followed: map[string]*place{}, swept: time.Now()}
	h.ctx, h.stop = context.WithCancel(context.Background())
	return h
}

// Close stops following tickets. Sessions, leases and places in line stay as they are.
func (h *Hub) Close() {
	h.stop()
	h.busy.Wait()
}

// Identity names an agent to a door.
type Identity struct {
	Origin Origin
	// Key is of the agent's conversation, such as the id that its harness has for it. Without one the
	// agent has no session: its leases live by their own renewals.
	Key string
	// Agent is the name that others see.
	Agent string
	// Join is the session of another process that the agent works in, "" for one of its own. It ends with that process,
	// and the agent has one of its own from then on.
	Join api.SessionID
}

// Caller returns a Caller for one request of an agent. Its Party is the same one for the same
// credential, namespace and key; without a key it is a new one.
func (h *Hub) Caller(id Identity) *Caller {
	if id.Key == "" {
		return &Caller{Party: new(Party), hub: h, id: id}
	}
	key := digest(id.Origin.header.Get("Authorization"), id.Origin.header.Get("Interlock-Namespace"), id.Key)
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sweep(now)
	p := h.parties[key]
	if p == nil {
		p = &Party{held: map[string]Held{}, joined: id.Join}
		if h.cfg.Memory != nil {
			p.Memory = h.cfg.Memory()
		}
		h.parties[key] = p
	}
	p.seen = now
	return &Caller{Party: p, hub: h, id: id}
}

// hear notes that an agent lives.
func (h *Hub) hear(p *Party) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p.seen = time.Now()
}

// sweep forgets agents with a session that is over by now, once per TTL. A door that is Alone keeps its one agent,
// however long that is silent: its heartbeats list the leases that the agent knows.
func (h *Hub) sweep(now time.Time) {
	if h.cfg.Alone || now.Sub(h.swept) < h.cfg.TTL {
		return
	}
	h.swept = now
	for key, p := range h.parties {
		if now.Sub(p.seen) > 2*h.cfg.TTL && !h.follows(p) {
			delete(h.parties, key)
		}
	}
}

func (h *Hub) follows(p *Party) bool {
	for _, f := range h.followed {
		if f.caller.Party == p {
			return true
		}
	}
	return false
}

// digest is the SHA-256 of texts, in hexadecimal digits. Each text is preceded by its length, so that
// different lists have different digests.
func digest(texts ...string) string {
	sum := sha256.New()
	for _, text := range texts {
		sum.Write([]byte(strconv.Itoa(len(text)) + ":" + text))
	}
	return hex.EncodeToString(sum.Sum(nil))
}
