package record

// Kind is the kind of an event. The numbers are in journals: they are never changed and
// never reused.
type Kind uint8

const (
	// Opened: an owner's term begins. Epoch, and Fence: the highest given out or
	// skipped so far; Version: likewise, of all namespaces, if any were skipped; Idle:
	// the time since the event before it, which no limit of a question counts.
	Opened Kind = 1
	// SessionOpened: Session, ID, Agent, TTL, and Any if none was asked for; in a snapshot
	// Acked, the floor of its numbered commands.
	SessionOpened Kind = 2
	// SessionEnded: Session, Reason (closed, expired).
	SessionEnded Kind = 3
	// Queued: a request stands in line. All fields of a request, and AsOf; Blob, if
	// it is to start a run; Op, if it wants documents; in a snapshot Changed.
	Queued Kind = 4
	// Granted: a request was granted at once. All fields of a request, and Fence; AsOf
	// and Version, where documents were written between both; Blob, if it starts a run;
	// Op, if it wants documents.
	// In a snapshot Waited, Offer, Changed, and Freed for one that is parked without its keys.
	Granted Kind = 5
	// Admitted: a waiting request was granted. Num, Fence, Waited, Trace (none in older journals); Offer if no
	// caller listened at that moment; Version, the namespace's, if it is above the request's AsOf.
	Admitted Kind = 6
	// Claimed: an offer was taken up. Num; Version as in Admitted.
	Claimed Kind = 7
	// Grace: the hard end of a lease. Num, Reason.
	Grace Kind = 8
	// Ended: a lease is over and its keys are free. Num, Fence, Reason, Held, Outcome, Note;
	// ByID, the task, if the lease was an attempt.
	Ended Kind = 9
	// Left: a request left the line. Num, Reason, Trace (none in older journals); Cycle for a deadlock's victim. For
	// barrier_broken the party that was lost: By, the number of its request, Asker, its
	// agent, and Outcome, its reason, or "parked"; nothing of that in older journals.
	Left Kind = 10
	// Answered: a command with a request id was answered and changed nothing else. Scope,
	// RequestID or Seq, Acked, Fingerprint, Answer, Code, Text, ID; Offer if the answer was
	// a lease that was held already. In a snapshot also of other commands: Made, and Freed if
	// the id has left the window and is kept with the thing that it made.
	Answered Kind = 11
	// Converted: a lease was converted at once. Num, Claims (all it has now), Fence.
	Converted Kind = 12
	// YieldRequested: a holder is asked to yield. Num; Actor, Asker, Target, TargetFlow, Purpose and
	// Priority of the asking caller; By and ByID, of its request. Note, why, if an operator asks for it.
	YieldRequested Kind = 13
	// Closed: a lease is over by its holder's death, and its keys stay closed for a
	// while. Num, Fence, Reason, Held, LockDelay.
	Closed Kind = 14
	// Parked: a lease was put aside. Num, Fence, Held, Freed, TTL (for how long), Note (why),
	// AsOf (the namespace's version). With Reason, it is put back because its resumption was
	// abandoned: TTL is the rest of its time; Cycle for a deadlock's victim. Op: asksPerson, if
	// a person is to answer. Blob: the principal that parked it. In a snapshot Queued for one
	// that was away and is resumed since.
	Parked Kind = 15
	// Resumed: a parked lease is held again, or stands in line again. Num, Session, Flow,
	// Agent; Fence, a new one, and Version as in Admitted if it is held, or Queued and
	// MaxWait if it stands in line; Lead. MaxHold, the rest of it, of a lease that kept its
	// keys; without it the parked period does not count.
	Resumed Kind = 16
	// PatternSet: a pattern was registered. PatternName, Blob, Generation (the
	// number of this revision; 0 in journals that are older than revisions), By: the
	// revision that it brings back, if it does. Note: the reason, of its author.
	PatternSet Kind = 17
	// PatternDropped: PatternName, Generation, By and Note as for PatternSet.
	PatternDropped Kind = 18
	// Configured: the namespace's settings. Blob.
	Configured Kind = 19
	// Written: a document was written, or deleted. Claims (one, for the key), Version, Op,
	// ContentType, Blob (its new body); Agent, Session, SessionName, Flow, Actor, Fence and Note of
	// its author. All writes of a commit stand in one entry. In a snapshot Changed for an earlier
	// edition, and with the first one of a document AsOf: the version since which its history is
	// complete.
	Written Kind = 20
	// EffectChanged: an effect was claimed, with ID and Blob (the canonical action), TTL or
	// BaseID (its lease), Agent, Session, SessionName, Flow, Actor and
	// Generation (the attempt); or the one with ID was settled: Op (the state, 0 for
	// free), Result, Outcome (the reason), Agent, Session and Actor.
	EffectChanged Kind = 21

	// QueueSet: a queue of tasks was registered, or paused, drained or resumed. QueueName, Blob; Note: the reason.
	QueueSet Kind = 22
	// QueueDropped: QueueName.
	QueueDropped Kind = 23
	// TaskSubmitted: a task was submitted. ID, Num, Claims, Purpose, Group, Priority, Blob (its other
	// fields), Session, Agent, Flow, Actor and Trace (none in older journals) of the submitter; Op
	// (interlock.TaskState): its state. In a snapshot also Generation (its attempts), Outcome (the reason), Queued and
	// Arrived (how long after At it first stood in line), After (since when it stands there,
	// or is settled), Changed, and BaseID, the lease of one that runs.
	TaskSubmitted Kind = 24
	// TaskDispatched: a worker has a task. BaseID (the task), Num, Generation (the attempt);
	// ID (the lease), Session, Agent, Flow, Actor, TTL, Grace, MaxHold, Stall, LockDelay
	// and Fence as of any lease; Waited; Trace of the task (none in older journals); Changed: it
	// is the first attempt under an approval (in older journals never).
	TaskDispatched Kind = 25
	// AttemptFailed: an attempt has failed. ID (the task), Num, Generation (the attempt),
	// Agent, SessionName and Fence of its worker, Held,
	// Reason, Outcome or Cause (why); Op (interlock.TaskState): where the task stands
	// since, and Due. In a snapshot without Op.
	AttemptFailed Kind = 26
	// TaskMoved: a task stands elsewhere, without an attempt that has failed: it is
	// due, done, dead, cancelled, rescheduled or taken up again, which may be to ask
	// again what was not approved. ID, Num, Op, Generation
	// (the attempts that count), Due, Outcome or Cause (why), Blob
	// (the result of one that is done), Reason; Version, what the commit made, and
	// Changed, if that is a message's key.
	TaskMoved Kind = 27
	// TaskForgotten: a settled task was discarded. ID, Num.
	TaskForgotten Kind = 28
	// ApprovalRequested: the worker of a task asks a person, so its attempt is over and does
	// not count. ID, Num, Op, Generation (the attempts that count), Agent, SessionName and Fence of
	// the worker, Outcome or Cause (why it failed before), Blob (the question).
	ApprovalRequested Kind = 29
	// ApprovalDecided: a task's question is answered: ID, Num, Agent (the person), Note and Blob
	// (the principal, why and the question: see Verdict), Op: the task's state since then, which is dead if the
	// answer was no; Generation, Due, Outcome and Cause as of TaskMoved.
	ApprovalDecided Kind = 30
	// EffectsForgotten: done effects were forgotten before their time: the Num oldest, or the
	// one with the digest in Blob, which may also be one that was not done. Actor, if a caller
	// asked for it; else they made room.
	EffectsForgotten Kind = 31
	// NamespaceDeleted: an operator deleted the namespace, with all that was in it. Actor; Cause:
	// what still lived there.
	NamespaceDeleted Kind = 32
	// NamespaceForgotten: an empty namespace was forgotten, since a new one needed its room.
	NamespaceForgotten Kind = 33
	// Refused: a request was refused at a key with a pattern that records refusals, and
	// changed nothing. Claims (one, for the key), Session, Agent, Flow and Actor of the caller,
	// PatternName, Outcome (the operation), Code, Fence (of a fence check or a revocation; none in older
	// journals); Num: the number of the pattern's refusals that were left out since the last such event.
	Refused Kind = 34
	// Decided: a person has answered the question about a parked lease. Num, Fence (the
	// former one), Op (interlock.Verdict), Agent (the person), Actor, Note (why).
	Decided Kind = 35
	// WebhookSet: a webhook was set. WebhookName, Blob: all of it, its secrets among it.
	WebhookSet Kind = 36
	// WebhookDeleted: WebhookName.
	WebhookDeleted Kind = 37
	// WebhookRotated: a webhook has a new secret. WebhookName, Blob as for WebhookSet.
	WebhookRotated Kind = 38
	// WebhookDelivered: messages of a webhook were delivered, or given up. WebhookName, Blob.
	WebhookDelivered Kind = 39
	// TTLChanged: a renewal changed the ttl of a lease. Num, Fence, TTL.
	TTLChanged Kind = 40
	// NamespaceMoved: a step of a namespace's move between shards. Generation (the number of the
	// move), OtherShard, Op (MoveStep). Of MoveArriving Num, Session and Fence, the highest
	// ones of the source, and Version, as in Counters; of MoveCopied Blob, entries of a snapshot with
	// their lengths; of MoveOpened By, the index before it. In a snapshot those that describe the
	// state, without numbers and pieces.
	NamespaceMoved Kind = 41

	// The kinds from here on stand in snapshots only.

	// Counters: Num, Session, Fence are the highest ones given out; Version, as in
	// Opened; Epoch; Writes; AsOf, the highest version that the end of a
	// namespace took.
	Counters Kind = 64
	// Tombstone: a lease or ticket that is over and still remembered. Num, Fence, Reason;
	// Cycle, or Actor and Outcome, or Base and BaseID, or ByID, as at its end.
	Tombstone Kind = 65
	// Noted: a note kept at a key. Claims (one, for the key), Agent, Fence, Outcome, Note.
	Noted Kind = 66
	// HoldTime: the observed hold time of a class of keys. KeyClass, Held.
	HoldTime Kind = 67
	// SessionGone: a session that is over and still remembered. ID, Reason.
	SessionGone Kind = 68
	// Bucket: a key's bucket of tokens that is not full. Claims (one, for the key),
	// After: it will be full.
	Bucket Kind = 69
	// KeysMoved: keys of a lease that was parked which others may have written
	// meanwhile. ID, Claims.
	KeysMoved Kind = 70
	// Divided: how a key is shared out. Claims (one, for the key, with the number of
	// parts), Division, Num: the grants since loads were last halved, Blob: the loads.
	Divided Kind = 71
	// Versions: a namespace's guarded state. Version: of its last commit, AsOf: the
	// highest version of a deletion that is forgotten; Num: what its versions began above.
	Versions Kind = 72
	// Logged: an entry in the log of a key. Claims (one, for the key), Num (its number), ID
	// (the message), Op (interlock.TaskState), Agent, SessionName,
	// Generation and Fence of the attempt that decided it, Outcome (why it is dead or
	// cancelled), Version (of the key's state), Changed: it made that; Blob: its other fields.
	// Without Claims, Num is the highest number in a log that is forgotten.
	Logged Kind = 73
)

var kindNames = map[Kind]string{
	Opened: "opened", SessionOpened: "session_opened", SessionEnded: "session_ended", Queued: "queued",
	Granted: "granted", Admitted: "admitted", Claimed: "claimed", Grace: "grace", Ended: "ended",
	Left: "left", Answered: "answered", Counters: "counters", Tombstone: "tomb", Noted: "noted", HoldTime: "holds",
	SessionGone: "gone",
	Converted:   "converted", YieldRequested: "yield_requested", Closed: "closed", Parked: "parked", Resumed: "resumed",
	PatternSet: "pattern_set", PatternDropped: "pattern_dropped", Configured: "configured", Bucket: "bucket",
	KeysMoved: "moved",
	Divided:   "divided", Written: "written", EffectChanged: "effect", Versions: "versions", Logged: "logged",
	QueueSet: "queue_set", QueueDropped: "queue_dropped", TaskSubmitted: "task_submitted",
	TaskDispatched: "task_dispatched", AttemptFailed: "task_attempt_failed",
	TaskMoved: "task_moved", TaskForgotten: "task_forgotten",
	ApprovalRequested: "approval_requested", ApprovalDecided: "approval_decided", EffectsForgotten: "effects_forgotten",
	NamespaceDeleted: "namespace_deleted", NamespaceForgotten: "namespace_forgotten", Refused: "refused",
	Decided: "decided", WebhookSet: "webhook_set", WebhookDeleted: "webhook_deleted", WebhookRotated: "webhook_rotated",
	WebhookDelivered: "webhook_delivered", TTLChanged: "ttl_changed", NamespaceMoved: "namespace_moved",
}

func (k Kind) String() string { return kindNames[k] }
