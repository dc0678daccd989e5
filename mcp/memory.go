package mcp

import (
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/interlockdev/interlock/internal/agent"
	"github.com/interlockdev/interlock/internal/api"
)

// memory is what a door remembers of an agent with a session. Losing it costs nothing but words, and the recognition of
// repeated calls: what the agent holds is always asked of the server.
type memory struct {
	mu sync.Mutex
	// news are sentences for the next answer, by flow.
	news map[string][]string

	// seen are the conversations of the agent by their sessions, "" for one without.
	seen map[string]bool

	// Calls by the ids that their harnesses have for them, and a clock that counts the beginnings and ends of calls.
	calls map[string]*repeatable
	clock int
	began int // when the last call began that repeats none
}

// repeatable is a call with an id.
type repeatable struct {
	asks     string // the digest of its tool and arguments
	key      string // its Idempotency-Key
	answered int    // on memory.clock; 0 while it is under way
	at       time.Time
}

// repeatedWithin is how long after its beginning a call may be repeated.
const repeatedWithin = 2 * time.Minute

// remembered bounds the conversations, the calls and the news of a memory.
const remembered = 64

func newMemory() any {
	return &memory{
		news: map[string][]string{}, seen: map[string]bool{}, calls: map[string]*repeatable{},
	}
}

// memoryOf returns the memory of an agent, an empty one for an agent without a session.
func memoryOf(c *agent.Caller) *memory {
	if m, ok := c.Memory.(*memory); ok {
		return m
	}
	return newMemory().(*memory)
}

// hear notes a call of a conversation. first means that it is the first one here.
func (m *memory) hear(conversation string) (first bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if first = !m.seen[conversation]; first {
		if len(m.seen) >= remembered {
			clear(m.seen)
		}
		m.seen[conversation] = true
	}
	return first
}

// forget has the next call of a conversation be its first one.
func (m *memory) forget(conversation string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.seen, conversation)
}

// tell has the next answer of a flow say something.
func (m *memory) tell(flow, sentence string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.news[flow]) < remembered && !slices.Contains(m.news[flow], sentence) {
		m.news[flow] = append(m.news[flow], sentence)
	}
}

// latest returns news of a flow for an answer: at most two, the others for the next ones.
func (m *memory) latest(flow string) (list []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := min(len(m.news[flow]), 2)
	list, m.news[flow] = m.news[flow][:n:n], m.news[flow][n:]
	if len(m.news[flow]) == 0 {
		delete(m.news, flow)
	}
	return list
}

// repeats begins a call with an id of its harness, "" for none. The id is a hint: a call repeats another one if it has
// the id, the tool and the arguments of that one, and no other question was asked since the answer. Providers number
// calls anew in every answer of a model. answered is called at its end.
func (m *memory) repeats(id, tool string, arguments []byte) (key string, answered func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clock++
	asks := fingerprint(tool, string(arguments))
	old := m.calls[id]
	if id == "" || old == nil || old.asks != asks || time.Since(old.at) > repeatedWithin ||
		old.answered > 0 && m.began > old.answered {
		m.began = m.clock
		if len(m.calls) >= remembered {
			clear(m.calls)
		}
		old = &repeatable{at: time.Now(), asks: asks, key: fingerprint(id, asks, rand.Text())}
		if id == "" {
			return "", func() {}
		}
		m.calls[id] = old
	}
	return old.key, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.clock++
		old.answered = m.clock
	}
}

// introduce tells of a lease that the agent may not know of.
func introduce(l *api.OwnLease) string {
	return fmt.Sprintf(
		"From before this conversation you hold %s by lease %s, for %s: release it if you do not need it.",
		clip(several(agent.KeysOf(l.Claims)), keyShare/2), l.ID, span(l.Held),
	)
}
