package client

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
)

// Lease is a handle on a granted lease. Several handles of one flow may stand
// for the same lease. The client keeps the lease alive as long as the program has the handle, or its Context. One
// that the program has dropped without Release ends by its ttl, with a warning in the default log.
type Lease struct {
	g    *grant
	ctx  context.Context // that of Acquire
	hold *hold
	own  context.Context // the result of Context; Client.mu guards it

	once sync.Once
	err  error // of Release
}

// hold is what a grant knows of a handle. It does not refer to the handle, which the program may drop. Client.mu guards
// its fields.
type hold struct {
	g        *grant
	cancel   context.CancelCauseFunc // of the handle's Context; nil while that is not in use
	released bool
}

// grant is a lease from the server, with all its handles. Client.mu guards the fields that change.
type grant struct {
	c    *Client
	s    *session
	id   interlock.LeaseID
	flow string
	of   *grant // the membership that it is a part of

	member   *Member         // the member that has the lease, when it is a membership by Join
	info     interlock.Lease // as the server showed it last
	at       interlock.At
	packet   *interlock.Packet // the changes as of the grant
	warnings []string
	evidence Snapshot // the documents that came with it
	partial  bool     // there is more

	from    time.Time     // it was not granted before
	beatAt  time.Time     // when the last heartbeat was made that has renewed it
	beats   uint64        // how many heartbeats of the session had been made before it came: they do not count it
	capAt   time.Time     // when max_hold ends it; zero for never
	stallAt time.Time     // when it ends unless progress is reported; zero for never
	stall   time.Duration // how long it may be without progress; 0 for ever

	refs  int     // handles that were not released
	holds []*hold // of the handles with a Context in use
	why   *interlock.Error
	ended bool // the server said that nothing is left of it
	soft  signal
	yield signal

	issued atomic.Bool // the first handle was
	first  hold        // of that, in the same piece of memory
}

// handle returns a handle with a Context that has the values of ctx.
func (g *grant) handle(ctx context.Context) *Lease {
	h := &g.first
	if !g.issued.CompareAndSwap(false, true) {
		h = new(hold)
	}
	h.g = g
	l := &Lease{g: g, ctx: ctx, hold: h}
	runtime.AddCleanup(l, (*hold).dropped, h)
	return l
}

// dropped takes note that the program has no handle any more that it has not released: heartbeats leave the lease out
// from now on. It must not touch a channel or a timer, which in a test may belong to a bubble.
func (h *hold) dropped() {
	g := h.g
	g.c.mu.Lock()
	forgotten := !h.released && g.of == nil && g.c.closed == nil
	if forgotten {
		h.released = true
		g.refs--
		forgotten = g.refs == 0 && g.s.forget(g)
	}
	key, ttl := g.key(), g.info.TTL
	g.c.mu.Unlock()
	if forgotten {
		slog.Warn("a lease was dropped without a call of Release: it ends by its ttl", "key", string(key), "ttl", ttl)
	}
}

// forget leaves a lease out of the heartbeats, so that it ends by its ttl. It reports whether they had it. Client.mu is
// held.
func (s *session) forget(g *grant) bool {
	known := s.leases[g.id] == g
	if known {
		delete(s.leases, g.id)
	}
	return known
}

// update stores the server's present report of the lease.
func (g *grant) update(lease *interlock.Lease, packet *interlock.Packet, at interlock.At) {
	notes, yield := g.info.Notes, g.info.Yield
	g.info, g.at = *lease, at
	if packet != nil {
		g.packet = packet
	}
	if g.info.Notes == nil {
		g.info.Notes = notes
	}
	if g.info.Yield == nil {
		g.info.Yield = yield
	}
	g.stall = max(g.stall, g.info.StallIn)
	g.capAt, g.stallAt = time.Time{}, time.Time{}
	g.limits(&g.info)
	if g.c.cfg.SessionTTL == 0 {
		g.s.ttl = max(g.s.ttl, g.info.TTL)
	}
	if g.info.TTL < g.s.ttl {
		g.s.beatFor(g)
		g.c.look()
	}
}

// bring takes the documents that come with a lease. The reply's memory is used again.
func (g *grant) bring(r *proto.Reply, at interlock.At) {
	if r.Documents != nil {
		g.evidence, g.partial = Snapshot{Version: r.Version, Documents: cloneDocuments(r.Documents), At: at}, r.More
	}
}

// limits takes note of when max_hold and stall end the lease.
func (g *grant) limits(l *interlock.Lease) {
	if l.MaxHoldIn <= 0 && l.StallIn <= 0 {
		return
	}
	now := g.c.now()
	if l.MaxHoldIn > 0 {
		g.capAt = now.Add(l.MaxHoldIn)
		g.s.checkAt(g.capAt)
	}
	if l.StallIn > 0 {
		g.stallAt = now.Add(l.StallIn)
		g.s.checkAt(g.stallAt)
	}
	g.c.look()
}

// progressed takes note of a progress report that the server has confirmed and
// that was made at since.
func (g *grant) progressed(since time.Time) {
	if at := since.Add(g.stall); g.stall > 0 && at.After(g.stallAt) {
		g.stallAt = at
	}
}

// heardAt is since when the lease lives by the server's word: since a heartbeat, or its grant.
func (g *grant) heardAt() time.Time {
	if g.of != nil {
		return g.of.heardAt() // a part goes with its membership
	}
	if g.from.After(g.beatAt) {
		return g.from
	}
	return g.beatAt
}

// end is when the lease is over by this machine's clock, if nothing is heard of
// the server.
func (g *grant) end() time.Time {
	end := g.heardAt().Add(g.info.TTL)
	for _, t := range [...]time.Time{g.capAt, g.stallAt} {
		if !t.IsZero() && t.Before(end) {
			end = t
		}
	}
	return end
}

// giveUpAt is when this machine counts the lease as lost by itself. Whether there
// was progress only the server knows, since others may report it in this one's name,
// so a stall counts here only when the server does not answer.
func (g *grant) giveUpAt() time.Time {
	end := g.heardAt().Add(g.info.TTL)
	if !g.capAt.IsZero() && g.capAt.Before(end) {
		end = g.capAt
	}
	if g.stallAt.IsZero() {
		return end
	}
	at := g.heardAt().Add(g.info.TTL / 2) // a heartbeat is missing
	if at.Before(g.stallAt) {
		at = g.stallAt
	}
	if at.Before(end) {
		return at
	}
	return end
}

func (g *grant) key() interlock.Key { return keyOf(&g.info) }

func keyOf(l *interlock.Lease) interlock.Key {
	if len(l.Claims) == 0 {
		return ""
	}
	return l.Claims[0].Key
}

// lose reports the loss to the holder, once.
func (g *grant) lose(why *interlock.Error) {
	if g.why != nil {
		return
	}
	g.why = why
	for _, h := range g.holds {
		h.cancel(why)
	}
	g.holds = nil
}

// warned reports to the holder that the lease is in its soft tier.
func (g *grant) warned(l *interlock.Lease) {
	g.info.State, g.info.ExpiresIn, g.info.MaxHoldIn, g.info.StallIn = interlock.Soft, l.ExpiresIn, l.MaxHoldIn, l.StallIn
	g.limits(l)
	g.soft.give()
}

// asked reports to the holder that another request asks it to yield.
func (g *grant) asked(y *interlock.Yield) {
	if y != nil {
		g.info.Yield = y
		g.yield.give()
	}
}

// signal is sent once, to all its waiters. Client.mu guards it.
type signal struct {
	ch    chan struct{}
	given bool
}

func (s *signal) give() {
	if s.ch != nil && !s.given {
		close(s.ch)
	}
	s.given = true
}

func (s *signal) channel() <-chan struct{} {
	switch {
	case s.ch == nil && s.given:
		return closedChannel
	case s.ch == nil:
		s.ch = make(chan struct{})
	}
	return s.ch
}

var closedChannel = func() chan struct{} {
	ch := make(chan struct{})
	close(ch)
	return ch
}()

// handleKey is the handle that a context is of: as long as the program has the context, it has the handle.
type handleKey struct{}

// Context is cancelled when the lease is lost or released; context.Cause then returns an
// *interlock.Error with the reason. It has the values of the context passed to Acquire, and
// carries the lease's flow, but does not end with it.
func (l *Lease) Context() context.Context {
	l.g.c.mu.Lock()
	defer l.g.c.mu.Unlock()
	if l.own == nil {
		inner, cancel := context.WithCancelCause(WithFlow(context.WithoutCancel(l.ctx), l.g.flow))
		l.own, l.hold.cancel = context.WithValue(inner, handleKey{}, l), cancel
		switch {
		case l.g.why != nil:
			cancel(l.g.why)
		case l.hold.released:
			cancel(releasedHere(l.g))
		default:
			l.g.holds = append(l.g.holds, l.hold)
		}
	}
	return l.own
}

// look returns the present state of the lease. Its slices are shared.
func (l *Lease) look() interlock.Lease {
	l.g.c.mu.Lock()
	defer l.g.c.mu.Unlock()
	return l.g.info
}

// Fence is the number to pass along wherever the agent writes. Convert, Arrive and
// Resume change it.
func (l *Lease) Fence() interlock.Fence {
	l.g.c.mu.Lock()
	defer l.g.c.mu.Unlock()
	return l.g.info.Fence
}

// ID is the lease's id: a secret of its holder.
func (l *Lease) ID() interlock.LeaseID { return l.g.id }

// Claims returns the lease's claims.
func (l *Lease) Claims() []interlock.Claim { return slices.Clone(l.look().Claims) }

// Key is the first key that the lease covers: of a request for any one, the one
// that it got.
func (l *Lease) Key() interlock.Key {
	info := l.look()
	return keyOf(&info)
}

// Flow is the flow that holds the lease.
func (l *Lease) Flow() string { return l.g.flow }

// Notes returns the notes of earlier holders, oldest first: other agents' text.
func (l *Lease) Notes() []interlock.Note { return slices.Clone(l.look().Notes) }

// Changed reports whether another holder that could write held a claimed key while this request
// waited, or while the lease was parked, or there is a Packet: read again before thinking.
func (l *Lease) Changed() bool { return l.look().Changed }

// Packet describes the documents at the lease's keys that changed after Request.AsOf, or while
// the request waited. It is nil if none did. Its Message is ready for a prompt.
func (l *Lease) Packet() *interlock.Packet {
	l.g.c.mu.Lock()
	defer l.g.c.mu.Unlock()
	return l.g.packet
}

// Documents returns the documents at the lease's keys as of when the server handed it over
// last, if Request.Documents asked for them (see interlock.Lease.Documents): first those of the
// claims, absent ones among them, then those below. A commit with this lease, and with Version
// as AsOf, replaces exactly these or is refused. A document with a Size and without a Body was
// too large; more reports that there are others: read those with Client.Documents or
// Client.List. Convert, Arrive and Resume bring them anew.
func (l *Lease) Documents() (s Snapshot, more bool) {
	l.g.c.mu.Lock()
	defer l.g.c.mu.Unlock()
	s = l.g.evidence
	s.Documents = slices.Clone(s.Documents)
	return s, l.g.partial
}

// Moved returns the keys of a resumed lease that make Changed true.
func (l *Lease) Moved() []interlock.Key { return slices.Clone(l.look().Moved) }

// Decision returns a person's answer to the question of the lease's last parking; nil if there
// was no question, or the lease was resumed without an answer.
func (l *Lease) Decision() *interlock.Decision {
	if d := l.look().Decision; d != nil {
		again := *d
		return &again
	}
	return nil
}

// Generation counts how often the lease's barrier has opened.
func (l *Lease) Generation() uint64 { return l.look().Generation }

// Info returns the lease as the server showed it last, times included, without the contents of
// Packet.
func (l *Lease) Info() interlock.Lease {
	info := l.look()
	info.Claims, info.Notes, info.Moved = slices.Clone(info.Claims), slices.Clone(info.Notes), slices.Clone(info.Moved)
	info.Parts = slices.Clone(info.Parts)
	return info
}

// At returns the index of the journal where the lease was granted, found or changed last.
func (l *Lease) At() interlock.At {
	l.g.c.mu.Lock()
	defer l.g.c.mu.Unlock()
	return l.g.at
}

// Warnings are the server's remarks on the request besides its answer, such as that a key is
// spelled almost like another one.
func (l *Lease) Warnings() []string { return slices.Clone(l.g.warnings) }

// Warned is closed when the server reports that the lease is in its soft tier: a third of its
// time is left and heartbeats did not arrive, or progress was not reported, or max_hold comes
// near. Left returns how long there is, and the times of Info show which of these it is.
func (l *Lease) Warned() <-chan struct{} {
	l.g.c.mu.Lock()
	defer l.g.c.mu.Unlock()
	return l.g.soft.channel()
}

// Left is how long the lease lives on by this machine's clock, if nothing more is
// heard of the server and no progress is reported.
func (l *Lease) Left() time.Duration {
	l.g.c.mu.Lock()
	defer l.g.c.mu.Unlock()
	return max(0, l.g.end().Sub(l.g.c.now()))
}

// Asked is closed when another request asks the holder to yield: to finish and release, or to
// convert to less. Yield names the asker and its purpose. Where the key's pattern lets the
// other one take the key, the lease is in its grace then and its Context is over.
func (l *Lease) Asked() <-chan struct{} {
	l.g.c.mu.Lock()
	defer l.g.c.mu.Unlock()
	return l.g.yield.channel()
}

// Yield returns the last request to yield, or nil. Its purpose is another agent's text.
func (l *Lease) Yield() *interlock.Yield {
	y := l.look().Yield
	if y == nil {
		return nil
	}
	clone := *y
	return &clone
}

// Err is nil while the lease is held, as far as this client can tell, and then the
// *interlock.Error with the reason why it is not. It looks at the clock, so that it is right at
// once after the machine has slept.
func (l *Lease) Err() error {
	l.g.c.mu.Lock()
	defer l.g.c.mu.Unlock()
	l.g.lookAtClock()
	switch {
	case l.g.why != nil:
		return l.g.why
	case l.hold.released:
		return releasedHere(l.g)
	}
	return nil
}

// lookAtClock drops the lease if it is over by this machine's clock. mu is held.
func (g *grant) lookAtClock() {
	if g.s != g.c.sess || g.s.leases[g.id] != g {
		return
	}
	if now := g.c.now(); !now.Before(g.giveUpAt()) {
		g.c.giveUp(g.s, now)
	}
}

// reason returns why the lease was lost if err only reports that it was released after that: the client
// releases what it has lost. Else it returns err.
func (l *Lease) reason(err error) error {
	refusal, ok := errors.AsType[*interlock.Error](err)
	if !ok || refusal.Code != interlock.CodeReleased && refusal.Code != interlock.CodeUnknownLease {
		return err
	}
	l.g.c.mu.Lock()
	defer l.g.c.mu.Unlock()
	if l.g.why != nil {
		return l.g.why
	}
	return err
}

// met takes note that the release of the lease met its end. mu is not held.
func (g *grant) met(err error) {
	refusal, ok := errors.AsType[*interlock.Error](err)
	if !ok {
		return
	}
	switch refusal.Code {
	case interlock.CodeExpired, interlock.CodeTaken, interlock.CodeRevoked, interlock.CodePreempted,
		interlock.CodeUnknownLease:
		g.c.mu.Lock()
		defer g.c.mu.Unlock()
		g.lose(refusal)
	}
}

func releasedHere(g *grant) *interlock.Error {
	return &interlock.Error{
		Code: interlock.CodeReleased, Key: g.key(), At: g.at, Message: "the lease on " + string(g.key()) + " was released",
	}
}

// Release returns the handle; the last handle of a lease frees it. Further calls return the
// result of the first one. An *interlock.Error reports that the lease was already gone,
// and why (expired, taken, revoked); with CodeOutcomeUnknown ctx ended before the answer came,
// and the release continues in the background.
func (l *Lease) Release(ctx context.Context, out Outcome) error {
	l.once.Do(func() { l.err = l.release(ctx, out) })
	return l.err
}

func (l *Lease) release(ctx context.Context, out Outcome) error {
	c, g := l.g.c, l.g
	k := c.newCall(proto.OpRelease)
	k.op.ID = g.id
	out.report(k)
	c.mu.Lock()
	g.lookAtClock()
	l.hold.released = true
	g.refs--
	if l.hold.cancel != nil && g.why == nil {
		l.hold.cancel(releasedHere(g))
		g.holds = slices.DeleteFunc(g.holds, func(other *hold) bool { return other == l.hold })
	}
	var over error
	switch {
	case g.refs > 0:
		over = errStillHeld
	case g.why != nil && (g.ended || g.s != c.sess):
		over = g.why
	case c.closed != nil:
		over = ErrClosed
	}
	if over != nil {
		c.mu.Unlock()
		c.free(k)
		if over == errStillHeld {
			return nil
		}
		return over
	}
	delete(g.s.leases, g.id)
	if g.isMember() {
		g.s.disown(g, releasedHere(g), true)
	}
	g.s.leaving[g.id] = struct{}{}
	c.submit(k)
	c.mu.Unlock()
	if _, ended := k.next(ctx); ended {
		if was, _ := c.forget(k); was != done {
			return unknown(ctx, "the release of "+string(l.Key()))
		}
	}
	err := k.err
	c.free(k)
	g.met(err)
	return err
}

// report writes it into a release, as far as the server takes it.
func (out *Outcome) report(k *call) {
	k.op.Outcome, k.op.Note = clip(out.Outcome, interlock.MaxNameBytes), clip(out.Note, interlock.MaxNoteBytes)
}

var errStillHeld = errors.New("another handle holds the lease")
