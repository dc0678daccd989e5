package engine

// addDocuments adds the documents at the lease's keys to the answer of a command that asks for them and
// found a lease, which may have been granted without.
func (c *Acquire) addDocuments(e *Engine, eff *Effect) {
	if l := &eff.Lease; c.Documents && eff.Outcome == Granted && l.Reused && l.Documents == nil {
		if r := e.PendingWork.NS.Request(l.ID); r != nil {
			r.AddDocuments(l)
		}
	}
}
