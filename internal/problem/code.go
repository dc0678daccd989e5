package problem

import (
	"maps"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
)

// Info is an answer's addition to a code: the HTTP status, the title, and the advice that holds in
// all circumstances. Where an answer has more details (the holder of the key, the expected time),
// package prose adds them.
type Info struct {
	Status int
	Title  string
	Action interlock.Action
	After  time.Duration // when to come back; 0 where coming back is no help
	Next   string        // the next step, as a full clause in lower case, without what title and detail say
}

// Base is where the type of a problem leads: the section of a code in docs/errors.md follows.
const Base = "https://github.com/interlockdev/interlock/blob/main/docs/errors.md#"

// codes has an entry for every code of the root package, and docs/errors.md a
// section; tests compare the three.
var codes = map[interlock.Code]Info{
	interlock.CodeInvalidRequest: {
		400, "The request is malformed", interlock.ActFixRequest, 0,
		"correct what the message names and send the request again",
	},
	interlock.CodeInvalidKey: {
		400, "Invalid key", interlock.ActFixRequest, 0,
		"correct the key as the message describes; do not invent a different spelling of the same resource",
	},
	interlock.CodeInvalidMode: {
		400, "Unknown mode", interlock.ActFixRequest, 0,
		"correct the mode, or use permits, parties or parts instead",
	},
	interlock.CodeInvalidNamespace: {
		400, "Invalid namespace", interlock.ActFixRequest, 0,
		"use the namespace that was assigned to you",
	},
	interlock.CodeInvalidID: {
		400, "Invalid id", interlock.ActFixRequest, 0,
		"use the id exactly as the server returned it",
	},
	interlock.CodeInvalidTTL: {
		400, "Duration out of range", interlock.ActFixRequest, 0,
		"choose a duration within the range in the message",
	},
	interlock.CodeInvalidPriority: {
		400, "Priority out of range", interlock.ActFixRequest, 0,
		"choose a priority from -100 to 100",
	},
	interlock.CodeTooManyClaims: {
		400, "Invalid number of claims", interlock.ActFixRequest, 0,
		"use the number that the message allows: to claim a whole set, claim a common ancestor; to claim one of a pool, " +
			"ask for any key below a prefix",
	},
	interlock.CodeDuplicateClaim: {
		400, "A key is claimed twice", interlock.ActFixRequest, 0,
		"name each key once: claim it in the stronger mode, or write its final content",
	},
	interlock.CodeTooLong: {
		400, "Text too long", interlock.ActFixRequest, 0,
		"shorten the field that the message names",
	},
	interlock.CodeBodyTooLarge: {
		413, "Request or answer too large", interlock.ActFixRequest, 0,
		"stay within the limit in the message",
	},
	interlock.CodeUnsupported: {
		400, "Not supported by this version", interlock.ActFixRequest, 0,
		"omit it, or use a newer server",
	},
	interlock.CodeUnmatchedKey: {
		400, "The key matches no pattern of the namespace", interlock.ActFixRequest, 0,
		"spell the key like one of the nearest patterns or keys; a lease on another spelling would protect nothing",
	},
	interlock.CodeInvalidPattern: {
		400, "Invalid pattern or setting", interlock.ActFixRequest, 0,
		"correct the field that the message names; nothing was changed",
	},
	interlock.CodeUnknownPattern: {
		404, "Unknown pattern", interlock.ActFixRequest, 0,
		"list the patterns",
	},
	interlock.CodeUnknownRevision: {
		404, "Unknown revision", interlock.ActFixRequest, 0,
		"list the revisions of the pattern",
	},
	interlock.CodeNoCapacity: {
		400, "The key has neither capacity nor rate", interlock.ActFixRequest, 0,
		"claim the key in a mode instead, or ask an operator to set a capacity or a rate in its pattern",
	},
	interlock.CodeTooManyPermits: {
		400, "More permits than the key's capacity", interlock.ActFixRequest, 0,
		"ask for fewer permits: waiting does not help",
	},
	interlock.CodeModeForbidden: {
		403, "The pattern does not allow this caller to use that mode", interlock.ActAskHuman, 0,
		"use an allowed mode, or ask an operator to allow this one",
	},
	interlock.CodeMismatch: {
		409, "The key exists with another number", interlock.ActFixRequest, 0,
		"use the existing number, or another key",
	},
	interlock.CodeKeyOrder: {
		409, "Keys out of order", interlock.ActFixRequest, 0,
		"release the keys that come after this one, then acquire all keys in one request or in ascending order",
	},
	interlock.CodeFutureVersion: {
		400, "The version does not exist yet", interlock.ActReRead, 0,
		"use a version from an answer of this namespace, or read again",
	},
	interlock.CodeVersionRequired: {
		428, "A version is required", interlock.ActReRead, 0,
		"read the document and commit again with the version that you read; or acquire the key and commit under " +
			"the lease",
	},
	interlock.CodeLeaseRequired: {
		428, "A lease is required", interlock.ActFixRequest, 0,
		"acquire the key exclusively, read it again, then commit under that lease",
	},
	interlock.CodeWriterOnly: {
		403, "The key has a single writer", interlock.ActAskHuman, 0,
		"send the change to the writer, or ask an operator to change the pattern",
	},
	interlock.CodeBadPatch: {
		422, "The patch does not apply", interlock.ActReRead, 0,
		"read the document: a merge patch needs a JSON document, and must be JSON itself",
	},
	interlock.CodeNotACounter: {
		409, "The document is not a counter", interlock.ActReRead, 0,
		"read the document: add needs a 64-bit integer",
	},
	interlock.CodeInvalidStatement: {
		401, "Invalid signed fence", interlock.ActStop, 0,
		"do not write: get a new signed fence for a held lease",
	},
	interlock.CodeForeignFence: {
		403, "The fence is for another key or namespace", interlock.ActStop, 0,
		"do not write: acquire the written key, in this namespace",
	},
	interlock.CodeInvalidPath: {
		400, "Invalid path", interlock.ActFixRequest, 0,
		"name a regular file inside the shared directory",
	},
	interlock.CodeUnknownFile: {
		404, "Unknown file", interlock.ActFixRequest, 0,
		"check the path; to create the file, write it with base none",
	},
	interlock.CodeUnknownQueue: {
		404, "Unknown queue", interlock.ActFixRequest, 0,
		"list the queues, or ask an operator to create this one",
	},
	interlock.CodeUnknownWebhook: {
		404, "No such webhook", interlock.ActFixRequest, 0,
		"list the webhooks, or set this one",
	},
	interlock.CodeInvalidWebhook: {
		400, "The webhook's settings are not allowed", interlock.ActFixRequest, 0,
		"correct what the message names; nothing was changed",
	},
	interlock.CodeInvalidQueue: {
		400, "Invalid queue settings", interlock.ActFixRequest, 0,
		"correct the field that the message names; nothing was changed",
	},
	interlock.CodeQueueInUse: {
		409, "The queue is in use", interlock.ActFixRequest, 0,
		"drain the queue and wait until its tasks are settled, or cancel them; if it is a writer, set another writer in " +
			"the pattern, or delete the pattern, first",
	},
	interlock.CodeInvalidPayload: {
		400, "Invalid payload", interlock.ActFixRequest, 0,
		"send one JSON value of at most 256 KiB; store larger data elsewhere, and send a reference",
	},
	interlock.CodeNeverTogether: {
		400, "The claims can never be granted together", interlock.ActFixRequest, 0,
		"claim one of them, or split the work into tasks that can run",
	},
	interlock.CodeNoWriter: {
		409, "The key has no single writer", interlock.ActFixRequest, 0,
		"submit a task, write the document, or ask an operator to set writer_queue in the key's pattern",
	},
	interlock.CodeNoWaiter: {
		409, "No request waits for the lease", interlock.ActFixRequest, 0,
		"wait until an agent stands in line behind it, or revoke the lease",
	},
	interlock.CodeUnknownDocument: {
		404, "Unknown document", interlock.ActFixRequest, 0,
		"check the key; to create the document, commit with the condition absent",
	},
	interlock.CodeNotFound: {
		404, "Not found", interlock.ActFixRequest, 0,
		"see /openapi.json for the available paths",
	},
	interlock.CodeMethodNotAllowed: {
		405, "Method not allowed", interlock.ActFixRequest, 0,
		"use a method in the Allow header",
	},

	interlock.CodeHeld: {
		409, "Key is held", interlock.ActWait, 5 * time.Second,
		"try again later, or wait in line for it",
	},
	interlock.CodeDeadlock: {
		409, "Deadlock", interlock.ActRetry, time.Second,
		"release your leases in the cycle, then acquire all keys in one request",
	},
	interlock.CodeFenced: {
		409, "The fence does not belong to a live lease", interlock.ActStop, 0,
		"do not write: acquire the key, read again, then decide again",
	},
	interlock.CodeAtCapacity: {
		429, "All permits are taken", interlock.ActWait, 5 * time.Second,
		"try again later, or wait in line for it",
	},
	interlock.CodeTooManyRuns: {
		429, "Too many runs", interlock.ActWait, 5 * time.Second,
		"try again later under the same request id, or wait longer in line",
	},
	interlock.CodeRateLimited: {
		429, "No tokens left", interlock.ActWait, time.Second,
		"try again later, or wait in line for it",
	},
	interlock.CodeStale: {
		412, "The commit is stale", interlock.ActReRead, 0,
		"look at the changes, decide again, then commit with the new versions",
	},
	interlock.CodeOutOfBounds: {
		409, "The counter would cross a bound", interlock.ActRetry, 5 * time.Second,
		"add less, or try again when other callers have subtracted",
	},
	interlock.CodeBroken: {
		409, "The barrier is broken", interlock.ActRetry, time.Second,
		"release your lease of this round, then all parties acquire the barrier again",
	},

	interlock.CodeExpired: {
		410, "The lease has expired", interlock.ActReRead, 0,
		"write nothing more under it; acquire again and read again before you continue",
	},
	interlock.CodeTaken: {
		410, "The lease has expired, and the key is taken", interlock.ActStop, 0,
		"write nothing more under it; acquire again to wait in line, then read again",
	},
	interlock.CodeRevoked: {
		410, "The lease was revoked", interlock.ActAskHuman, 0,
		"write nothing more under it; ask the operator before you acquire again",
	},
	interlock.CodeReleased: {
		410, "The lease was released", interlock.ActStop, 0,
		"acquire again if there is more to do",
	},
	interlock.CodeLeft: {
		410, "The ticket left the line", interlock.ActStop, 0,
		"acquire again to wait in line again",
	},
	interlock.CodeOfferLapsed: {
		410, "The offer lapsed", interlock.ActRetry, 0,
		"acquire again, and keep asking for the ticket",
	},
	interlock.CodeWaitLimit: {
		410, "The maximum wait passed", interlock.ActWorkElsewhere, 30 * time.Second,
		"work on something else, then acquire again",
	},
	interlock.CodePreempted: {
		410, "The lease was preempted", interlock.ActReRead, 0,
		"write nothing more under it; acquire again to wait in line, then read again before you continue",
	},
	interlock.CodeParked: {
		409, "The lease is parked", interlock.ActAskHuman, 0,
		"do nothing under it until the human has decided: resume it and wait for the decision",
	},
	interlock.CodeDenied: {
		409, "The approval was denied", interlock.ActStop, 0,
		"do not perform the action: release the lease, or resume it with unapproved to do something else under it",
	},
	interlock.CodeNotParked: {
		409, "The lease is not parked", interlock.ActFixRequest, 0,
		"continue under it",
	},
	interlock.CodeSessionEnded: {
		410, "The session has ended", interlock.ActReRead, 0,
		"open a new session, acquire again and read again",
	},
	interlock.CodeUnknownLease: {
		404, "Unknown lease", interlock.ActStop, 0,
		"check the id; if it is correct, write nothing more under it, and acquire again",
	},
	interlock.CodeUnknownTicket: {
		404, "Unknown ticket", interlock.ActFixRequest, 0,
		"check the id; if it is correct, acquire again",
	},
	interlock.CodeUnknownSession: {
		404, "Unknown session", interlock.ActFixRequest, 0,
		"check the id, or open a new session",
	},
	interlock.CodeInGrace: {
		409, "The lease is in its grace period", interlock.ActStop, 0,
		"start nothing new, commit finished work, release it, then acquire again",
	},

	interlock.CodeEffectClaimed: {
		409, "The effect is claimed", interlock.ActWait, 5 * time.Second,
		"do not perform it: wait until it is settled and use its result",
	},
	interlock.CodeEffectUnknown: {
		409, "The outcome of the effect is unknown", interlock.ActAskHuman, 0,
		"do not perform it again: check at the target whether it happened, then reconcile",
	},
	interlock.CodeUnknownEffect: {
		404, "Unknown effect", interlock.ActFixRequest, 0,
		"check the id; if it is correct, claim the effect again",
	},
	interlock.CodeEffectDone: {
		409, "The effect is already settled", interlock.ActReRead, 0,
		"read the effect, and use its first settlement",
	},

	interlock.CodeUnknownTask: {
		404, "Unknown task", interlock.ActFixRequest, 0,
		"check the id",
	},
	interlock.CodeTaskMoved: {
		410, "The attempt has ended", interlock.ActStop, 0,
		"discard your work on it, and pull the next task",
	},
	interlock.CodeTaskSettled: {
		409, "The task is already settled", interlock.ActReRead, 0,
		"read the task",
	},
	interlock.CodeTaskNotSettled: {
		409, "The task is not settled", interlock.ActFixRequest, 0,
		"wait until it is settled, or cancel it first; if it is running, revoke its lease before that",
	},
	interlock.CodeAlreadyReplied: {
		409, "The message has a reply", interlock.ActReRead, 0,
		"read the message, and use its first reply",
	},
	interlock.CodeNotAsking: {
		409, "No open question", interlock.ActReRead, 0,
		"read the task or the lease",
	},
	interlock.CodeRequestIDReused: {
		422, "The request id was used for another request", interlock.ActFixRequest, 0,
		"use a new id for a new request, and the same id only to repeat a request",
	},
	interlock.CodeRequestTooOld: {
		422, "The request id is too old", interlock.ActReRead, 0,
		"look at the state, then use a new id",
	},

	interlock.CodeTooManyWaiters: {
		429, "The line is full", interlock.ActWorkElsewhere, 30 * time.Second,
		"work on something else, then try again",
	},
	interlock.CodeTooManySessions: {
		429, "Too many sessions", interlock.ActRetry, 30 * time.Second,
		"close unused sessions, or try again later",
	},
	interlock.CodeTooManyLeases: {
		429, "Too many leases", interlock.ActRetry, 30 * time.Second,
		"release unused leases, or try again later",
	},
	interlock.CodeTooManyStreams: {
		429, "Too many streams", interlock.ActRetry, 10 * time.Second,
		"close unused streams, or connect again later",
	},
	interlock.CodeTooManyNamespaces: {
		429, "Too many namespaces", interlock.ActAskHuman, 0,
		"use an existing namespace, or ask an operator to delete an unused one: `interlock namespace delete NAME`",
	},
	interlock.CodeNamespaceInUse: {
		409, "The namespace is in use", interlock.ActAskHuman, 0,
		"remove its content, or use force, which deletes everything and cannot be undone",
	},
	interlock.CodeTooManyKeys: {
		429, "Too many keys in use", interlock.ActRetry, 30 * time.Second,
		"release unused leases and leave unused lines, or try again later",
	},
	interlock.CodeTooManyPatterns: {
		429, "Too many patterns", interlock.ActFixRequest, 0,
		"delete unused patterns, or combine several into one shape",
	},
	interlock.CodeTooManyDocuments: {
		429, "Too many documents", interlock.ActRetry, 30 * time.Second,
		"delete unused documents, or ask an operator for a larger quota",
	},
	interlock.CodeTooMuchState: {
		429, "Too much state", interlock.ActRetry, 30 * time.Second,
		"delete or shorten documents, or ask an operator for a larger quota",
	},
	interlock.CodeTooManyQueues: {
		429, "Too many queues", interlock.ActFixRequest, 0,
		"delete unused queues",
	},
	interlock.CodeTooManyWebhooks: {
		429, "Too many webhooks", interlock.ActFixRequest, 0,
		"delete webhooks that are not used any more",
	},
	interlock.CodeTooManyTasks: {
		429, "Too many tasks", interlock.ActRetry, 30 * time.Second,
		"try again later, start more workers, or discard dead tasks",
	},
	interlock.CodeQueueDraining: {
		503, "The queue is draining", interlock.ActRetry, 30 * time.Second,
		"use another queue, or try again when an operator has resumed this one",
	},
	interlock.CodeTooManyEffects: {
		429, "Too many effects", interlock.ActRetry, 30 * time.Second,
		"settle or reconcile the open effects; done effects are deleted after the namespace's effect_retention",
	},
	interlock.CodeQuota: {
		429, "The quota is used up", interlock.ActRetry, time.Second,
		"send fewer requests, then try again; the status of the namespace shows the quota",
	},
	interlock.CodePastTooLarge: {
		422, "The state is too large to replay here", interlock.ActFixRequest, 0,
		"name an index soon after a snapshot, or replay a copy of the journal",
	},
	interlock.CodeHistoryTrimmed: {
		410, "The history was trimmed", interlock.ActReRead, 0,
		"read the current state, then follow events from the index of that answer",
	},

	interlock.CodeUnauthenticated: {
		401, "No credential, or an unknown one", interlock.ActAskHuman, 0,
		"send a credential, or ask an operator for one",
	},
	interlock.CodeForbidden: {
		403, "Not allowed with this credential", interlock.ActAskHuman, 0,
		"use a credential with this right, as the message describes, or ask an operator",
	},
	interlock.CodeForeignHost: {
		403, "Unknown host name", interlock.ActFixRequest, 0,
		"use one of the server's own host names",
	},

	interlock.CodeNoSpace: {
		503, "The journal's disk is full", interlock.ActAskHuman, 30 * time.Second,
		"release what you do not need, unless the message reports that nothing was recorded; ask the operator to free " +
			"disk space",
	},
	interlock.CodeNotOwner: {
		503, "Another server owns the shard", interlock.ActRetry, time.Second,
		"connect again and repeat the request with the same request id",
	},
	interlock.CodeMoving: {
		503, "The namespace moves to another shard", interlock.ActRetry, time.Second,
		"repeat the request in a moment with the same request id: leases, fences and queue positions are kept",
	},
	interlock.CodeShuttingDown: {
		503, "The server is shutting down", interlock.ActRetry, 2 * time.Second,
		"repeat the request in a moment with the same request id: leases and queue positions are kept",
	},
	interlock.CodeOverloaded: {
		503, "The server is overloaded", interlock.ActRetry, time.Second,
		"repeat the request a little later with the same request id",
	},
	interlock.CodeUnreachable: {
		503, "A guard cannot reach its backend", interlock.ActRetry, 2 * time.Second,
		"repeat the request a little later, and tell the guard's operator if this persists",
	},
	interlock.CodeOutcomeUnknown: {
		503, "Outcome unknown", interlock.ActRetry, time.Second,
		"repeat the request with the same request id: it is executed at most once",
	},
	interlock.CodeInternal: {
		500, "Internal error", interlock.ActAskHuman, 0,
		"assume nothing about the request; ask the operator to check the server's log",
	},
	interlock.CodeHistoryUnreadable: {
		503, "The history cannot be read", interlock.ActRetry, 2 * time.Second,
		"connect again and continue after the last index; tell the operator if this persists",
	},
}

// Of returns what is known of a code. A code without an entry is a mistake of the server and is
// shown as one.
func Of(code interlock.Code) Info {
	if info, ok := codes[code]; ok {
		return info
	}
	return codes[interlock.CodeInternal]
}

// Codes returns all codes, sorted.
func Codes() []interlock.Code { return slices.Sorted(maps.Keys(codes)) }
