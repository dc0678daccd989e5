package store

import (
	"slices"

	"github.com/interlockdev/interlock/engine/record"
)

// A holder that died may have a write under way that cannot be recalled. A lease with a
// lock_delay therefore does not open its keys at once when it ends by death: it is closed
// first. For its holder it is over. It belongs to no flow any more, so it blocks every request
// until the delay has passed, or an operator revokes it.

// Closes reports whether r is closed before it ends for a reason.
func (r *Request) Closes(why record.Reason) bool {
	if r.LockDelay == 0 || r.Phase != Held && r.Phase != InGrace {
		return false
	}
	switch why {
	case record.ByTTL, record.ByMaxHold, record.ByStall, record.ByDeath, record.ByForgetting:
		return true
	}
	return false
}

func (st *State) evolveClosed(ev *record.Event, r *Request) {
	st.detachFromSession(r)
	r.unask()
	r.Phase, r.Reason, r.Renewed = Closed, ev.Reason, ev.At
	r.setTask(nil)
	if ev.ByID != [16]byte{} {
		r.setEndCause(&endCause{Task: ev.ByID})
	}
	r.memberChanged()
}

// detachFromSession takes a lease out of its session. From then on only the agent's name is
// known of its holder.
func (st *State) detachFromSession(r *Request) {
	for i := range r.Needs() {
		r.Needs()[i].Node.share()
	}
	r.leaveParty()
	st.clearSession(r)
}

// clearSession takes a request that its session neither holds nor waits for any more out
// of that session.
func (st *State) clearSession(r *Request) {
	sess := r.Session()
	r.MutableExt().Guest = &AnonymousCaller{r.AgentName(), r.Owner()}
	r.FlowState = nil
	if sess != nil {
		if i := sess.noted(r); i >= 0 {
			r.Listed, sess.Losses = false, slices.Delete(sess.Losses, i, i+1)
		}
		st.forgetSession(sess)
	}
}
