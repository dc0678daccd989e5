package engine

import (
	"time"

	"github.com/interlockdev/interlock"
)

// EventKind is the kind of an event. The numbers are in journals: they are never changed and
// never reused.
type EventKind uint8

const (
	// EvOpened: an owner's term begins. Epoch, and Fence: the highest given out or
	// skipped so far; Version: likewise, of all namespaces, if any were skipped; Waited:
	// the time since the event before it, which no limit of a question counts.
	EvOpened EventKind = 1
	// EvSessionOpened: Session, ID, Agent, TTL; in a snapshot Acked, the floor of its
	// numbered commands.
	EvSessionOpened EventKind = 2
	// EvSessionEnded: Session, Reason (closed, expired).
	EvSessionEnded EventKind = 3
	// EvQueued: a request stands in line. All fields of a request, and AsOf; Blob, if
	// it is to start a run; Op, if it wants documents; in a snapshot Changed.
	EvQueued EventKind = 4
	// EvGranted: a request was granted at once. All fields of a request, and Fence; AsOf
	// and Version, where documents were written between both; Blob, if it starts a run;
	// Op, if it wants documents.
	// In a snapshot Waited, Offer, Changed, and Freed for one that is parked without its keys.
	EvGranted EventKind = 5
	// EvAdmitted: a waiting request was granted. Num, Fence, Waited; Offer if no caller
	// listened at that moment; Version, the namespace's, if it is above the request's AsOf.
	EvAdmitted EventKind = 6
	// EvClaimed: an offer was taken up. Num; Version as in EvAdmitted.
	EvClaimed EventKind = 7
	// EvGrace: the hard end of a lease. Num, Reason.
	EvGrace EventKind = 8
	// EvEnded: a lease is over and its keys are free. Num, Fence, Reason, Held, Outcome, Note;
	// ByID, the task, if the lease was an attempt.
	EvEnded EventKind = 9
	// EvLeft: a request left the line. Num, Reason; Cycle for a deadlock's victim. For
	// barrier_broken the party that was lost: By, the number of its request, Asker, its
	// agent, and Outcome, its reason, or "parked"; nothing of that in older journals.
	EvLeft EventKind = 10
	// EvAnswered: a command with a request id was answered and changed nothing else. Scope,
	// RequestID or Seq, Acked, Fingerprint, Answer, Code, Message, ID; Offer if the answer was
	// a lease that was held already. In a snapshot also of other commands: Made, and Freed if
	// the id has left the window and is kept with the thing that it made.
	EvAnswered EventKind = 11
	// EvConverted: a lease was converted at once. Num, Claims (all it has now), Fence.
	EvConverted EventKind = 12
	// EvAsked: a holder is asked to yield. Num; Actor, Asker, Target, TargetFlow, Purpose and
	// Priority of the asking caller; By and ByID, of its request.
	EvAsked EventKind = 13
	// EvClosed: a lease is over by its holder's death, and its keys stay closed for a
	// while. Num, Fence, Reason, Held, LockDelay.
	EvClosed EventKind = 14
	// EvParked: a lease was put aside. Num, Fence, Held, Freed, TTL (for how long), Note (why),
	// AsOf (the namespace's version). With Reason, it is put back because its resumption was
	// abandoned: TTL is the rest of its time; Cycle for a deadlock's victim. Op: asksPerson, if
	// a person is to answer. Blob: the principal that parked it. In a snapshot Queued for one
	// that was away and is resumed since.
	EvParked EventKind = 15
	// EvResumed: a parked lease is held again, or stands in line again. Num, Session, Flow,
	// Agent; Fence, a new one, and Version as in EvAdmitted if it is held, or Queued and
	// MaxWait if it stands in line; Lead. MaxHold, the rest of it, of a lease that kept its
	// keys; without it the parked period does not count.
	EvResumed EventKind = 16
	// EvPattern: a pattern was registered. Purpose (its name), Blob, Generation (the
	// number of this revision; 0 in journals that are older than revisions), By: the
	// revision that it brings back, if it does.
	EvPattern EventKind = 17
	// EvPatternDropped: Purpose (its name), Generation and By as for EvPattern.
	EvPatternDropped EventKind = 18
	// EvConfigured: the namespace's settings. Blob.
	EvConfigured EventKind = 19
	// EvWritten: a document was written, or deleted. Claims (one, for the key), Version, Op,
	// ContentType, Blob (its new body); Agent, Session, Purpose (the public name of the
	// session), Flow, Actor, Fence and Note of its author. All writes of a commit stand in one
	// entry. In a snapshot Changed for an earlier edition, and with the first one of a document
	// AsOf: the version since which its history is complete.
	EvWritten EventKind = 20
	// EvEffect: an effect was claimed, with ID and Blob (the canonical action), TTL or
	// BaseID (its lease), Agent, Session, Purpose (its public name), Flow, Actor and
	// Generation (the attempt); or the one with ID was settled: Op (the state, 0 for
	// free), Note (its result), Outcome (the reason), Agent, Session and Actor.
	EvEffect EventKind = 21

	// EvQueue: a queue of tasks was registered. Purpose (its name), Blob.
	EvQueue EventKind = 22
	// EvQueueDropped: Purpose (its name).
	EvQueueDropped EventKind = 23
	// EvTask: a task was submitted. ID, Num, Claims, Purpose, Group, Priority, Blob (its other
	// fields), Session, Agent, Flow and Actor of the submitter; Op (interlock.TaskState): its
	// state. In a snapshot also Generation (its attempts), Outcome (the reason), Queued and
	// Arrived (how long after At it first stood in line), Waited (since when it stands there,
	// or is settled), Changed, and BaseID, the lease of one that runs.
	EvTask EventKind = 24
	// EvHanded: a worker has a task. BaseID (the task), Num, Generation (the attempt);
	// ID (the lease), Session, Agent, Flow, Actor, TTL, Grace, MaxHold, Stall, LockDelay
	// and Fence as of any lease; Waited.
	EvHanded EventKind = 25
	// EvAttempt: an attempt has failed. ID (the task), Num, Generation (the attempt),
	// Agent, Purpose (the public name of its session) and Fence of its worker, Held,
	// Reason, Outcome (why, in words); Op (interlock.TaskState): where the task stands
	// since, and Waited: until it is due. In a snapshot without Op.
	EvAttempt EventKind = 26
	// EvTaskStands: a task stands elsewhere, without an attempt that has failed: it is
	// due, done, dead, cancelled, rescheduled or taken up again, which may be to ask
	// again what was not approved. ID, Num, Op, Generation
	// (the attempts that count), Waited (until it is due), Outcome (why, in words), Blob
	// (the result of one that is done), Reason; Version, what the commit made, and
	// Changed, if that is a message's key.
	EvTaskStands EventKind = 27
	// EvTaskForgotten: a settled task was discarded. ID, Num.
	EvTaskForgotten EventKind = 28
	// EvTaskAsks: the worker of a task asks a person, so its attempt is over and does
	// not count. ID, Num, Op, Generation (the attempts that count), Agent, Purpose (the
	// public name of its session) and Fence of the worker, Outcome (why it failed
	// before, in words), Blob (the question).
	EvTaskAsks EventKind = 29
	// EvTaskAnswered: a task's question is answered: ID, Num, Agent (the person), Note (why),
	// Op: the task's state since then, which is dead if the answer was no; Generation, Waited
	// and Outcome as of EvTaskStands.
	EvTaskAnswered EventKind = 30
	// EvEffectsForgotten: done effects were forgotten before their time: the Num oldest, or the
	// one with the digest in Blob, which may also be one that was not done. Actor, if a caller
	// asked for it; else they made room.
	EvEffectsForgotten EventKind = 31
	// EvDeleted: an operator deleted the namespace, with all that was in it. Actor; Outcome:
	// what still lived there, in words.
	EvDeleted EventKind = 32
	// EvForgotten: an empty namespace was forgotten, since a new one needed its room.
	EvForgotten EventKind = 33
	// EvRefused: a request was refused at a key with a pattern that records refusals, and
	// changed nothing. Claims (one, for the key), Session, Agent, Flow and Actor of the caller,
	// Purpose (the name of the pattern), Outcome (the operation), Code; Num: the number of the
	// pattern's refusals that were left out since the last such event.
	EvRefused EventKind = 34
	// EvDecided: a person has answered the question about a parked lease. Num, Fence (the
	// former one), Op (interlock.Verdict), Agent (the person), Actor, Note (why).
	EvDecided EventKind = 35

	// The kinds from here on stand in snapshots only.

	// EvCounters: Num, Session, Fence are the highest ones given out; Version, as in
	// EvOpened; Epoch; Writes; AsOf, the highest version that the end of a
	// namespace took.
	EvCounters EventKind = 64
	// EvTomb: a lease or ticket that is over and still remembered. Num, Fence, Reason;
	// Cycle, or Actor and Outcome, or Base and BaseID, or ByID, as at its end.
	EvTomb EventKind = 65
	// EvNoted: a note kept at a key. Claims (one, for the key), Agent, Fence, Outcome, Note.
	EvNoted EventKind = 66
	// EvHolds: the observed hold time of a class of keys. Purpose (the class), Held.
	EvHolds EventKind = 67
	// EvGone: a session that is over and still remembered. ID, Reason.
	EvGone EventKind = 68
	// EvBucket: a key's bucket of tokens that is not full. Claims (one, for the key),
	// Waited: how long after At it will be full.
	EvBucket EventKind = 69
	// EvMoved: keys of a lease that was parked which others may have written
	// meanwhile. ID, Claims.
	EvMoved EventKind = 70
	// EvDivided: how a key is shared out. Claims (one, for the key, with the number of
	// parts), Division, Num: the grants since loads were last halved, Blob: the loads.
	EvDivided EventKind = 71
	// EvVersions: a namespace's guarded state. Version: of its last commit, AsOf: the
	// highest version of a deletion that is forgotten; Num: what its versions began above.
	EvVersions EventKind = 72
	// EvLogged: an entry in the log of a key. Claims (one, for the key), Num (its number), ID
	// (the message), Op (interlock.TaskState), Agent, Purpose (the public name of its session),
	// Generation and Fence of the attempt that decided it, Outcome (why it is dead or
	// cancelled), Version (of the key's state), Changed: it made that; Blob: its other fields.
	// Without Claims, Num is the highest number in a log that is forgotten.
	EvLogged EventKind = 73
)

// Reason is why a lease or a wait ended. The numbers are in journals.
type Reason uint8

const (
	ByRelease    Reason = 1  // its holder gave it back
	ByTTL        Reason = 2  // no heartbeat within its ttl
	ByMaxHold    Reason = 3  // held for as long as it may be
	ByStall      Reason = 4  // heartbeats without progress
	ByRevocation Reason = 5  // an operator took it back
	BySession    Reason = 6  // its session was closed
	ByDeath      Reason = 7  // its session expired
	ByLapse      Reason = 8  // the offer was not taken up, or the ticket not polled
	ByLeaving    Reason = 9  // its waiter left the line
	ByDeadlock   Reason = 10 // it was the victim of a cycle
	ByWaitLimit  Reason = 11 // it stood in line for as long as it may
	ByPreemption Reason = 12 // another request asked for its keys, and the pattern let it
	ByBreak      Reason = 13 // a party of its barrier died or left
	ByConversion Reason = 14 // the conversion was granted: it is part of its lease now
	ByBase       Reason = 15 // the lease that it would have changed or belongs to is over
	ByParking    Reason = 16 // it was parked for as long as it may be
	ByTarget     Reason = 17 // the session that it waited for is over
	ByPattern    Reason = 18 // its key will never have as many permits, besides those that its party has
	ByNack       Reason = 19 // its worker said that the attempt has failed
	ByFull       Reason = 20 // its run could not start while its caller waited
	ByQuestion   Reason = 21 // its worker asks a person
)

var reasonNames = [...]string{
	ByRelease: "released", ByTTL: "ttl", ByMaxHold: "max_hold", ByStall: "stall", ByRevocation: "revoked",
	BySession: "session_closed", ByDeath: "session_expired", ByLapse: "lapsed", ByLeaving: "left", ByDeadlock: "deadlock",
	ByWaitLimit: "wait_limit", ByPreemption: "preempted", ByBreak: "barrier_broken", ByConversion: "converted",
	ByBase: "lease_ended", ByParking: "park_limit", ByTarget: "target_ended",
	ByPattern: "pattern_changed", ByNack: "nack", ByFull: "too_many_runs",
	ByQuestion: "question",
}

func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return ""
}

// Event is one change: its subject, its cause and its time. It is a union; the kinds' comments
// list the fields that each uses beyond the subject.
type Event struct {
	Kind EventKind
	At   Time

	// The subject: its owner and its identity.
	Namespace interlock.Namespace
	Session   uint64 // number of the session; 0 for an anonymous holder
	Agent     string
	Flow      string
	Claims    []interlock.Claim
	Actor     string // the principal that caused it; "" without credentials
	Asker     string // EvAsked, and the end of a preempted request: the agent that asks for it

	// A request.
	Num      uint64 // its number
	ID       [16]byte
	Purpose  string
	Trace    string
	Priority int
	interlock.Terms

	// What became of it.
	Fence   interlock.Fence
	Offer   bool
	Reason  Reason
	Outcome string
	Note    string
	Waited  time.Duration
	Held    time.Duration
	Cycle   []interlock.CycleStep
	Changed bool // a possible writer held one of the keys while the request waited

	// More of a request.
	Any    bool     // Claims are alternatives
	Lead   bool     // it is ahead of new requests
	Base   uint64   // the number of the lease that it converts, or belongs to as a part
	BaseID [16]byte // the id of that lease
	Part   bool     // it is a part of a shared-out key, of the member with number Base

	// EvAsked: the asking party; of EvQueued, when it is a declared wait, its target.
	Target     uint64 // number of the session
	TargetFlow string
	By         uint64
	ByID       [16]byte // of that request

	Generation uint64        // of a barrier: EvAdmitted; in a snapshot EvGranted; of an effect: EvEffect
	Freed      bool          // EvParked; in a snapshot EvAnswered: the id has left the window
	Queued     bool          // EvResumed; in a snapshot EvParked, and of others: the request was parked once, so Arrived counts
	Arrived    time.Duration // in a snapshot: how long before At a request arrived that was parked once
	Blob       []byte        // EvPattern, EvConfigured, EvWritten, EvEffect

	Version     interlock.Version // of an event that answers a commit, too
	AsOf        interlock.Version // a request's: see Acquire; 0 where the namespace had no commit yet
	ContentType string
	Op          uint8 // EvQueued, EvGranted: wantsDocuments or 0; EvWritten: interlock.WriteOp; EvEffect: interlock.EffectState; EvDecided: interlock.Verdict; EvParked: asksPerson; of a task interlock.TaskState

	// EvOpened, EvCounters.
	Epoch  interlock.Epoch
	Writes uint64 // leases that could write and have ended

	// EvAnswered, and every event that carries out a command with a request id; of EvRefused
	// only Code.
	// Scope is the session in which the id counts, 0 for the namespace.
	Scope       uint64
	RequestID   string
	Seq         uint64
	Acked       uint64
	Fingerprint uint64
	Answer      Outcome
	Made        uint8 // the kind of the thing that it made under ID; 0 also of versions that did not record it
	Code        interlock.Code
	Message     string

	attributes attributes // not journaled
}

// attributes are what the event of a request is counted under.
type attributes struct {
	patterns []string // shared, never changed
	org      string
	group    string
}

// Patterns returns the names of the patterns that the keys of a request fit, each once, when it
// was granted, left the line or ended; "" stands for keys that fit none. The first 8 claims
// count. It is nil for other events. The caller does not change it.
func (ev *Event) Patterns() []string { return ev.attributes.patterns }

// Org returns the organisation of a run, for events with non-nil Patterns; "" if there is none.
func (ev *Event) Org() string { return ev.attributes.org }

// Claimants returns the group of a request, for the same events.
func (ev *Event) Claimants() string { return ev.attributes.group }

var eventNames = map[EventKind]string{
	EvOpened: "opened", EvSessionOpened: "session_opened", EvSessionEnded: "session_ended", EvQueued: "queued",
	EvGranted: "granted", EvAdmitted: "admitted", EvClaimed: "claimed", EvGrace: "grace", EvEnded: "ended",
	EvLeft: "left", EvAnswered: "answered", EvCounters: "counters", EvTomb: "tomb", EvNoted: "noted", EvHolds: "holds", EvGone: "gone",
	EvConverted: "converted", EvAsked: "asked", EvClosed: "closed", EvParked: "parked", EvResumed: "resumed",
	EvPattern: "pattern_set", EvPatternDropped: "pattern_dropped", EvConfigured: "configured", EvBucket: "bucket", EvMoved: "moved",
	EvDivided: "divided", EvWritten: "written", EvEffect: "effect", EvVersions: "versions", EvLogged: "logged",
	EvQueue: "queue_set", EvQueueDropped: "queue_dropped", EvTask: "task_submitted", EvHanded: "task_handed_out", EvAttempt: "task_attempt_failed",
	EvTaskStands: "task_moved", EvTaskForgotten: "task_forgotten",
	EvTaskAsks: "task_asks", EvTaskAnswered: "task_answered", EvEffectsForgotten: "effects_forgotten",
	EvDeleted: "namespace_deleted", EvForgotten: "namespace_forgotten", EvRefused: "refused",
	EvDecided: "decided",
}

func (k EventKind) String() string { return eventNames[k] }
