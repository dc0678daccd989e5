package server

// vitalCalls are never refused for want of quota: a lease that is not renewed or not
// given back would cost everybody more than the request.
var vitalCalls = map[string]string{
	"/v1/sessions/{id}/heartbeat": "POST",
	"/v1/leases/{id}/renew":       "POST",
	"/v1/leases/{id}/release":     "POST",
	"/v1/tickets/{id}":            "DELETE",
	"/v1/sessions/{id}":           "DELETE",
}

// overQuota answers a call for which there is no quota left, and reports whether it
// did. A body of unknown length is asked for when it was read.
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
	refusal := t.admit(l.now(), c.principal.Name, cost, vital)
	if refusal == nil {
		return false
	}
	c.refused(refusal, c.s.shard.At())
	return true
}
