package interlock

// Code names a reason for refusal. The list is closed and append-only: a code
// keeps its meaning for ever and is the same in HTTP, gRPC, Go, Python and
// TypeScript. docs/errors.md lists them with the next steps.
type Code string

const (
	// The request itself is wrong. Repeating it unchanged cannot succeed.
	CodeInvalidRequest   Code = "invalid_request"   // malformed body, unknown field, bad value
	CodeInvalidKey       Code = "invalid_key"       // a key breaks the rules for keys
	CodeInvalidMode      Code = "invalid_mode"      // no such mode
	CodeInvalidNamespace Code = "invalid_namespace" // a namespace breaks the rules for names
	CodeInvalidID        Code = "invalid_id"        // not the form of a lease, ticket or session id
	CodeInvalidTTL       Code = "invalid_ttl"       // a duration out of its range
	CodeInvalidPriority  Code = "invalid_priority"  // priority out of its range
	CodeTooManyClaims    Code = "too_many_claims"   // none, or more than MaxClaims
	CodeDuplicateClaim   Code = "duplicate_claim"   // one key claimed twice in a request
	CodeTooLong          Code = "too_long"          // a name, purpose, note or id above its limit
	CodeBodyTooLarge     Code = "body_too_large"    // more than MaxBodyBytes
	CodeUnsupported      Code = "unsupported"       // a documented feature that this version lacks
	CodeUnmatchedKey     Code = "unmatched_key"     // the key fits none of the namespace's patterns
	CodeInvalidPattern   Code = "invalid_pattern"   // a pattern or a setting contradicts itself or its limits
	CodeUnknownPattern   Code = "unknown_pattern"   // there is no pattern with this name
	CodeUnknownRevision  Code = "unknown_revision"  // the pattern had no revision with this number, or it is forgotten
	CodeNoCapacity       Code = "no_capacity"       // permits are asked of a key that has neither capacity nor rate
	CodeTooManyPermits   Code = "too_many_permits"  // more than the key will ever have
	CodeModeForbidden    Code = "mode_forbidden"    // the pattern does not let this caller claim the key so
	CodeMismatch         Code = "mismatch"          // the barrier or the shared-out key was begun with other numbers
	CodeKeyOrder         Code = "key_order"         // the namespace demands ascending order of keys
	CodeFutureVersion    Code = "future_version"    // a version or an index that was never assigned
	CodeVersionRequired  Code = "version_required"  // the pattern demands that a commit names the version that it read
	CodeLeaseRequired    Code = "lease_required"    // the pattern demands an exclusive lease on the key that is written
	CodeWriterOnly       Code = "writer_only"       // only the pattern's writer may commit to the key
	CodeBadPatch         Code = "bad_patch"         // the patch or the document is not JSON
	CodeNotACounter      Code = "not_a_counter"     // the document is not an integer of 64 bits
	// a signed fence that is malformed, expired or not signed by a known key
	CodeInvalidStatement Code = "invalid_statement"
	CodeForeignFence     Code = "foreign_fence"    // a signed fence of another namespace, or for other keys
	CodeInvalidPath      Code = "invalid_path"     // a path that leaves its root, or names no regular file
	CodeUnknownFile      Code = "unknown_file"     // there is no file at the path
	CodeUnknownQueue     Code = "unknown_queue"    // tasks are for queues that were registered
	CodeUnknownWebhook   Code = "unknown_webhook"  // operators set webhooks
	CodeInvalidWebhook   Code = "invalid_webhook"  // its URL may not be called, or its settings contradict their limits
	CodeInvalidQueue     Code = "invalid_queue"    // a queue's settings contradict themselves or their limits
	CodeQueueInUse       Code = "queue_in_use"     // it has tasks, or is a writer, and is not dropped
	CodeInvalidPayload   Code = "invalid_payload"  // not one JSON value, or larger than MaxPayloadBytes
	CodeNeverTogether    Code = "never_together"   // claims that can never be granted together
	CodeNoWriter         Code = "no_writer"        // the key has no single writer, so there is no mailbox
	CodeUnknownDocument  Code = "unknown_document" // there is no document at the key
	CodeNotFound         Code = "not_found"        // no such path
	CodeMethodNotAllowed Code = "method_not_allowed"

	// Another request or holder blocks it.
	CodeHeld        Code = "held"           // the key is held, and the request did not want to wait, or was a commit
	CodeDeadlock    Code = "deadlock"       // waiting would never end: this request was the victim
	CodeNoWaiter    Code = "no_waiter"      // no request waits for the lease that is to be yielded
	CodeFenced      Code = "fenced"         // the fence is not that of a live lease on the key
	CodeAtCapacity  Code = "at_capacity"    // all permits are taken, and the request did not want to wait
	CodeTooManyRuns Code = "too_many_runs"  // as many runs as the caps allow, and none ended while the start waited
	CodeRateLimited Code = "rate_limited"   // no tokens are left for now, and the request did not want to wait
	CodeStale       Code = "stale"          // a read has changed since: the answer describes the changes
	CodeOutOfBounds Code = "out_of_bounds"  // the counter would cross a bound
	CodeBroken      Code = "barrier_broken" // a party of the barrier died or left before all were there

	// A lease, ticket or session is gone.
	CodeExpired        Code = "expired"         // time ended it, and the key is free now
	CodeTaken          Code = "taken"           // it ended, and another session holds the key
	CodeRevoked        Code = "revoked"         // an operator or the server took it back
	CodeReleased       Code = "released"        // its holder released it
	CodeLeft           Code = "left"            // the ticket left the line
	CodeOfferLapsed    Code = "offer_lapsed"    // granted, but not collected in time
	CodeWaitLimit      Code = "wait_limit"      // the request stood in line for as long as it may
	CodePreempted      Code = "preempted"       // it went to a request that asked its holder to yield
	CodeParked         Code = "parked"          // the lease is parked: resume it first
	CodeDenied         Code = "denied"          // a person denied the question of the parked lease
	CodeNotParked      Code = "not_parked"      // the lease is not parked, so there is nothing to resume
	CodeSessionEnded   Code = "session_ended"   // the session is over, and its leases and waits with it
	CodeUnknownLease   Code = "unknown_lease"   // never existed here, or is forgotten
	CodeUnknownTicket  Code = "unknown_ticket"  // likewise
	CodeUnknownSession Code = "unknown_session" // likewise
	CodeInGrace        Code = "in_grace"        // past the hard end: commit and release, but no renewal

	// An effect in the world outside.
	CodeEffectClaimed Code = "effect_claimed" // another claimer is about to do it
	CodeEffectUnknown Code = "effect_unknown" // it may have happened: find out, and reconcile
	CodeUnknownEffect Code = "unknown_effect" // never claimed, or forgotten
	CodeEffectDone    Code = "effect_done"    // it is settled already, otherwise

	// A task.
	CodeUnknownTask    Code = "unknown_task"     // never existed here, or is forgotten
	CodeTaskMoved      Code = "task_moved"       // the attempt is over: another worker has the task, or it waits
	CodeTaskSettled    Code = "task_settled"     // done, dead or cancelled already
	CodeTaskNotSettled Code = "task_not_settled" // it waits or runs: it is neither replayed nor discarded
	CodeAlreadyReplied Code = "already_replied"  // the message has a reply
	CodeNotAsking      Code = "not_asking"       // no question to a person is open about it

	// Repetition.
	CodeRequestIDReused Code = "request_id_reused" // same id, another body
	CodeRequestTooOld   Code = "request_too_old"   // the id is older than all remembered ones

	// A limit. The text names it.
	CodeTooManyWaiters    Code = "too_many_waiters"
	CodeTooManySessions   Code = "too_many_sessions"
	CodeTooManyLeases     Code = "too_many_leases"
	CodeTooManyStreams    Code = "too_many_streams"
	CodeTooManyNamespaces Code = "too_many_namespaces"
	CodeNamespaceInUse    Code = "namespace_in_use" // something lives in it, so it is not deleted
	CodeTooManyKeys       Code = "too_many_keys"
	CodeTooManyPatterns   Code = "too_many_patterns"
	CodeTooManyDocuments  Code = "too_many_documents"
	CodeTooMuchState      Code = "too_much_state"
	CodeTooManyQueues     Code = "too_many_queues"
	CodeTooManyWebhooks   Code = "too_many_webhooks"
	CodeTooManyTasks      Code = "too_many_tasks"
	CodeQueueDraining     Code = "queue_draining" // the queue takes nothing new
	CodeTooManyEffects    Code = "too_many_effects"
	CodeQuota             Code = "quota_exceeded"  // the namespace or the principal has used up its quota
	CodePastTooLarge      Code = "past_too_large"  // the replay of an earlier state takes too long, or too much memory
	CodeHistoryTrimmed    Code = "history_trimmed" // the journal, or a document's history, no longer reaches back so far

	// The API.
	CodeUnauthenticated Code = "unauthenticated"
	CodeForbidden       Code = "forbidden"
	CodeForeignHost     Code = "foreign_host"

	// The server. Nothing is wrong with the request.
	CodeNoSpace        Code = "no_space"        // the journal's disk is full: no new leases, releases still work
	CodeNotOwner       Code = "not_owner"       // another server owns the shard now
	CodeMoving         Code = "moving"          // the namespace moves to another shard, and answers there in a moment
	CodeShuttingDown   Code = "shutting_down"   // come back in a moment
	CodeOverloaded     Code = "overloaded"      // more waiting work than the server accepts
	CodeUnreachable    Code = "unreachable"     // a guard cannot reach Interlock or its resource: nothing was done
	CodeOutcomeUnknown Code = "outcome_unknown" // the request may or may not have happened: repeat it with the same id
	CodeInternal       Code = "internal"        // our mistake

	CodeHistoryUnreadable Code = "history_unreadable" // the journal could not be read: the answer is incomplete
)

// Transient reports whether a refusal with c is about the server and not about the request:
// nothing came of it, and the same request may be carried out in a moment.
func (c Code) Transient() bool {
	return c == CodeShuttingDown || c == CodeOverloaded || c == CodeNotOwner || c == CodeMoving
}

// Retryable reports whether asking for the same again can lead to another outcome. A refusal of
// a lease with CodeHeld is remembered under its request id, so a caller that asks again after
// it uses a new one; after the others the id stays, so that nothing can happen twice.
func (c Code) Retryable() bool {
	switch c {
	case CodeHeld, CodeOutOfBounds, CodeEffectClaimed, CodeTooManyTasks, CodeQueueDraining, CodeTooManyDocuments, CodeTooMuchState, CodeTooManyEffects, CodeAtCapacity, CodeTooManyRuns, CodeRateLimited, CodeBroken, CodeWaitLimit, CodeTooManyKeys, CodeQuota, CodeTooManyWaiters, CodeTooManySessions, CodeTooManyLeases, CodeTooManyStreams, CodeDeadlock,
		CodeNoSpace, CodeNotOwner, CodeMoving, CodeShuttingDown, CodeOverloaded, CodeUnreachable, CodeOutcomeUnknown,
		CodeHistoryUnreadable:
		return true
	}
	return false
}
