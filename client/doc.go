// Package client is the Go client of Interlock: leases that live as long as the
// process that holds them, and documents that are committed by their versions, over one
// stream for all its agents.
//
//	c, err := client.Dial(ctx, client.Config{Addrs: []string{"127.0.0.1:7421"}, Agent: "billing-7"})
//	...
//	lease, err := c.Acquire(ctx, client.Request{
//		Keys:       []interlock.Key{"account:12345"},
//		Purpose:    "apply late fee",
//		OnConflict: interlock.Wait,
//	})
//	...
//	err = chargeFee(lease.Context(), lease.Fence())
//	...
//	err = lease.Release(ctx, client.Outcome{Outcome: "done", Note: "fee of 3.00 applied"})
//
// A Client is one session: its heartbeats run by themselves and renew all its leases. A lease's
// context is cancelled, with the reason as its cause, when the server reports that the lease is
// lost, or when its ttl has passed on this machine's clock without a confirmed heartbeat. That
// ttl is counted from the moment before the confirmed heartbeat was sent, so the client treats
// a lease as lost no later than the server does. That is no proof at the resource that the agent
// writes: pass the fence along and check it there.
//
// Heartbeats tell which leases the client knows. One that the program has dropped without Release
// is left out, and ends by its ttl.
//
// A connection may break at any moment. The client connects again, resumes its session, repeats
// unanswered calls under the same numbers, so that each happens once, and keeps its places in
// line. Its leases are lost only if the session ended meanwhile; later work gets a new session.
//
// # Several servers
//
// With servers over one journal, Config.Addrs lists all of them:
//
//	client.Config{Addrs: []string{"a.internal:7421", "b.internal:7421"}, Agent: "billing-7"}
//
// The client stays with the server that answered last. When that server dies, is silent or stands
// by, the client tries the next one at once, and after a round over all of them it pauses for a
// random time of at most a second. The session, its leases and its places in line continue at the
// new active server: a lease with a ttl of 10 s or more outlives the death of its server.
//
// # Failures
//
// There are two kinds of failure. An [*interlock.Error] is the server's decision about the
// request, unless its Code is CodeOutcomeUnknown: then the request was sent and no answer
// arrived. [ErrUnreachable] means that the request never left this process.
//
// # Flows
//
// A flow is one thread of control. A key that a flow already holds is granted to it again (the
// same lease, freed by the last release), and a deadlock is a cycle of flows. Go has no name
// for a goroutine, so the flow travels in the context: [WithFlow] names it, a lease's Context
// carries its own lease's flow, and Request.Flow overrides both. A request that names none is a
// flow by itself: two goroutines that forget to name their flow exclude each other.
//
// # More than a lock
//
// A claim may be for permits of a key with a capacity or a rate, for a barrier of several
// parties, or for any one of several keys ([Request]). A held lease may change its claims
// ([Lease.Convert]) and its ttl ([Lease.Renew]), arrive at its barrier again ([Lease.Arrive]) or be parked until a person
// has decided ([Lease.Park], [Client.Resume]). A holder is notified when its lease ends soon
// ([Lease.Warned]) and when another request asks it to yield ([Lease.Asked]). [Client.WaitFor]
// declares a wait that the server cannot see, and [Client.Join] makes this process a member
// that takes parts of a partitioned key.
//
// # Verify instead of lock
//
// The state that a lease guards may be stored in Interlock itself, as documents with versions
// ([Client.Documents], [Client.List], [Client.History]). A commit names the versions that it
// depends on, and is refused if one of them is not the present one:
//
//	account, err := c.Document(ctx, "account:12345")
//	... // think
//	_, err = c.Commit(ctx, client.Commit{
//		Reads:  client.Seen(account),
//		Writes: []interlock.Write{client.Put("account:12345", changed)},
//		Note:   "late fee of 3.00",
//	})
//	if stale, ok := errors.AsType[*client.StaleError](err); ok {
//		... // think again, with stale.Message in the prompt
//	}
//
// [Client.Update] does that in a loop, for changes that need no thought. Additions to counters
// ([Add], [AddWithin]) never conflict. A lease that is granted after a change of the state reports
// the change ([Lease.Packet]), and Request.Documents makes the grant bring the documents at its
// keys ([Lease.Documents]). To observe each commit, follow GET /v1/watch over HTTP: the stream has
// no such operation.
//
// [Client.Do] performs an external action that must not happen twice, such as a charge: a caller
// that plans the same action gets the first result, and an effect with an unknown outcome is never
// repeated automatically.
//
// # Tasks and workers
//
// Work that may be done later, or by others, needs no agent that waits for its keys.
// [Client.Submit] puts a task with its claims into a queue, where it stands in line like every
// other request and holds nothing, and [Client.Await] waits for its result. A worker process
// calls [Client.Work]:
//
//	err := c.Work(ctx, client.Worker{
//		Queue: "fees", Concurrency: 8,
//		Handle: func(ctx context.Context, job *client.Job) (client.Done, error) {
//			... // think, under the lease on the task's keys
//			return client.Done{Result: "charged", Reads: client.Seen(account), Writes: []interlock.Write{...}}, nil
//		},
//	})
//
// A task is handed out when its keys are free and a worker is idle, with a lease on them and
// with the documents at them. Handle's result is committed all at once: the end of the task,
// its result, its writes and its follow-up tasks ([Done]). So it has one effect in Interlock,
// even after crashes; external actions of Handle may happen again, and belong into [Client.Do].
// An error is another attempt after a pause ([RetryAfter], [Dead]), and [NeedsApproval] makes a
// person decide first ([Client.AnswerTask]).
//
// The keys of a pattern can have a single writer: the workers of one queue. All others send it
// messages ([Client.Send], [Client.Ask]), which are tasks that claim their key, in order for
// each sender. [Client.Log] returns their outcomes. A wait for a reply is one of the caller's
// flow, so that a deadlock through it is found.
//
// [Client.StartRun] admits the runs of a workflow, as many at once as an organisation may
// have.
//
// # Waiting
//
// Acquire asks once. If it has to wait, it stands in line and the grant is pushed, without
// polling. A caller that can only poll does it with [Backoff].
//
// # Embedded
//
// [New] takes any [Dialer]. A server in the same process has one, so the same
// program runs with or without a network in between.
//
// Package client must never report a lease as held that the server may already have granted to
// another holder, as far as its own clock can tell, and must never repeat a request under
// another number when its outcome is unknown.
//
// Start reading at client.go, then acquire.go, conn.go and lease.go; commit.go and
// effect.go stand by themselves. Of tasks read task.go, then worker.go, attempt.go and
// pull.go.
package client
