package shard

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// headOf gives the part that all commands share, and whether the command has an
// answer. A command that it does not know would go through without a time, so
// that is a panic; a test holds the list equal to the engine's.
func headOf(cmd engine.Command) (h *engine.Head, answered bool) {
	switch c := cmd.(type) {
	case *engine.Acquire:
		return &c.Head, true
	case *engine.Release:
		return &c.Head, true
	case *engine.Heartbeat:
		return &c.Head, true
	case *engine.Poll:
		return &c.Head, true
	case *engine.Leave:
		return &c.Head, true
	case *engine.Renew:
		return &c.Head, true
	case *engine.GetLease:
		return &c.Head, true
	case *engine.CheckFence:
		return &c.Head, true
	case *engine.OpenSession:
		return &c.Head, true
	case *engine.CloseSession:
		return &c.Head, true
	case *engine.Attach:
		return &c.Head, true
	case *engine.Revoke:
		return &c.Head, true
	case *engine.Convert:
		return &c.Head, true
	case *engine.Arrive:
		return &c.Head, true
	case *engine.Park:
		return &c.Head, true
	case *engine.Resume:
		return &c.Head, true
	case *engine.Declare:
		return &c.Head, true
	case *engine.SetPattern:
		return &c.Head, true
	case *engine.DropPattern:
		return &c.Head, true
	case *engine.Configure:
		return &c.Head, true
	case *engine.DeleteNamespace:
		return &c.Head, true
	case *engine.Commit:
		return &c.Head, true
	case *engine.ClaimEffect:
		return &c.Head, true
	case *engine.SettleEffect:
		return &c.Head, true
	case *engine.ForgetEffects:
		return &c.Head, true
	case *engine.SetQueue:
		return &c.Head, true
	case *engine.SwitchQueue:
		return &c.Head, true
	case *engine.DropQueue:
		return &c.Head, true
	case *engine.Submit:
		return &c.Head, true
	case *engine.Pull:
		return &c.Head, true
	case *engine.Ack:
		return &c.Head, true
	case *engine.Nack:
		return &c.Head, true
	case *engine.AskHuman:
		return &c.Head, true
	case *engine.Answer:
		return &c.Head, true
	case *engine.ChangeTask:
		return &c.Head, true
	case *engine.FollowTask:
		return &c.Head, true
	case *engine.StartRun:
		return &c.Head, true
	case *engine.RevertPattern:
		return &c.Head, true
	case *engine.KeepAlive:
		return &c.Head, true
	case *engine.Detach:
		return &c.Head, false
	case *engine.Tick:
		return &c.Head, false
	case *engine.Recover:
		return &c.Head, false
	case *engine.Limit:
		return &c.Head, false
	case *visit:
		return &c.Head, false
	}
	panic(fmt.Sprintf("shard: command %T is not known here", cmd))
}

// receiverOf gives who takes the answer to cmd, or nil.
func receiverOf(cmd engine.Command) Receiver {
	h, answered := headOf(cmd)
	if !answered || h.From == nil {
		return nil
	}
	return h.From.(Receiver)
}

// visit goes through the mailbox like a command, but is run by the owner
// goroutine itself: a query, or a change of what the engine admits. run is called
// until it reports that it is done, other namespaces have their turns between, and
// no command of its own does. It is finished when all that it can have seen is
// durable.
type visit struct {
	engine.Head // makes it a Command
	run         func(o *owner, now engine.Time) (done bool)
	generation  int // of the engine with which it began; 0 before
	tick        engine.Tick

	// finish is called with what Survey returns, by the committer or, of what was thrown
	// away, by the owner. It must not block.
	finish func(interlock.At, error)

	mu        sync.Mutex // held while run runs, so that giving up waits for it
	abandoned bool
}

// step goes on with the visit, unless its caller has given up.
func (v *visit) step(o *owner) (done bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.abandoned || v.run(o, v.At)
}

// Query makes a command of a query, to be handed to Submit among others of its
// namespace: look is called as Survey's is, when all before it are carried out and
// none behind it is. finish is then called with what Survey returns. Like a
// Receiver's Deliver it must not block.
func Query(namespace interlock.Namespace, look func(*engine.Engine, engine.Time) (done bool), finish func(interlock.At, error)) engine.Command {
	return &visit{
		Head:   engine.Head{Namespace: namespace},
		run:    func(o *owner, now engine.Time) bool { return look(o.eng, now) },
		finish: finish,
	}
}

// visit has run called by the owner goroutine and returns when all that it can
// have seen is durable.
func (s *Shard) visit(ctx context.Context, namespace interlock.Namespace, run func(o *owner, now engine.Time) (done bool)) (interlock.At, error) {
	if err := ctx.Err(); err != nil {
		return interlock.At{}, err
	}
	type result struct {
		at  interlock.At
		err error
	}
	done := make(chan result, 1)
	v := &visit{Head: engine.Head{Namespace: namespace}, run: run, finish: func(at interlock.At, err error) { done <- result{at, err} }}
	if err := s.put([]engine.Command{v}); err != nil {
		return interlock.At{}, err
	}
	select {
	case r := <-done:
		return r.at, r.err
	case <-ctx.Done():
		v.mu.Lock()
		v.abandoned = true
		v.mu.Unlock()
		return interlock.At{}, ctx.Err()
	}
}

// call receives the first answer to one command. The engine may keep a call for as long
// as it likes, and what the answer is copied to serves one command after the other: so a
// call lets go of it with the first answer, and a later one (the end of a wait) goes
// nowhere.
type call struct{ to atomic.Pointer[reply] }

// reply is an answer on its way to who asked.
type reply struct {
	effect engine.Effect
	at     interlock.At
	done   chan struct{} // gets a value when the answer is there
}

// Deliver implements Receiver.
func (c *call) Deliver(eff *engine.Effect, at interlock.At) {
	if r := c.to.Swap(nil); r != nil {
		r.effect, r.at = *eff, at
		r.done <- struct{}{}
	}
}

// replies are those that nobody waits for.
type replies struct{ free sync.Pool }

func (p *replies) get() *reply {
	if r, ok := p.free.Get().(*reply); ok {
		return r
	}
	return &reply{done: make(chan struct{}, 1)}
}

// put takes a reply to which nobody will write any more.
func (p *replies) put(r *reply) {
	r.effect = engine.Effect{}
	p.free.Put(r)
}
