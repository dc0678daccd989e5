package store

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// The patterns and the organisation that a wait or a hold is counted under, for the figures of
// a server. They are computed when the event happens and are not journaled: an event that was
// read from a journal has none.

// The earlier revisions of a pattern. Each time that a pattern is set, dropped or reverted is a
// revision of it. The events that do so are the only record: a journal that is older than
// revisions has them.

// coversClaim reports whether a holder of have does not need want, a claim on the same key. A
// grant consumes tokens, so a claim on a rate never covers another.
func (s *Namespace) coversClaim(have, want interlock.Claim) bool {
	switch {
	case !want.Mode.Counts():
		return lockmode.Covers(lockmode.Lock(have.Mode), want.Mode)
	case have.Mode != want.Mode || want.Mode == interlock.Barrier:
		return false
	case want.Mode == interlock.Permits:
		p := s.PolicyAt(string(want.Key))
		return have.Count >= want.Count && (p == nil || p.Rate == 0)
	}
	return have.Count == want.Count
}

func (s *Namespace) SortedTasks() []*Task {
	return slices.SortedFunc(slices.Values(s.Tasks.All), func(a, b *Task) int { return cmp.Compare(a.Num, b.Num) })
}

// maxAttributed bounds the number of claims up to which a request's patterns are looked up for
// its events.
const maxAttributed = 8

// outsidePatterns stands for a key that fits no pattern.
var outsidePatterns = []string{""}

// PatternsOf names the patterns of some claims, each once.
func (s *Namespace) PatternsOf(claims []interlock.Claim) (names []string) {
	if len(claims) == 0 {
		return nil
	}
	if len(s.Patterns) == 0 {
		return outsidePatterns
	}
	for i := range claims[:min(len(claims), maxAttributed)] {
		of := outsidePatterns
		if p := s.PolicyAt(string(claims[i].Key)); p != nil {
			of = p.alone
		}
		switch {
		case names == nil:
			names = of
		case !slices.Contains(names, of[0]):
			names = append(slices.Clip(names), of[0])
		}
	}
	return names
}

// Auditor returns the first claim on a key with a pattern that records refusals, in its
// canonical spelling, and that pattern; nil if there is none.
func (s *Namespace) Auditor(claims []interlock.Claim) (*Policy, interlock.Claim) {
	for _, c := range claims {
		if keypath.Problem(string(c.Key)) != nil {
			continue
		}
		p, key := s.Fit(c.Key)
		if p == nil || !p.AuditRefusals {
			continue
		}
		if c.Mode > interlock.Member || c.Mode.Counts() != (c.Count > 0) {
			c = interlock.Claim{Mode: lockmode.X} // it has no meaning
		}
		p.Complete(&c)
		c.Key = key
		return p, c
	}
	return nil, interlock.Claim{}
}

// Spell returns a key its one spelling, and finds its pattern. It is refused if it fits
// none although it must.
func (s *Namespace) Spell(key *interlock.Key) (p *Policy, no *Refusal) {
	p, spelled := s.Fit(*key)
	if p == nil && s.Closed() {
		return nil, s.UnknownKey(*key)
	}
	*key = spelled
	return p, nil
}

// SpellReads rewrites the read keys in their canonical spelling, and returns a refusal if no
// caller can have read them so; nil otherwise.
func (s *Namespace) SpellReads(list []interlock.Read) *Refusal {
	for i := range list {
		r := &list[i]
		if _, no := s.Spell(&r.Key); no != nil {
			return no
		}
		if r.Version > s.Documents.Version && !r.Absent {
			return &Refusal{Code: interlock.CodeFutureVersion, Key: r.Key, Message: FutureWords(r.Version, s.Documents.Version)}
		}
	}
	return CheckUnique(len(list), func(i int) interlock.Key { return list[i].Key })
}

// CheckUnique returns which of n keys that were spelled stands twice among what a command
// reads, or among what it writes; nil for none.
func CheckUnique(n int, key func(int) interlock.Key) *Refusal {
	if n < 2 {
		return nil
	}
	seen := make(map[interlock.Key]bool, n)
	for i := range n {
		k := key(i)
		if seen[k] {
			return &Refusal{Code: interlock.CodeDuplicateClaim, Key: k, Message: message.New(message.NamedTwice, message.Str(k))}
		}
		seen[k] = true
	}
	return nil
}

// maxClasses bounds the classes of keys with separate hold times.
const maxClasses = 1024

// observe learns from a hold that ended: an average in which the last eight
// weigh most.
func (s *Namespace) observe(key interlock.Key, hold time.Duration) {
	class := record.Class(string(key))
	old, known := s.Holds[class]
	if !known && len(s.Holds) == maxClasses {
		return
	}
	now := max(1, hold)
	if known {
		now = max(1, old+(hold-old)/8)
	}
	if now != old {
		s.Holds[class] = now
	}
}

// Contention is the statistics of one pattern or class.
type Contention struct {
	interlock.Contention
	Refused []Committer // callers after a commit that was refused as stale, the oldest first
}

// contention returns the statistics of the pattern or the class of a key, nil if there are too
// many.
func (s *Namespace) contention(key interlock.Key) *Contention {
	name, write := record.Class(string(key)), interlock.WriteGuarded
	if p := s.PolicyAt(string(key)); p != nil {
		name, write = p.Name, p.Write
	}
	k := s.Contended[name]
	if k == nil && len(s.Contended) < maxClasses {
		if s.Contended == nil {
			s.Contended = map[string]*Contention{}
		}
		k = &Contention{Contention: interlock.Contention{Pattern: name}}
		s.Contended[name] = k
	}
	if k != nil {
		k.Write = write
	}
	return k
}

// Among adds the key's contention to a list, once.
func (s *Namespace) Among(list []*Contention, key interlock.Key) []*Contention {
	if k := s.contention(key); k != nil && !slices.Contains(list, k) {
		list = append(list, k)
	}
	return list
}

// pauseParkings extends the parkings that ask a person by the period before a term in which no
// answer was possible, as pauseQuestions does.
func (s *Namespace) pauseParkings(now Time, idle time.Duration) {
	for _, fence := range slices.Sorted(maps.Keys(s.Aside)) {
		if p := s.Aside[fence].Rare.Parking; p.Asks {
			p.Until = p.Until.Add(min(idle, now.Sub(p.Since)))
		}
	}
}

// putAside lists r among the leases that are put aside.
func (s *Namespace) putAside(r *Request) {
	if s.Aside == nil {
		s.Aside = map[interlock.Fence]*Request{}
	}
	s.Aside[r.Rare.Parking.Fence] = r
}

// AwayWith returns the parked lease that has freed its keys, one of keys among them, and had a
// fence.
func (s *Namespace) AwayWith(fence interlock.Fence, keys ...interlock.Key) *Request {
	if s == nil {
		return nil
	}
	r := s.Aside[fence]
	if r == nil || r.Phase != Away ||
		!slices.ContainsFunc(r.Claims(), func(c interlock.Claim) bool { return slices.Contains(keys, c.Key) }) {
		return nil
	}
	return r
}

// IsBare reports whether nothing is left of s, and nothing of it was ever journaled that
// counts.
func (s *Namespace) IsBare() bool {
	return len(s.Sessions) == 0 && !s.Move.IsUnderWay() && s.Arrival.Number == 0 &&
		s.Nodes.Len()+s.Requests.Len()+s.Tombstones.Len()+s.EndedSessions.Len()+len(s.IDs.Known)+len(s.Holds)+
			len(s.Revisions)+len(s.SideEffects.Known)+len(s.Tasks.Queues)+len(s.Logs.Known)+len(s.Webhooks) == 0 &&
		uint64(s.Documents.Version) == s.Born && len(
		s.Documents.Known,
	) == 0 && s.Logs.Floor == s.Born && s.Unmatched == record.UnsetKeys
}

// beginAt makes a new namespace assign versions and numbers above floor only.
func (s *Namespace) beginAt(floor uint64) {
	s.Born = floor
	s.Documents.Version, s.Documents.Floor, s.Logs.Floor = interlock.Version(floor), interlock.Version(floor), floor
}

// highest is the highest version or number that s has given out.
func (s *Namespace) highest() uint64 {
	return max(uint64(s.Documents.Version), s.Logs.Floor, s.Logs.top)
}

// EmptyFrom returns the time from which s may be forgotten; ok is false while it contains
// anything that a caller may come back for. Other remembered data, such as how leases have
// ended, may go.
func (s *Namespace) EmptyFrom() (at Time, ok bool) {
	if s.Move.IsUnderWay() ||
		len(s.Webhooks)+len(s.Sessions)+s.Requests.Len()+len(s.Patterns)+len(s.Documents.Present) > 0 ||
		s.Unmatched != record.UnsetKeys ||
		len(s.Tasks.Queues)+len(s.Tasks.Known)+len(s.Tasks.Pulls)+len(s.Logs.Known) > 0 ||
		s.SideEffects.Done.Len()+s.SideEffects.Free.Len() < len(s.SideEffects.Known) {
		return 0, false
	}
	at = s.Now().Add(interlock.NamespaceIdle)
	if s.IDs.Order.Len() > 0 {
		at = max(at, s.IDs.last.Add(interlock.RequestIDWindow))
	}
	for _, c := range []*collection.List[*SideEffect]{&s.SideEffects.Done, &s.SideEffects.Free} {
		if c.Len() > 0 {
			at = max(at, c.Back().Value.Settled.Add(s.EffectRetention()))
		}
	}
	return at, true
}

// RankSearch is the work of computing the ranks of a namespace, which may take several steps.
// Each flow is processed in its state at that moment; a later change of a processed flow
// repeats the work. Until it is done the lines stay as they were.
type RankSearch struct {
	Phase rankingPhase
	Heirs []*FlowState                 // those of before, and then those of now as well
	Risen collection.Queue[*FlowState] // holders that block a flow that rose: their ranks may rise, too
	// in the list of the phase; in namespace.HoldsAndWaits it is kept where it is: see tear
	UpTo int
}

const (
	RankingDone rankingPhase = iota
	RankingHeirs
	RankingHoldsAndWaits
	RankingRise
	RankingRisen
	RankingRaised
	RankingPlaces
)

func (s *Namespace) IsUnranked() bool {
	return s != nil && (s.Unranked || s.Ranking.Phase != RankingDone)
}

// Disturb marks the ranks as outdated, because a waiter has joined or left a line, or a flow
// holds more or less.
func (s *Namespace) Disturb() { s.Unranked = s.Unranked || s.Ranked > 0 }

// Limits of the kept notes.
const (
	notesPerKey = 8       // the last ones
	maxNoted    = 100_000 // keys of a namespace with notes; the one noted longest ago loses its own first
	ShownNotes  = 16      // the newest of all keys of a lease
)

// note is a holder's note for the next.
type note struct {
	At      Time
	Agent   string
	Fence   interlock.Fence
	Outcome string
	Text    string
}

// noteBook holds a key's last notes, oldest first.
type noteBook struct {
	Node  *Node
	Notes []note
	place collection.Element[*noteBook] // in namespace.notes
}

// leaveNote keeps a note at a key.
func (s *Namespace) leaveNote(key string, t note) {
	n := s.node(key)
	if n.Notes == nil {
		b := &noteBook{Node: n}
		b.place.Value = b
		n.own().Notes = b
		n.refs++
	} else {
		s.Notes.Remove(&n.Notes.place)
	}
	b := n.Notes
	if len(b.Notes) == notesPerKey {
		copy(b.Notes, b.Notes[1:])
		b.Notes = b.Notes[:notesPerKey-1]
	}
	b.Notes = append(b.Notes, t)
	s.Notes.PushBack(&b.place)
	if s.Notes.Len() > maxNoted {
		oldest := s.Notes.Front().Value
		s.Notes.Remove(&oldest.place)
		oldest.Node.own().Notes = nil
		oldest.Node.drop()
	}
}

// FenceFloor returns the lowest fence among the holders of a key, or of an ancestor in a mode
// that extends to descendants; 0 if there are none.
func (s *Namespace) FenceFloor(key string) (floor interlock.Fence) {
	modes := ^lockmode.Set(0)
	for {
		if n := s.NodeAt(key); n != nil {
			for h := n.First; h != nil; h = h.Next {
				if modes.Has(h.Mode) {
					if floor == 0 || h.Req.Fence < floor {
						floor = h.Req.Fence
					}
					break // they are in the order of their fences
				}
			}
		}
		parent, ok := keypath.Parent(key)
		if !ok {
			return floor
		}
		key, modes = parent, lockmode.SetOf(lockmode.S, lockmode.SIX, lockmode.X)
	}
}

// Nearest returns the closest ancestor of key that has a node, or nil.
func (s *Namespace) Nearest(key string) *Node {
	for {
		parent, ok := keypath.Parent(key)
		if !ok {
			return nil
		}
		if n := s.NodeAt(parent); n != nil {
			return n
		}
		key = parent
	}
}

// Revisions are those of one name that are remembered, oldest first.
type Revisions struct {
	name  string
	List  []revision
	bytes int
}

type revision struct {
	Number   uint64
	Reverted uint64 // which one it brought back
	At       Time
	Actor    string
	Blob     []byte // the pattern; nil: it was dropped
}

// Last returns the present one.
func (v *Revisions) Last() *revision { return &v.List[len(v.List)-1] }

// add appends one, and forgets the oldest of too many.
func (v *Revisions) add(x revision) {
	v.List = append(v.List, x)
	v.bytes += len(x.Blob)
	for len(v.List) > interlock.MaxRevisions || len(v.List) > 1 && v.bytes > interlock.MaxRevisionBytes {
		v.trim()
	}
}

// trim forgets the oldest one.
func (v *Revisions) trim() {
	v.bytes -= len(v.List[0].Blob)
	v.List = slices.Delete(v.List, 0, 1)
}

// trimRevisions forgets the oldest revisions of a namespace that remembers too much, as
// long as there is one that is not the present one of its pattern. So of a snapshot,
// which has them by name, nothing is forgotten as it is read.
func (s *Namespace) trimRevisions() {
	for s.revisionBytes > interlock.MaxSpaceRevisionBytes {
		v := s.oldestRevised()
		if v == nil {
			return
		}
		s.revisionBytes -= v.bytes
		v.trim()
		s.revisionBytes += v.bytes
	}
}

// oldestRevised returns the pattern with the oldest of all superseded revisions, nil if there
// are none; of two that are as old, the first by name.
func (s *Namespace) oldestRevised() (oldest *Revisions) {
	look := func(v *Revisions) {
		if len(v.List) > 1 &&
			(oldest == nil || cmp.Or(cmp.Compare(v.List[0].At, oldest.List[0].At), strings.Compare(v.name, oldest.name)) < 0) {
			oldest = v
		}
	}
	for _, p := range s.Patterns {
		look(s.Revisions[p.Name])
	}
	for _, name := range s.Dropped {
		look(s.Revisions[name])
	}
	return oldest
}

// Find returns the revision with a number, or with 0 the one before the present one; nil
// if it is not remembered.
func (v *Revisions) Find(number uint64) *revision {
	if number == 0 {
		if number = v.Last().Number - 1; number == 0 {
			return nil
		}
	}
	for i := range v.List {
		if v.List[i].Number == number {
			return &v.List[i]
		}
	}
	return nil
}

// evolveRevision records the revision of an record.PatternSet or record.PatternDropped. Of the dropped
// patterns, those of the last MaxPatterns names are remembered.
func (s *Namespace) evolveRevision(ev *record.Event) {
	name := ev.PatternName
	v := s.Revisions[name]
	if v == nil {
		v = &Revisions{name: name}
		if s.Revisions == nil {
			s.Revisions = map[string]*Revisions{}
		}
		s.Revisions[name] = v
	}
	x := revision{Number: ev.Generation, Reverted: ev.By, At: ev.At, Actor: ev.Actor}
	if ev.Kind == record.PatternSet {
		x.Blob = ev.Blob
	}
	if x.Number == 0 { // of a journal that is older than revisions
		x.Number = 1
		if len(v.List) > 0 {
			x.Number += v.Last().Number
		}
	}
	s.revisionBytes -= v.bytes
	v.add(x)
	s.revisionBytes += v.bytes
	s.Dropped = slices.DeleteFunc(s.Dropped, func(n string) bool { return n == name })
	if ev.Kind == record.PatternDropped {
		if s.Dropped = append(s.Dropped, name); len(s.Dropped) > interlock.MaxPatterns {
			s.revisionBytes -= s.Revisions[s.Dropped[0]].bytes
			delete(s.Revisions, s.Dropped[0])
			s.Dropped = slices.Delete(s.Dropped, 0, 1)
		}
	}
	s.trimRevisions()
}

// IsClosed reports whether a session was closed, be it that some of its leases and waits are
// still to end.
func (s *Namespace) IsClosed(id interlock.SessionID) bool {
	if s == nil {
		return false
	}
	if x := s.Sessions[id]; x != nil {
		return x.Dead && x.Why == record.BySession
	}
	return s.EndReasons[id] == record.BySession
}

func (s *Namespace) SortedSessions() []*Session {
	return slices.SortedFunc(maps.Values(s.Sessions), func(a, b *Session) int { return cmp.Compare(a.Num, b.Num) })
}

func (s *Namespace) SortedNodes() []*Node {
	list := s.Nodes.All()
	slices.SortFunc(list, func(a, b *Node) int { return strings.Compare(a.Key, b.Key) })
	return list
}

// Namespace is one namespace. Nothing in it points to another.
type Namespace struct {
	Name          interlock.Namespace
	Nodes         collection.Table[*Node]
	Salt          collection.Salt            // of their hashes
	Claimed       int                        // number of Nodes that are Used
	Lined         collection.Set[*Node]      // with a line, in no order; volatile
	Waits         collection.Set[*Wait]      // of Requests, in no order; volatile
	Requests      collection.Table[*Request] // that are not over
	Sessions      map[interlock.SessionID]*Session
	ByNum         map[uint64]*Session       // the same
	Roster        collection.List[*Session] // the same, in the order of their numbers
	turns         uint64                    // counts the new progress texts; volatile
	Roll          sessionIndex
	Tombstones    tombstones
	EndedSessions collection.PagedQueue[endedSession] // sessions that are over
	EndReasons    map[interlock.SessionID]record.Reason
	Notes         collection.List[*noteBook] // the one written longest ago first
	IDs           IDWindow                   // of callers without a session
	kept          objectWindows              // ids that have left their windows
	SideEffects   SideEffects
	Tasks         Tasks
	Webhooks      map[string]*record.WebhookState // never changed, but replaced
	Holds         map[string]time.Duration
	HoldsAndWaits []*FlowState // flows with leases and waits, in the order of FlowState.compare
	Leases        int
	Waiters       int
	Away          int                          // parked leases that hold nothing
	Aside         map[interlock.Fence]*Request // parked leases, by the fences that they had
	Ranked        int                          // number of waiters with a priority other than 0
	alternatives  int                          // number of alternatives in line
	Shared        []*Partition                 // partitioned keys, in no order

	taken         map[string]usage // by principal; principals without leases or waits are not in it
	Settings      interlock.Settings
	Unmatched     record.KeyRule        // record.UnsetKeys as long as there are no settings
	Patterns      []*Policy             // the most specific first
	heads         heads                 // index of Patterns
	guarded       int                   // number of Patterns with an Allow list
	rated         bool                  // one of Patterns has a rate
	Audited       int                   // number of Patterns with AuditRefusals
	rules         uint64                // volatile: number of changes that may affect an Allow list
	Revisions     map[string]*Revisions // by pattern name, with those of dropped patterns
	revisionBytes int                   // size of Revisions
	Dropped       []string              // names of remembered dropped patterns, the last dropped last
	Pools         []*Pool               // in no order
	Repooling     poolUpdate            // volatile: the Pools that do not follow the present Patterns yet
	cooling       collection.Queue[*Pool]
	Alike         map[string][]SpelledKey // by skeleton; nil unless the settings require it
	kinds         kinds                   // empty unless the settings require it
	Respelling    *spellingScan           // volatile: nil if Alike has all keys

	Move    Move // of the namespace to another shard, or from one
	Arrival Arrival

	Documents Documents
	Logs      logs
	Born      uint64 // its versions and the numbers of its log entries are above it

	idleNodes []*Node // for reuse
	idleKin   []*relatives
	Unranked  bool                   // volatile: ranks may have changed
	Ranking   RankSearch             // volatile: the ranking that is not done
	Heirs     []*FlowState           // volatile: flows that wait with an inherited priority
	Contended map[string]*Contention // volatile: by pattern and class
	Lingering int                    // number of dead sessions with leases or waits

	agreed [16]*Conditions // see Agree
	Agenda *PendingWork    // volatile
}

// Now returns the time of the namespace's last command, which may be the one that is carried out.
func (s *Namespace) Now() Time { return s.Agenda.Clock }

// SortedQueues returns the queues in the order of their names.
func (s *Namespace) SortedQueues() []*Queue {
	return slices.SortedFunc(maps.Values(s.Tasks.Queues), func(a, b *Queue) int { return strings.Compare(a.Name, b.Name) })
}

// ExclusiveAt returns the claim that makes a holder's access to a key exclusive: its own, or
// else that of the nearest ancestor; nil for none. A lease that is over for its holder does not
// count, although its keys may stay closed for its lock delay. All leases on a key that is held
// exclusively belong to one flow, so if there are more than a step may look at, any of them
// stands for the exclusive one.
func (s *Namespace) ExclusiveAt(key interlock.Key) *Need {
	for name, more := string(key), true; more; name, more = keypath.Parent(name) {
		n := s.NodeAt(name)
		if n == nil || !n.Modes.Has(lockmode.X) {
			continue
		}
		var last *Need
		looks := 0
		for h := n.First; h != nil; h = h.Next {
			if looks++; !h.Req.IsOver() {
				last = h
			}
			if h == last && (h.Mode == lockmode.X && h.Counts == 0 || looks >= StepObjects) {
				*s.Agenda.objects += looks
				return h
			}
		}
		*s.Agenda.objects += looks
	}
	return nil
}

// CheckWriters returns why a pattern cannot name the queue that it names, nil if it can.
func (s *Namespace) CheckWriters(p *Policy) *Refusal {
	if p.WriterQueue != "" && s.Registered(p.WriterQueue) == nil {
		return UnknownQueue(p.WriterQueue)
	}
	return nil
}

// WrittenBy returns the pattern with the given queue as its writer, nil for none.
func (s *Namespace) WrittenBy(queue string) *Policy {
	for _, p := range s.Patterns {
		if p.WriterQueue == queue {
			return p
		}
	}
	return nil
}

// Begins returns the version with which the command's namespace began, or would begin.
func (st *State) Begins() interlock.Version {
	if s := st.PendingWork.NS; s != nil {
		return interlock.Version(s.Born)
	}
	return interlock.Version(st.PastVersion)
}

// Latest returns the version of the last commit in the command's namespace; for one that is
// to be made, what its versions begin above.
func (st *State) Latest() interlock.Version {
	if s := st.PendingWork.NS; s != nil {
		return s.Documents.Version
	}
	return interlock.Version(st.PastVersion)
}

// ClockAnomaly returns the reason why no caller can have read as of a version in a namespace
// with the given last commit, or "". When the journal was restored, versions jumped over those
// that may have been assigned since the backup, and reads as of these are not from this
// history. (It is not known which earlier versions are from before the backup, so all of them
// count as old once there was a commit since.)
func (st *State) ClockAnomaly(asOf, last interlock.Version) *message.Text {
	switch {
	case asOf > last:
		return FutureWords(asOf, last)
	case asOf > 0 && asOf <= st.BaseVersion && last > st.BaseVersion:
		return message.New(message.NotRestored, message.Num(asOf))
	}
	return nil
}
