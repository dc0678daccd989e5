package engine

import (
	"slices"

	"github.com/interlockdev/interlock/engine/record"
)

// A holder that died may have a write under way that cannot be recalled. A lease with a
// lock_delay therefore does not open its keys at once when it ends by death: it is closed
// first. For its holder it is over. It belongs to no flow any more, so it blocks every request
// until the delay has passed, or an operator revokes it.

// closes reports whether r is closed before it ends for a reason.
func (r *request) closes(why record.Reason) bool {
	if r.LockDelay == 0 || r.phase != held && r.phase != inGrace {
		return false
	}
	switch why {
	case record.ByTTL, record.ByMaxHold, record.ByStall, record.ByDeath:
		return true
	}
	return false
}

// closeLease closes r and tells its holder that it is over.
func (e *Engine) closeLease(r *request, why record.Reason) {
	sess, lease := r.session(), e.lease(r)
	ev := e.endCause(r, why)
	ev.Kind, ev.LockDelay = record.Closed, r.LockDelay
	e.emit(ev)
	e.arm(r)
	if sess != nil {
		e.lost(sess, r, lease)
	}
}

func (e *State) evolveClosed(ev *record.Event, r *request) {
	e.detachFromSession(r)
	r.unask()
	r.phase, r.reason, r.renewed = closed, ev.Reason, ev.At
	r.setTask(nil)
	if ev.ByID != [16]byte{} {
		r.setEndCause(&endCause{task: ev.ByID})
	}
	r.memberChanged()
}

// detachFromSession takes a lease out of its session. From then on only the agent's name is
// known of its holder.
func (e *State) detachFromSession(r *request) {
	for i := range r.needs() {
		r.needs()[i].node.share()
	}
	r.leaveParty()
	e.clearSession(r)
}

// clearSession takes a request that its session neither holds nor waits for any more out
// of that session.
func (e *State) clearSession(r *request) {
	sess := r.session()
	r.mutableExt().guest = &anonymousCaller{r.agentName(), r.owner()}
	r.party = nil
	if sess != nil {
		if i := sess.noted(r); i >= 0 {
			r.listed, sess.losses = false, slices.Delete(sess.losses, i, i+1)
		}
		e.forgetSession(sess)
	}
}
