package server

import (
	"errors"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/action"
	"github.com/interlockdev/interlock/proto"
)

// rareCommand is command for rare operations. nil means that it was refused.
func (st *stream) rareCommand(o *proto.Op, h engine.Head) engine.Command {
	if numbered := st.numberedCommand(o, h); numbered != nil {
		return numbered
	}
	if o.Kind == proto.OpClaimEffect {
		return st.claimEffect(o, h)
	}
	h.Seq, h.Acked = 0, 0 // the others may happen twice
	switch o.Kind {
	case proto.OpOpen:
		h.RequestID = o.RequestID
		return &engine.OpenSession{Head: h, ID: st.random.id(), Agent: o.Agent, TTL: o.TTL}
	case proto.OpAttach:
		if !st.bind(o.Slot, o.ID) {
			st.refuse(
				o, interlock.CodeInvalidRequest, "the slot is in use, or the limit of slots is reached: use another slot, or "+
					"another stream",
			)
			return nil
		}
		h.Session = o.ID
		return &engine.Attach{Head: h}
	case proto.OpClose:
		return &engine.CloseSession{Head: h}
	case proto.OpPoll:
		return &engine.Poll{Head: h, Ticket: o.ID, Attach: true}
	case proto.OpGetLease:
		return &engine.GetLease{Head: h, Lease: o.ID}
	case proto.OpCheckFence:
		return &engine.CheckFence{Head: h, Key: o.Key, Fence: o.Fence}
	}
	st.refuse(
		o, interlock.CodeUnsupported, "unknown operation: use a newer server, or an older client",
	)
	return nil
}

// claimEffect makes the command with the canonical form of the action.
func (st *stream) claimEffect(o *proto.Op, h engine.Head) engine.Command {
	canonical, err := action.Canonical(o.Effect.Tool, o.Effect.Target, o.Effect.Arguments)
	if refusal, refused := errors.AsType[*interlock.Error](err); refused {
		st.refuse(o, refusal.Code, refusal.Message)
		return nil
	}
	id := o.Effect.Claim
	if id.IsZero() {
		id = st.random.id()
	}
	return &engine.ClaimEffect{Head: h, ID: id, Flow: o.Flow, Action: canonical, Lease: o.ID, TTL: o.TTL}
}

// numberedCommand makes the commands that must happen once, and so keep the number
// of their operation. nil means that it is none of them.
func (st *stream) numberedCommand(o *proto.Op, h engine.Head) engine.Command {
	switch o.Kind {
	case proto.OpLeave:
		return &engine.Leave{Head: h, Ticket: o.ID}
	case proto.OpRenew:
		return &engine.Renew{Head: h, Lease: o.ID, Progress: o.Progress, TTL: o.TTL}
	case proto.OpConvert:
		return &engine.Convert{
			Head: h, Lease: o.ID, ID: st.random.id(), Claims: slices.Clone(o.Claims), MaxWait: o.MaxWait,
			OnConflict: o.OnConflict, Attach: true,
		}
	case proto.OpArrive:
		return &engine.Arrive{Head: h, Lease: o.ID, ID: st.random.id(), MaxWait: o.MaxWait, Attach: true}
	case proto.OpPark:
		return &engine.Park{Head: h, Lease: o.ID, Free: o.Free, Keep: o.Keep, For: o.TTL, Reason: o.Note}
	case proto.OpResume:
		return &engine.Resume{
			Head: h, Lease: o.ID, Flow: o.Flow, MaxWait: o.MaxWait, OnConflict: o.OnConflict, Unapproved: o.Unapproved,
			Attach: true,
		}
	case proto.OpDeclare:
		c := &engine.Declare{Head: h, ID: st.random.id(), Flow: o.Flow, Purpose: o.Purpose, MaxWait: o.MaxWait, Attach: true}
		if o.On != nil {
			c.On = engine.FlowRef{Session: o.On.Session, Agent: o.On.Agent, Flow: o.On.Flow}
		}
		return c
	case proto.OpCommit:
		return &engine.Commit{Head: h, CommitRequest: cloneCommit(o.Commit)}
	case proto.OpSettleEffect:
		x := o.Effect
		return &engine.SettleEffect{
			Head: h, ID: o.ID, Digest: x.Digest, State: x.State, Result: string(x.Result), Reason: x.Reason,
		}
	case proto.OpSetPattern:
		c := &engine.SetPattern{Head: h}
		if o.Pattern != nil {
			c.Pattern = *o.Pattern
		}
		return c
	case proto.OpDropPattern:
		return &engine.DropPattern{Head: h, Name: o.Name}
	case proto.OpStartRun:
		return st.startRun(o, h)
	case proto.OpRevertPattern:
		return &engine.RevertPattern{Head: h, Name: o.Name, Revision: o.Revision}
	case proto.OpSetQueue:
		c := &engine.SetQueue{Head: h}
		if o.Queue != nil {
			c.Queue = *o.Queue
		}
		return c
	case proto.OpDropQueue:
		return &engine.DropQueue{Head: h, Name: o.Name}
	case proto.OpConfigure:
		c := &engine.Configure{Head: h}
		if o.Settings != nil {
			c.Settings = *o.Settings
		}
		return c
	}
	return nil
}
