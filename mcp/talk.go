package mcp

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/interlockdev/interlock/internal/agent"
)

// talks are the conversations of revisions with sessions. An agent with a name or a thread outlives them: most clients
// begin another conversation when they or the server restart. One with the credential, the namespace and
// the name of an earlier one takes over what that held, unless the earlier one speaks again first: then there are two
// agents with one name, and the new one is apart. What is forgotten here is taken for one agent again.
type talks struct {
	mu sync.Mutex
	// names are the agents with names, and threads those with threads, by their fingerprints.
	names, threads map[string]*talk
	ended          map[string]time.Time // conversations that their clients have ended
}

// talk is how the conversations of one agent follow each other.
type talk struct {
	party  agent.Identity  // of a thread
	lead   string          // the conversation that has the agent's session, "" for none
	before string          // the one that lead has taken over from
	used   bool            // lead has called a tool
	apart  map[string]bool // conversations that are agents of their own
	heard  time.Time
}

const (
	// rememberTalks is how many agents and ended conversations are known at most, and rememberTalksFor how long at
	// least if they are fewer.
	rememberTalks    = 4096
	rememberTalksFor = 10 * time.Minute
)

func newTalks() *talks {
	return &talks{names: map[string]*talk{}, threads: map[string]*talk{}, ended: map[string]time.Time{}}
}

// of returns the talk of an agent. The caller holds mu.
func (t *talks) of(list map[string]*talk, key string) *talk {
	one := list[key]
	if one == nil {
		forgetOld(list, func(one *talk) time.Time { return one.heard })
		one = &talk{apart: map[string]bool{}}
		list[key] = one
	}
	one.heard = time.Now()
	return one
}

// forgetOld makes room in a map.
func forgetOld[T any](list map[string]T, at func(T) time.Time) {
	if len(list) < rememberTalks {
		return
	}
	for key, one := range list {
		if time.Since(at(one)) > rememberTalksFor || len(list) >= 2*rememberTalks {
			delete(list, key)
		}
	}
}

// part has a conversation be an agent of its own. One that is forgotten is that again when it speaks, since it is
// neither lead nor before.
func (one *talk) part(conversation string) {
	if len(one.apart) >= remembered {
		clear(one.apart)
	}
	one.apart[conversation] = true
}

// begin notes a new conversation of a named agent.
func (t *talks) begin(name, conversation string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.of(t.names, name)
	one.before, one.lead, one.used = one.lead, conversation, false
}

// hear notes a message of a conversation of a named agent, and whether it calls a tool. apart means that it is an agent
// of its own; several, that it shares its leases with another conversation that goes on at the same time.
func (t *talks) hear(name, conversation string, uses bool) (apart, several bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.of(t.names, name)
	switch {
	case one.apart[conversation]:
		return true, false
	case one.lead == "":
		one.lead = conversation
	case conversation == one.lead:
	case conversation == one.before && !one.used:
		one.part(one.lead)
		one.lead, one.before = conversation, ""
	case conversation == one.before:
		return false, true
	default:
		one.part(conversation)
		return true, false
	}
	one.used = one.used || uses
	return false, false
}

// thread notes a call of an agent with a thread in a conversation.
func (t *talks) thread(key string, party agent.Identity, conversation string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.of(t.threads, key)
	one.party, one.lead = party, conversation
}

// end ends a conversation. It returns the agents with threads in it, and whether an agent with a name has no other
// conversation now. name is "" for a conversation without one.
func (t *talks) end(name, conversation string) (threads []agent.Identity, last bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	forgetOld(t.ended, func(at time.Time) time.Time { return at })
	t.ended[conversation] = time.Now()
	for key, one := range t.threads {
		if one.lead == conversation {
			threads = append(threads, one.party)
			delete(t.threads, key)
		}
	}
	one := t.names[name]
	if one == nil || name == "" || one.apart[conversation] {
		return threads, true
	}
	if one.before == conversation {
		one.before = ""
	}
	if one.lead != conversation {
		return threads, one.lead == ""
	}
	one.lead = ""
	return threads, true
}

// isOver reports whether a client has ended a conversation.
func (t *talks) isOver(conversation string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, over := t.ended[conversation]
	return over
}

// endAll ends the sessions of agents.
func (h *Handler) endAll(ctx context.Context, list []agent.Identity) (err error) {
	for _, party := range list {
		err = errors.Join(err, h.door.hub.Caller(party).End(ctx))
	}
	return err
}
