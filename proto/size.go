package proto

import (
	"github.com/interlockdev/interlock"
)

// Size is an upper bound of the operation's encoded length.
func (o *Op) Size() int {
	n := 176 + len(o.RequestID) + len(o.Agent) + len(o.Flow) + len(o.Purpose) + len(o.Trace) + len(o.Prefix) +
		len(o.Group) +
		len(o.Key) + len(o.Outcome) + len(o.Note) + len(o.Progress) + len(o.Name)
	n += claimsSize(o.Claims)
	if o.On != nil {
		n += 32 + len(o.On.Session) + len(o.On.Agent) + len(o.On.Flow)
	}
	if o.Pattern != nil {
		n += PatternSize(o.Pattern)
	}
	if o.Settings != nil {
		n += 320
	}
	if o.Commit != nil {
		n += commitSize(o.Commit)
	}
	if o.State != nil {
		n += o.State.size()
	}
	if o.Effect != nil {
		n += o.Effect.size()
	}
	if o.Task != nil {
		n += o.Task.size()
	}
	if o.Queue != nil {
		n += QueueSize(o.Queue)
	}
	if o.Run != nil {
		n += len(o.Run.Org) + len(o.Run.Workflow)
	}
	return n
}

// Patterns and settings go both ways: an operator sets them, and asks for them.

// PatternSize is an upper bound of a pattern's encoded length.
func PatternSize(p *interlock.Pattern) int {
	n := 272 + len(p.Name) + len(p.Shape) + len(p.Writer) + len(p.WriterQueue)
	for _, list := range [...][]string{p.Aliases, p.Members} {
		for _, s := range list {
			n += 8 + len(s)
		}
	}
	for i := range p.Groups {
		n += 24 + len(p.Groups[i].Name)
	}
	for i := range p.Allow {
		n += 16 + len(p.Allow[i].Principal) + 2*len(p.Allow[i].Modes)
	}
	return n
}

// Queues of tasks go both ways, as patterns do.

// QueueSize is an upper bound of a queue's encoded length, without its counts.
func QueueSize(q *interlock.TaskQueue) int {
	n := 160 + len(q.Name)
	for i := range q.Groups {
		n += 32 + len(q.Groups[i].Group)
	}
	for _, list := range [...][]string{q.Pull, q.Submit, q.Admin} {
		for _, entry := range list {
			n += 8 + len(entry)
		}
	}
	for _, entry := range q.Approvers {
		n += 4 + len(entry)
	}
	return n
}

// commitSize is an upper bound of the encoded length.
func commitSize(c *interlock.CommitRequest) int {
	n := 16 + len(c.Flow) + len(c.Note) + readsSize(c.Reads)
	for i := range c.Writes {
		w := &c.Writes[i]
		n += 80 + len(w.Key) + len(w.ContentType) + len(w.Body)
	}
	return n + 18*len(c.Leases)
}

func (e *EffectOp) size() int {
	return 128 + len(e.Tool) + len(e.Target) + len(e.Arguments) + len(e.Result) + len(e.Reason)
}

func (q *StateQuery) size() int {
	n := 16 + len(q.After)
	for _, key := range q.Keys {
		n += 8 + len(key)
	}
	return n
}

// size is an upper bound of the encoded length.
func (x *TaskOp) size() int {
	n := 64 + len(x.Queue) + len(x.By) + len(x.Reason) + len(x.Result) + questionSize(x.Question)
	for i := range x.Specs {
		t := &x.Specs[i]
		n += 160 + len(t.Queue) + len(t.Kind) + len(t.Payload) + len(t.Purpose) + len(t.Group) + len(t.Trace) + len(t.Key) +
			claimsSize(t.Claims) + questionSize(t.Ask)
	}
	return n
}

func questionSize(q *interlock.Question) int {
	if q == nil {
		return 0
	}
	return 40 + len(q.Text) + readsSize(q.Reads)
}

func readsSize(list []interlock.Read) (n int) {
	for i := range list {
		n += 32 + len(list[i].Key)
	}
	return n
}

func claimsSize(claims []interlock.Claim) (n int) {
	for i := range claims {
		n += 24 + len(claims[i].Key)
	}
	return n
}

// AssignmentBulk returns about how many bytes of the reply can be large.
func (r *Reply) Bulk() (n int) {
	for i := range r.Documents {
		n += 256 + len(r.Documents[i].Body)
	}
	if r.Packet != nil {
		n += len(r.Packet.Message)
		for i := range r.Packet.Changes {
			n += 512 + len(r.Packet.Changes[i].Diff.Text)
		}
	}
	for i := range r.Effects {
		n += 256 + len(r.Effects[i].Action) + len(r.Effects[i].Result)
	}
	for i := range r.Patterns {
		n += PatternSize(&r.Patterns[i])
	}
	for i := range r.Tasks {
		n += TaskBulk(&r.Tasks[i])
	}
	for i := range r.Handed {
		n += AssignmentBulk(&r.Handed[i])
	}
	for i := range r.Queues {
		n += QueueSize(&r.Queues[i].TaskQueue)
	}
	for i := range r.Log {
		n += EntryBulk(&r.Log[i])
	}
	return n
}

// TaskBulk is about how many bytes of a task can be large.
func TaskBulk(t *interlock.Task) int {
	n := 512 + len(t.Payload) + len(t.Result) + 128*len(t.Attempts)
	for i := range t.Attempts {
		n += len(t.Attempts[i].Reason)
	}
	if t.Approval == nil {
		return n
	}
	for i := range t.Approval.Stale {
		s := &t.Approval.Stale[i]
		n += 512*(1+len(s.Between)) + len(s.Then.Body) + len(s.Now.Body)
		for k := range s.Between {
			n += len(s.Between[k].Note)
		}
	}
	return n
}

// AssignmentBulk returns about how many bytes of it can be large.
func AssignmentBulk(h *interlock.Assignment) int {
	n := TaskBulk(&h.Task)
	for i := range h.Documents {
		n += 256 + len(h.Documents[i].Body)
	}
	return n
}

// EntryBulk is about how many bytes of an entry of a log can be large.
func EntryBulk(x *interlock.LogEntry) int {
	return 512 + len(x.Body) + len(x.Reply) + len(x.Document.Body)
}
