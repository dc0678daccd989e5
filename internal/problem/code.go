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
	Next   string        // the next step, as a full clause in lower case
}

// codes has an entry for every code of the root package, and docs/errors.md a
// section; tests compare the three.
var codes = map[interlock.Code]Info{
	interlock.CodeInvalidRequest: {
		400, "The request is malformed", interlock.ActStop, 0,
		"correct what the message names and send the request again",
	},
	interlock.CodeInvalidKey: {
		400, "That cannot be a key", interlock.ActStop, 0,
		"write the key as the message says; do not invent another spelling for the same thing",
	},
	interlock.CodeInvalidMode: {
		400, "No such mode", interlock.ActStop, 0,
		"use exclusive, shared, intent-exclusive, intent-shared or shared+intent-exclusive; or give permits, parties or parts instead of a mode",
	},
	interlock.CodeInvalidNamespace: {
		400, "That cannot be a namespace", interlock.ActStop, 0,
		"use the namespace that you were given",
	},
	interlock.CodeInvalidID: {
		400, "That is not an id", interlock.ActStop, 0,
		"use the id exactly as the server gave it",
	},
	interlock.CodeInvalidTTL: {
		400, "A duration is out of its range", interlock.ActStop, 0,
		"choose a duration within the range that the message names",
	},
	interlock.CodeInvalidPriority: {
		400, "The priority is out of its range", interlock.ActStop, 0,
		"choose a priority from -100 to 100",
	},
	interlock.CodeTooManyClaims: {
		400, "Too many claims, or none", interlock.ActStop, 0,
		"name as many as the message allows: for all of a set one common ancestor will do, for any of a pool any_prefix",
	},
	interlock.CodeDuplicateClaim: {
		400, "A key is claimed twice", interlock.ActStop, 0,
		"name each key once: claim it in the stronger mode, write it as it is to be in the end",
	},
	interlock.CodeTooLong: {
		400, "A text is too long", interlock.ActStop, 0,
		"shorten what the message names",
	},
	interlock.CodeBodyTooLarge: {
		413, "Too much at once", interlock.ActStop, 0,
		"send, or ask for, no more than the message allows",
	},
	interlock.CodeUnsupported: {
		400, "Not supported by this version", interlock.ActStop, 0,
		"leave it out, or ask for a newer server",
	},
	interlock.CodeUnknownPattern: {
		400, "The key fits no pattern of the namespace", interlock.ActStop, 0,
		"spell the key like one of the nearest patterns or keys; a spelling of your own would exclude nobody",
	},
	interlock.CodeInvalidPattern: {
		400, "The pattern or the setting contradicts itself or its limits", interlock.ActStop, 0,
		"correct what the message names; nothing was changed",
	},
	interlock.CodeNoSuchPattern: {
		404, "No such pattern", interlock.ActStop, 0,
		"look at GET /v1/patterns for the names that there are",
	},
	interlock.CodeNoSuchRevision: {
		404, "No such revision", interlock.ActStop, 0,
		"look at GET /v1/patterns/{name}/revisions for those that are remembered",
	},
	interlock.CodeNoCapacity: {
		400, "The key has neither capacity nor rate", interlock.ActStop, 0,
		"claim the key in a mode instead, or have the operator give its pattern a capacity or a rate",
	},
	interlock.CodeTooManyPermits: {
		400, "More permits than the key will ever have", interlock.ActStop, 0,
		"ask for fewer: waiting cannot help",
	},
	interlock.CodeModeForbidden: {
		403, "The pattern does not let this caller claim the key so", interlock.ActAskHuman, 0,
		"claim it in a mode that is allowed, or ask the operator to allow this one",
	},
	interlock.CodeMismatch: {
		409, "Others began it with another number", interlock.ActStop, 0,
		"use the number that the others use, or another key",
	},
	interlock.CodeKeyOrder: {
		409, "The keys are asked for out of order", interlock.ActStop, 0,
		"release what comes after the key and ask for all keys in one request, or in ascending order",
	},
	interlock.CodeFutureVersion: {
		400, "That version was never given out", interlock.ActReRead, 0,
		"use a version that an answer of this namespace gave, and read again if you are not sure",
	},
	interlock.CodeVersionRequired: {
		428, "The version that was read must be named", interlock.ActReRead, 0,
		"read the document and commit again with its version in reads, or in If-Match; or acquire the key and commit in the name of the lease",
	},
	interlock.CodeLeaseRequired: {
		428, "The key must be leased for this", interlock.ActStop, 0,
		"acquire the key exclusively, read it again, then commit in the name of that lease",
	},
	interlock.CodeWriterOnly: {
		403, "Only one writer may commit to this key", interlock.ActAskHuman, 0,
		"leave the key to its writer, or ask the operator to change the pattern",
	},
	interlock.CodeBadPatch: {
		422, "The patch does not apply", interlock.ActReRead, 0,
		"look at the document: only JSON can be merged, and the patch must be JSON",
	},
	interlock.CodeNotACounter: {
		409, "The document is not a counter", interlock.ActReRead, 0,
		"look at the document: only a whole number of 64 bits can be added to",
	},
	interlock.CodeInvalidStatement: {
		401, "The statement proves nothing", interlock.ActStop, 0,
		"do not write: get a fresh statement for a lease that is held",
	},
	interlock.CodeForeignFence: {
		403, "The fence is for something else", interlock.ActStop, 0,
		"do not write: acquire the key that is written, in this namespace",
	},
	interlock.CodeInvalidPath: {
		400, "That cannot be a path", interlock.ActStop, 0,
		"name a regular file below the shared directory, without leaving it",
	},
	interlock.CodeNoSuchFile: {
		404, "No such file", interlock.ActStop, 0,
		"check the path; to make the file, write it with the base none, or with If-None-Match: *",
	},
	interlock.CodeNoSuchQueue: {
		404, "No such queue", interlock.ActStop, 0,
		"look at the queues that there are, or have the operator register this one",
	},
	interlock.CodeInvalidQueue: {
		400, "The queue's settings contradict themselves or their limits", interlock.ActStop, 0,
		"correct what the message names; nothing was changed",
	},
	interlock.CodeQueueInUse: {
		409, "The queue is in use", interlock.ActStop, 0,
		"have the queue drained and wait until its tasks are settled, or cancel them; a writer's pattern is given another one first",
	},
	interlock.CodeInvalidPayload: {
		400, "The payload is not one JSON value, or too large", interlock.ActStop, 0,
		"send one JSON value of at most 256 KiB; put what is larger where the worker finds it",
	},
	interlock.CodeNeverTogether: {
		400, "The claims can never be granted together", interlock.ActStop, 0,
		"split the work into tasks that can run",
	},
	interlock.CodeNoWriter: {
		409, "The key has no single writer", interlock.ActStop, 0,
		"write the document yourself, or have the operator name a writer for the key's pattern",
	},
	interlock.CodeNoSuchDocument: {
		404, "There is nothing at the key", interlock.ActStop, 0,
		"check the key; to make the document, commit on the condition that it is absent",
	},
	interlock.CodeNotFound: {
		404, "No such path", interlock.ActStop, 0,
		"look at /openapi.json for the paths that there are",
	},
	interlock.CodeMethodNotAllowed: {
		405, "This path does not take that method", interlock.ActStop, 0,
		"use a method that the Allow header names",
	},

	interlock.CodeHeld: {
		409, "Key is held", interlock.ActWait, 5 * time.Second,
		"ask again later, or ask with on_conflict wait to stand in line",
	},
	interlock.CodeDeadlock: {
		409, "Deadlock", interlock.ActRetry, time.Second,
		"release what you hold in the cycle, then ask again for all keys in one request",
	},
	interlock.CodeFenced: {
		409, "The fence is not that of a live lease", interlock.ActStop, 0,
		"do not write: no lease that is in force lets this fence write the key. Acquire the key, read again, then decide again",
	},
	interlock.CodeAtCapacity: {
		429, "All permits are taken", interlock.ActWait, 5 * time.Second,
		"ask again later, or ask with on_conflict wait to stand in line",
	},
	interlock.CodeTooManyRuns: {
		429, "Too many runs", interlock.ActWait, 5 * time.Second,
		"ask again later under the same request id, or with a longer wait_ms to stand in line",
	},
	interlock.CodeRateLimited: {
		429, "No tokens are left for now", interlock.ActWait, time.Second,
		"ask again later, or ask with on_conflict wait to stand in line",
	},
	interlock.CodeStale: {
		412, "What was read has changed since", interlock.ActReRead, 0,
		"nothing was written: look at what changed, decide again, then commit with the new versions",
	},
	interlock.CodeOutOfBounds: {
		409, "The counter would cross a bound", interlock.ActRetry, 5 * time.Second,
		"nothing was added: add less, or try again when others have given back",
	},
	interlock.CodeBroken: {
		409, "The barrier is broken", interlock.ActRetry, time.Second,
		"a party died or left before all were there: release what is left of this round, then begin the barrier anew together with the others",
	},

	interlock.CodeExpired: {
		410, "The lease has expired", interlock.ActReRead, 0,
		"write nothing more under it; the key is free now: acquire again and read again before you go on",
	},
	interlock.CodeTaken: {
		410, "The lease has expired, and the key is taken", interlock.ActStop, 0,
		"write nothing more under it: somebody else holds the key and works on it. Acquire again to stand in line, then read again",
	},
	interlock.CodeRevoked: {
		410, "The lease was revoked", interlock.ActAskHuman, 0,
		"write nothing more under it; it was taken back on purpose: ask who did it before you acquire again",
	},
	interlock.CodeReleased: {
		410, "The lease was released", interlock.ActStop, 0,
		"nothing is left to do with it; acquire again if there is more to do",
	},
	interlock.CodeLeft: {
		410, "The ticket left the line", interlock.ActStop, 0,
		"acquire again to stand in line again",
	},
	interlock.CodeOfferLapsed: {
		410, "Nobody came for the offer", interlock.ActRetry, 0,
		"the key was offered to this ticket and passed on: acquire again, and keep asking after the ticket",
	},
	interlock.CodeWaitLimit: {
		410, "The request stood in line for as long as it may", interlock.ActWorkElsewhere, 30 * time.Second,
		"work on something else, then acquire again to stand in line again",
	},
	interlock.CodePreempted: {
		410, "The lease went to a request that asked its holder to yield", interlock.ActReRead, 0,
		"write nothing more under it; acquire again to stand in line, then read again before you go on",
	},
	interlock.CodeParked: {
		409, "The lease is parked", interlock.ActAskHuman, 0,
		"nothing may be done under it until the human has decided: resume it with wait_ms, which waits for the answer",
	},
	interlock.CodeDenied: {
		409, "The approval was denied", interlock.ActStop, 0,
		"do not do what was asked: release the lease, or resume it with unapproved to do something else under it",
	},
	interlock.CodeNotParked: {
		409, "The lease is not parked", interlock.ActStop, 0,
		"go on with it as it is: there is nothing to resume",
	},
	interlock.CodeSessionEnded: {
		410, "The session is over", interlock.ActReRead, 0,
		"its leases and waits ended with it: open a session, acquire again and read again",
	},
	interlock.CodeUnknownLease: {
		404, "No such lease", interlock.ActStop, 0,
		"check the id; if it was right, the lease ended long ago: write nothing under it, acquire again",
	},
	interlock.CodeUnknownTicket: {
		404, "No such ticket", interlock.ActStop, 0,
		"check the id; if it was right, the wait ended long ago: acquire again",
	},
	interlock.CodeUnknownSession: {
		404, "No such session", interlock.ActStop, 0,
		"check the id; if it was right, the session ended long ago: open another",
	},
	interlock.CodeInGrace: {
		409, "The lease is in its grace period", interlock.ActStop, 0,
		"it can no longer be renewed: begin nothing new, commit what is finished, release it, then acquire again",
	},

	interlock.CodeEffectClaimed: {
		409, "Somebody is about to do it", interlock.ActWait, 5 * time.Second,
		"do not do it too: wait until it is settled and use its result",
	},
	interlock.CodeEffectUnknown: {
		409, "It may have been done", interlock.ActAskHuman, 0,
		"do not do it again: find out at the target whether it happened, then reconcile",
	},
	interlock.CodeUnknownEffect: {
		404, "No such effect", interlock.ActStop, 0,
		"check the id; if it was right, the effect is forgotten or was freed: claim it again",
	},
	interlock.CodeEffectDone: {
		409, "It is settled already", interlock.ActReRead, 0,
		"look at the effect, which stays as it was settled first",
	},

	interlock.CodeUnknownTask: {
		404, "No such task", interlock.ActStop, 0,
		"check the id; if it was right, the task is forgotten",
	},
	interlock.CodeTaskMoved: {
		410, "The attempt is over", interlock.ActStop, 0,
		"drop what you have of it, and pull the next task",
	},
	interlock.CodeTaskSettled: {
		409, "The task is settled already", interlock.ActStop, 0,
		"look at the task, which stays as it is",
	},
	interlock.CodeTaskNotSettled: {
		409, "The task is not settled", interlock.ActStop, 0,
		"leave it to go on, or cancel it first; while a worker has it, revoke its lease before that",
	},
	interlock.CodeAlreadyReplied: {
		409, "The message has a reply", interlock.ActStop, 0,
		"look at the message, which keeps its first reply",
	},
	interlock.CodeNotAsking: {
		409, "Nobody asks about it", interlock.ActStop, 0,
		"look at the task or the lease: it may have been answered already",
	},
	interlock.CodeRequestIDReused: {
		422, "The request id was used for another request", interlock.ActStop, 0,
		"use a fresh id for a new request, and the same id only to repeat the same one",
	},
	interlock.CodeRequestTooOld: {
		422, "The request id is too old", interlock.ActReRead, 0,
		"its answer is no longer remembered and it was not carried out again: look at the state, then use a fresh id",
	},

	interlock.CodeTooManyWaiters: {
		429, "The line is full", interlock.ActWorkElsewhere, 30 * time.Second,
		"do something else first, then ask again",
	},
	interlock.CodeTooManySessions: {
		429, "Too many sessions", interlock.ActRetry, 30 * time.Second,
		"close sessions that are no longer needed, or ask again later",
	},
	interlock.CodeTooManyLeases: {
		429, "Too many leases", interlock.ActRetry, 30 * time.Second,
		"release leases that are no longer needed, or ask again later",
	},
	interlock.CodeTooManyStreams: {
		429, "Too many streams", interlock.ActRetry, 10 * time.Second,
		"close streams that nobody reads, or connect again later",
	},
	interlock.CodeTooManyNamespaces: {
		429, "Too many namespaces", interlock.ActAskHuman, 0,
		"use a namespace that is there already, or ask an operator to delete one that is no longer needed: `interlock namespace delete NAME`",
	},
	interlock.CodeNamespaceInUse: {
		409, "The namespace is in use", interlock.ActAskHuman, 0,
		"end or remove what is in it, or force it (force=true, --force), which drops all of it and cannot be undone",
	},
	interlock.CodeTooManyKeys: {
		429, "Too many keys in use", interlock.ActRetry, 30 * time.Second,
		"release leases and leave lines that are no longer needed, or ask again later",
	},
	interlock.CodeTooManyPatterns: {
		429, "Too many patterns", interlock.ActStop, 0,
		"delete patterns that are no longer used, or let one shape cover several",
	},
	interlock.CodeTooManyDocuments: {
		429, "Too many documents", interlock.ActRetry, 30 * time.Second,
		"delete documents that are no longer needed, or ask the operator for a larger quota",
	},
	interlock.CodeTooMuchState: {
		429, "Too much state", interlock.ActRetry, 30 * time.Second,
		"delete or shorten documents that are no longer needed, or ask the operator for a larger quota",
	},
	interlock.CodeTooManyQueues: {
		429, "Too many queues", interlock.ActStop, 0,
		"drop queues that are not used any more",
	},
	interlock.CodeTooManyTasks: {
		429, "Too many tasks", interlock.ActRetry, 30 * time.Second,
		"wait until workers have done some, or start more workers",
	},
	interlock.CodeQueueDraining: {
		503, "The queue takes nothing new", interlock.ActRetry, 30 * time.Second,
		"ask the operator when the queue opens again, or use another queue",
	},
	interlock.CodeTooManyEffects: {
		429, "Too many effects", interlock.ActRetry, 30 * time.Second,
		"settle and reconcile those that are open; done ones make room once they are older than the namespace's effect_retention",
	},
	interlock.CodeQuota: {
		429, "The quota is used up", interlock.ActRetry, time.Second,
		"do less at once, then ask again; what the quota is, GET /v1/namespace says",
	},
	interlock.CodeHistoryTrimmed: {
		410, "That part of the history is no longer kept", interlock.ActReRead, 0,
		"read the present state, then follow what happens from the index of that answer",
	},

	interlock.CodeUnauthenticated: {
		401, "No credential, or an unknown one", interlock.ActAskHuman, 0,
		"send the header Authorization: Bearer CREDENTIAL, or ask the operator for a credential",
	},
	interlock.CodeForbidden: {
		403, "Not allowed with this credential", interlock.ActAskHuman, 0,
		"this needs another credential of that namespace, as the message says: ask the one who has it, or the operator",
	},
	interlock.CodeForeignHost: {
		403, "Addressed by a foreign name", interlock.ActStop, 0,
		"address the server by one of its own names",
	},

	interlock.CodeNoSpace: {
		503, "The journal's disk is full", interlock.ActAskHuman, 30 * time.Second,
		"no new leases can be given; those that are held stay, and can be released unless the message says that nothing was recorded. Tell the operator to make room",
	},
	interlock.CodeNotOwner: {
		503, "Another server owns the shard", interlock.ActRetry, time.Second,
		"connect again and repeat the request with the same request id",
	},
	interlock.CodeShuttingDown: {
		503, "The server is shutting down", interlock.ActRetry, 2 * time.Second,
		"repeat the request in a moment with the same request id: leases and places in line are kept",
	},
	interlock.CodeOverloaded: {
		503, "The server has too much to do", interlock.ActRetry, time.Second,
		"repeat the request a little later with the same request id",
	},
	interlock.CodeUnreachable: {
		503, "A guard cannot reach what it needs", interlock.ActRetry, 2 * time.Second,
		"nothing was done: repeat the request a little later, and tell the operator of the guard if it stays so",
	},
	interlock.CodeOutcomeUnknown: {
		503, "It is not known whether it was carried out", interlock.ActRetry, time.Second,
		"repeat the request with the same request id: it is carried out once at most",
	},
	interlock.CodeInternal: {
		500, "A mistake in the server", interlock.ActAskHuman, 0,
		"do not rely on what was asked; tell the operator to look at the server's log",
	},
	interlock.CodeHistoryUnreadable: {
		503, "The history cannot be read for now", interlock.ActRetry, 2 * time.Second,
		"what was sent is not all: connect again and go on after the last index; tell the operator if it stays so",
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
