package api

import "github.com/interlockdev/interlock"

// Event is one event of the journal. Unset fields are left out.
type Event struct {
	// The kind of the event.
	Event EventKind       `json:"event"`
	Index interlock.Index `json:"index,string"`
	Epoch interlock.Epoch `json:"epoch,string"`
	Time  Time            `json:"time"`
	// Number of the request: the same in all events of its life.
	Request uint64 `json:"request,omitempty,string"`
	// The number of deleted effects; none for one that was named.
	Forgotten uint64 `json:"forgotten,omitempty,string"`
	// How many refusals at keys of the pattern were left out since the last event refused of the
	// pattern.
	LeftOut uint64 `json:"left_out,omitempty,string"`
	// Why it was refused.
	Code Code `json:"code,omitempty"`
	// The refused operation.
	Operation AuditedOperation `json:"operation,omitempty"`
	// Number of the session: the same in all its events.
	SessionNumber uint64          `json:"session_number,omitempty,string"`
	Agent         string          `json:"agent,omitempty" text:"line"`
	Flow          string          `json:"flow,omitempty" text:"line"`
	Claims        []Claim         `json:"claims,omitempty"`
	Fence         interlock.Fence `json:"fence,omitempty,string"`
	// The credential that it was done with; never a name that an agent chose. Left out without
	// credentials.
	Actor string `json:"actor,omitempty" text:"line"`
	// The agent that asks for the lease, for the kind asked and for leases that a preemption ends.
	Asker   string `json:"asker,omitempty" text:"line"`
	Purpose string `json:"purpose,omitempty" text:"line"`
	// W3C traceparent of the request.
	Trace     string       `json:"trace,omitempty" text:"line"`
	TTL       Milliseconds `json:"ttl_ms,omitempty"`
	Grace     Milliseconds `json:"grace_ms,omitempty"`
	MaxHold   Milliseconds `json:"max_hold_ms,omitempty"`
	Stall     Milliseconds `json:"stall_ms,omitempty"`
	LockDelay Milliseconds `json:"lock_delay_ms,omitempty"`
	MaxWait   Milliseconds `json:"max_wait_ms,omitempty"`
	Priority  int          `json:"priority,omitempty"`
	// The claims are alternatives.
	Any    bool   `json:"any,omitempty"`
	Group  string `json:"group,omitempty" text:"line"`
	Divide string `json:"divide,omitempty" enum:"hash,range,load"`
	// It is ahead of new requests.
	Lead bool `json:"lead,omitempty"`
	// Number of the request that made the lease that it changes, or belongs to.
	Base uint64 `json:"base,omitempty,string"`
	// It is a part of a shared-out key.
	Part bool `json:"part,omitempty"`
	// Granted to a waiter that was not listening.
	Offer bool `json:"offer,omitempty"`
	// Why it ended.
	Reason EndReason `json:"reason,omitempty"`
	// The holder's word, or the operator's reason.
	Outcome string `json:"outcome,omitempty" text:"line"`
	// Another agent's text.
	Note   string       `json:"note,omitempty" text:"lines"`
	Waited Milliseconds `json:"waited_ms,omitempty"`
	Held   Milliseconds `json:"held_ms,omitempty"`
	Cycle  []CycleStep  `json:"cycle,omitempty"`
	// Number of the session that asks, or that is waited for.
	TargetSession uint64 `json:"target_session,omitempty,string"`
	TargetFlow    string `json:"target_flow,omitempty" text:"line"`
	// Number of the request that asks.
	By uint64 `json:"by,omitempty,string"`
	// The generation of the barrier.
	Generation uint64 `json:"generation,omitempty" min:"1"`
	// Others may hold the keys of the parked lease.
	Freed bool `json:"freed,omitempty"`
	// The resumed lease stands in line again.
	Queued bool `json:"queued,omitempty"`
	// The pattern's name.
	Pattern string `json:"pattern,omitempty" text:"line"`
	// The revision of the pattern.
	Revision int `json:"revision,omitempty" min:"1"`
	// The earlier revision that it brought back.
	Reverted int `json:"reverted,omitempty" min:"1"`
	// The workflow that the request starts a run of.
	Run *RunNames `json:"run,omitempty"`
	// The new settings of the pattern.
	Policy *KeyPattern `json:"policy,omitempty"`
	// The new settings of the namespace.
	Settings *SettingsRequest `json:"settings,omitempty"`
	// The version of the commit.
	Version interlock.Version `json:"version,omitempty,string"`
	// The version that a request for a lease has read the claimed keys at.
	AsOf interlock.Version `json:"as_of,omitempty,string"`
	// The content type of the document.
	ContentType string `json:"content_type,omitempty" text:"line"`
	// The size of the document.
	Size int `json:"size,omitempty" min:"0" unit:"bytes"`
	// Public name of the session that wrote the document, claimed the effect or had the task.
	Session string `json:"session,omitempty" text:"line"`
	// The operation that wrote the document.
	Op WriteOp `json:"op,omitempty"`
	// The question of an approval, in an agent's words. Earlier versions did not record it with the
	// answer.
	Question string `json:"question,omitempty" text:"lines"`
	// A person's answer about a task or a parked lease: approved or denied.
	Verdict string `json:"verdict,omitempty"`
	// The new state of the effect: claimed, done, unknown or free; or of the task.
	State string `json:"state,omitempty"`
	// Number of the namespace's move to another shard.
	Move uint64 `json:"move,omitempty,string"`
	// What the shard of this event did for the move.
	Step string `json:"step,omitempty" enum:"closed,reopened,left,opened,dropped"`
	// The other shard of the move: for opened the source, where the earlier events are.
	OtherShard *int `json:"other_shard,omitempty" min:"0"`
	// Digest of the claimed action.
	Action string `json:"action,omitempty"`
	// The number of claims of the action, or of assignments of the task.
	Attempt int `json:"attempt,omitempty" min:"1"`
	// Which task it is about.
	Task TaskID `json:"task,omitempty"`
	// The queue's name.
	Queue string `json:"queue,omitempty" text:"line"`
	// The kind of the task.
	Kind string `json:"kind,omitempty" text:"line"`
	// The time until the task may run.
	Due Milliseconds `json:"due_in_ms,omitempty"`
	// The new settings of the queue.
	QueueSettings *QueueSettings `json:"queue_settings,omitempty"`
	// The webhook's name.
	Webhook string `json:"webhook,omitempty" text:"line"`
	// Messages of the webhook that were delivered since the last such event.
	Delivered uint64 `json:"delivered,omitempty"`
	// Messages of the webhook that were given up since the last such event.
	GivenUp uint64 `json:"given_up,omitempty"`
	// The webhook's receiver is gone, and the webhook pauses.
	Gone bool `json:"gone,omitempty"`
}

// RunNames are the names of a run.
type RunNames struct {
	Org      string `json:"org" text:"line"`
	Workflow string `json:"workflow,omitempty" text:"line"`
}
