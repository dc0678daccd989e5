package api

import "github.com/interlockdev/interlock"

// Empty is the body of a call that has no fields.
type Empty struct{}

// CheckFenceRequest is the body of POST /v1/fences/check: the key that is to be written, and either
// a fence or the statement of one.
type CheckFenceRequest struct {
	Key   Key             `json:"key"`
	Fence interlock.Fence `json:"fence,omitempty,string"`
	// A signed fence. It must be of this namespace and of this server.
	Statement string `json:"statement,omitempty" max:"131072"`
}

// StatementRequest is the body of POST /v1/leases/{id}/statement.
type StatementRequest struct {
	// The validity of the statement, at most the rest of the lease.
	TTL Milliseconds `json:"ttl_ms,omitempty" min:"1" max:"300000" default:"30000"`
}

// MoveRequest is the body of POST /v1/moves.
type MoveRequest struct {
	Namespace string `json:"namespace" min:"1" max:"MaxNamespaceBytes"`
	// The number of the shard that it moves to.
	Shard int `json:"shard" min:"0" max:"1023"`
}

// AddShardsRequest is the body of POST /v1/shards.
type AddShardsRequest struct {
	// The name of a store, as all servers know it by --store.
	Store string `json:"store" min:"1" max:"32"`
	// How many shards it gets.
	Shards int `json:"shards" min:"1" max:"1023"`
}

// DrainRequest is the body of POST /v1/servers/drain.
type DrainRequest struct {
	// The id of the server, or its HTTP address, as /v1/shards lists them.
	Server string `json:"server" min:"1" max:"512"`
	// False ends it: the server takes shards again.
	Drain *bool `json:"drain,omitempty"`
}

// RevokeRequest is the body of POST /v1/revocations.
type RevokeRequest struct {
	Key   Key             `json:"key"`
	Fence interlock.Fence `json:"fence,string"`
	// Why, for the holder and the journal.
	Reason string `json:"reason,omitempty" max:"MaxReasonBytes"`
}

// YieldRequest is the body of POST /v1/yield-requests.
type YieldRequest struct {
	Key   Key             `json:"key"`
	Fence interlock.Fence `json:"fence,string"`
	// Why, for the journal.
	Reason string `json:"reason,omitempty" max:"MaxReasonBytes"`
}

// SetPatternRequest is the body of PUT /v1/patterns/{name}.
type SetPatternRequest struct {
	PatternRequest
	// Why, for the journal.
	Reason string `json:"reason,omitempty" max:"MaxReasonBytes"`
}

// PatternRequest has the settings of a pattern.
type PatternRequest struct {
	// The shape of the keys: literal text with variables such as {id}, {id:int}, {name:lower} and,
	// at the end, {path...}.
	Shape string `json:"pattern" max:"MaxShapeBytes" text:"line"`
	// Other spellings of the same keys, with the same variables.
	Aliases []string `json:"aliases,omitempty" text:"line" itemmax:"MaxShapeBytes" max:"16"`
	// The keys of a pool, for any_prefix. gpu:{0..7} stands for eight.
	Members []string `json:"members,omitempty" text:"line" itemmax:"MaxKeyBytes" max:"MaxMembers"`
	// The number of permits of each key.
	Capacity uint32 `json:"capacity,omitempty" min:"0" max:"MaxCount"`
	// The number of tokens added every per_ms, evenly. Each permit takes one, and each lock on the whole key.
	Rate uint32 `json:"rate,omitempty" min:"0" max:"MaxCount"`
	// The period of rate, which needs it.
	Per Milliseconds `json:"per_ms,omitempty"`
	// The maximum of tokens. With 1 no period of per_ms admits more than rate; with n, rate and n-1 more.
	Burst uint32 `json:"burst,omitempty" min:"0" max:"MaxCount" default:"1"`
	// Shares of the capacity.
	Groups []GroupRequest `json:"groups,omitempty" max:"MaxGroups"`
	// The ttl of a lease that asks for none.
	TTL    Milliseconds `json:"ttl_ms,omitempty"`
	MaxTTL Milliseconds `json:"max_ttl_ms,omitempty"`
	// Default.
	Grace    Milliseconds `json:"grace_ms,omitempty"`
	MaxGrace Milliseconds `json:"max_grace_ms,omitempty"`
	// Default and maximum.
	MaxHold Milliseconds `json:"max_hold_ms,omitempty"`
	// Default and maximum.
	Stall Milliseconds `json:"stall_ms,omitempty"`
	// Default and minimum.
	LockDelay Milliseconds `json:"lock_delay_ms,omitempty"`
	// Default and maximum.
	MaxWait Milliseconds `json:"max_wait_ms,omitempty"`
	// The maximum of waiters in each key's line.
	MaxWaiters int `json:"max_waiters,omitempty" min:"0" max:"MaxWaitersPerKey"`
	// Which principals may claim which modes: the first rule that names the principal counts. Left
	// out: every principal, every mode.
	Allow []RuleRequest `json:"allow,omitempty" max:"MaxGroups"`
	// The effect of on_conflict preempt on a holder.
	Preempt string `json:"preempt,omitempty" enum:"ask,revoke,never" default:"ask"`
	// The treatment of the keys of a parked lease. choice: as its holder requests.
	Park string `json:"park,omitempty" enum:"choice,keep,free,never" default:"choice"`
	// The maximum parking time.
	MaxPark Milliseconds `json:"max_park_ms,omitempty" default:"DefaultPark"`
	// Whether a deadlock's victim also loses the leases that the others wait for: with refuse it
	// does not.
	OnDeadlock string `json:"on_deadlock,omitempty" enum:"refuse,revoke" default:"refuse"`
	// Which commits the keys accept: any; those that name the version that was read; those under an
	// exclusive lease; or the writer's alone.
	Write string `json:"write,omitempty" enum:"guarded,version,lease,single-writer,open"`
	// The principal that may commit, with single-writer.
	Writer string `json:"writer,omitempty" max:"MaxNameBytes" text:"line"`
	// The queue of the workers that alone may commit to the keys, on messages to them.
	WriterQueue string `json:"writer_queue,omitempty" max:"MaxNameBytes" text:"line"`
	// Requests that are refused at the keys are recorded in the trail, as events refused: at most 20
	// a minute, and each caller's same refusal once. The next event counts those left out.
	AuditRefusals bool `json:"audit_refusals,omitempty"`
}

// GroupRequest is a claimant group's share of a capacity.
type GroupRequest struct {
	// Empty: claims without a group.
	Name string `json:"name,omitempty" max:"MaxNameBytes"`
	// Permits kept free for it.
	Min uint32 `json:"min,omitempty" min:"0" max:"MaxCount"`
	// Permits that it gets at most.
	Max uint32 `json:"max,omitempty" min:"0" max:"MaxCount"`
}

// RuleRequest is the right of a principal to claim.
type RuleRequest struct {
	// A credential's name, or * for all.
	Principal string `json:"principal" max:"MaxNameBytes" text:"line"`
	// All when left out.
	Modes []Mode `json:"modes,omitempty" max:"8"`
}

// RevertRequest is the body of POST /v1/patterns/{name}/revert.
type RevertRequest struct {
	// Which one; the one before the present one when left out.
	Revision uint64 `json:"revision,omitempty" min:"1" max:"9007199254740992"`
	// Why, for the journal.
	Reason string `json:"reason,omitempty" max:"MaxReasonBytes"`
}

// Quota bounds a namespace or a principal. Only the limits of the version bound fields that are
// left out.
type Quota struct {
	// Keys held or waited for.
	Keys int `json:"keys,omitempty" min:"0" max:"2147483647"`
	// Leases.
	Leases int `json:"leases,omitempty" min:"0" max:"2147483647"`
	// Requests in line.
	Waiters int `json:"waiters,omitempty" min:"0" max:"2147483647"`
	// Sessions.
	Sessions int `json:"sessions,omitempty" min:"0" max:"2147483647"`
	// The maximum of documents; only for a namespace.
	Documents int `json:"documents,omitempty" min:"0" max:"2147483647"`
	// Bytes that all documents count: each its key, body and texts and 384 besides; of a namespace
	// only.
	State int `json:"state_bytes,omitempty" min:"0" max:"2147483647"`
	// Requests a second.
	Requests int `json:"requests_per_s,omitempty" min:"0" max:"2147483647"`
	// Bytes of bodies and frames a second.
	Bytes int `json:"bytes_per_s,omitempty" min:"0" max:"2147483647"`
}

// SettingsRequest is the body of PUT /v1/namespace.
type SettingsRequest struct {
	// A flow must ask for its keys in ascending order, segment by segment.
	StrictOrder bool `json:"strict_order,omitempty"`
	// Keys that match no pattern are refused. Until this is set they are open.
	Closed bool `json:"closed,omitempty"`
	// Warn of a new key that is spelled almost like a live one.
	NearMisses bool `json:"near_misses,omitempty"`
	// How long a done effect is remembered at least when there is no room for others; 0 or none is
	// 7 days.
	EffectRetention Milliseconds `json:"effect_retention_ms,omitempty" max:"EffectWindow"`
	// The quota of the whole namespace.
	Quota *Quota `json:"quota,omitempty"`
	// The quota of each of its principals.
	PrincipalQuota *Quota `json:"principal_quota,omitempty"`
}

// QueueRequest is the body of PUT /v1/queues/{queue}.
type QueueRequest struct {
	// It hands nothing out.
	Paused bool `json:"paused,omitempty"`
	// It takes nothing new.
	Drain bool `json:"drain,omitempty"`
	// The maximum of attempts of a task.
	MaxAttempts int `json:"max_attempts,omitempty" min:"0" max:"MaxAttempts" default:"DefaultAttempts"`
	// The pause after a first failure is random up to this, and doubles.
	Backoff Milliseconds `json:"backoff_ms,omitempty" max:"MaxDelay" default:"DefaultBackoff"`
	// Up to this.
	MaxBackoff Milliseconds `json:"max_backoff_ms,omitempty" max:"MaxDelay" default:"DefaultMaxBackoff"`
	// The ttl of the leases of its attempts, if the worker asks for none; 0: as for any lease.
	TTL     Milliseconds `json:"ttl_ms,omitempty"`
	Grace   Milliseconds `json:"grace_ms,omitempty"`
	MaxHold Milliseconds `json:"max_hold_ms,omitempty"`
	Stall   Milliseconds `json:"stall_ms,omitempty"`
	// Tasks that run at once; 0: any number.
	MaxRunning int `json:"max_running,omitempty" min:"0" max:"MaxTasks"`
	// Tasks that are not settled; 0: 1000000.
	MaxTasks int `json:"max_tasks,omitempty" min:"0" max:"MaxTasks"`
	// Shares of the queue.
	Groups []ShareRequest `json:"groups,omitempty" max:"MaxShares"`
	// Callers that may pull its tasks and settle them with writes, besides the role of a worker:
	// names of credentials, group:NAME, or *. Empty: all with that role.
	Pull []string `json:"pull,omitempty" text:"line" itemmin:"1" itemmax:"134" max:"MaxAccess"`
	// Callers that may submit tasks to it, or send messages if it is a writer's: names of
	// credentials, group:NAME, or *. Empty: all that may submit.
	Submit []string `json:"submit,omitempty" text:"line" itemmin:"1" itemmax:"134" max:"MaxAccess"`
	// Callers that may, besides operators, pause, drain and resume it and change tasks of others:
	// names of credentials, group:NAME, or *. Empty: operators only.
	Admin []string `json:"admin,omitempty" text:"line" itemmin:"1" itemmax:"134" max:"MaxAccess"`
	// Callers that may answer questions about its tasks: names of credentials, group:NAME for those
	// of a claimant group, or *. All with the role when left out.
	Approvers []string `json:"approvers,omitempty" text:"line" itemmin:"1" max:"MaxAccess"`
	// Principals that must approve a task that asks; 0: one. One denial is enough. Where it is above
	// 0, or approvers are named, the time limit of a question always denies.
	MinApprovals int `json:"min_approvals,omitempty" min:"0" max:"MaxApprovals"`
	// once: a replay of a task asks again if an attempt has used its approval. reuse: the approval stands.
	Approval string `json:"approval,omitempty" enum:"once,reuse" default:"once"`
}

// ShareRequest is a group's part of a queue.
type ShareRequest struct {
	Group string `json:"name,omitempty" max:"MaxNameBytes"`
	// Turns that it gets for each turn of a group of weight 1; 0: 1.
	Weight int `json:"weight,omitempty" min:"0" max:"MaxTasks" default:"1"`
	// The maximum of tasks of the group that run at once; 0: any number.
	Max int `json:"max,omitempty" min:"0" max:"MaxTasks"`
}

// WriterRequest is the body of PUT /v1/writers/{pattern}.
type WriterRequest struct {
	// Registered.
	Queue string `json:"queue" min:"1" max:"MaxNameBytes"`
	// The shape of the keys, to make a pattern that does not exist.
	Pattern string `json:"pattern,omitempty" max:"MaxShapeBytes"`
}
