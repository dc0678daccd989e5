package engine

// handReused adds them to the answer to a request that found a lease, which itself may not
// have been asked for with them.
func (e *Engine) handReused(c *Acquire, eff *Effect) {
	if l := &eff.Lease; c.Documents && eff.Outcome == Granted && l.Reused && l.Documents == nil {
		if r := e.PendingWork.NS.Request(l.ID); r != nil {
			r.AddDocuments(l)
		}
	}
}
