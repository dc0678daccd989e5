package shard

// The uncontended fast path. A request that comes alone need not pass from goroutine to
// goroutine: each time the scheduler may have to wake a thread on another processor that sleeps,
// which takes longer than all that is to be done. So the goroutine that brings the request drives
// the shard itself, if owner and committer both stand still:
//
//	contended     reader ─► mailbox ─► owner ─► committer ─► writers     each a goroutine, at the same time
//	uncontended   reader:   mailbox,   step,    append,      answer      one after the other
//
// The owner's goroutine leaves its seat while it waits with nothing to do, and while the other
// group is spare nothing is committed. A driver takes the seat for its steps. For its append it
// takes the owner's group and leaves the spare one to the owner, which steps the next commands
// into it, and hands it over when the driver has put its own back. Work beyond one turn, or
// that is due or left over, is left to owner and committer as well.

// driveState is how far a driver has come with the commands that it has put into the mailbox.
//
//	state           event                                                    next
//	driveArrived    the seat is free: the driver takes it                    driveStepping
//	                the seat is taken                                        driveLeft
//	driveStepping   all that waits is stepped, within one turn               driveCommitting
//	                more waits, nothing is to be committed, or only the      driveLeft
//	                owner can go on
//	driveCommitting the group is committed: its answers are delivered        driveDone
type driveState uint8

const (
	driveArrived    driveState = iota
	driveStepping              // it has the seat, and with it the engine
	driveCommitting            // it has a group and has left the seat; the owner may step others
	driveDone                  // nothing is left to do
	driveLeft                  // the rest is left to the owner, which is woken for it
)

// drive executes and answers the waiting commands, or ensures that the owner does.
func (s *Shard) drive() {
	var g *group // the group that the driver commits, in driveCommitting
	for state := driveArrived; state != driveDone; {
		switch state {
		case driveArrived:
			if state = driveLeft; s.seat.TryLock() {
				state = driveStepping
			}
		case driveStepping:
			g = s.owner.stepOneTurn()
			s.seat.Unlock()
			if state = driveLeft; g != nil {
				state = driveCommitting
			}
		case driveCommitting:
			s.committer.serve(g)
			s.other.put(g)
			state = driveDone
		case driveLeft:
			s.mail.ring()
			state = driveDone
		}
	}
}

// stepOneTurn steps what waits and returns the group of it, for the caller to commit; or nil, if
// the owner has to look itself.
func (o *owner) stepOneTurn() *group {
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
