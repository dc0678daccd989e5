package engine

// forgetEnded frees the memory of requests that have ended.
func (e *Engine) forgetEnded() {
	for i, r := range e.Ended {
		e.Ended[i] = nil
		e.Discard(r)
	}
	e.Ended = e.Ended[:0]
}
