package engine

import (
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/record"
)

// Head is the common part of all commands. A command that is remembered under its request id has
// a fingerprint: the tag fingerprint of its Head is the number of the command, and that of each
// field is its place: see internal/gen/journal.
type Head struct {
	At        store.Time // never before an earlier command's of the same namespace
	From      store.Caller
	Namespace interlock.Namespace

	// Link numbers the connection that the command came over, so that Detach ends
	// the waits of that connection and no other. 0 when there is none.
	Link uint64

	// Session is the session that issues the command; zero for none.
	Session interlock.SessionID

	// RequestID makes a mutating command repeatable: the same id gets the same
	// answer, and another body under it is refused. Its scope is the principal, and
	// the session or without one the namespace.
	RequestID string

	// Seq identifies a command within a session's stream, at less cost than RequestID: the
	// client numbers its commands 1, 2, 3, ... A command with both is a mistake of the caller.
	// Acked means that the client has seen the first answers of all commands up to that number,
	// so the engine need not remember them.
	Seq   uint64
	Acked uint64

	// Actor is the acting principal, if it is not the session. Events carry it for the audit
	// trail.
	Actor string

	// Principal is the authenticated caller; its Name equals Actor. nil: the server asks for no
	// credentials, and the caller may do everything. The engine reads it while it decides and
	// while the command's request waits; it is not journaled.
	Principal *interlock.Principal
}

// Header implements Command for every type that embeds Head.
func (h *Head) Header() *Head { return h }

// IsAnswered implements Command: most commands are.
func (h *Head) IsAnswered() bool { return true }

// IsAnswered reports false: the end of a connection has no receiver.
func (c *Detach) IsAnswered() bool { return false }

// IsAnswered reports false: the shard makes the command itself.
func (c *Tick) IsAnswered() bool { return false }

// IsAnswered reports false: the shard makes the command itself.
func (c *Recover) IsAnswered() bool { return false }

// IsAnswered reports false: the shard makes the command itself.
func (c *Limit) IsAnswered() bool { return false }

// OpenSession starts a session. ID is 128 fresh random bits. TTL bounds that of its leases; 0 means
// interlock.DefaultTTL, and as long as the longest ttl of its leases. Answered by Done with Session set.
type OpenSession struct {
	Head  `fingerprint:"5"`   // Head.Session is not used
	ID    interlock.SessionID `fingerprint:"-"`
	Agent string              `fingerprint:"1"`
	TTL   time.Duration       `fingerprint:"2"`
}

// Heartbeat proves that Head.Session lives and renews all its leases; one with Known, none that a list has left out. A
// non-empty Progress replaces the one that others see; a new value restarts the stall terms of all its leases.
// Answered by Done with Session, and Losses: the leases that ended against the session's will
// since the last heartbeat, those in their soft tier, and those that Known leaves out. WantsList asks for a heartbeat
// with a list. Not journaled.
type Heartbeat struct {
	Head
	Progress string
	Known    *interlock.KnownLeases // nil: all, as with over interlock.MaxKnown leases and waits
}

// ShowSession looks at Head.Session with its client's eyes: what it holds and waits for, with the ids. It renews
// nothing. Answered by Done with Session and Work. Not journaled.
type ShowSession struct{ Head }

// CloseSession ends Head.Session, releases its leases and ends its waits.
type CloseSession struct{ Head }

// Attach makes Head.From the receiver of the pushes for Head.Session (Warned,
// Lost, and Granted for waits that were detached), until Detach or another
// Attach. It counts as a heartbeat. Not journaled.
type Attach struct{ Head }

// Detach means that nothing listens on Head.Link any more: waits of Head.Session that were
// attached over that link continue unattended, as do its pushes. With Ticket set, only that one
// wait is meant. It has no answer.
type Detach struct {
	Head
	Ticket interlock.TicketID
}

// KeepAlive renews the session that waits, as a heartbeat does, but takes no losses:
// its caller is a call that stays open, and proves that the session lives. The session
// is Head.Session, or without one that of the request with Ticket. Answered by Done, with
// Session.TTL of a session that was renewed. Not journaled.
type KeepAlive struct {
	Head
	Ticket interlock.TicketID
}

// NoGrace asks for a lease without a grace period.
const NoGrace = interlock.NoGrace

// Acquire asks for Claims, all or nothing. Its first answer comes from the same step: Granted,
// Queued, Skipped or Refused, as of the end of the step: a wait that would have closed a cycle
// is Refused, and was never Queued, if its request is the victim. Within the step its caller
// counts as listening. If the answer is Queued and Attach is set, a second one follows when the
// wait is over: Granted, or Refused. The engine keeps the slice of claims.
type Acquire struct {
	Head                   `fingerprint:"1"`
	ID                     [16]byte `fingerprint:"-"` // fresh random bits; the ticket's and the lease's id
	Agent                  string   `fingerprint:"1"` // for an anonymous holder; a session has its own
	interlock.LeaseRequest `fingerprint:"2"`
	Attach                 bool `fingerprint:"-"`
}

// Convert changes the claims of a held lease to exactly Claims, in modes without a count or in
// Permits. A conversion that only drops claims is granted at once. One that also asks for more
// waits while the lease stays as it is; it is ahead of new requests if the lease claims all
// those keys already, and in line by its arrival if it adds keys. A conversion brings a new
// fence. Answered like Acquire; ID is that of the ticket, the lease keeps its own.
type Convert struct {
	Head       `fingerprint:"6"`
	Lease      interlock.LeaseID    `fingerprint:"1"`
	ID         [16]byte             `fingerprint:"-"`
	Claims     []interlock.Claim    `fingerprint:"2"` // the engine keeps the slice
	MaxWait    time.Duration        `fingerprint:"3"`
	OnConflict interlock.OnConflict `fingerprint:"4"` // Fail, Wait or Preempt
	Attach     bool                 `fingerprint:"-"`
}

// Arrive reports that the holder of a barrier's lease has reached the barrier again, and waits
// for the other parties. Answered like a Convert that waits; the lease then has a new fence and
// the next generation.
type Arrive struct {
	Head    `fingerprint:"7"`
	Lease   interlock.LeaseID `fingerprint:"1"`
	ID      [16]byte          `fingerprint:"-"` // of the ticket
	MaxWait time.Duration     `fingerprint:"2"`
	Attach  bool              `fingerprint:"-"`
}

// Park puts a held lease aside while a person decides. A parked lease needs neither heartbeats
// nor its session: any caller with its id may resume it, within For. With Free, others may hold
// its keys meanwhile. Answered by Done with Lease.
type Park struct {
	Head   `fingerprint:"9"`
	Lease  interlock.LeaseID `fingerprint:"1"`
	Free   bool              `fingerprint:"2,bit=0"`
	Keep   bool              `fingerprint:"2,bit=1"` // neither: as the pattern prescribes, else the keys are kept
	For    time.Duration     `fingerprint:"3"`       // 0: the pattern's, else interlock.DefaultPark
	Reason string            `fingerprint:"4"`       // the question to a person; "" asks none
}

// Resume makes a parked lease held again, by Head.Session and Flow, or without a session if
// there is none. If its keys were freed it stands in line at its old place; the answer then is
// like Acquire's, under the lease's id as a ticket. The lease has a new fence in any case,
// since its holder may be another one. Lease.Changed and Lease.Moved list what others may have
// written meanwhile.
//
// A lease that asks a person can be resumed once it is approved. Until then the answer is
// Queued with Question if the command may wait and Attach is set, and a second one, Refused
// with CodeParked, tells the caller to resume again; else it is Refused with CodeParked. After
// a denial it is Refused with CodeDenied.
type Resume struct {
	Head       `fingerprint:"8"`
	Lease      interlock.LeaseID    `fingerprint:"1"`
	Flow       string               `fingerprint:"2"`
	MaxWait    time.Duration        `fingerprint:"3"`
	OnConflict interlock.OnConflict `fingerprint:"4"`          // Fail leaves it parked
	Unapproved bool                 `fingerprint:"5,omitzero"` // although a person has not answered, or has denied it
	Attach     bool                 `fingerprint:"-"`
}

// Declare announces that a flow waits for another agent in a way that Interlock cannot see: for
// an answer, a result, a tool call. Deadlocks through it are found. Answered by Queued, or
// Refused if it would close a cycle and is the victim. It ends by Leave, or when the other's
// session ends (Refused with CodeSessionEnded).
type Declare struct {
	Head    `fingerprint:"10"`
	ID      [16]byte `fingerprint:"-"` // of the ticket
	Agent   string   `fingerprint:"1"` // for a caller without a session
	Flow    string   `fingerprint:"2"`
	Purpose string   `fingerprint:"3"`
	// by public session name; if it is "", by the name of an agent with one session
	On      FlowRef       `fingerprint:"4"`
	MaxWait time.Duration `fingerprint:"5"`
	// On works under a lease of the flow. Of a cycle through this wait another one ends, if there is any
	// that encloses nothing.
	Encloses bool `fingerprint:"6,omitzero"`
	Attach   bool `fingerprint:"-"`
}

// SetPattern registers a key pattern, or replaces the one with its name. Answered
// by Done. Leases keep the times that they were given; capacity and rate count at
// once.
type SetPattern struct {
	Head    `fingerprint:"11"`
	Pattern interlock.Pattern `fingerprint:"1,stored=AppendPattern"`
	Reason  string            `fingerprint:"2,omitzero"` // for the journal
}

// DropPattern forgets a key pattern. Answered by Done.
type DropPattern struct {
	Head `fingerprint:"12"`
	Name string `fingerprint:"1"`
}

// Configure replaces the namespace's settings. Answered by Done.
type Configure struct {
	Head     `fingerprint:"13"`
	Settings interlock.Settings `fingerprint:"1,stored=AppendSettings"`
}

// DeleteNamespace forgets the namespace, with all that is in it. Answered by Done, also if
// there is none. It is refused with CodeNamespaceInUse as long as anything lives there,
// unless Force is set. It takes no request id: deleting twice does no more than once.
type DeleteNamespace struct {
	Head
	Force bool
}

// Commit changes all the documents that it names, or none. It is refused with CodeStale, and a
// description of the changes, if what it read is not current: every key of Reads must still
// have its version, and with AsOf set no key of Reads or Writes may have been written after
// that version (except counters that are only added to). The policies of the keys' patterns are
// checked, and Leases must be in their holder's hands. Answered by Done with Version and
// Documents: those that it wrote, without bodies except for counters.
type Commit struct {
	Head                    `fingerprint:"14"`
	Agent                   string            `fingerprint:"1"` // for a caller without a session
	interlock.CommitRequest `fingerprint:"2"` // the engine keeps the slices and the bodies

	bodies []body // by Prepare
}

// ClaimEffect claims the right to perform an external action that must not happen twice.
// Answered by Done with Effect: claimed, with its ID, or already done, with its result; or
// Refused with CodeEffectClaimed or CodeEffectUnknown. A claim lives as long as Lease if there
// is one, else as Head.Session, else TTL; then its outcome counts as unknown. Repeating one's
// own living claim (from the same session and flow) returns it again.
//
// A claim that is repeated under its request id gets the claim again only if the caller
// proves that it was the first one, by Head.Session, by Lease or by ID; another one that
// uses the same request id is refused as for any claim.
type ClaimEffect struct {
	Head   `fingerprint:"15"`
	ID     [16]byte          `fingerprint:"-"` // fresh random bits; the claimer's secret
	Agent  string            `fingerprint:"1"` // for a caller without a session
	Flow   string            `fingerprint:"2"`
	Action string            `fingerprint:"3"` // canonical
	Lease  interlock.LeaseID `fingerprint:"4"`
	TTL    time.Duration     `fingerprint:"5"` // 0: interlock.DefaultEffectTTL
}

// SettleEffect records the outcome of an effect: EffectDone with Result, EffectUnknown with
// Reason, or, with State 0, that it was not done, which frees it. Its claimer names it by ID.
// With Digest instead, any caller that has found out the outcome settles one that is unknown.
// Answered by Done with Effect. Repeating the same settlement changes nothing.
type SettleEffect struct {
	Head   `fingerprint:"16"`
	ID     interlock.EffectID    `fingerprint:"1"`
	Digest [32]byte              `fingerprint:"2"`
	State  interlock.EffectState `fingerprint:"3"`
	Result string                `fingerprint:"4"`
	Reason string                `fingerprint:"5"`
}

// ForgetEffects forgets done effects before their time: those that were settled at least
// OlderThan ago, the oldest first, and interlock.MaxForget at most; or, with One, the one
// that Digest names, unless that is claimed or unknown. Each may be done again then. Answered
// by Done with Forgotten, and More if others are as old.
type ForgetEffects struct {
	Head
	One       bool
	Digest    [32]byte
	OlderThan time.Duration
}

// Poll asks after a place in line: Queued, Granted (an offer is claimed by it),
// or Refused when it is gone. With Attach, a Queued answer is followed by
// another when the wait is over; without, an earlier attachment over the same
// Link ends.
type Poll struct {
	Head
	Ticket interlock.TicketID
	Attach bool
}

// Leave abandons a place in line. If the request was granted meanwhile, the lease is released;
// a resumed one is parked again. Answered by Done.
type Leave struct {
	Head   `fingerprint:"3"`
	Ticket interlock.TicketID `fingerprint:"1"`
}

// GetLease looks at a lease with its holder's eyes. It renews nothing. With Sign, the
// answer is for a signed statement: it is refused to a principal that may not claim
// itself what the lease claims exclusively.
type GetLease struct {
	Head
	Lease interlock.LeaseID
	Sign  bool
}

// Renew is a heartbeat for one anonymous lease; for a session's lease it is the
// session's heartbeat, but Progress is of that lease alone. A TTL other than 0 is
// the lease's from then on, within the limits that Acquire has for it. Answered by
// Granted with the lease as it is now, or Refused when it is gone or in grace. Only
// a change of the ttl is journaled, and only with it is a request id remembered: a
// repetition renews, and leaves the ttl as it is.
type Renew struct {
	Head     `fingerprint:"36"`
	Lease    interlock.LeaseID `fingerprint:"1"`
	Progress string            `fingerprint:"2"`
	TTL      time.Duration     `fingerprint:"3"`
}

// Release releases a lease. Outcome is the holder's report of the result; Note is handed to the
// next holders of its keys. Answered by Done, or Refused with the reason why the lease is
// already gone. With Run, a live lease that is not a run's is left alone: CodeUnknownLease.
type Release struct {
	Head    `fingerprint:"2"`
	Lease   interlock.LeaseID `fingerprint:"1"`
	Outcome string            `fingerprint:"2"`
	Note    string            `fingerprint:"3"`
	Run     bool              `fingerprint:"4,omitzero"`
}

// Revoke takes back the lease with Fence that claims Key, or that had it when it was parked
// and freed its keys. It ends at once, without grace. Answered by Done, or Refused with CodeFenced when there is no
// such lease.
type Revoke struct {
	Head   `fingerprint:"4"`
	Key    interlock.Key   `fingerprint:"1"`
	Fence  interlock.Fence `fingerprint:"2"`
	Reason string          `fingerprint:"3"`
}

// RequestYield asks the holder of the lease with Fence that claims Key to yield to the first request in the
// line of Key that the lease keeps from its keys: as Acquire.Preempt does, for a request that did not ask, whatever the
// pattern's preempt policy. Nothing is taken from the holder. Answered by Done, also if that request has asked before;
// or Refused: with CodeFenced when there is no such lease, CodeInGrace when it is about to end, CodeNoWaiter when no
// request in the line waits for it.
type RequestYield struct {
	Head   `fingerprint:"37"`
	Key    interlock.Key   `fingerprint:"1"`
	Fence  interlock.Fence `fingerprint:"2"`
	Reason string          `fingerprint:"3"`
}

// CheckFence asks whether a write under Fence to Key may go ahead: whether Fence
// is that of a live lease (grace included) with an exclusive claim on Key or an
// ancestor of it. A lease that only reads does not let its holder write. Done, or
// Refused with CodeFenced.
type CheckFence struct {
	Head
	Key   interlock.Key
	Fence interlock.Fence
}

// Tick lets time pass: it ends what is due at Head.At in its namespace, or in all of
// them if it names none. It ends a bounded number of things a step, so the caller
// asks NextTimer again.
type Tick struct{ Head }

// Recover begins an owner's term after a replay. Every live session and anonymous lease gets a
// full new ttl from Head.At, spread a little so that silent ones do not all end at once; all
// callers count as not listening; fences jump by FenceJump at least (0, or a large number when the
// journal was copied or restored, and the original may have been continued elsewhere).
type Recover struct {
	Head
	Epoch     interlock.Epoch
	FenceJump uint64
}

// MoveNamespace carries out a step of the namespace's move between shards: see record.MoveStep. A step that was
// carried out already changes nothing. Answered by Done; a step that does not follow the one before is
// refused.
type MoveNamespace struct {
	Head
	Number uint64 // of the move
	Other  int    // the other shard
	Step   record.MoveStep
	From   NamespaceExport // of MoveArriving
	Piece  []byte          // of MoveCopied: it belongs to the engine
	Cursor interlock.Index // of MoveOpened: the newest durable entry
}

// NamespaceExport is what a shard has given out when it closed a namespace for a move.
type NamespaceExport struct {
	Num, Session uint64 // the highest numbers of a request and a session
	Fence        interlock.Fence
	Version      interlock.Version // see record.Opened
}

// Limit changes what the engine currently admits; it is not journaled. LowSpace refuses
// whatever would take room in the journal (CodeNoSpace): new sessions, leases and waits.
// Draining refuses the same with CodeShuttingDown, and no waiter is granted any more; the next
// Recover grants them. Kept, with LowSpace, means that the journal could make room by keeping
// less history. LowMemory refuses what LowSpace does, with CodeOverloaded.
type Limit struct {
	Head
	LowMemory bool
	LowSpace  bool
	Kept      bool
	Draining  bool
}
