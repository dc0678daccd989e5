package server

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/proto"
)

// stream is one client's session stream, over whatever link. Three goroutines
// meet in it:
//
//	reader     link.Recv ─► commands ─► the shard
//	committer  operation.Deliver ─► out            (of the shard; never blocks)
//	writer     out ─► replies ─► link.Send         (outlet.go)
//
// When a client sends little, the reader does all of that: see ahead.
//
// The reader stops reading while too much is unanswered or unsent, so a client that sends
// faster than it reads is held back by its own link. Unsolicited effects (pushes, the ends of
// waits) are bounded too: beyond that the stream is cut, and the client finds everything again
// when it comes back.
type stream struct {
	d         *Streams
	link      proto.ServerLink
	number    uint64 // engine.Head.Link
	namespace interlock.Namespace
	identity  Identity

	// Only the reader uses these.
	acked   map[uint32]uint64 // by slot
	cmds    []engine.Command
	handled bool // the operation at hand was answered, or made a command that will be
	random  entropy
	last    uint32 // the slot of the last look-up, and its session
	lastID  interlock.SessionID

	noQuota   bool   // the namespace has no quota
	quotaAsOf uint64 // as of so many changes (limiter.changes)

	// ahead, if it is not nil, tells the reader that nothing more has arrived than what it has
	// read. Then it makes the shard carry that out in its own goroutine, if the shard stands still,
	// and sends the answers that come of it itself: a lone request passes through no other
	// goroutine: each would be a thread to be woken.
	ahead proto.Peeker

	// spinner, if it is not nil, is read without sleeping for a moment when no other stream
	// has brought anything to the shard for a while: a lone client often asks again at once after
	// an answer. exclusive reports whether that is so still. came is the shard's count when the
	// stream last brought something, and inRow how often it did since another did.
	spinner   proto.SpinReader
	exclusive func() bool
	came      uint64
	inRow     int

	wake chan struct{}   // something is in out
	life context.Context // until cut
	end  context.CancelFunc

	outlet outlet

	mu      sync.Mutex
	room    sync.Cond // the reader may go on
	slots   map[uint32]interlock.SessionID
	out     []outgoingEffect
	present bool // the reader will send what is in out
	pending int  // operations without a first answer
	queries int  // of those, how many only read
	bulk    int  // bytes of documents on their way, in either direction
	reason  *interlock.Error
	ended   bool
}

// outgoingEffect is an effect on its way to the client.
type outgoingEffect struct {
	eff engine.Effect
	address
	bulk int // bytes of documents in it
}

// address returns the call that an effect answers.
type address struct {
	at   interlock.At
	kind proto.OpKind // 0 for a query and for input that never became a command
	slot uint32
	seq  uint64       // 0 for a push
	read *queryResult // the result of a query

	brief   bool // without advice where nothing is refused
	asAsked bool // without what of the lease was asked for
}

func newStream(d *Streams, link proto.ServerLink, namespace interlock.Namespace, who Identity) *stream {
	st := &stream{
		d: d, link: link, number: d.s.nextLink(), namespace: namespace, identity: who,
		acked: map[uint32]uint64{}, slots: map[uint32]interlock.SessionID{},
		wake: make(chan struct{}, 1),
	}
	st.life, st.end = context.WithCancel(context.Background())
	st.room.L = &st.mu
	if ahead, ok := link.(proto.Peeker); ok {
		if _, ok = ahead.Ready(); ok {
			st.ahead = ahead
			st.spinner, _ = link.(proto.SpinReader)
			st.exclusive = func() bool { return d.s.shard.Came() == st.came }
		}
	}
	return st
}

// run serves the stream until it ends, and returns why.
func (st *stream) run() *interlock.Error {
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		st.write()
	}()
	st.cut(st.read())
	<-wrote
	st.detach()
	return st.reason
}

// cut ends the stream. Only the first reason counts; nil means that the client
// left.
func (st *stream) cut(reason *interlock.Error) {
	st.mu.Lock()
	first := !st.ended
	if first {
		st.d.s.flight.count(st.namespace, -st.bulk)
		st.ended, st.reason, st.out, st.bulk = true, reason, nil, 0
		st.end()
		st.room.Broadcast()
	}
	st.mu.Unlock()
	if first {
		st.link.Close(reason)
	}
}

// read carries out the client's operations. It returns why it stopped.
func (st *stream) read() *interlock.Error {
	var frame proto.ClientFrame
	for {
		if err := st.link.Recv(&frame); err != nil {
			if refusal, ok := errors.AsType[*interlock.Error](err); ok {
				return refusal
			}
			return nil
		}
		if len(frame.Ops) > 0 && !st.waitForRoom(len(frame.Ops)) {
			return nil
		}
		for i := range frame.Ops {
			st.handled = false
			if refusal := st.command(&frame.Ops[i]); refusal != nil {
				return refusal
			}
			if !st.handled {
				st.unanswered(&frame.Ops[i])
			}
		}
		frame.Reset()
		if st.more() {
			continue
		}
		if refusal := st.submit(); refusal != nil {
			return refusal
		}
	}
}

// more reports whether the next frame has arrived too and can go with the frames that were read.
func (st *stream) more() bool {
	if st.ahead == nil || len(st.cmds) >= maxTogether {
		return false
	}
	yes, _ := st.ahead.Ready()
	return yes
}

// waitForRoom waits until n more operations may be on their way; ok is false when
// the stream has ended.
func (st *stream) waitForRoom(n int) (ok bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for !st.ended &&
		(st.pending > maxPending || st.bulk > st.d.s.flight.streamRoom(st.namespace) || len(st.out) > st.d.cfg.MaxOutgoing/2) {
		st.room.Wait()
	}
	st.pending += n
	return !st.ended
}

// submit hands over the commands of one read, all at once unless the shard has too much to do.
// Then they go in smaller pieces, and the stream is simply not read on: the client notices that
// its frames do not get through, instead of being asked to send them again.
func (st *stream) submit() *interlock.Error {
	cmds, piece, pause := st.cmds, len(st.cmds), time.Millisecond
	for len(cmds) > 0 {
		n := min(len(cmds), piece)
		err := st.hand(cmds[:n])
		if err == nil {
			cmds, pause = cmds[n:], time.Millisecond
			continue
		}
		refusal, ok := errors.AsType[*interlock.Error](err)
		if !ok {
			refusal = &interlock.Error{Code: interlock.CodeInternal, Message: err.Error()}
		}
		if refusal.Code != interlock.CodeOverloaded {
			return refusal
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-st.life.Done():
			timer.Stop()
			return nil
		}
		piece, pause = max(1, n/2), min(2*pause, 100*time.Millisecond)
	}
	clear(st.cmds)
	st.cmds = st.cmds[:0]
	return nil
}

// fewCommands are as many as an agent that is alone has in a frame: what it releases, and what it
// asks for next.
const fewCommands = 2

// The reads of a stream spin after spinAfter frames of its own in a row, but for every
// spinFrames-th: that one is waited for asleep. A reader that never sleeps keeps its processor,
// and the runtime then looks at other connections every 10 ms only, so they would wait for that.
const (
	spinAfter  = 8
	spinFrames = 8
)

// hand hands commands to the shard. Effects delivered while the reader is there are sent by the
// reader when it comes back.
func (st *stream) hand(cmds []engine.Command) error {
	if st.ahead == nil {
		return st.d.s.shard.Submit(cmds...)
	}
	st.mu.Lock()
	st.present = true
	st.mu.Unlock()
	err := st.d.s.shard.Execute(cmds...)
	st.mu.Lock()
	st.present = false
	waiting := len(st.out) > 0
	st.mu.Unlock()
	if waiting {
		st.flush()
	}
	if st.spinner != nil {
		before := st.came
		if st.came = st.d.s.shard.Came(); st.came != before+1 {
			st.inRow = 0
		}
		if st.inRow++; st.inRow > spinAfter && st.inRow%spinFrames != 0 && len(cmds) <= fewCommands {
			st.spinner.Spin(st.exclusive)
		}
	}
	return err
}

// detach reports to the engine that this link listens no more. A slot that is bound later, by the answer to an open,
// needs no such report: nothing has attached to it.
func (st *stream) detach() {
	st.mu.Lock()
	bound := maps.Clone(st.slots)
	st.mu.Unlock()
	for slot, id := range bound {
		st.d.s.insist(&engine.Detach{Head: st.head(slot, id)})
	}
}

func (st *stream) head(slot uint32, id interlock.SessionID) engine.Head {
	return engine.Head{
		Namespace: st.namespace, Link: st.number, Session: id, Actor: st.identity.name(), Principal: st.identity.Principal,
	}
}

// session finds the session of a slot.
func (st *stream) session(slot uint32) (id interlock.SessionID, ok bool) {
	if slot == 0 {
		return id, true
	}
	if slot == st.last {
		return st.lastID, true
	}
	st.mu.Lock()
	id, ok = st.slots[slot]
	st.mu.Unlock()
	if ok {
		st.last, st.lastID = slot, id
	}
	return id, ok
}

// bind assigns a slot to a session, once.
func (st *stream) bind(slot uint32, id interlock.SessionID) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if have, taken := st.slots[slot]; taken {
		return have == id
	}
	if slot == 0 || len(st.slots) >= maxSlots {
		return false
	}
	st.slots[slot] = id
	return true
}

const (
	// maxPending is how many operations may be unanswered before the stream is not
	// read on.
	maxPending = 8192
	// maxTogether is how many operations of several frames are handed over together.
	maxTogether = 64
	// maxQueries is how many of them may be queries: their answers cost memory that their questions
	// do not.
	maxQueries = 64
	// maxBulk is above how many bytes of documents on their way a stream is not read on.
	maxBulk = 16 << 20
	// maxSlots is how many sessions one stream may carry.
	maxSlots = 1024
	// maxReplies bounds the replies of one frame, so that also the largest of them
	// together stay far below what a client accepts.
	maxReplies = 1024
)

// deliver queues a copy of an effect for the client. It never blocks: the shard's
// committer calls it.
func (st *stream) deliver(eff *engine.Effect, to address, first bool) {
	bulk := weigh(eff, to.read)
	st.mu.Lock()
	if first {
		st.pending--
		if st.pending == maxPending {
			st.room.Signal()
		}
	}
	if to.read != nil {
		st.queries--
		st.room.Signal()
	}
	if st.ended {
		st.mu.Unlock()
		return
	}
	st.bulk += bulk
	st.d.s.flight.count(st.namespace, bulk)
	n := len(st.out) + 1
	st.out = slices.Grow(st.out, 1)[:n]
	d := &st.out[n-1] // empty: take clears what was there
	d.eff, d.address, d.bulk = *eff, to, bulk
	alone := n == 1 && !st.present
	st.mu.Unlock()
	switch {
	case n > st.d.cfg.MaxOutgoing:
		st.cut(slowReader(n))
	case alone:
		st.ring()
	}
}

// carry counts bytes of documents that are on their way from now on, or not any more.
func (st *stream) carry(n int) {
	if n == 0 {
		return
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.ended {
		return
	}
	st.bulk += n
	st.d.s.flight.count(st.namespace, n)
	st.room.Signal()
}

func (st *stream) ring() {
	select {
	case st.wake <- struct{}{}:
	default:
	}
}

// entropy makes random ids and numbers out of one larger read.
type entropy struct {
	buf  [512]byte
	left int
}

func (e *entropy) id() (id [16]byte) {
	if e.left < len(id) {
		_, _ = rand.Read(e.buf[:])
		e.left = len(e.buf)
	}
	copy(id[:], e.buf[len(e.buf)-e.left:])
	e.left -= len(id)
	return id
}

// bits returns a random number.
func (e *entropy) bits() uint64 {
	id := e.id()
	return binary.NativeEndian.Uint64(id[:])
}
