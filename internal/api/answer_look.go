package api

import "encoding/json"

import "github.com/interlockdev/interlock"

// KeyView is the answer of GET /v1/keys/{key}.
type KeyView struct {
	Key   Key      `json:"key"`
	State KeyState `json:"state"`
	// The holders of the key, an ancestor or a descendant.
	Holders []Holder `json:"holders"`
	// Holders not shown.
	More int `json:"more_holders,omitempty" min:"1"`
	// The first 100 of the line.
	Waiters []Waiter `json:"waiters"`
	// Waiters in line.
	Length int `json:"length" min:"0"`
	// The lowest fence that a guard may still accept: of a free key, the next that is given out.
	FenceFloor interlock.Fence `json:"fence_floor,string"`
	Notes      []Note          `json:"notes"`
	// The usual hold time of keys like this one; left out if none was seen.
	HoldTime Milliseconds `json:"hold_time_ms,omitempty"`
	// Name of the pattern that the key fits; left out for none.
	Pattern  string    `json:"pattern,omitempty" text:"line"`
	Capacity *Capacity `json:"capacity,omitempty"`
	// The version of the document at the key.
	Version interlock.Version `json:"version,string"`
	// The generation of the barrier that its holders belong to.
	Generation uint64 `json:"generation,omitempty" min:"1"`
	// True when that barrier has lost a party: it cannot open again, and can be begun anew when its
	// holders have released. Left out otherwise.
	Broken bool `json:"broken,omitempty"`
	// The part of the resource; only with the parameter resource.
	Part *Part `json:"part,omitempty"`
	Stamp
}

// KeyList is the answer of GET /v1/keys.
type KeyList struct {
	Keys []KeyRow `json:"keys"`
	// The cursor of the next page; left out on the last one. It belongs to this namespace and filter.
	Cursor string `json:"cursor,omitempty"`
	Stamp
}

// KeyRow is a key with its holders.
type KeyRow struct {
	Key     Key      `json:"key"`
	State   KeyState `json:"state"`
	Holders []Holder `json:"holders"`
	// Holders not shown.
	More int `json:"more_holders,omitempty" min:"1"`
	// Waiters in line.
	Length int `json:"length" min:"0"`
}

// Waiter is a waiter as others see it.
type Waiter struct {
	Name
	// The waiter's own text.
	Purpose string `json:"purpose" text:"line"`
	Mode    Mode   `json:"mode"`
	Count
	// The priority of the wait: its own, or an inherited one.
	Priority int `json:"priority"`
	// 1 is the next; 0 is offered the key already.
	Position int          `json:"position" min:"0"`
	Waited   Milliseconds `json:"waited_ms"`
	ETA      Milliseconds `json:"eta_ms"`
	// The key is offered to it, and it has not answered yet.
	Offered bool `json:"offered"`
	// It is a task, which agent submitted and which is in line instead of it.
	Task TaskID `json:"task,omitempty"`
	// The task's queue.
	Queue string `json:"queue,omitempty"`
	// The task waits for a worker, and blocks no other waiter meanwhile.
	Dormant bool `json:"dormant,omitempty"`
}

// Part is the part of a shared-out key that a resource belongs to: the first eight bytes of the
// SHA-256 of the resource's name, as a number with the highest byte first, modulo the number of
// parts.
type Part struct {
	// The resource as in the request.
	Resource string `json:"resource" text:"line"`
	// The part's number.
	Number int `json:"number" min:"0"`
	// The number of parts.
	Parts int `json:"parts" min:"1"`
	Key   Key `json:"key"`
	// The member that has the part; absent while none has it.
	Holder *Holder `json:"holder,omitempty"`
}

// ParkedList is the answer of GET /v1/parked.
type ParkedList struct {
	Leases []ParkedLease `json:"leases"`
	// The cursor of the next page; left out on the last one. It belongs to this namespace and listing.
	Cursor string `json:"cursor,omitempty"`
	Stamp
}

// ParkedLease is a parked lease as others see it.
type ParkedLease struct {
	// The holder's name, as it calls itself: its own text.
	Agent string `json:"agent" text:"line"`
	// The flow within its session.
	Flow string `json:"flow" text:"line"`
	// The purpose of the lease: the holder's text.
	Purpose string  `json:"purpose" text:"line"`
	Claims  []Claim `json:"claims"`
	// The one that it had. It is given a new one when it is resumed.
	Fence   interlock.Fence `json:"fence,string"`
	Parking Parking         `json:"parking"`
}

// Hot is the answer of GET /v1/hot.
type Hot struct {
	// Busiest first.
	Keys []HotKey `json:"keys"`
	Stamp
}

// HotKey is a busy key.
type HotKey struct {
	Key     Key `json:"key"`
	Holders int `json:"holders" min:"0"`
	// Waiters in line.
	Length int `json:"length" min:"0"`
}

// Overview is the answer of GET /v1/overview, and the data of its event picture.
type Overview struct {
	// The state in a sentence or two, the most urgent first.
	Verdict string       `json:"verdict" text:"line"`
	Sums    OverviewSums `json:"sums"`
	// By the time that is lost at them, then by their holders; at most 200. Beside more than 10,000 keys, those that
	// are not waited for are a selection.
	Keys []OverviewKey `json:"keys"`
	// Keys in use that keys leaves out.
	MoreKeys int `json:"more_keys" min:"0"`
	// The parties of the edges: a flow of a session is one, and each request without a session.
	Nodes []Party `json:"nodes"`
	// At most 500, in the order of arrival.
	Edges []OverviewEdge `json:"edges"`
	// Parties that wait for each other, as indexes of nodes.
	Cycles [][]int `json:"cycles"`
	Stamp
}

// OverviewSums are the sizes of a namespace.
type OverviewSums struct {
	Leases      int `json:"leases" min:"0"`
	Waiters     int `json:"waiters" min:"0"`
	Sessions    int `json:"sessions" min:"0"`
	Keys        int `json:"keys" min:"0"`
	Documents   int `json:"documents" min:"0"`
	Tasks       int `json:"tasks" min:"0"`
	DeadLetters int `json:"dead_letters" min:"0"`
	// Tasks that ask a person.
	Approvals int `json:"approvals" min:"0"`
}

// OverviewKey is a key with the time that is lost at it.
type OverviewKey struct {
	Row KeyRow `json:"row"`
	// The sum of how long the waiters in its line have waited.
	Lost Milliseconds `json:"lost_ms"`
}

// OverviewEdge is a wait of one party for another.
type OverviewEdge struct {
	// The index of the waiter in nodes.
	From int `json:"from" min:"0"`
	// The index of the blocker in nodes; left out where no worker has the task.
	To *int `json:"to,omitempty" min:"0"`
	// Empty for a declared wait for another agent.
	Key string `json:"key"`
	// As Mode; empty for a declared wait.
	Mode string `json:"mode"`
	// The blocker does not hold the key, but is ahead in line.
	Ahead bool `json:"ahead"`
	// The task that the waiter waits for.
	Task   TaskID       `json:"task,omitempty"`
	Waited Milliseconds `json:"waited_ms"`
}

// Past is the answer of GET /v1/at.
type Past struct {
	// The path that was asked for, with its parameters.
	Path string `json:"path" text:"line"`
	// The moment that is shown: the requested one, or that of the entry with the index; left out for the first entry of a
	// journal, which has none.
	Time *Time `json:"time,omitempty"`
	// The answer of the path. Its index is the one that was asked for.
	Answer json.RawMessage `json:"answer"`
	Stamp
}

// Differences is the answer of GET /v1/differences: what differs between two states. Each list has the first limit
// changes; what came and went between both moments is in neither.
type Differences struct {
	From Moment         `json:"from"`
	To   Moment         `json:"to"`
	Sums DifferenceSums `json:"sums"`
	// By key. A lease is listed at each of its keys.
	Leases []LeaseDifference `json:"leases"`
	// Tickets, in the order of their arrival.
	Waiters []WaiterDifference `json:"waiters"`
	// By key.
	Documents []DocumentDifference `json:"documents"`
	// In the order of their submission.
	Tasks []TaskDifference `json:"tasks"`
	// Changes that sums count and the lists leave out.
	LeftOut int `json:"left_out" min:"0"`
	Stamp
}

// Moment is the state after an entry of the journal.
type Moment struct {
	Index interlock.Index `json:"index,string"`
	// The requested time, or that of the entry; left out for the first entry of a journal, which has none.
	Time *Time `json:"time,omitempty"`
}

// DifferenceSums counts all changes.
type DifferenceSums struct {
	Leases    DifferenceCount `json:"leases"`
	Waiters   DifferenceCount `json:"waiters"`
	Documents DifferenceCount `json:"documents"`
	Tasks     DifferenceCount `json:"tasks"`
}

// DifferenceCount counts the changes of one kind.
type DifferenceCount struct {
	New     int `json:"new" min:"0"`
	Gone    int `json:"gone" min:"0"`
	Changed int `json:"changed" min:"0"`
}

// LeaseDifference is a change at a key: another lease, or another fence, mode, count or liveness of the same one.
// Where one exclusive lease took the place of another, that is one change.
type LeaseDifference struct {
	Key    Key        `json:"key"`
	Change Change     `json:"change"`
	Before *LeaseThen `json:"before,omitempty"`
	After  *LeaseThen `json:"after,omitempty"`
}

// LeaseThen is a lease in one of two states.
type LeaseThen struct {
	Name
	Purpose string `json:"purpose" text:"line"`
	Mode    Mode   `json:"mode"`
	// As of its claim; left out for a mode without one.
	Count uint32          `json:"count,omitempty" min:"1"`
	Fence interlock.Fence `json:"fence,string"`
	// Heartbeats are not journaled: a holder that had not lost its lease counts as live.
	Liveness Liveness `json:"liveness"`
}

// WaiterDifference is a waiter that came or left, or has another position.
type WaiterDifference struct {
	// Its number, the same in all its events.
	Request Decimal `json:"request"`
	Name
	// It wants; empty for a declared wait.
	Keys []Key `json:"keys"`
	// The party that a declared wait is for.
	On     *Name       `json:"on,omitempty"`
	Change Change      `json:"change"`
	Before *WaiterThen `json:"before,omitempty"`
	After  *WaiterThen `json:"after,omitempty"`
}

// WaiterThen is a waiter in one of two states.
type WaiterThen struct {
	// 0 with an offer, and of a declared wait for another agent.
	Position int  `json:"position" min:"0"`
	Offered  bool `json:"offered"`
}

// DocumentDifference is a document with another version.
type DocumentDifference struct {
	Key    Key           `json:"key"`
	Change Change        `json:"change"`
	Before *DocumentThen `json:"before,omitempty"`
	After  *DocumentThen `json:"after,omitempty"`
}

// DocumentThen is a document in one of two states. GET /v1/state/{key} with this version has its content, as long as
// it is kept.
type DocumentThen struct {
	Version interlock.Version `json:"version,string"`
	Size    int               `json:"size" min:"0" unit:"bytes"`
	// The writer.
	Agent string `json:"agent" text:"line"`
	Note  string `json:"note" text:"line"`
}

// TaskDifference is a task with another state or attempt.
type TaskDifference struct {
	Task    TaskID    `json:"task"`
	Queue   string    `json:"queue" text:"line"`
	Kind    string    `json:"kind" text:"line"`
	Purpose string    `json:"purpose" text:"line"`
	Change  Change    `json:"change"`
	Before  *TaskThen `json:"before,omitempty"`
	After   *TaskThen `json:"after,omitempty"`
}

// TaskThen is a task in one of two states.
type TaskThen struct {
	State TaskState `json:"state"`
	// Of a running one, which it is; else how many there were.
	Attempt int `json:"attempt" min:"0"`
}

// Waits is the answer of GET /v1/waits.
type Waits struct {
	// At most 10,000, in the order of arrival.
	Edges []WaitEdge `json:"edges"`
	Stamp
}

// WaitEdge is a wait of one party for another.
type WaitEdge struct {
	Waiter  Party `json:"waiter"`
	Blocker Party `json:"blocker"`
	// Empty for a declared wait for another agent.
	Key string `json:"key"`
	// As Mode; empty for a declared wait.
	Mode string `json:"mode"`
	// The blocker does not hold the key, but is ahead in line.
	Ahead bool `json:"ahead"`
	// The task that the waiter waits for: the blocker has it, or is its place in line; without a
	// blocker no worker has it.
	Task   TaskID       `json:"task,omitempty"`
	Waited Milliseconds `json:"waited_ms"`
}

// Party is a party of a wait.
type Party struct {
	Name
	// It is a task that is in line instead of agent, which submitted it.
	Task TaskID `json:"task,omitempty"`
}

// Why is the answer of GET /v1/why.
type Why struct {
	Key Key `json:"key,omitempty"`
	// The subject of the request: a key or an agent.
	Agent string `json:"agent,omitempty" text:"line"`
	// One paragraph.
	Text string `json:"text" text:"line"`
	// The waits, from the first waiter down to the party that all of them wait for in the end.
	Chain []WaitLink `json:"chain"`
	// Each wait of the agent, the oldest first, at most 16. The chain of the first is chain, too.
	Waits []WaitChain `json:"waits,omitempty"`
	// Waits of the agent that waits leaves out.
	MoreWaits int    `json:"more_waits,omitempty" min:"1"`
	Advice    Advice `json:"advice"`
	Stamp
}

// WaitLink is a party in a chain of waits.
type WaitLink struct {
	Name
	// It is a task that is in line instead of agent.
	Task TaskID `json:"task,omitempty"`
	// The task that it waits for.
	End TaskID `json:"awaits,omitempty"`
	// awaited: another agent has declared a wait for it.
	Does string `json:"does" enum:"holds,waits,awaited"`
	// Empty for a declared wait for another agent.
	Key string `json:"key"`
	// As Mode; empty for a declared wait.
	Mode     string       `json:"mode"`
	Since    Milliseconds `json:"since_ms,omitempty"`
	Liveness Liveness     `json:"liveness,omitempty"`
}

// WaitChain is a chain of waits.
type WaitChain struct {
	// It begins with the agent.
	Chain []WaitLink `json:"chain"`
}

// Timeline is the answer of GET /v1/timeline.
type Timeline struct {
	Since Time `json:"since"`
	Until Time `json:"until"`
	// The agents of bars and marks, in the order in which they appear.
	Lanes []string `json:"lanes" text:"line"`
	// By their beginning; at most 5,000. With ended=true 20,000, and those that end together with the last one.
	Bars []TimelineBar `json:"bars"`
	// By their submission, as far as that is in the answer's part of the journal; at most 1,000.
	Tasks []TimelineTask `json:"tasks"`
	Marks []TimelineMark `json:"marks"`
	Links []TimelineLink `json:"links"`
	// Bars that were left out, the shortest first.
	MoreBars int `json:"more_bars" min:"0"`
	// Tasks that were left out, the last ones.
	MoreTasks int `json:"more_tasks" min:"0"`
	// Marks that were left out, the last ones.
	MoreMarks int `json:"more_marks" min:"0"`
	// There is more than one answer reads, so until is earlier than asked for: go on with since set to it.
	More bool `json:"more"`
	Stamp
}

// TimelineBar is a stretch of time of a wait or a lease.
type TimelineBar struct {
	// attempt: a hold by the worker of a task. grace: the last part of a hold, after its hard end. lock_delay: the
	// holder died, and the keys stay closed for a while.
	Kind string `json:"kind" enum:"wait,hold,attempt,grace,parked,lock_delay"`
	// As it calls itself: its own text.
	Agent string `json:"agent" text:"line"`
	// The flow within its session.
	Flow string `json:"flow,omitempty" text:"line"`
	// Empty for a declared wait for another agent.
	Claims []Claim `json:"claims"`
	From   Time    `json:"from"`
	// Left out while it goes on.
	To *Time `json:"to,omitempty"`
	// How it ended: granted, resumed, parked, converted, or the reason of the end, such as released or ttl.
	Outcome string `json:"outcome,omitempty"`
	// Of a hold and what follows it.
	Fence interlock.Fence `json:"fence,string,omitempty"`
	// The purpose of the lease: the holder's text.
	Purpose string `json:"purpose,omitempty" text:"line"`
	// Of the request's traceparent.
	TraceID string `json:"trace_id,omitempty"`
	// Of the same: the span that the request came from.
	ParentID string `json:"parent_id,omitempty"`
	// The public name of the lease: the same in all its bars.
	Lease string `json:"lease"`
	// A wait ended where the hold begins.
	Waited bool `json:"waited,omitempty"`
	// The task of an attempt.
	Task TaskID `json:"task,omitempty"`
	// The number of the attempt; left out if it began before the answer's part of the journal.
	Attempt int `json:"attempt,omitempty" min:"1"`
	// The queue of that task; left out if its submission is not in the answer's part of the journal.
	Queue string `json:"queue,omitempty" text:"line"`
	// With ended=true: the other ends of links, also of those that lead out of the answer.
	Links []TimelineTarget `json:"links,omitempty"`
	// The entry of the journal where it began; left out if that is not in the answer's part of the journal.
	Index interlock.Index `json:"index,string,omitempty"`
	// The entry where it ended.
	EndIndex interlock.Index `json:"end_index,string,omitempty"`
}

// TimelineTarget is a hold that a bar is linked to.
type TimelineTarget struct {
	// blocked_by: the wait was for that hold. handed_on: the hold got its keys from that one.
	Kind string `json:"kind" enum:"blocked_by,handed_on"`
	// The public name of the lease.
	Lease string          `json:"lease"`
	Fence interlock.Fence `json:"fence,string"`
	// Of the traceparent of its request.
	TraceID string `json:"trace_id,omitempty"`
	// The task of an attempt.
	Task TaskID `json:"task,omitempty"`
}

// TimelineTask is the time of a task from its submission to its end.
type TimelineTask struct {
	Task  TaskID `json:"task"`
	Queue string `json:"queue" text:"line"`
	// The kind of the task.
	Kind string `json:"kind,omitempty" text:"line"`
	// The submitter, as it calls itself.
	Agent   string  `json:"agent" text:"line"`
	Flow    string  `json:"flow,omitempty" text:"line"`
	Claims  []Claim `json:"claims"`
	Purpose string  `json:"purpose,omitempty" text:"line"`
	// Of the submission's traceparent.
	TraceID string `json:"trace_id,omitempty"`
	// Of the same: the span that the submission came from.
	ParentID string `json:"parent_id,omitempty"`
	From     Time   `json:"from"`
	// Left out while it goes on.
	To *Time `json:"to,omitempty"`
	// The state in which it ended, or that its namespace was deleted or moved. A dead task that is taken up again has
	// ended nevertheless.
	Outcome string `json:"outcome,omitempty" enum:"done,dead,cancelled,namespace_deleted,namespace_moved"`
	// How many attempts there were.
	Attempts int `json:"attempts,omitempty" min:"0"`
	// The entry of the journal where it began, and the one where it ended.
	Index    interlock.Index `json:"index,string"`
	EndIndex interlock.Index `json:"end_index,string,omitempty"`
}

// TimelineMark is a moment.
type TimelineMark struct {
	// Such as deadlock or refused_fence; docs/timeline.md has the list, and later versions may add to it.
	Kind string `json:"kind"`
	// Empty for one of the whole server.
	Agent string `json:"agent" text:"line"`
	Key   string `json:"key"`
	// The fence that was refused.
	Fence interlock.Fence `json:"fence,string,omitempty"`
	// The public name of the lease that had it, if its hold is in the answer's part of the journal.
	Lease string `json:"lease,omitempty"`
	// Of the traceparent of that lease's request.
	TraceID string `json:"trace_id,omitempty"`
	// The task, if the lease was an attempt.
	Task TaskID `json:"task,omitempty"`
	Time Time   `json:"time"`
	// The entry of the journal.
	Index interlock.Index `json:"index,string"`
	Text  string          `json:"text" text:"line"`
}

// TimelineLink joins two bars.
type TimelineLink struct {
	// blocked_by: from a wait to a hold that it was for. handed_on: from a hold to the next one of its keys.
	Kind string `json:"kind" enum:"blocked_by,handed_on"`
	// The index of a bar in bars.
	From int `json:"from" min:"0"`
	// Likewise.
	To int `json:"to" min:"0"`
}

// Report is the answer of GET /v1/report.
type Report struct {
	Since Time `json:"since"`
	Until Time `json:"until"`
	// The report in one paragraph, the most urgent first.
	Verdict string     `json:"verdict" text:"line"`
	All     ReportSums `json:"all"`
	// By the time lost; at most 50.
	Classes []ReportSums `json:"classes"`
	// By the time lost; at most 20.
	Keys []ReportKey `json:"keys"`
	// By their time; at most 200 of each kind.
	Incidents []Incident `json:"incidents"`
	// Incidents that were left out.
	MoreIncidents int `json:"more_incidents" min:"0"`
	// By kind, the most useful first.
	Advice []ReportAdvice `json:"advice"`
	// Waits, leases and keys that incidents and advice leave out, for lack of room.
	LeftOut int `json:"left_out" min:"0"`
	// There is more than one answer reads, so until is earlier than asked for: go on with since set to it.
	More bool `json:"more"`
	Stamp
}

// ReportSums are the numbers of a class of keys, or of all.
type ReportSums struct {
	// Keys that begin with this word, such as account:. Left out for all keys, and for those that are plain words.
	Class  string `json:"class,omitempty"`
	Grants int    `json:"grants" min:"0"`
	// Requests that stood in line and have left it, with a grant or without.
	Waits int `json:"waits" min:"0"`
	// Requests that left the line without a grant, and leases that were lost.
	Failures int `json:"failures" min:"0"`
	// The sum of the waits.
	Lost    Milliseconds `json:"lost_ms"`
	WaitP50 Milliseconds `json:"wait_p50_ms"`
	WaitP99 Milliseconds `json:"wait_p99_ms"`
	HoldP50 Milliseconds `json:"hold_p50_ms"`
	HoldP99 Milliseconds `json:"hold_p99_ms"`
}

// ReportKey is a key with the time lost at it.
type ReportKey struct {
	Key   Key          `json:"key"`
	Waits int          `json:"waits" min:"0"`
	Lost  Milliseconds `json:"lost_ms"`
}

// Incident is something that went wrong.
type Incident struct {
	// Such as deadlock, lost_lease, stale_write, dead_letter, stuck_wait or fail_over; later versions may add to it.
	Kind string `json:"kind"`
	Time Time   `json:"time"`
	// The time of the last one that is counted here.
	Last Time `json:"last"`
	// The entry of the journal.
	Index interlock.Index `json:"index,string"`
	// The entry before it: GET /v1/at with this index shows the waits and holders of that moment. Left out if there is
	// none.
	Before interlock.Index `json:"before,string,omitempty"`
	// How often it happened.
	Count int `json:"count" min:"1"`
	// Why: a code or a reason, such as ttl, fenced or wait_limit.
	Cause string `json:"cause,omitempty"`
	// Those concerned, the victim or the loser first. Their own text; empty for an unnamed agent. Left out for a
	// fail-over.
	Agents []string `json:"agents,omitempty" text:"line"`
	Keys   []Key    `json:"keys"`
	// Of a dead letter.
	Task TaskID `json:"task,omitempty"`
	// How long the lease was held, the wait lasted, or no event happened before a fail-over.
	Took Milliseconds `json:"took_ms,omitempty"`
	// The wait has not ended.
	GoesOn bool        `json:"goes_on,omitempty"`
	Cycle  []CycleStep `json:"cycle,omitempty"`
	// What happened, in a sentence.
	Text string `json:"text" text:"line"`
	// The next step, in a sentence.
	Next string `json:"next" text:"line"`
	// A command that shows more, or does the next step.
	Command string `json:"command,omitempty" text:"line"`
}

// ReportAdvice is one change that would help.
type ReportAdvice struct {
	// Such as lock_order, coarse_key, hot_key, short_ttl or unused_capacity; later versions may add to it.
	Kind string `json:"kind"`
	// Of lock_order in the order to take them in; else the key, or an example.
	Keys []Key `json:"keys"`
	// The pattern that fits the keys.
	Pattern string   `json:"pattern,omitempty" text:"line"`
	Agents  []string `json:"agents,omitempty" text:"line"`
	// This many observations support it, of all that were made.
	Count int `json:"count" min:"0"`
	Of    int `json:"of" min:"0"`
	// The time lost in the waits concerned.
	Lost Milliseconds `json:"lost_ms,omitempty"`
	// The evidence, in sentences.
	Text string `json:"text" text:"line"`
	// Changes it; words in capital letters are to be filled in.
	Command string `json:"command,omitempty" text:"line"`
	// Entries of the journal, as examples.
	Indexes []Decimal `json:"indexes"`
}
