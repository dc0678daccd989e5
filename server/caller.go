package server

import (
	"context"
	"errors"
	"net"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/prose"
	"github.com/interlockdev/interlock/shard"
)

// Caller is a client that speaks a protocol of another package of this process, such as that of Redis.
// Its commands go straight to the shard, behind the checks of every call: credential, rights, quotas,
// bytes in flight. One goroutine at a time uses it.
type Caller struct {
	door      *Server // where it came in
	s         *Server // of the shard; the door itself until a router has found it
	bearer    string
	requested string
	identity  Identity
	namespace interlock.Namespace
	carried   int

	answered chan struct{}
	effect   engine.Effect
}

// Caller returns the caller that a credential proves, in the namespace that it asks for; "" is that of
// the credential. The error is an *interlock.Error, as of all methods of a Caller.
func (s *Server) Caller(bearer, namespace string) (*Caller, error) {
	c := &Caller{door: s, s: s, bearer: bearer, requested: namespace, answered: make(chan struct{}, 1)}
	return c, c.identify()
}

// Admit takes note that the caller has come over a connection of a Gate.
func (c *Caller) Admit(conn net.Conn) { admitConn(conn, &c.identity) }

// identify looks the credential up again: it may have been withdrawn, or have other rights.
func (c *Caller) identify() (err error) {
	if c.identity, err = c.door.Authenticate(c.bearer); err == nil {
		c.namespace, err = c.identity.Resolve(c.requested)
	}
	return err
}

// On returns the caller at the server that answers now, if that is another one than before.
func (c *Caller) On(s *Server) (*Caller, error) {
	if c.door == s {
		return c, nil
	}
	c.Carry(-c.carried)
	return s.Caller(c.bearer, c.requested)
}

// Elsewhere returns the server that owns the caller's namespace, if it is another one.
func (c *Caller) Elsewhere() (Active, bool) {
	if c.door.directory == nil {
		return Active{}, false
	}
	at := c.door.directory.Locate(c.namespace)
	return at.Active, at.Server == nil && at.Active != (Active{})
}

// Forwarded counts that the caller was led to the owner.
func (c *Caller) Forwarded() { c.door.obs.figures.forwarded.WithLabelValues("resp").Inc() }

// RefusedAsRedis counts a command that a program of Redis expects to be carried out, and is not.
func (c *Caller) RefusedAsRedis(reason string) { c.s.obs.figures.redis.WithLabelValues(reason).Inc() }

// Namespace returns the one of the caller's commands.
func (c *Caller) Namespace() interlock.Namespace { return c.namespace }

// Name returns that of the credential; "" without credentials.
func (c *Caller) Name() string { return c.identity.name() }

// Carry counts n more bytes of the caller under way, or -n less. It reports whether there was room.
func (c *Caller) Carry(n int) bool {
	if n > 0 && !c.s.flight.take(c.namespace, n) {
		return false
	}
	if n < 0 {
		c.s.flight.count(c.namespace, n)
	}
	c.carried += n
	return true
}

// Do carries out an Acquire or a Convert that does not wait, a Renew or a Release, and returns its answer
// until the next call. A refusal is an error, and the answer has its details.
func (c *Caller) Do(ctx context.Context, cmd engine.Command, bytes int) (*engine.Effect, error) {
	needs, vital := mayHold, false
	switch cmd.(type) {
	case *engine.Renew, *engine.Release:
		needs, vital = mayLive, true
	}
	if err := c.admit(ctx, needs, bytes, vital); err != nil {
		return nil, err
	}
	h := cmd.Header()
	h.From, h.Namespace, h.Actor, h.Principal = c, c.namespace, c.identity.name(), c.identity.Principal
	if err := c.s.shard.Execute(cmd); err != nil {
		return nil, c.errorOf(err)
	}
	<-c.answered // an answer comes also when the shard ends
	c.s.obs.Answered(cmd, &c.effect)
	if c.effect.Outcome == engine.Refused {
		return &c.effect, refusalOf(&c.effect)
	}
	return &c.effect, nil
}

// Deliver implements shard.Receiver.
func (c *Caller) Deliver(eff *engine.Effect, _ interlock.At) {
	c.effect = *eff
	c.answered <- struct{}{}
}

// Read runs a query about the caller's namespace, and returns when all that it saw is durable. The error
// is also that of the query.
func (c *Caller) Read(ctx context.Context, query func(*engine.Engine, interlock.Namespace) error) error {
	if err := c.admit(ctx, mayRead, 0, false); err != nil {
		return err
	}
	var bad error
	_, err := c.s.shard.Read(ctx, c.namespace, func(e *engine.Engine, _ engine.Time) { bad = query(e, c.namespace) })
	if err == nil {
		err = bad
	}
	return c.errorOf(err)
}

// Why explains the state of a key in sentences.
func (c *Caller) Why(ctx context.Context, key interlock.Key) (*prose.Explanation, error) {
	if err := c.admit(ctx, mayRead, 0, false); err != nil {
		return nil, err
	}
	x, _, _, err := explainKey(
		c.namespace, c.identity.Principal, key, func(look func(*engine.Engine) (done bool)) (interlock.At, error) {
			return c.s.shard.Survey(ctx, c.namespace, func(e *engine.Engine, _ engine.Time) bool { return look(e) })
		},
	)
	return x, c.errorOf(err)
}

// admit makes the checks of a call.
func (c *Caller) admit(ctx context.Context, needs right, bytes int, vital bool) error {
	if err := c.identify(); err != nil {
		return err
	}
	if c.door.directory != nil {
		at := c.door.directory.Locate(c.namespace)
		if at.Server == nil {
			return notOwner(at.Active)
		}
		if c.s != at.Server {
			carried := c.carried
			c.Carry(-carried)
			c.s = at.Server
			c.s.flight.count(c.namespace, carried)
			c.carried = carried
		}
	}
	if no := refusal(c.identity.Principal, needs, ""); no != nil {
		return no
	}
	if t := c.s.limiter.limits(ctx, c.namespace); t != nil {
		no := t.admit(c.s.limiter.now(), c.identity.name(), amount{requests: 1, bytes: int64(bytes)}, vital)
		if no != nil {
			return refusalOf(no)
		}
	}
	if !vital && c.s.flight.isFull(c.namespace) {
		return &interlock.Error{
			Code: interlock.CodeOverloaded, Message: tooMuchInFlight + "wait for answers before you send more, and read them",
		}
	}
	return nil
}

// refusalOf returns a refusal of the engine as an error, in the words of the HTTP API.
func refusalOf(eff *engine.Effect) *interlock.Error {
	return &interlock.Error{Code: eff.Code, Message: prose.Detail(eff), Advice: prose.For(eff)}
}

// errorOf returns any error of the shard as an *interlock.Error.
func (c *Caller) errorOf(err error) error {
	if err == nil {
		return nil
	}
	if e, ok := prose.Refusal(err); ok {
		return e
	}
	if e := shard.Refusal(err); e != nil {
		c.s.log.Error("a call failed because of the journal", "error", err)
		return e
	}
	if !errors.Is(err, context.Canceled) {
		c.s.log.Error("a call failed", "error", err)
	}
	return &interlock.Error{Code: interlock.CodeInternal, Message: "internal error in this call: check the server's log"}
}
