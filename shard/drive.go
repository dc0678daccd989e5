package shard

// A request that comes alone need not pass from goroutine to goroutine: each time the
// scheduler may have to wake a thread on another processor that sleeps, which takes longer
// than all that is to be done. So whoever brings it may do the owner's work and the
// committer's for it, if both stand still:
//
//	many   reader ─► mailbox ─► owner ─► committer ─► writers     each a goroutine, at the same time
//	alone  reader:   mailbox,   step,    append,      answer      one after the other
//
// The owner's goroutine leaves its seat while it waits with nothing to do, and while the other
// group is spare nothing is committed. A driver takes the seat for its steps. For its append
// it takes the owner's group and leaves the spare one to the owner, which steps the next
// commands into it, and hands it over when the driver has put its own back. What is more than
// one turn, or is due or left over, is left to owner and committer as well.

// drive carries out and answers what waits, or sees to it that the owner does.
func (s *Shard) drive() {
	if s.seat.TryLock() {
		g := s.owner.alone()
		s.seat.Unlock()
		if g != nil {
			s.committer.serve(g)
			s.other.put(g)
			return
		}
	}
	s.mail.ring()
}

// alone steps what waits and returns the group of it, for the caller to commit; or nil, if the
// owner has to look itself.
func (o *owner) alone() *group {
	s := o.s
	if !s.other.isSpare() || len(s.broken) > 0 || o.term != nil || o.closed {
		return nil
	}
	o.gather()
	for ticked := false; !ticked && o.ring.n > 0 && !o.cur.full() && s.other.isSpare(); {
		ticked = o.turn()
	}
	if o.ring.n > 0 || o.cur.empty() || !s.other.isSpare() { // a turn's worth may have been handed over
		return nil
	}
	g := o.cur
	o.change(s.other.take())
	if !o.cur.empty() { // it brings a snapshot
		s.mail.ring()
	}
	o.arm()
	return g
}
