package engine

import (
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/record"
)

// stepTries bounds the candidates that a step checks in vain, because they are still blocked.
// Priorities that go through a long chain cause very many checks of waiters that cannot be
// granted.
const stepTries = 250

// tryBudgetSpent reports that the step has looked at enough in vain.
func (e *Engine) tryBudgetSpent() bool { return e.tries >= stepTries }

// settle grants all that it can and breaks every cycle that this closes, until nothing is left
// to do or the step has decided enough.
func (e *Engine) settle() {
	if !e.Live {
		return
	}
	for {
		switch {
		case len(e.Broken) > 0:
			e.dismiss()
		case e.full():
			return
		case e.Dismissed.Len() > 0:
			e.dismissMore()
		case e.Departed.Len() > 0:
			e.endListeners()
		case e.PendingWork.NS.IsRepooling():
			e.repoolMore()
		case e.PendingWork.NS.IsUnranked() && !e.Ranks.IsSpent():
			e.Rerank()
		case e.HasSearch() && !e.Looks.IsSpent():
			e.breakCycle()
		case e.Doubt.Under && !e.Looks.IsSpent():
			e.suspectMore()
		case e.Parting.Len() > 0:
			e.part()
		case e.Dying.Len() > 0:
			e.sweepEnded()
		case len(e.Uneven) > 0 && !e.draining:
			e.shareOut()
		case len(e.Ready) > 0 && !e.draining:
			if e.tryBudgetSpent() {
				return
			}
			e.consider(e.Ready.Pop())
		case len(e.ToDispatch) > 0 && !e.draining:
			e.dispatch()
		case e.PendingWork.NS.IsSpelling():
			e.spellMore(e.PendingWork.NS)
		default:
			return
		}
	}
}

// consider looks at one candidate.
func (e *Engine) consider(c store.Candidate) {
	e.Visited++
	e.tries++
	p := c.Place
	p.Ready = false
	class := p.Class
	if r := p.Req; r.Num == c.Num && r.Phase == store.Waiting && p.Watching {
		m := &r.Needs()[p.Need]
		if r.Task != nil {
			e.Visited += taskVisits
			if !e.lookAgain(r.Task, int(p.Need)) {
				p.SetWatching(false)
				e.CouldRun(r.Task)
			} else if p.Watching && p.Class == class {
				return
			}
		} else if r.BlockedAt(m) {
			e.ArmPool(c.Node.Pool())
			if r.Hopeless(m) {
				e.leaveLine(r.Whole(), record.ByPattern)
			} else if !p.WatchedAlone {
				return
			}
		} else if b := r.Blocker(); b >= 0 && r.Hopeless(&r.Needs()[b]) {
			e.leaveLine(r.Whole(), record.ByPattern)
		} else if b >= 0 {
			e.Watch(r, b)
		} else if r.Barrier() == nil {
			p.SetWatching(false)
			e.tries--
			e.admit(r.Whole().FreeWay())
		} else if !e.open(r) && p.Watching {
			return // the others of the bucket wait for the same
		}
	}
	e.MarkReady(class.FirstWatched())
}

// admit grants a waiter one of its alternatives, or offers it the grant if it has no listener.
func (e *Engine) admit(way *store.Request) {
	r := way.Whole()
	lease := r.Becomes()
	caller := r.Listener()
	if s := r.Session(); caller == nil && s != nil {
		caller = s.Caller
	}
	if r == e.asking {
		caller = nil
	} else if caller == nil && r.IsToStart() {
		e.cancelUnattended(r)
		return
	}
	ev := e.event(record.Admitted, r)
	ev.Claims = way.Claims()
	ev.Fence, ev.Waited, ev.Trace = e.Fence+1, e.Clock.Sub(r.Arrived()), r.Trace
	ev.Offer = caller == nil && r != e.asking && lease == r && r.Share == nil
	ev.Generation, ev.Version = r.NextGeneration(), r.MovedUpTo()
	e.emit(ev)
	e.Arm(lease)
	e.FireRates(lease)
	if lease == r {
		r.NoteGrant(r != e.asking)
	}
	if caller != nil {
		lease.DescribeHanded(&e.effect(caller, Granted).Lease)
	}
	e.HeldMore(lease)
}
