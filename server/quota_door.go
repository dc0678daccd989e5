package server

import (
	"github.com/interlockdev/interlock/proto"
)

// vitalCalls are never refused for want of quota: a lease that is not renewed or not released would
// cost all more than the request, and so would an effect with an unreported outcome.
var vitalCalls = map[string]string{
	"/v1/sessions/{id}/heartbeat": "POST",
	"/v1/leases/{id}/renew":       "POST",
	"/v1/leases/{id}/release":     "POST",
	"/v1/leases/{id}/ack":         "POST",
	"/v1/leases/{id}/nack":        "POST",
	"/v1/leases/{id}/ask":         "POST",
	"/v1/runs/{id}/end":           "POST",
	"/v1/tickets/{id}":            "DELETE",
	"/v1/sessions/{id}":           "DELETE",
	"/v1/effects/{id}/done":       "POST",
	"/v1/effects/{id}/unknown":    "POST",
	"/v1/effects/{id}/cancel":     "POST",
}

// vitalOp names the same of the stream, and OpAttach, which counts as a heartbeat.
func vitalOp(kind proto.OpKind) bool {
	switch kind {
	case proto.OpHeartbeat, proto.OpRenew, proto.OpRelease, proto.OpLeave, proto.OpClose, proto.OpAttach, proto.OpSettleEffect,
		proto.OpAckTask, proto.OpNackTask, proto.OpAskHuman:
		return true
	}
	return false
}

// overQuota answers a call that finds no quota left, and reports whether it did. A body of unknown
// length is asked for when it was read.
func (c *call) overQuota(method string) bool {
	if c.namespace == "" {
		return false // it is about no tenant
	}
	return c.refusedFor(amount{requests: 1, bytes: max(0, c.r.ContentLength)}, vitalCalls[c.route] == method)
}

// refusedFor answers a call if there is no quota left for a cost.
func (c *call) refusedFor(cost amount, vital bool) bool {
	l := c.s.limiter
	t := l.limits(c.r.Context(), c.namespace)
	if t == nil {
		return false
	}
	refusal := t.admit(l.now(), c.identity.name(), cost, vital)
	if refusal == nil {
		return false
	}
	c.refused(refusal, c.s.shard.At())
	return true
}

// overQuota answers an operation that finds no quota left, and reports whether it did.
func (st *stream) overQuota(o *proto.Op) bool {
	l := st.d.s.limiter
	changes := l.changes.Load()
	if st.noQuota && st.quotaAsOf == changes {
		return false
	}
	t := l.tenant(st.life, st.namespace)
	if t == nil {
		return false
	}
	st.noQuota, st.quotaAsOf = !t.limited.Load(), changes
	if st.noQuota {
		return false
	}
	refusal := t.admit(l.now(), st.identity.name(), amount{requests: 1, bytes: int64(o.Size())}, vitalOp(o.Kind))
	if refusal == nil {
		return false
	}
	st.refuseWith(o, refusal)
	return true
}
