package store

import (
	"cmp"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// coveredBy returns the lease of r's own flow that already covers all of r's claims, or nil.
func (r *Request) coveredBy() *Request {
	f := r.Flow()
	if f == nil || len(f.Leases) == 0 {
		return nil
	}
	var best *Request
	consider := func(l *Request) {
		if l.Phase == Held && l.Share == nil && l.gives(r.Claims()) && (best == nil || l.Num < best.Num) {
			best = l
		}
	}
	for i := range r.Needs() {
		n := r.Needs()[i].Node
		switch {
		case n.First == nil || !r.FlowState.At(n).holds():
		case n.hands == r.FlowState || n.holders() < len(f.Leases): // however many leases it has elsewhere
			for h := n.First; h != nil; h = h.Next {
				*r.NS.Agenda.objects++
				if h.Req.FlowState == r.FlowState {
					consider(h.Req)
				}
			}
		default: // however many others have leases here
			*r.NS.Agenda.objects += len(f.Leases)
			for _, l := range f.Leases {
				consider(l)
			}
			return best
		}
	}
	return best
}

// gives reports whether r's claims cover all of claims.
func (r *Request) gives(claims []interlock.Claim) bool {
	for _, want := range claims {
		good := false
		for _, have := range r.Claims() {
			good = good || have.Key == want.Key && r.NS.coversClaim(have, want) ||
				keypath.IsBelow(string(want.Key), string(have.Key)) && lockmode.Below(have.Mode) != 0 &&
					lockmode.Covers(lockmode.Below(have.Mode), lockmode.Lock(want.Mode)) && !want.Mode.Counts()
		}
		if !good {
			return false
		}
	}
	return true
}

// AttemptAt returns the id of the task of attempt r, zero if r is none.
func (r *Request) AttemptAt() (id interlock.TaskID) {
	switch {
	case r.Task != nil:
		return r.Task.ID
	case r.EndCause != nil:
		return r.EndCause.Task
	}
	return id
}

// ClaimNode returns the node of the claim to which need i belongs.
func (r *Request) ClaimNode(i int) *Node { return r.NS.NodeAt(string(r.ClaimAt(i).Key)) }

// CountEarlier counts others' waiters ahead of r that may block one of its needs.
func (r *Request) CountEarlier(m *Need) (n int) {
	l := m.Node.Line
	if l == nil {
		return 0
	}
	for c := l.First; c != nil; c = c.Next {
		if c.against(m.Mode, m.Counts) && !c.IsAsideFor(r) {
			n += c.CountBefore(r)
		}
	}
	if t := r.FlowState.At(m.Node); t.waiting() < 2 {
		return n
	}
	for _, w := range r.FlowState.Waits {
		if o := w.needAt(m.Node); o != nil && w != r && Before(w, r) && lockmode.Conflicts[m.Mode].Has(o.Mode) {
			n -= int(w.placeOf(o).heads())
		}
	}
	return n
}

// Position returns the queue position that r has, or would have: 1 is the next to be granted. Of
// alternatives it is that of the best; an earlier waiter counts once for each of its alternatives at the key or below.
func (r *Request) Position() (best int) {
	for way := range r.EachAlternative {
		at := 1
		for i := range way.Needs() {
			if m := &way.Needs()[i]; m.Claimed {
				at = max(at, 1+way.CountEarlier(m))
			}
		}
		if best == 0 || at < best {
			best = at
		}
	}
	return best
}

// NoteGrant counts a new lease that may write.
func (r *Request) NoteGrant(waited bool) {
	s := r.NS
	if s.Documents.Version == 0 || r.Share != nil {
		return
	}
	var all []*Contention
	for _, c := range r.Claims() {
		if lockmode.Writing.Has(c.Mode) {
			all = s.Among(all, c.Key)
		}
	}
	for _, k := range all {
		k.Count(&k.Leases)
		if waited {
			k.Count(&k.Waited)
		}
	}
}

// Count adds one to one of k's counts.
func (k *Contention) Count(n *uint64) {
	if *n++; *n > fadeAt {
		for _, n := range k.counts() {
			*n /= 2
		}
	}
}

// AnswerListener is a caller that waits for the answer about a parked lease.
type AnswerListener struct {
	Caller Caller
	Link   uint64
}

// StopListening ends the waits over a link for the answer about r.
func (r *Request) StopListening(link uint64) {
	if d := r.Rare; d != nil && link != 0 {
		d.Listeners = slices.DeleteFunc(d.Listeners, func(h AnswerListener) bool { return h.Link == link })
	}
}

// AsksHuman reports whether the lease is parked and a person is to decide about it.
func (r *Request) AsksHuman() bool {
	return r.IsParked() && r.Rare.Parking.Asks && r.Rare.Decision == nil
}

// evolveDecided folds a person's answer about a lease, which a snapshot may have of one that
// was resumed since.
func (r *Request) evolveDecided(ev *record.Event) error {
	v := interlock.Verdict(ev.Op)
	if v != interlock.Approved && v != interlock.Denied || r.IsOver() {
		return errUnknown
	}
	r.deal().Decision = &interlock.Decision{Verdict: v, By: ev.Agent, Principal: ev.Actor, Reason: ev.Note}
	return nil
}

// await adds a declared wait to the list of the session that it waits for.
func (r *Request) await() {
	r.Pos = int32(len(r.Target.Awaiting))
	r.Target.Awaiting = append(r.Target.Awaiting, r)
}

// unawait takes it off again.
func (r *Request) unawait() {
	list := r.Target.Awaiting
	last := len(list) - 1
	list[r.Pos] = list[last]
	list[r.Pos].Pos = r.Pos
	list[last] = nil
	r.Target.Awaiting = list[:last]
}

// BehindAt reports whether a task of its own queue blocks a task at one of its needs.
func (r *Request) BehindAt(m *Need) bool {
	for c := range m.Facing {
		if c.Queue == r.Task.Queue && Before(c.First().Req, r) &&
			(lockmode.Conflicts[m.Mode].Has(c.Mode) || r.Short(m) != Enough) {
			return true
		}
	}
	return false
}

// IsBare reports whether only polls of its ticket keep r, which waits, alive.
func (r *Request) IsBare() bool { return r.Session() == nil && r.Wait.Caller == nil && r.Share == nil }

// OfferTTL is how long an offer stays open.
func (r *Request) OfferTTL() time.Duration {
	if r.Session() != nil {
		return interlock.OfferTTL
	}
	return interlock.BareOfferTTL
}

// WaitEnd is when r must leave the line, never when it may wait for ever.
func (r *Request) WaitEnd() Time {
	if r.MaxWait == 0 {
		return record.Never
	}
	return r.Arrived().Add(r.MaxWait)
}

// MayWrite reports whether a lease is in its holder's hands. A part is not when its
// member is over.
func (r *Request) MayWrite() bool {
	if p := r.Share; p != nil && (p.Member == nil || p.Member.Phase == Closed) {
		return false
	}
	return r.Phase == Held || r.Phase == InGrace
}

func (r *Request) ownRank() int32 { return int32(r.Priority) + BaseRank }

// Standing is the rank with which a request that is not in line yet would wait.
func (r *Request) Standing() int32 {
	if r.FlowState == nil || r.NS.Ranked == 0 && r.Priority >= 0 { // all others have the base rank
		return r.ownRank()
	}
	return max(r.ownRank(), r.FlowState.Lent())
}

// IsRunning reports whether the time of r runs: it was granted, and has not ended.
func (r *Request) IsRunning() bool { return r.Phase == Offered || r.Phase == Held }

// Beat is when r's holder was last heard of: at the grant, or by a heartbeat since.
func (r *Request) Beat() Time {
	if r.HoldsOn() {
		return r.Share.Member.Beat()
	}
	if sess := r.Session(); sess != nil && r.Phase == Held && !r.Unknown {
		return max(r.Renewed, sess.Renewed)
	}
	return r.Renewed
}

// TtlEnd is when a held lease ends if no heartbeat comes.
func (r *Request) TtlEnd() Time {
	if r.Share != nil { // it ends with its member's lease
		return record.Never
	}
	end := r.Beat().Add(r.TTL)
	if sess := r.Session(); r.Spared && (sess == nil || sess.Spared) {
		num := r.Num
		if sess != nil {
			num = sess.Num // all of a session together, so that it is looked through once
		}
		end = end.Add(spread(num, r.TTL))
	}
	return end
}

// LivesBySession reports whether the heartbeats of a session renew the held lease r.
func (r *Request) LivesBySession() bool { return r.Session() != nil && !r.Unknown }

// TtlReason is why r ends when its ttl has passed.
func (r *Request) TtlReason() record.Reason {
	if r.Unknown {
		return record.ByForgetting
	}
	return record.ByTTL
}

// ParkedAt is the place of a parked lease in ParkedList.
func (r *Request) ParkedAt() ParkedAt { return ParkedAt{r.Rare.Parking.Since, r.Num} }

// rareState are for the few requests that are asked for, or parked.
type rareState struct {
	Askers []*Request // of a lease: the requests that ask its holder to yield, in the order of asking
	asked  []*Request // of a request: the leases that it asked for

	Parking   *parkState          // while it is put aside
	Decision  *interlock.Decision // about the last parking
	Arrived   Time                // of a lease that was put aside once: when its request first arrived
	Listeners []AnswerListener    // its listeners
	Moved     []interlock.Key     // and which of its keys others may have written meanwhile
}

func (r *Request) deal() *rareState {
	if r.Rare == nil {
		r.MutableExt().Rare = &rareState{}
	}
	return r.Rare
}

func (l *Request) evolveYieldRequested(ev *record.Event) error {
	r := l.NS.Live(ev.ByID)
	if l.Phase == Waiting || l.IsOver() || r == nil || r.Num != ev.By || r.Phase != Waiting {
		return errUnknown
	}
	l.deal().Askers = append(l.Rare.Askers, r)
	r.deal().asked = append(r.Rare.asked, l)
	return nil
}

// unask ends what r has asked of others, and others of r: one of both is over.
func (r *Request) unask() {
	d := r.Rare
	if d == nil {
		return
	}
	for _, l := range d.asked {
		l.Rare.Askers = slices.DeleteFunc(l.Rare.Askers, func(x *Request) bool { return x == r })
	}
	for _, w := range d.Askers {
		w.Rare.asked = slices.DeleteFunc(w.Rare.asked, func(x *Request) bool { return x == r })
	}
	d.asked, d.Askers = nil, nil
}

// IsAskedBy reports whether x has asked the holder of r to yield.
func (r *Request) IsAskedBy(x *Request) bool {
	return r.Rare != nil && slices.Contains(r.Rare.Askers, x)
}

// Asker is the request to which the holder of r is to yield, nil for none.
func (r *Request) Asker() (best *Request) {
	if r.Rare == nil {
		return nil
	}
	for _, x := range r.Rare.Askers {
		if best == nil || x.Priority > best.Priority {
			best = x
		}
	}
	return best
}

// YieldWords returns the message to the holder of r about the request that asks it to yield.
func (r *Request) YieldWords() *message.Text {
	if r.Phase == InGrace {
		return message.New(message.YieldTaken, message.Str(r.Asker().AgentName()), message.Str(r.Claims()[0].Key))
	}
	return message.New(message.YieldAsked, message.Str(r.Asker().AgentName()), message.Str(r.Claims()[0].Key))
}

// Preemptor returns the principal and the agent of the request that r was taken for, or is.
func (r *Request) Preemptor() (principal, agent string) {
	if r.EndCause != nil {
		return r.EndCause.Actor, r.EndCause.Asker
	}
	if x := r.Asker(); x != nil {
		return x.Owner(), x.AgentName()
	}
	return "", ""
}

// GoesBack reports whether r was away and is being resumed, so that it is put back
// when that is given up.
func (r *Request) GoesBack() bool {
	switch r.Phase {
	case Waiting, Offered, Held:
		return r.Rare != nil && r.Rare.Parking != nil && !r.Rare.Parking.Kept
	}
	return false
}

// StaysPut reports whether r was parked with its keys and is held again, so that Leave parks
// it with them.
func (r *Request) StaysPut() bool {
	return r.Phase == Held && r.Rare != nil && r.Rare.Parking != nil && r.Rare.Parking.Kept
}

// IsRun reports whether r is a run, or waits to become one.
func (r *Request) IsRun() bool { return r.Run != nil }

// IsToStart reports whether r, which waits, is a run that has not started: not one that
// was parked and is to go on.
func (r *Request) IsToStart() bool { return r.IsRun() && !r.GoesBack() }

// Listener returns the caller that listens to a waiting request, nil for none.
func (r *Request) Listener() Caller {
	if w := r.Wait; w.Caller != nil && !r.Session().isParting(w) {
		return w.Caller
	}
	return nil
}

// Rank orders waits for something that belongs to a lease after all leases.
func (r *Request) Rank() int {
	if r.Base != nil || r.Share != nil && r.Phase == Waiting {
		return 1
	}
	return 0
}

// Progress is a holder's last report of its work, and the warnings that it got about its time.
// All of it is volatile.
type Progress struct {
	Text   string
	At     Time   // when it began to say so
	Turn   uint64 // number of the report within the namespace: it orders reports of one instant
	Before uint64 // and of the report before it
	Warned Time   // the begin of the stall term in which a lease was warned, plus one
	Told   Time   // the beat since which a lease was warned of its ttl, plus one
}

func (r *Request) OwnProgress() *Progress {
	if r.Progress == nil {
		r.MutableExt().Progress = &Progress{}
	}
	return r.Progress
}

// LastProgress returns the last report of r's holder on its work, here or for its whole
// session, and its time.
func (r *Request) LastProgress() (text string, at Time) {
	var own, all Progress
	if r.Progress != nil {
		own = *r.Progress
	}
	if s := r.Session(); s != nil {
		all = s.Progress
	}
	if own.Turn > all.Turn || own.Turn > all.Before && own.Text == all.Text { // its session said nothing new of it
		return own.Text, own.At
	}
	return all.Text, all.At
}

// The deadlines of a lease that no heartbeat puts off: max_hold and stall. They
// have the request's own timer, so leases without them cost nothing.

// IsTimed reports whether r has such a deadline.
func (r *Request) IsTimed() bool { return r.MaxHold > 0 || r.Stall > 0 }

// EndCause is the part of an end that reports have beyond its reason.
type endCause struct {
	Cycle  []interlock.CycleStep // of a deadlock
	Actor  string                // the principal that revoked it, or of the preempting request
	Asker  string                // the preempting agent, or that of the party that its barrier has lost
	Words  string                // and why, in that one's words; of such a party the reason
	Base   uint64                // of a conversion: the number of its lease
	BaseID [16]byte
	Task   interlock.TaskID // of an attempt: its task
}

type phase uint8

const (
	Waiting phase = 1 + iota
	Offered
	Held
	InGrace
	Parked // put aside by its holder, which has left, and keeping its keys
	Away   // put aside, and holding nothing
	Closed // over for its holder, but its keys stay closed for its lock_delay
	Over   // remembered for a while, holds nothing
)

// Request is a set of claims that is granted as a whole, from its arrival to the end of its
// lease, and a while beyond so that its end can be reported.
type Request struct {
	ID        [16]byte
	next      *Request // in Namespace.Requests
	Num       uint64
	Fence     interlock.Fence
	FlowState *FlowState // its flow; an anonymous lease with a conversion has one for both; else nil
	Wait      *Wait      // nil unless it waits
	*Conditions
	*RequestDetail
	*RequestExt

	claim *[1]interlock.Claim // its claim, if there is one
	only  [1]Need             // its need, if there is one: most requests claim one key without ancestors
	more  *claimLists         // its claims and needs, if there are more

	Granted Time // of the grant, or of the claim of an offer; while it waits, of its arrival
	// Renewed is volatile: the last renewal of an anonymous lease or of one that its client does not know of, the begin
	// of an offer or a grace, or the last poll of a ticket.
	Renewed Time
	Waited  time.Duration

	// Pos is its index in FlowState.Leases; of an alternative in its parent's Alternatives, of a declared
	// wait in Session.Awaiting.
	Pos      int32
	Priority int8
	Phase    phase
	Reason   record.Reason // of its end, or its grace
	Warned   bool          // volatile: the holder was warned of max_hold
	Spared   bool          // volatile: no heartbeat since Recover, so its end is later by a spread
	Listed   bool          // volatile: it is in Session.Losses
	Unknown  bool          // volatile: the heartbeats of its session leave it out, and do not renew it
	Changed  bool          // a possible writer held one of its keys while it waited
	Lead     bool          // it stands before all requests that do not lead
	Any      bool          // its claims are alternatives: one of them is granted
}

// RequestExt is the rarely used part of a request: its direct ties to others, and the record of
// its missing session, or of its history. Most requests have none, and share an empty one.
type RequestExt struct {
	Guest    *AnonymousCaller // its caller, if it has no session
	Run      *record.Run      // nil unless it is a run of a workflow
	Timer    *Timer           // volatile: for deadlines that the session's timer does not cover
	EndCause *endCause        // details of its end, if Reason is not enough
	Rare     *rareState       // yield requests and parking
	Progress *Progress        // volatile: the last report and warnings about this lease alone

	Base         *Request    // of a conversion: its lease. Base.Conversion is the conversion while it waits
	Conversion   *Request    // of a lease: its waiting conversion
	Share        *MemberPart // nil unless it is for a part of a partitioned key
	Parent       *Request    // of an alternative: the request that it belongs to
	Alternatives []*Request  // of a request for any of several claims: see any.go
	Target       *Session    // of a declared wait: the session that it waits for
	TargetFlow   string      // of a declared wait: the flow of Target, "" for all
	Encloses     bool        // of a declared wait: Target works under a lease of the flow
	Awaited      *Follower   // of a wait for the end of a task
	seat         int32       // of a wait for the end of a task: its index in Tasks.Awaits
}

var noExt = &RequestExt{}

// MutableExt returns r's extension for writing. It replaces the shared empty one by a copy first.
func (r *Request) MutableExt() *RequestExt {
	if r.RequestExt == noExt {
		r.RequestExt = &RequestExt{}
	}
	return r.RequestExt
}

// setEndCause sets the details of r's end; nil deletes them.
func (r *Request) setEndCause(how *endCause) {
	if how != r.EndCause {
		r.MutableExt().EndCause = how
	}
}

// AnonymousCaller is the caller of a request without a session.
type AnonymousCaller struct {
	Agent string
	Owner string // the principal
}

// Arrived is when r came, which waits.
func (r *Request) Arrived() Time { return r.Granted }

// IsOver reports whether r is over for its holder, or its waiter.
func (r *Request) IsOver() bool { return r.Phase == Closed || r.Phase == Over }

func (r *Request) Session() *Session {
	f := r.Flow()
	if f == nil {
		return nil
	}
	return f.Sess
}

func (r *Request) AgentName() string {
	sess := r.Session()
	switch {
	case sess != nil:
		return sess.Agent
	case r.Guest != nil:
		return r.Guest.Agent
	case r.Task != nil: // it waits in the name of its submitter
		return r.Task.Spec.Agent
	}
	return ""
}

func (r *Request) FlowName() string {
	f := r.Flow()
	if f == nil {
		return ""
	}
	return f.Name
}

// hold grants r all its needs.
func (r *Request) hold() {
	r.take()
	r.NS.Leases++
	r.NS.count(r.Owner(), usage{leases: 1})
	r.joinParty()
}

// joinParty makes r one of the leases of its flow, if it has one.
func (r *Request) joinParty() {
	r.NS.Disturb()
	if sess := r.Session(); sess != nil {
		sess.joined(r)
	}
	if p := r.FlowState; p != nil {
		r.Pos = int32(len(p.Leases))
		p.Leases = append(p.Leases, r)
		p.Joined(r, false)
	}
}

// take enters r's needs at their keys.
func (r *Request) take() {
	needs := r.Needs()
	for i := range needs {
		m := &needs[i]
		n := m.Node
		n.handTo(r.FlowState)
		*n.granted.Of(m.Mode)++
		n.Modes |= 1 << m.Mode
		if m.Claimed {
			n.list(m)
		}
		switch m.Counts {
		case interlock.Permits:
			n.pooled.take(r.Group, uint64(r.CountOf(m)))
		case interlock.Barrier:
			n.own().gang++
		case interlock.Member:
			r.NS.divided(n).enroll(r, r.CountOf(m))
		}
	}
	r.holdPart()
}

// unhold takes all of r's needs back. The nodes stay until unneed.
func (r *Request) unhold() {
	r.leaveParty()
	r.letGo()
	r.NS.Leases--
	r.NS.count(r.Owner(), usage{leases: -1})
}

// leaveParty removes r from the leases of its flow.
func (r *Request) leaveParty() {
	r.NS.Disturb()
	if sess := r.Session(); sess != nil {
		sess.parted(r)
	}
	if p := r.FlowState; p != nil {
		last := int32(len(p.Leases) - 1)
		p.Leases[r.Pos] = p.Leases[last]
		p.Leases[r.Pos].Pos = r.Pos
		p.Leases[last] = nil
		p.Leases = p.Leases[:last]
		p.parted(r, false)
	}
}

// letGo strikes r's needs out at their keys.
func (r *Request) letGo() {
	needs := r.Needs()
	for i := range needs {
		m := &needs[i]
		n := m.Node
		left := n.granted.Of(m.Mode)
		if *left--; *left == 0 {
			if n.Modes &^= 1 << m.Mode; n.Modes == 0 {
				n.hands = nil
			}
		}
		if m.listed {
			n.strike(m)
		}
		switch m.Counts {
		case interlock.Permits:
			n.pooled.give(r.Group, uint64(r.CountOf(m)))
		case interlock.Barrier:
			n.own().gang--
		case interlock.Member:
			n.Divided.expel(r)
		}
	}
	r.losePart()
}

// enter takes r's places in the lines.
func (r *Request) enter() {
	r.Wait.Only[0] = QueueEntry{Req: r}
	needs := r.Needs()
	places := r.Wait.room(len(needs))
	for i := range needs {
		m, p := &needs[i], &places[i]
		*p = QueueEntry{Req: r, Need: int16(i)}
		m.Node.openLine()
		p.Class = m.Node.Line.class(r.kindOf(m))
		p.Count = r.CountOf(m)
		p.Duplicate = r.Parent != nil && p.Class.has(r)
		p.Class.Insert(p)
		if m.Claimed {
			if !m.Node.Used() {
				m.Node.NS.Claimed++
			}
			m.Node.Line.claimed++
		}
	}
	if p := r.FlowState; p != nil {
		i := p.waitsBefore(r.Num + 1) // a snapshot tells of conversions last
		p.Waits = slices.Insert(p.Waits, i, r)
		p.Joined(r, true)
	}
}

// listWait enters r, which has come into line, into Namespace.Waits, until unline.
func (r *Request) listWait() {
	r.Wait.Only[0].Req = r // one with alternatives has no place of its own
	r.NS.Waits.Add(r.Wait)
}

// unline takes r out of every line.
func (r *Request) unline() {
	r.NS.Waits.Remove(r.Wait)
	r.NS.Disturb()
	if r.Priority != 0 {
		r.NS.Ranked--
	}
	for way := range r.EachAlternative {
		if way != r {
			r.NS.alternatives--
		}
		way.exit()
	}
	r.forgoPart()
	if r.Task == nil {
		r.NS.Waiters--
		r.NS.count(r.Owner(), usage{waiters: -1})
	}
}

// exit removes r's entries from their queues.
func (r *Request) exit() {
	for i := range r.Wait.Entries() {
		p := &r.Wait.Entries()[i]
		n := r.Needs()[i].Node
		p.SetWatching(false)
		p.Class.Remove(p)
		if r.Needs()[i].Claimed {
			if n.Line.claimed--; !n.Used() {
				n.NS.Claimed--
			}
		}
		if p.Class.root == nil {
			n.Line.drop(p.Class)
			n.dropLine()
		}
	}
	if p := r.FlowState; p != nil {
		i := p.waitsBefore(r.Num)
		for p.Waits[i] != r { // a branch of the same request, or a wait for the end of a task
			i++
		}
		p.Waits = slices.Delete(p.Waits, i, i+1)
		p.parted(r, true)
	}
}

func (r *Request) IsWaiting() bool { return r.Phase == Waiting }

func ByNumber(a, b *Request) int { return cmp.Compare(a.Num, b.Num) }

// revokedFor reports whether r has a claim that blocks a need, which may be short of permits,
// on a key with a pattern that takes it from a deadlock's victim.
func (r *Request) revokedFor(m *Need, short bool) bool {
	for _, c := range r.Claims() {
		mode := lockmode.Lock(c.Mode)
		if keypath.IsBelow(string(c.Key), m.Node.Key) {
			mode = lockmode.Intent(c.Mode)
		} else if string(c.Key) != m.Node.Key {
			continue
		}
		if !lockmode.Conflicts[m.Mode].Has(mode) && !(c.Mode == interlock.Permits && short) {
			continue
		}
		if p := r.NS.PolicyAt(string(c.Key)); p != nil && p.OnDeadlock == interlock.DeadlockRevoke {
			return true
		}
	}
	return false
}

// WayOf returns how other blocks need i of r, which waits: it holds something there that
// excludes it, or it stands before it in line.
func (r *Request) WayOf(i int, other *Request) interlock.BlockerRole {
	m := &r.Needs()[i]
	if m.Counts == interlock.Barrier {
		return 0
	}
	if other.FlowState.HoldsAgainst(m, r.CountsAgainst(m)) {
		return interlock.Holds
	}
	return interlock.Ahead
}
