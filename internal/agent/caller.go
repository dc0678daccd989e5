package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/api"
)

// Caller is one agent at the API, under the Origin of one of its requests. Its methods may be called
// concurrently.
type Caller struct {
	*Party
	hub *Hub
	id  Identity
}

// Party is what all requests of an agent share. It is comparable: the same agent is the same *Party.
type Party struct {
	// Memory is the door's own.
	Memory any

	seen time.Time // guarded by hub.mu

	opening sync.Mutex // held while the session is opened

	mu         sync.Mutex
	session    api.SessionID // "" until it is open
	generation int           // of the session: how many of the conversation were over
	held       map[string]Held
	joined     api.SessionID   // the session of another process, until it is over; "" for none
	lent       map[string]bool // by their digits, the leases that others in that session have given it again
}

// Held is a lease of a Caller.
type Held struct {
	Lease api.LeaseID
	Flow  string
	Keys  []string
	Since time.Time
}

// Agent returns the name that others see.
func (c *Caller) Agent() string { return c.id.Agent }

// Do makes one call of the API under the agent's credential. The errors are those of api.Client.Do.
func (c *Caller) Do(ctx context.Context, r api.Request) (*api.Answer, error) {
	header := c.id.Origin.header.Clone()
	for name, values := range r.Header {
		if header == nil {
			header = http.Header{}
		}
		header[name] = values
	}
	r.Header = header
	return c.hub.cfg.API.Do(context.WithValue(ctx, originKey{}, c.id.Origin), r)
}

// Touch renews the agent's session, and opens one if there is none or the last one is over.
func (c *Caller) Touch(ctx context.Context) error {
	if c.id.Key == "" {
		return nil
	}
	c.hub.hear(c.Party)
	session, opened, err := c.open(ctx)
	if err != nil || opened {
		return err
	}
	if err := c.heartbeat(ctx, session); !isOver(err) {
		return err
	}
	c.over(session)
	_, _, err = c.open(ctx)
	return err
}

// Session returns the id of the agent's session, which it opens if there is none; "" for an agent
// without a key.
func (c *Caller) Session(ctx context.Context) (api.SessionID, error) {
	if c.id.Key == "" {
		return "", nil
	}
	session, _, err := c.open(ctx)
	return session, err
}

// open returns the session. A session that this process does not know yet is found by its
// Idempotency-Key: the API answers with the one that an earlier process has opened. opened means that
// it was opened or renewed just now.
func (c *Caller) open(ctx context.Context) (session api.SessionID, opened bool, err error) {
	c.opening.Lock()
	defer c.opening.Unlock()
	for {
		c.mu.Lock()
		session, generation := c.session, c.generation
		c.mu.Unlock()
		if session != "" {
			return session, opened, nil
		}
		if joined := c.join(); joined != "" {
			switch err := c.heartbeat(ctx, joined); {
			case err == nil:
				c.mu.Lock()
				c.session = joined
				c.mu.Unlock()
				opened = true
			case isOver(err):
				c.over(joined)
			default:
				return "", false, err
			}
			continue
		}
		answer, err := c.Do(ctx, api.Request{
			Method: http.MethodPost, Path: "/v1/sessions",
			ID:   digest(c.hub.cfg.Door, c.id.Key, strconv.Itoa(generation)),
			Body: api.OpenSessionRequest{Agent: c.id.Agent, TTL: c.hub.cfg.TTL.Milliseconds()},
		})
		if isOver(err) {
			c.next(generation)
			continue
		}
		if err != nil {
			return "", false, err
		}
		var view api.SessionView
		if err := json.Unmarshal(answer.Body, &view); err != nil || view.Session.ID == "" {
			return "", false, fmt.Errorf("agent: the answer has no session: %w", errors.Join(err, errUnexpected))
		}
		if answer.Header.Get("Idempotency-Replayed") != "" {
			switch err := c.heartbeat(ctx, view.Session.ID); {
			case isOver(err):
				c.next(generation)
				continue
			case err != nil:
				return "", false, err
			}
		}
		opened = true
		if answer.Header.Get("Idempotency-Replayed") != "" {
			if err := c.takeUp(ctx, view.Session.ID); err != nil {
				return "", false, err
			}
		}
		c.mu.Lock()
		c.session = view.Session.ID
		c.mu.Unlock()
	}
}

// errUnexpected means that an answer has not the form of the API.
var errUnexpected = errors.New("want an answer of the HTTP API")

func (c *Caller) heartbeat(ctx context.Context, session api.SessionID) error {
	_, err := c.Do(ctx, api.Request{
		Method: http.MethodPost, Path: "/v1/sessions/" + session + "/heartbeat", Again: true,
		Body: api.HeartbeatRequest{Known: c.known()},
	})
	return err
}

// known lists the leases of the agent, nil where others may know of more.
func (c *Caller) known() *api.KnownLeases {
	if !c.hub.cfg.Alone {
		return nil
	}
	list := c.hub.reserved(c)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, held := range c.held {
		list = append(list, held.Lease)
	}
	if len(list) > interlock.MaxKnown {
		return nil
	}
	return &api.KnownLeases{Leases: list}
}

// join is the session of another process that the agent works in, "" for none.
func (c *Caller) join() api.SessionID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.joined
}

// isOver reports whether err means that a session is over.
func isOver(err error) bool {
	p, ok := errors.AsType[*api.Problem](err)
	return ok && (p.Code == interlock.CodeSessionEnded || p.Code == interlock.CodeUnknownSession)
}

func (c *Caller) next(generation int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation = generation + 1
}

// over forgets a session, and the leases that it had.
func (c *Caller) over(session api.SessionID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.joined != "" && c.joined == session:
		c.joined, c.session = "", ""
		clear(c.held)
		clear(c.lent)
	case c.session == session:
		c.session = ""
		c.generation++
		clear(c.held)
	}
}

// Joins reports whether the agent works in the session of another process.
func (c *Caller) Joins() bool { return c.join() != "" }

// Lent reports whether a lease is that of the process around the agent.
func (c *Caller) Lent(lease api.LeaseID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, own := c.held[api.Digits(lease)]
	return !own
}

// End ends the session. All that it holds is released, and its places in line are given up. In a session of another
// process it releases what it acquired itself.
func (c *Caller) End(ctx context.Context) error {
	if c.Joins() {
		return c.endJoined(ctx)
	}
	session, err := c.Session(ctx)
	if err != nil || session == "" {
		return err
	}
	c.hub.forget(c)
	_, err = c.Do(ctx, api.Request{Method: http.MethodDelete, Path: "/v1/sessions/" + session, Again: true})
	if err == nil || isOver(err) {
		c.over(session)
		return nil
	}
	return err
}

// Work returns what the agent's session has, as the server knows it; nothing for an agent without a session.
func (c *Caller) Work(ctx context.Context) (*api.SessionWork, error) {
	session, err := c.Session(ctx)
	if err != nil || session == "" {
		return &api.SessionWork{}, err
	}
	work, err := c.workOf(ctx, session)
	if isOver(err) {
		c.over(session)
		return &api.SessionWork{}, nil
	}
	return work, err
}

func (c *Caller) workOf(ctx context.Context, session api.SessionID) (*api.SessionWork, error) {
	answer, err := c.Do(ctx, api.Request{Method: http.MethodGet, Path: "/v1/sessions/" + session})
	if err != nil {
		return nil, err
	}
	work := &api.SessionWork{}
	if err := json.Unmarshal(answer.Body, work); err != nil {
		return nil, fmt.Errorf("agent: the answer has no session: %w", errors.Join(err, errUnexpected))
	}
	return work, nil
}

// takeUp makes this process know the leases of a session that an earlier process has opened, and follows its tickets.
func (c *Caller) takeUp(ctx context.Context, session api.SessionID) error {
	work, err := c.workOf(ctx, session)
	if err != nil {
		return err
	}
	c.mu.Lock()
	for i := range work.Leases {
		l := &work.Leases[i]
		c.held[api.Digits(l.ID)] = Held{
			Lease: l.ID, Flow: l.Flow, Keys: KeysOf(l.Claims),
			Since: time.Now().Add(-time.Duration(l.Held) * time.Millisecond),
		}
	}
	c.mu.Unlock()
	for _, t := range work.Tickets {
		if len(t.Claims) > 0 { // else it is a declared wait
			c.Follow(Place{Ticket: t.ID, Flow: t.Flow, Keys: KeysOf(t.Claims)})
		}
	}
	return nil
}

// endJoined releases what the agent acquired in the session of another process.
func (c *Caller) endJoined(ctx context.Context) (err error) {
	for _, flow := range c.Flows() {
		for _, ticket := range c.Waits(flow) {
			err = errors.Join(err, c.Leave(ctx, ticket))
		}
	}
	c.mu.Lock()
	held := slices.Collect(maps.Values(c.held))
	c.mu.Unlock()
	sortHeld(held)
	for _, one := range held {
		if no := c.Release(ctx, one.Lease, api.ReleaseRequest{}); no != nil {
			if _, over := errors.AsType[*api.Problem](no); !over {
				err = errors.Join(err, no)
			}
		}
	}
	return err
}

// Flows returns the flows that hold leases or wait, as far as this process knows.
func (c *Caller) Flows() (names []string) {
	c.mu.Lock()
	for _, held := range c.held {
		names = append(names, held.Flow)
	}
	c.mu.Unlock()
	c.hub.mu.Lock()
	for _, f := range c.hub.followed {
		if f.caller.Party == c.Party {
			names = append(names, f.Flow)
		}
	}
	c.hub.mu.Unlock()
	slices.Sort(names)
	return slices.Compact(names)
}

// Leases returns the leases that were granted in a flow and not released, as far as this process
// knows, oldest first. Time may have ended some of them.
func (c *Caller) Leases(flow string) (list []Held) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, held := range c.held {
		if held.Flow == flow {
			list = append(list, held)
		}
	}
	sortHeld(list)
	return list
}
