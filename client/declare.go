package client

import (
	"context"
	"errors"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
)

// WaitTarget is the target of a flow's declared wait.
type WaitTarget struct {
	// Session is the public name of the other's session (Client.SessionName). Or
	// Agent names an agent that has one session, and Flow which of its flows.
	Session string
	Agent   string
	Flow    string

	As      string        // our own flow, as Request.Flow
	Purpose string        // for people and other agents
	MaxWait time.Duration // 0: as long as the context allows
}

// Wait is a declared wait for another agent. It does not wait by itself: it reports to the
// server of a wait that takes place elsewhere.
type Wait struct {
	ctx  context.Context
	stop context.CancelCauseFunc
	over chan struct{}
}

// errEnded is the cause of a wait's context after End.
var errEnded = errors.New("the wait was ended")

// WaitFor declares that a flow waits for another agent: for its answer, its result, the end of
// a tool call. Interlock cannot see such a wait by itself. Once it is declared, a deadlock
// through it is found like any other, and one of those in the cycle learns of it: here by an
// *interlock.Error with CodeDeadlock, or later by the end of the Wait's Context.
//
// The flow must be the one that holds leases, so call it under Lease.Context. Call
// End as soon as the answer is there.
func (c *Client) WaitFor(ctx context.Context, on WaitTarget) (*Wait, error) {
	flow := c.flow(ctx, on.As)
	w := &Wait{over: make(chan struct{})}
	w.ctx, w.stop = context.WithCancelCause(ctx)
	declared := make(chan struct{}, 1)
	refused := make(chan error, 1)
	go func() {
		defer close(w.over)
		_, err := c.insist(w.ctx, askAgain, func(interlock.Ticket, []interlock.Holder) {
			select {
			case declared <- struct{}{}:
			default:
			}
		}, func() *call {
			k := c.newCall(proto.OpDeclare)
			k.op.Flow, k.op.Purpose, k.op.MaxWait = flow, on.Purpose, on.MaxWait
			k.op.On = &proto.WaitTarget{Session: on.Session, Agent: on.Agent, Flow: on.Flow}
			return k
		})
		w.stop(err)
		refused <- err
	}()
	select {
	case <-declared:
		return w, nil
	case err := <-refused:
		return nil, err
	}
}

// Context ends with the wait. Its cause is an *interlock.Error when the server
// ended it: with CodeDeadlock when it closed a cycle and is the victim, with
// CodeSessionEnded when the other is gone, with CodeWaitLimit after MaxWait.
func (w *Wait) Context() context.Context { return w.ctx }

// End reports that the flow no longer waits. It returns when that is on its way to the server,
// and may be called again.
func (w *Wait) End() {
	w.stop(errEnded)
	<-w.over
}
