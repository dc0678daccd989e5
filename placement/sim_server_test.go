package placement

import (
	"fmt"
	"time"
)

// simServer is a server with its seats, without the shards themselves.
type simServer struct {
	w        *simWorld
	number   int
	id       string // of this life
	weight   uint32
	reads    uint32
	draining bool
	life     int // 0 while it is down and has never been up

	up        bool
	paused    time.Duration // until when it stands still
	cut       time.Duration // until when it does not reach the store
	unwilling time.Duration // until when it fails to take any seat
	restart   time.Duration // when it comes up again; 0 if it does not
	leaveAt   time.Duration // when a draining server stops anyhow
	well      time.Duration // since when it is up, runs, reaches the store, and is a member

	planner *Planner
	holds   []bool
	closing []time.Duration // by shard: when it is closed; 0 if it is not closing
	resting bool

	pollAt, renewAt, seatsAt, actAt time.Duration // 0: not under way
	view                            View
	decision                        Decision
}

func (v *simServer) holder() simHolder { return simHolder{v.number, v.life} }

func (v *simServer) reaches() bool { return v.up && v.w.now >= v.paused && v.w.now >= v.cut }

// refuses reports whether the server takes no seats.
func (v *simServer) refuses() bool { return v.up && v.w.now < v.unwilling }

// recover ends the disturbances of a server that are over.
func (v *simServer) recover() {
	for _, until := range []*time.Duration{&v.paused, &v.cut, &v.unwilling} {
		if *until == 0 || v.w.now < *until {
			continue
		}
		if until == &v.unwilling && v.up {
			v.w.returns(v)
		}
		*until = 0
		v.w.epoch++
	}
}

// start begins a new life.
func (v *simServer) start() {
	v.life++
	v.id = v.holder().id()
	v.up, v.draining, v.resting = true, false, false
	v.paused, v.cut, v.unwilling, v.restart, v.seatsAt, v.actAt = 0, 0, 0, 0, 0, 0
	v.planner = NewPlanner(v.id, seatTTL)
	v.holds = make([]bool, len(v.w.store.seats))
	v.closing = make([]time.Duration, len(v.holds))
	v.renewAt, v.pollAt = v.w.now, v.w.now+v.w.between(0, pollEvery)
	v.well = v.w.now
	v.w.note("%s starts, reads %d, weight %d", v.id, v.reads, v.weight)
}

// stop ends a life in order: all seats are free at once.
func (v *simServer) stop() {
	for s := range v.holds {
		if v.holds[s] && v.reaches() {
			v.w.store.rise(s, v.holder())
		}
	}
	if v.reaches() {
		v.w.store.members[v.number].expires = v.w.now
	}
	v.up = false
	v.w.note("%s is down", v.id)
}

func (v *simServer) holding() (n int) {
	for _, holds := range v.holds {
		if holds {
			n++
		}
	}
	return n
}

// tick does what is due.
func (v *simServer) tick() {
	w, now := v.w, v.w.now
	switch {
	case !v.up:
		if v.restart != 0 && now >= v.restart {
			v.start()
			w.returns(v)
		}
		return
	case now < v.paused:
		return
	}
	if now >= v.renewAt {
		v.renewAt = now + w.jitter(renewal)
		v.renew()
	}
	v.close()
	if v.draining && (v.holding() == 0 || now >= v.leaveAt) {
		v.stop()
		return
	}
	if v.actAt != 0 && now >= v.actAt {
		v.actAt = 0
		v.act()
	}
	if v.seatsAt != 0 && now >= v.seatsAt {
		v.seatsAt = 0
		if v.reaches() {
			v.view.Seats = w.store.readSeats()
			for i := range v.view.Members {
				if m := &v.view.Members[i]; m.ID == v.id {
					m.Draining = v.draining
				}
			}
			v.decision = v.planner.Step(time.Unix(0, 0).Add(now), v.view)
			v.resting = v.decision.Resting
			w.checkDecision(v)
			v.actAt = now + w.latency()
		}
	}
	if now >= v.pollAt {
		v.pollAt = now + w.jitter(pollEvery)
		if v.reaches() && v.seatsAt == 0 && v.actAt == 0 {
			v.view.Members = w.store.readMembers()
			v.seatsAt = now + w.latency()
		}
	}
}

func (v *simServer) renew() {
	w := v.w
	if !v.reaches() {
		return
	}
	w.store.members[v.number] = simMember{
		Member{ID: v.id, Weight: v.weight, Draining: v.draining, Resting: v.resting, Reads: v.reads},
		w.now + memberTTL,
	}
	for s := range v.holds {
		if !v.holds[s] {
			continue
		}
		done, moved := w.store.sit(s, v.holder())
		if moved {
			w.moved(s, v)
		}
		if !done {
			v.holds[s], v.closing[s] = false, 0
			w.tally.Allowed += 2 // it went, and another one comes instead
			w.note("%s lost shard %d", v.id, s)
		}
	}
}

// close frees the seats of shards that are closed.
func (v *simServer) close() {
	for s, at := range v.closing {
		if at == 0 || v.w.now < at {
			continue
		}
		v.holds[s], v.closing[s] = false, 0
		if v.reaches() {
			v.w.store.rise(s, v.holder())
			v.w.note("%s gave up shard %d", v.id, s)
		}
	}
}

// act carries out a decision, which may be old when the server stood still.
func (v *simServer) act() {
	w := v.w
	for _, s := range v.decision.Take {
		if !v.reaches() || v.refuses() {
			break
		}
		done, moved := w.store.sit(s, v.holder())
		if !done {
			continue
		}
		if moved {
			w.moved(s, v)
		}
		v.holds[s] = true
		// A newer server sooner or later writes what older ones cannot read.
		if w.r.IntN(2) == 0 {
			w.store.seats[s].needs = max(w.store.seats[s].needs, v.reads)
		}
		w.note("%s took shard %d", v.id, s)
	}
	if s := v.decision.Give; s != None && v.holds[s] {
		v.closing[s] = w.now + stopTime
		w.gave(s, v)
	}
}

// between returns a time from a to b.
func (w *simWorld) between(a, b time.Duration) time.Duration {
	return a + time.Duration(w.r.Int64N(int64(b-a)+1))
}

func (w *simWorld) jitter(d time.Duration) time.Duration { return w.between(d*9/10, d*11/10) }

func (w *simWorld) latency() time.Duration { return w.between(time.Millisecond, 60*time.Millisecond) }

// note keeps a line of the run if it is to be printed.
func (w *simWorld) note(format string, args ...any) {
	if *simSeed != 0 {
		w.log = append(w.log, fmt.Sprintf("%8.3f ", w.now.Seconds())+fmt.Sprintf(format, args...))
	}
}
