package shard

import (
	"errors"
	"sync"
	"time"

	"github.com/interlockdev/interlock/journal"
)

// parkedFor is how long a shard waits before it tries again when its journal has no room at all. A journal that has
// room for the record of a new engine, and not for the next group, is tried after twice the time each time, up to
// parkedMost: each try is a replay.
const (
	parkedFor  = time.Second
	parkedMost = 4 * time.Second
)

// rebuild throws the engine away, which is ahead of the journal because an append found no space, or no
// descriptor for a new file, and makes it anew from the journal. The callers of the group that failed, and of
// the one stepped meanwhile, get that error from the committer.
//
// The journal may be so full that not even the record that the engine began anew
// finds room. Then the shard is parked: every command is refused with
// CodeNoSpace and time stands still, so that no lease ends while its holder
// cannot be heard.
func (o *owner) rebuild(why error) error {
	s := o.s
	s.mail.freeze()
	o.quiesce() // commands that were stepped ahead are refused: their generation is doomed
	s.log.Warn("the journal is full: the last group is refused, and the engine is rebuilt from the journal", "error", why)

	o.scarce = why
	o.term = new(group) // keeps its entry until there is room for it
	if again := o.now < o.fullUntil; again {
		o.unread, o.parked = true, min(2*o.parked, parkedMost)
		return nil
	}
	o.parked = parkedFor
	return o.reload()
}

// reload makes the engine from the journal, unless there is no descriptor to read it with:
// then the shard is parked.
func (o *owner) reload() error {
	s := o.s
	if _, err := o.load(s.ctx, nil); errors.Is(err, journal.ErrNoFiles) {
		o.unread = true
		return nil
	} else if err != nil {
		return err
	}
	o.unread = false
	o.generation++
	o.cur.begin(o.generation, s.journal.Tail()+1)
	o.recover(o.term, 0)
	return o.resume()
}

// resume continues after a rebuild if there is room for the record of it, and else leaves the
// shard parked.
func (o *owner) resume() error {
	s := o.s
	if o.unread {
		return o.reload()
	}
	if err := s.appendAll(o.term); errors.Is(err, journal.ErrNoSpace) {
		return nil
	} else if err != nil {
		return err
	}
	s.mail.thaw(o.eng.Now())
	o.cur.begin(o.generation, o.term.next())
	o.term = nil
	if !errors.Is(o.scarce, journal.ErrNoFiles) {
		o.fullUntil = o.eng.Now().Add(fullFor)
	}
	o.armed = 0
	s.log.Warn("engine rebuilt", "index", s.At().Index)
	s.resets.call()
	s.mail.ring()
	return nil
}

// unpark tries again after the shard was parked for a while. It reports whether the shard
// continues.
func (o *owner) unpark(closed bool) bool {
	if closed {
		return o.fail(errNoRoomToStop)
	}
	return o.fail(o.resume())
}

// park refuses commands for a while. It reports whether no more can come.
func (o *owner) park() (closed bool) {
	timer := time.NewTimer(o.parked)
	defer timer.Stop()
	for {
		if o.refuseWaiting(refusalFor(o.scarce)) {
			return true
		}
		select {
		case <-timer.C:
			return false
		case <-o.s.mail.wake:
		case <-o.s.ctx.Done():
			return true
		}
	}
}

// errNoRoomToStop ends a shard that is closed while it is parked. All that was
// answered is in the journal.
var errNoRoomToStop = errors.New("shard: closed while the journal had no space")

// resets are the functions to call after a rebuild.
type resets struct {
	mu    sync.Mutex
	funcs []func()
}

func (r *resets) add(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.funcs = append(r.funcs, f)
}

func (r *resets) call() {
	r.mu.Lock()
	funcs := r.funcs[:len(r.funcs):len(r.funcs)]
	r.mu.Unlock()
	for _, f := range funcs {
		f()
	}
}

// OnReset registers a function to call when the engine was rebuilt within this term, because the
// journal had no space. Leases, sessions, tickets and request ids are as durable as ever, but the
// engine has forgotten its listeners: no attached waiter gets a second answer, and no session gets
// pushes, until they Poll or Attach again. So an API ends its streams (their clients come back,
// attach, and repeat what was not answered) and polls for its waiting calls.
//
// f is called after the last answer of the engine that was thrown away and before
// the first one of the new engine. It must not block and must not call the shard
// synchronously.
func (s *Shard) OnReset(f func()) { s.resets.add(f) }
