package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
)

// dialWidth is how many connections are made at a time, and hangUp how long a goodbye may
// take.
const (
	dialWidth = 32
	hangUp    = 10 * time.Second
)

// Dial opens a session.
func (s *interlockSite) Dial(ctx context.Context, agent string) (*client.Client, error) {
	addr := s.at.GRPC
	if s.transport == GRPC {
		addr = "grpc://" + addr
	}
	c, err := client.Dial(ctx, client.Config{
		Addrs: []string{addr}, TLS: s.at.TLS, Credential: s.at.Credential, Namespace: s.at.Namespace, Agent: agent,
	})
	if err == nil {
		s.mu.Lock()
		s.clients = append(s.clients, c)
		s.mu.Unlock()
	}
	return c, err
}

// close ends sessions that Dial opened, unless End has cut them off.
func (s *interlockSite) close(ctx context.Context, clients []*client.Client) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hangUp)
	defer cancel()
	s.mu.Lock()
	s.clients = slices.DeleteFunc(s.clients, func(c *client.Client) bool { return slices.Contains(clients, c) })
	s.mu.Unlock()
	_ = each(ctx, len(clients), dialWidth, func(ctx context.Context, i int) error {
		_ = clients[i].Close(ctx) // it ends by its ttl otherwise
		return nil
	})
}

// streamCrew are flows of one session.
func (s *interlockSite) streamCrew(ctx context.Context, n int) (*Crew, error) {
	c, err := s.Dial(ctx, "bench")
	if err != nil {
		return nil, err
	}
	crew := &Crew{Agents: make([]Agent, n), Close: func() { s.close(ctx, []*client.Client{c}) }}
	for i := range n {
		crew.Agents[i] = &streamAgent{c, fmt.Sprint("agent-", i)}
	}
	return crew, nil
}

// connectionCrew are sessions with one flow each.
func (s *interlockSite) connectionCrew(ctx context.Context, n int) (*Crew, error) {
	clients, agents := make([]*client.Client, n), make([]Agent, n)
	err := each(ctx, n, dialWidth, func(ctx context.Context, i int) (err error) {
		clients[i], err = s.Dial(ctx, fmt.Sprint("bench-", i))
		agents[i] = &streamAgent{clients[i], "main"}
		return err
	})
	crew := &Crew{Agents: agents, Close: func() {
		s.close(ctx, slices.DeleteFunc(clients, func(c *client.Client) bool { return c == nil }))
	}}
	if err != nil {
		crew.Close()
		return nil, err
	}
	return crew, nil
}

// streamAgent is a flow of a session.
type streamAgent struct {
	c    *client.Client
	flow string
}

type streamLock struct{ *client.Lease }

// Release implements Lock.
func (l streamLock) Release(ctx context.Context) error {
	return l.Lease.Release(ctx, client.Outcome{})
}

// Acquire implements Agent.
func (a *streamAgent) Acquire(ctx context.Context, key string, queued func()) (Lock, error) {
	req := client.Request{Keys: []interlock.Key{interlock.Key(key)}, Flow: a.flow, OnConflict: interlock.Wait}
	if queued != nil {
		req.OnQueued = func(interlock.Ticket, []interlock.Holder) { queued() }
	}
	return a.ask(ctx, req)
}

// Try implements Agent.
func (a *streamAgent) Try(ctx context.Context, key string) (Lock, error) {
	lock, err := a.ask(ctx, client.Request{Keys: []interlock.Key{interlock.Key(key)}, Flow: a.flow})
	if refusal, ok := errors.AsType[*interlock.Error](err); ok && refusal.Code == interlock.CodeHeld {
		return nil, ErrHeld
	}
	return lock, err
}

func (a *streamAgent) ask(ctx context.Context, req client.Request) (Lock, error) {
	lease, err := a.c.Acquire(ctx, req)
	if err != nil {
		return nil, err
	}
	return streamLock{lease}, nil
}

// document is the committed document: a few fields, as agents write them.
var document = []byte(`{"status":"open","balance":"120.00","note":"checked"}`)

// Read implements Store.
func (a *streamAgent) Read(ctx context.Context, key string) (uint64, error) {
	d, err := a.c.Document(ctx, interlock.Key(key))
	return uint64(d.Version), err
}

// Commit implements Store.
func (a *streamAgent) Commit(ctx context.Context, key string, version uint64) (uint64, error) {
	k := interlock.Key(key)
	done, err := a.c.Commit(ctx, client.Commit{
		Reads:  []interlock.Read{{Key: k, Version: interlock.Version(version)}},
		Writes: []interlock.Write{client.Put(k, document)}, Flow: a.flow,
	})
	if _, stale := errors.AsType[*client.StaleError](err); stale {
		return 0, ErrStale
	}
	if err != nil {
		return 0, err
	}
	return uint64(done.Documents[0].Version), nil
}
