package api

import "github.com/interlockdev/interlock"

// Event is one event of the journal. What is not set is left out.
type Event struct {
	// What happened.
	Event EventKind       `json:"event"`
	Index interlock.Index `json:"index,string"`
	Epoch interlock.Epoch `json:"epoch,string"`
	Time  Time            `json:"time"`
	// Number of the request: the same in all events of its life.
	Request uint64 `json:"request,omitempty,string"`
	// How many effects were forgotten; none for one that was named.
	Forgotten uint64 `json:"forgotten,omitempty,string"`
	// How many refusals at keys of the pattern were left out since the last event refused of the
	// pattern.
	LeftOut uint64 `json:"left_out,omitempty,string"`
	// Why it was refused.
	Code Code `json:"code,omitempty"`
	// What was refused.
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
	// The agent that asks for the lease, with kind asked and with what a preemption ends.
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
	// Of a barrier.
	Generation uint64 `json:"generation,omitempty" min:"1"`
	// Others may hold the keys of the parked lease.
	Freed bool `json:"freed,omitempty"`
	// The resumed lease stands in line again.
	Queued bool `json:"queued,omitempty"`
	// The pattern's name.
	Pattern string `json:"pattern,omitempty" text:"line"`
	// Of the pattern.
	Revision int `json:"revision,omitempty" min:"1"`
	// The earlier revision that it brought back.
	Reverted int `json:"reverted,omitempty" min:"1"`
	// What the request is to start a run of.
	Run *RunNames `json:"run,omitempty"`
	// What the pattern was set to.
	Policy *KeyPattern `json:"policy,omitempty"`
	// What the settings were set to.
	Settings *SettingsRequest `json:"settings,omitempty"`
	// Of the commit.
	Version interlock.Version `json:"version,omitempty,string"`
	// The version that a request for a lease has read the claimed keys at.
	AsOf interlock.Version `json:"as_of,omitempty,string"`
	// Of the document.
	ContentType string `json:"content_type,omitempty" text:"line"`
	// Of the document, in bytes.
	Size int `json:"size,omitempty" min:"0" unit:"bytes"`
	// Public name of the session that wrote the document, claimed the effect or had the task.
	Session string `json:"session,omitempty" text:"line"`
	// How the document was written.
	Op WriteOp `json:"op,omitempty"`
	// The question of an approval, in an agent's words. Earlier versions did not record it with the
	// answer.
	Question string `json:"question,omitempty" text:"lines"`
	// A person's answer about a task or a parked lease: approved or denied.
	Verdict string `json:"verdict,omitempty"`
	// What the effect came to: claimed, done, unknown or free; or where the task stands since.
	State string `json:"state,omitempty"`
	// Digest of the claimed action.
	Action string `json:"action,omitempty"`
	// How often the action was claimed, or the task handed out.
	Attempt int `json:"attempt,omitempty" min:"1"`
	// Which task it is about.
	Task TaskID `json:"task,omitempty"`
	// The queue's name.
	Queue string `json:"queue,omitempty" text:"line"`
	// Of the task.
	Kind string `json:"kind,omitempty" text:"line"`
	// Until the task may run.
	Due Milliseconds `json:"due_in_ms,omitempty"`
	// What the queue was set to.
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
