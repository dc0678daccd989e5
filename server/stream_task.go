package server

import (
	"crypto/sha256"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/prose"
	"github.com/interlockdev/interlock/proto"
)

// Tasks over the stream: the commands about them that clients send often, and the answers.

// taskCommand makes the commands about tasks. nil means that it is none of them, or was
// refused.
func (st *stream) taskCommand(o *proto.Op, h engine.Head) engine.Command {
	x := o.Task
	switch o.Kind {
	case proto.OpSubmitTask:
		return st.submitTask(o, h)
	case proto.OpPullTasks:
		return st.pullTasks(o, h)
	case proto.OpAckTask:
		return st.ackTask(o, h)
	case proto.OpNackTask:
		return &engine.Nack{Head: h, Lease: o.ID, Reason: x.Reason, Delay: x.Delay, Dead: x.Dead, Jitter: st.random.bits()}
	case proto.OpAskHuman:
		c := &engine.AskHuman{Head: h, Lease: o.ID}
		if x.Question != nil {
			c.Question = *cloneQuestion(x.Question)
		}
		return c
	case proto.OpAnswerTask:
		return &engine.Answer{Head: h, Task: o.ID, Fence: o.Fence, Verdict: x.Verdict, By: x.By, Reason: x.Reason}
	case proto.OpChangeTask:
		return &engine.ChangeTask{Head: h, Task: o.ID, Change: engine.TaskChange(x.Change), Delay: x.Delay, Reason: x.Reason}
	case proto.OpFollowTask:
		h.Seq, h.Acked = 0, 0
		return &engine.FollowTask{Head: h, Flow: o.Flow, Task: o.ID, Attach: x.Attach}
	}
	return nil
}

// submitTask makes the command. With a request id it belongs to no session: the id then counts in
// the whole namespace.
func (st *stream) submitTask(o *proto.Op, h engine.Head) engine.Command {
	c := &engine.Submit{Head: h, Flow: o.Flow, Attach: o.Task.Attach}
	if len(o.Task.Specs) > 0 {
		c.Task = st.taskSpec(&o.Task.Specs[0])
	}
	if o.RequestID != "" {
		c.Session, c.Seq, c.Acked = interlock.SessionID{}, 0, 0
		c.RequestID, c.Agent = o.RequestID, o.Agent
	}
	return c
}

// pullTasks makes the command. The ids of the leases are made of that of the pull, so that a pull
// that is sent again has them again; they are unknown without the session's id.
func (st *stream) pullTasks(o *proto.Op, h engine.Head) engine.Command {
	h.Seq, h.Acked = 0, 0
	c := &engine.Pull{
		Head: h, ID: o.ID, Queue: o.Task.Queue, Max: int(min(o.Task.Limit, interlock.MaxPull+1)), TTL: o.TTL, Attach: true,
	}
	c.Leases = make([][16]byte, c.Max)
	var secret [33]byte
	copy(secret[:], h.Session[:])
	copy(secret[16:], o.ID[:])
	for i := range c.Leases {
		secret[32] = byte(i)
		sum := sha256.Sum256(secret[:])
		copy(c.Leases[i][:], sum[:])
	}
	return c
}

// startRun makes the command. A request id counts in the session that the run belongs to.
func (st *stream) startRun(o *proto.Op, h engine.Head) engine.Command {
	if o.RequestID != "" {
		h.Seq, h.Acked, h.RequestID = 0, 0, o.RequestID
	}
	return &engine.StartRun{
		Head: h, ID: st.random.id(), Org: o.Run.Org, Workflow: o.Run.Workflow, Flow: o.Flow, Purpose: o.Purpose,
		Priority: o.Priority,
		TTL:      o.TTL, MaxHold: o.MaxHold, MaxWait: o.MaxWait, Attach: true,
	}
}

func (st *stream) ackTask(o *proto.Op, h engine.Head) engine.Command {
	c := &engine.Ack{Head: h, Lease: o.ID, Result: o.Task.Result}
	if o.Commit != nil {
		c.CommitRequest = cloneCommit(o.Commit)
	}
	for i := range o.Task.Specs {
		c.Tasks = append(c.Tasks, st.taskSpec(&o.Task.Specs[i]))
	}
	return c
}

// taskSpec assigns a fresh id to a task. The engine keeps the claims and normalizes their keys, so
// it gets a copy.
func (st *stream) taskSpec(x *interlock.TaskSpec) engine.TaskSpec {
	spec := engine.TaskSpec{ID: st.random.id(), TaskSpec: *x}
	spec.Claims = slices.Clone(x.Claims)
	if x.Ask != nil {
		spec.Ask = cloneQuestion(x.Ask)
	}
	return spec
}

func cloneQuestion(q *interlock.Question) *interlock.Question {
	own := *q
	own.Reads = slices.Clone(q.Reads)
	return &own
}

// cloneCommit copies the lists of a commit, which the engine keeps.
func cloneCommit(c *interlock.CommitRequest) interlock.CommitRequest {
	own := *c
	own.Reads, own.Writes = slices.Clone(c.Reads), slices.Clone(c.Writes)
	return own
}

// addTasks adds an answer's tasks.
func (d *outgoingEffect) addTasks(r *proto.Reply) {
	d.addTask(r)
	if d.eff.Outcome == engine.Granted && !d.eff.Ticket.ID.IsZero() {
		ticket := d.eff.Ticket
		r.Ticket = &ticket
	}
	if len(d.eff.Handed) > 0 {
		r.Handed = make([]interlock.Assignment, 0, len(d.eff.Handed))
	}
	for i := range d.eff.Handed {
		h := &d.eff.Handed[i]
		handed := interlock.Assignment{
			Task: cleanTask(*prose.Task(&h.Task)), Lease: h.Lease, Documents: cleanDocuments(h.Documents), AsOf: h.AsOf,
		}
		cleanLease(&handed.Lease)
		r.Handed = append(r.Handed, handed)
	}
	if d.read == nil {
		return
	}
	for i := range d.read.tasks {
		r.Tasks = append(r.Tasks, cleanTask(*prose.Task(&d.read.tasks[i])))
	}
	r.Next = d.read.next
	r.Queues = d.read.queues
	for i := range d.read.log {
		r.Log = append(r.Log, cleanEntry(*prose.LogEntry(&d.read.log[i])))
	}
}

// addTask adds the task that an answer is about, without what the caller knows: the payload that
// was submitted, and all but where it stands now of one that was handed out.
func (d *outgoingEffect) addTask(r *proto.Reply) {
	for i := range d.eff.Tasks {
		task := *prose.Task(&d.eff.Tasks[i])
		switch d.kind {
		case proto.OpSubmitTask:
			task.Payload = nil
		case proto.OpAckTask, proto.OpNackTask, proto.OpAskHuman:
			if d.eff.Outcome == engine.Done {
				task = interlock.Task{ID: task.ID, State: task.State, Attempt: task.Attempt, Due: task.Due}
			}
		}
		r.Tasks = append(r.Tasks, cleanTask(task))
	}
}

// weighTasks returns how much memory is kept for an answer because of tasks.
func weighTasks(eff *engine.Effect, read *queryResult) (n int) {
	for i := range eff.Tasks {
		n += proto.TaskBulk(prose.Task(&eff.Tasks[i]))
	}
	for i := range eff.Handed {
		h := &eff.Handed[i]
		n += proto.TaskBulk(prose.Task(&h.Task))
		for j := range h.Documents {
			n += 512 + len(h.Documents[j].Body)
		}
	}
	if read == nil {
		return n
	}
	for i := range read.tasks {
		n += proto.TaskBulk(prose.Task(&read.tasks[i]))
	}
	for i := range read.queues {
		n += proto.QueueSize(&read.queues[i].TaskQueue)
	}
	for i := range read.log {
		n += proto.EntryBulk(&read.log[i].LogEntry)
	}
	return n
}

// cleanTask cleans what is said of a task. What it carries, and what came of it, is data.
func cleanTask(t interlock.Task) interlock.Task {
	t.Kind, t.Purpose, t.Group, t.Agent, t.Flow = cleanText(t.Kind), cleanText(t.Purpose), cleanText(t.Group),
		cleanText(t.Agent), cleanText(t.Flow)
	t.Principal, t.Sender, t.Reason = cleanText(t.Principal), cleanText(t.Sender), cleanText(t.Reason)
	t.Trace = cleanText(t.Trace)
	t.Attempts = slices.Clone(t.Attempts)
	for i := range t.Attempts {
		a := &t.Attempts[i]
		a.Agent, a.Reason = cleanText(a.Agent), cleanText(a.Reason)
	}
	if t.Approval != nil {
		clean := *t.Approval
		clean.Question, clean.Agent = cleanNote(clean.Question), cleanText(clean.Agent)
		clean.By, clean.Principal, clean.Reason = cleanText(clean.By), cleanText(clean.Principal), cleanText(clean.Reason)
		clean.Approvals = slices.Clone(clean.Approvals)
		for i := range clean.Approvals {
			x := &clean.Approvals[i]
			x.Principal, x.By, x.Reason = cleanText(x.Principal), cleanText(x.By), cleanText(x.Reason)
		}
		clean.Stale = slices.Clone(clean.Stale)
		for i := range clean.Stale {
			cleanDocument(&clean.Stale[i].Then)
			cleanDocument(&clean.Stale[i].Now)
			clean.Stale[i].Between = cleanDocuments(clean.Stale[i].Between)
		}
		t.Approval = &clean
	}
	return t
}

func cleanEntry(x interlock.LogEntry) interlock.LogEntry {
	x.Kind, x.Sender, x.Agent, x.Worker, x.Reason = cleanText(x.Kind), cleanText(x.Sender), cleanText(x.Agent),
		cleanText(x.Worker), cleanText(x.Reason)
	cleanDocument(&x.Document)
	return x
}

// lookAtTasks returns the function of a query about tasks in the engine; nil for another query.
func (r *queryResult) lookAtTasks(ns interlock.Namespace, o proto.Op) func(*engine.Engine) (done bool) {
	switch o.Kind {
	case proto.OpGetTask:
		return func(e *engine.Engine) bool {
			task, known := e.Task(ns, o.ID)
			if !known {
				r.refuse(&interlock.Error{
					Code:    interlock.CodeUnknownTask,
					Message: "no task has this id, or it was settled long ago and deleted",
				})
				return true
			}
			r.tasks = []engine.Task{task}
			return true
		}
	case proto.OpListTasks:
		list := engine.TaskList{
			Namespace: ns, Queue: o.Task.Queue, State: o.Task.State, Group: o.Group, Key: o.Key, After: o.Task.From,
			Limit: int(o.Task.Limit),
		}
		return func(e *engine.Engine) bool {
			done := list.Look(e)
			if done {
				for i := range list.Rows {
					list.Rows[i].Payload = nil
				}
				r.tasks, r.more, r.next = list.Rows, list.More, list.Next
			}
			return done
		}
	case proto.OpListQueues:
		list := engine.QueueList{Namespace: ns}
		return func(e *engine.Engine) bool {
			done := list.Look(e)
			if done {
				r.queues, r.more = queuesAfter(list.Rows, o.Name)
			}
			return done
		}
	case proto.OpReadLog:
		return func(e *engine.Engine) bool {
			entries, _, next := e.Log(ns, o.Key, o.Task.From, int(o.Task.Limit))
			rest, _, _ := e.Log(ns, o.Key, next, 1)
			r.log, r.more = entries, len(rest) > 0
			return true
		}
	}
	return nil
}

// queuesAfter returns those of a sorted list that come after a name, as many as fit into a reply
// but at least one, and whether there are more.
func queuesAfter(list []interlock.QueueStatus, name string) (part []interlock.QueueStatus, more bool) {
	size := 0
	for i := range list {
		if list[i].Name <= name {
			continue
		}
		if size += proto.QueueSize(&list[i].TaskQueue); size > maxListing && len(part) > 0 {
			return part, true
		}
		part = append(part, list[i])
	}
	return part, false
}
