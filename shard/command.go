package shard

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// receiverOf returns the receiver of the answer to cmd, or nil.
func receiverOf(cmd engine.Command) Receiver {
	from := cmd.Header().From
	if from == nil || !cmd.IsAnswered() {
		return nil
	}
	return from.(Receiver)
}

// visit goes through the mailbox like a command, but is run by the owner goroutine itself: a
// query, or a change of what the engine admits. run is called until it reports that it is done,
// other namespaces have their turns between, and no command of its own does. It is finished
// when all that it can have seen is durable.
type visit struct {
	engine.Head // makes it a Command
	run         func(o *owner, now engine.Time) (done bool)
	generation  int // of the engine with which it began; 0 before
	tick        engine.Tick
	moving      bool // the namespace answers nothing, so run was not called

	// finish is called with Survey's result, by the committer or, for a discarded visit, by the
	// owner. It must not block.
	finish func(interlock.At, error)

	mu        sync.Mutex // held while run runs, so that giving up waits for it
	abandoned bool
}

// step continues the visit, unless its caller has gone.
func (v *visit) step(o *owner) (done bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.abandoned || v.run(o, v.At)
}

// Query makes a command of a query, to be handed to Submit among others of its
// namespace: look is called as Survey's is, when all before it are carried out and
// none behind it is. finish is then called with what Survey returns. Like a
// Receiver's Deliver it must not block.
func Query(
	namespace interlock.Namespace, look func(*engine.Engine, engine.Time) (done bool), finish func(interlock.At, error),
) engine.Command {
	return &visit{
		Head:   engine.Head{Namespace: namespace},
		run:    func(o *owner, now engine.Time) bool { return look(o.eng, now) },
		finish: finish,
	}
}

// visit has run called by the owner goroutine and returns when all that it can
// have seen is durable.
func (s *Shard) visit(
	ctx context.Context, namespace interlock.Namespace, run func(o *owner, now engine.Time) (done bool),
) (interlock.At, error) {
	if err := ctx.Err(); err != nil {
		return interlock.At{}, err
	}
	type result struct {
		at  interlock.At
		err error
	}
	done := make(chan result, 1)
	v := &visit{
		Head: engine.Head{Namespace: namespace}, run: run,
		finish: func(at interlock.At, err error) { done <- result{at, err} },
	}
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

// reply is an answer on its way to the caller.
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

// replies holds the replies without a waiter.
type replies struct{ free sync.Pool }

func (p *replies) get() *reply {
	if r, ok := p.free.Get().(*reply); ok {
		return r
	}
	return &reply{done: make(chan struct{}, 1)}
}

// put takes back a reply that has no more writers.
func (p *replies) put(r *reply) {
	r.effect = engine.Effect{}
	p.free.Put(r)
}
