package shard

// A request that comes alone need not pass from goroutine to goroutine: each time the
// scheduler may have to wake a thread on another processor that sleeps, which takes longer
// than all that is to be done. So whoever brings it may do the owner's work and the
// committer's for it, if both stand still:
//
//	many   reader ─► mailbox ─► owner ─► committer ─► writers     each a goroutine, at the same time
//	alone  reader:   mailbox,   step,    append,      answer      one after the other
//
// The owner's goroutine leaves its seat while it waits with nothing to do, and a group in
// Shard.free says that nobody commits. A driver takes the seat for its steps. For its append
// it leaves the free group to the owner, who may step the next commands into it, and hands
// it over when the driver's is free; for that it is woken by what comes meanwhile. What is
// more than one turn, or is due or left over, is left to owner and committer as well.

// drive carries out and answers what waits, or sees to it that the owner does.
func (s *Shard) drive() {
	if s.seat.TryLock() {
		g := s.owner.alone()
		s.seat.Unlock()
		if g != nil {
			s.committer.serve(g)
			return
		}
	}
	s.mail.ring()
}

// alone steps what waits and gives the group of it, which the caller commits; or nil, and
// the owner has to look itself.
func (o *owner) alone() *group {
	s := o.s
	if o.away() || len(s.free) == 0 || len(s.broken) > 0 || o.term != nil || o.closed {
		return nil
	}
	o.gather()
	for ticked := false; !ticked && o.ring.n > 0 && !o.cur.full() && len(s.free) > 0; {
		ticked = o.turn()
	}
	if o.ring.n > 0 || o.cur.empty() {
		return nil
	}
	select {
	case spare := <-s.free:
		g := o.cur
		o.driven = true
		o.change(spare)
		if !o.cur.empty() { // it brings a snapshot
			s.mail.ring()
		}
		o.arm()
		return g
	default: // a turn's worth was stepped and given to the committer
		return nil
	}
}
