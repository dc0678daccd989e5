package client

import (
	"context"
	"errors"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
)

// ParkRequest is how a lease is put aside.
type ParkRequest struct {
	// Keys is whether others may have the keys meanwhile: interlock.ParkKeep or
	// interlock.ParkFree. The zero value leaves it to the keys' pattern, which keeps them if it
	// sets nothing.
	Keys interlock.ParkPolicy
	For  time.Duration // how long it waits to be resumed; 0: the pattern's value
	// Reason is the question to a person, at most interlock.MaxReasonBytes. With it the lease
	// is among the approvals until it is answered, and the answer resumes it. "" asks no
	// person.
	Reason string
}

// Park puts the lease aside while a human decides, which may take hours. It then needs neither
// heartbeats nor this session, and any process that has its ID may resume it, from any process.
// This handle and the lease's others are over: their contexts end with code "parked".
func (l *Lease) Park(ctx context.Context, p ParkRequest) error {
	if err := l.Err(); err != nil {
		return err
	}
	k := l.g.c.newCall(proto.OpPark)
	k.op.ID, k.op.TTL, k.op.Note = l.g.id, p.For, p.Reason
	k.op.Keep, k.op.Free = p.Keys == interlock.ParkKeep, p.Keys == interlock.ParkFree
	if _, err := l.g.c.do(ctx, k, "the parking of the lease"); err != nil {
		return l.reason(err)
	}
	if lost, ok := errors.AsType[*interlock.Error](l.Err()); ok && lost.Code != interlock.CodeParked {
		return lost // it was given back
	}
	return nil
}

func parkedHere(g *grant) *interlock.Error {
	return &interlock.Error{
		Code: interlock.CodeParked, Key: g.key(), At: g.at,
		Message: "the lease on " + string(g.key()) + " is parked: resume it before you continue",
		Advice: interlock.Advice{
			Action:  interlock.ActAskHuman,
			Message: "wait for the decision, then resume the lease and read the changed keys again",
		},
	}
}

// ResumeRequest is how a parked lease is taken up again.
type ResumeRequest struct {
	Flow string // that is to hold it; as in Request

	// OnConflict is the action when others have its keys: leave it parked (the zero value),
	// wait, or wait and ask them to yield. It stands in line at the place that it would have if
	// it had never been granted. To wait is also to wait for the answer, if the lease asks a
	// person.
	OnConflict interlock.OnConflict
	MaxWait    time.Duration // how long it may stand in line; 0: the pattern's value

	// Unapproved resumes it although a person has not answered its question, which withdraws
	// the question, or has denied it.
	Unapproved bool

	// OnQueued is as in Request. While a person has not answered, the ticket's Position is 0.
	OnQueued func(ticket interlock.Ticket, holders []interlock.Holder)
}

// Resume makes a parked lease held again, by this client. Lease.Changed and Lease.Moved report
// the keys that others may have written meanwhile: read these again. The errors are those of
// Acquire.
//
// The answer resumes a lease that asks a person; [Lease.Decision] has it. Until then Resume waits
// if OnConflict asks for that; otherwise the error has code "parked". After a denial the error has
// code "denied".
//
// Giving up, or losing the place in line, ends the resumption only: the lease is parked as it
// was, for the rest of its time, and can be resumed again. If ctx ends before the answer, the
// error is CodeOutcomeUnknown, and the client asks the server in the background to park the
// lease again if it was granted meanwhile, with its keys if it had kept them.
func (c *Client) Resume(ctx context.Context, id interlock.LeaseID, as ResumeRequest) (*Lease, error) {
	flow := c.flow(ctx, as.Flow)
	pace := Backoff{Most: reconnectMost}
	for {
		l, err := c.obtain(ctx, askAgain, as.OnQueued, func() *call {
			k := c.newCall(proto.OpResume)
			k.op.ID, k.op.Flow, k.op.OnConflict, k.op.MaxWait, k.op.Unapproved = id, flow, as.OnConflict, as.MaxWait,
				as.Unapproved
			return k
		})
		refusal, refused := errors.AsType[*interlock.Error](err)
		if !refused || refusal.Code != interlock.CodeParked || as.OnConflict == interlock.Fail || ctx.Err() != nil {
			return l, err
		}
		// A caller that waits for an answer learns of it when there is one, or when the link
		// has broken.
		if pace.Wait(ctx, 0) != nil {
			return l, err
		}
	}
}

// Discard releases a parked lease without resuming it: the human denied it.
func (c *Client) Discard(ctx context.Context, id interlock.LeaseID, out Outcome) error {
	k := c.newCall(proto.OpRelease)
	k.op.ID = id
	out.report(k)
	_, err := c.do(ctx, k, "the release of the parked lease")
	return err
}
