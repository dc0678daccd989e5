// Package engine decides which requests are granted, and when. It is one state machine per
// shard: a command goes in, events and effects come out. It is pure and deterministic: no
// clock, no goroutine, no I/O, no randomness, no float and no map walked in an undefined order.
// Time and random ids come in as fields of commands, so every run can be repeated, simulated
// and explained.
//
// It has the shape of a decider:
//
//	             decide                    evolve
//	command ───────────────► events ───────────────────► state
//	   │                       │
//	   └──► effects            └──► one journal entry
//	        (answers, pushes)
//
// Step decides: it reads the state and emits events. Evolve, of the state, folds an event into it,
// and nothing else changes journaled state. Replay calls Evolve alone, so a newer version may
// decide differently without changing the past.
//
// Some state is not in the journal and is rebuilt by Recover: when each session was last heard
// of and what progress it reported (renewals are too many to write), the listeners for answers,
// the key where a waiter is watched (a cache, see wake.go of internal/store), and the priorities
// that waiters inherit. Deadlines and unfinished work are kept for each namespace apart (agenda.go).
// Statistics of commits and leases last for one term (contention.go).
//
// A request lives through these phases, and keeps its number and its 128-bit id:
//
//	Acquire ─┬─► waiting ─┬─► offered ─┬─► held ─► grace ─► closed ─► over
//	         │            └────────────┤
//	         └─────────────────────────┘
//
//	held ── Park ─► parked ── Resume ─► held       the keys are kept
//	held ── Park ─► away ── Resume ─► waiting      the keys are freed
//
// It may go over from any of them, and is closed only after a death, if the lease has a
// lock_delay. Convert and Arrive make a second request with the lease as its base: when it is
// granted, the lease takes its claims, and the request is over.
//
// Every claim stands in the same lines and is granted by the same rule. Each special kind has
// its file: pool.go and repool.go (permits and tokens), any.go, barrier.go, partition.go,
// convert.go, preempt.go, park.go, lockdelay.go, declare.go. policy.go
// has the limits of key patterns, asof.go reports others' commits during a wait, attribute.go
// groups waits and holds for statistics, audit.go records refusals. sideeffect.go keeps
// external actions that must not happen twice.
//
// A request may also wait instead of an agent, as a task: task.go keeps tasks, queue.go orders
// them, dispatch.go hands them to workers, submit.go and attempt.go begin and end them, and
// task_change.go is for operators. Messages to the single writer of a key are tasks, too:
// mailbox.go keeps their order, and log.go their outcomes.
//
// The state that agents read and write stands in documents with versions, with or without
// leases. document.go and history.go keep them, reading.go shows them, and commit.go decides on
// a change of several, all or nothing: commit_form.go checks how it is written, write_policy.go
// whether it is admitted, stale.go whether its reads are current, and write.go computes the new
// documents.
//
// internal/store has the state: the sum of the events, the indexes beside it, and the algorithms that
// need nothing else: the search for deadlocks (search.go, reduce.go), inherited priorities (inherit.go),
// the eligibility of tasks, and the descriptions of leases, tasks and blockers. It knows no command and
// emits no event. Files of one name in both packages belong to one topic: the state
// there, the decisions here.
//
// internal/collection has the containers: heaps, lists, queues and the hash table.
// internal/keypath has the rules about the texts of keys, and internal/lockmode those about
// modes.
//
// Package record has the events, their codec, and what else is journaled.
//
// Some files know none of the state: command.go and effect.go are the input and the output, and
// check.go, commit_form.go and task_form.go check the form of a command. internal/layout has
// the list of these files.
//
// Package engine must never wait, never answer before its caller made the
// entry durable (that is package shard's work), and never trust the text that
// agents send.
//
// Start reading at engine.go and verb.go, then acquire.go and wake.go; the scripts in
// testdata/ are the specification, and model_test.go is the same kernel written
// as naively as possible, to which this one is compared.
package engine
