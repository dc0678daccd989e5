package engine_test

import (
	"fmt"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// setQueue registers a queue, or changes its settings.
func (p *player) setQueue(o *op) error {
	head := engine.Head{Namespace: among(o.r[0], firstNamespace, firstNamespace, firstNamespace, otherNamespace)}
	name := among(o.r[1], "q", "q", "r")
	if o.r[2]%12 == 0 {
		return p.step(&engine.DropQueue{Head: head, Name: name})
	}
	if o.r[2]>>16%4 == 0 {
		return p.step(&engine.SwitchQueue{
			Head: head, Name: name, Paused: among(o.r[2]>>20, engine.AsIs, engine.On, engine.Off),
			Drain: among(o.r[2]>>24, engine.AsIs, engine.On, engine.Off),
		})
	}
	q := interlock.TaskQueue{
		Name: name, Paused: o.r[2]>>8%8 == 0, Drain: o.r[2]>>12%12 == 0, MaxAttempts: among(o.r[3], 0, 0, 2, 5),
		Backoff: among(o.r[3]>>8, 0, time.Second, 3*time.Second), MaxBackoff: among(o.r[3]>>16, 0, 5*time.Second),
		TTL: among(o.r[4], 0, 0, 9*time.Second), Grace: among(o.r[4]>>8, 0, 2*time.Second),
		MaxHold: among(o.r[4]>>16, 0, 0, 20*time.Second),
		Stall:   among(o.r[5], 0, 0, 15*time.Second), MaxRunning: among(o.r[5]>>8, 0, 0, 3),
		MaxTasks: among(o.r[5]>>16, 0, 0, 6),
	}
	if o.r[6]%2 == 0 {
		q.Groups = []interlock.Share{
			{Group: "x", Weight: among(o.r[6]>>8, 3, 2, 0), Max: among(o.r[6]>>16, 0, 1, 2)},
			{Group: "y", Max: among(o.r[7], 0, 0, 1)},
		}
	}
	q.Pull = among(o.r[8], nil, nil, nil, []string{"*"}, []string{"web", "group:x"}, []string{"red"})
	q.Submit = among(o.r[8]>>8, nil, nil, nil, []string{"group:y", "ops"}, []string{"web"})
	q.Admin = among(o.r[8]>>16, nil, nil, []string{"group:x"}, []string{"*"})
	if q.MinApprovals = among(o.r[7]>>8, 0, 0, 0, 0, 1, 2); o.r[7]>>16%6 == 0 {
		q.Approvers = []string{"ops", "group:x"}
	}
	q.Approval = among(o.r[7]>>20, interlock.ApprovalOnce, interlock.ApprovalReuse)
	return p.step(&engine.SetQueue{Head: head, Queue: q})
}

// spec chooses a task.
func (p *player) spec(o *op, ns interlock.Namespace, r uint32) engine.TaskSpec {
	x := engine.TaskSpec{
		ID: p.id(), TaskSpec: interlock.TaskSpec{
			Queue: among(r, "q", "q", "q", "r"), Kind: "k", Payload: []byte(among(r>>2, `{"n":1}`, "")),
			Purpose: among(r>>4, "", "why"),
			Group:   among(r>>6, "", "x", "y"), Priority: among(r>>8, 0, 0, 0, 0, 1, -1, 5),
			Delay:       among(r>>12, 0, 0, 0, 0, time.Second, 7*time.Second),
			Deadline:    among(r>>16, 0, 0, 0, 0, 10*time.Second, 25*time.Second),
			MaxAttempts: among(r>>20, 0, 0, 1, 3), Backoff: among(r>>24, 0, 0, 2*time.Second),
			MaxBackoff: among(r>>28, 0, 0, 3*time.Second),
		},
	}
	if o.r[8]%12 > 0 {
		x.Claims = dedupe(p.claims(o))
	}
	if o.r[8]>>8%8 == 0 {
		ask := p.question(ns, o.r[9])
		x.Ask = &ask
	}
	return x
}

func (p *player) submit(o *op) error {
	c := &engine.Submit{Flow: among(o.r[1], "", "sub"), Attach: o.r[3]%2 == 0}
	if s := p.session(o.r[0], o.r[0]>>8); s != nil && o.r[1]>>8%3 > 0 {
		c.Head, c.Attach = p.in(s), o.r[3]%4 == 0
	} else {
		c.Namespace, c.Agent = among(o.r[0], firstNamespace, firstNamespace, otherNamespace), fmt.Sprintf("bare-%d", p.ids)
	}
	c.Task = p.spec(o, c.Namespace, o.r[2])
	if p.m.queue(c.Namespace, c.Task.Queue) == nil && o.r[3]>>4%8 > 0 {
		if err := p.step(&engine.SetQueue{
			Head: engine.Head{Namespace: c.Namespace}, Queue: interlock.TaskQueue{Name: c.Task.Queue},
		}); err != nil {
			return err
		}
	}
	c.Link, c.Actor = uint64(1+o.r[3]>>8%3), among(o.r[3]>>12, "", "", "web")
	if o.r[3]>>16%4 == 0 {
		c.RequestID = fmt.Sprintf("r%d", p.ids)
		p.submitted = append(p.submitted, *c)
	}
	return p.step(c)
}

func (p *player) pull(o *op) error {
	c := &engine.Pull{
		ID: p.id(), Queue: among(o.r[1], "q", "q", "q", "r"), Max: 1 + int(o.r[2]%3), Attach: o.r[2]>>8%3 > 0,
		TTL: among(o.r[2]>>16, 0, 0, 4*time.Second),
	}
	if s := p.session(o.r[0], o.r[0]>>8); s != nil && o.r[1]>>8%3 > 0 {
		c.Head = p.in(s)
	} else {
		c.Namespace, c.Agent = among(o.r[0], firstNamespace, firstNamespace, otherNamespace), fmt.Sprintf("worker-%d", p.ids)
	}
	c.Link = uint64(1 + o.r[3]%3)
	for range c.Max {
		c.Leases = append(c.Leases, p.id())
	}
	if again, ok := pick(o.r[4], p.pulled); ok && o.r[4]>>16%8 == 0 && !p.isGone(again.Namespace, again.Session) {
		again.From = nil
		return p.step(&again)
	}
	p.pulled = append(p.pulled, *c)
	return p.step(c)
}

// attempt picks an attempt at a task, mostly one that is under way.
func (p *player) attempt(o *op) *request {
	var list []*request
	for _, r := range p.m.requests {
		if r.task != nil && r.fence > 0 && (r.active() || o.r[1]%12 == 0) {
			list = append(list, r)
		}
	}
	if o.r[1]%24 == 1 {
		list = p.m.inPhase(held, inGrace, over)
	}
	r, _ := pick(o.r[0], list)
	return r
}

func (p *player) ack(o *op) error {
	r := p.attempt(o)
	if r == nil {
		return nil
	}
	commit := &engine.Commit{Head: engine.Head{Namespace: r.ns}, CommitRequest: interlock.CommitRequest{
		Note: among(o.r[3]>>20, "", "", "a note"),
	}}
	p.change(commit, o, p.id())
	if len(r.claims) > 0 && len(commit.Writes) > 0 && o.r[2]>>24%4 > 0 {
		commit.Writes[0].Key = r.claims[0].Key
	}
	c := &engine.Ack{
		Head: p.head(r, o.r[2]), Lease: interlock.LeaseID(r.ask.ID), Result: []byte(among(o.r[3], "", "1", `{"ok":true}`)),
		CommitRequest: interlock.CommitRequest{
			Reads: commit.Reads, AsOf: commit.AsOf, Writes: commit.Writes, Note: commit.Note,
		},
	}
	c.Actor = among(o.r[3]>>4, "", "", "web")
	for i := range int(among(o.r[3]>>8, 0, 0, 1, 2)) {
		next := p.spec(o, r.ns, o.r[4+i])
		if o.r[6+i]%2 == 0 {
			next = p.message(next, o.r[6+i]>>8)
		}
		c.Tasks = append(c.Tasks, next)
	}
	if o.r[3]>>16%4 == 0 {
		c.RequestID = fmt.Sprintf("r%d", p.ids)
		p.acked = append(p.acked, *c)
	}
	return p.step(c)
}

func (p *player) nack(o *op) error {
	r := p.attempt(o)
	if r == nil {
		return nil
	}
	c := &engine.Nack{
		Head: p.head(r, o.r[2]), Lease: interlock.LeaseID(r.ask.ID), Reason: among(o.r[3], "", "no"), Dead: o.r[3]>>4%8 == 0,
		Delay: among(o.r[3]>>8, 0, 0, -1, 2*time.Second, -2), Jitter: uint64(o.r[4])<<32 | uint64(o.r[5]),
	}
	return p.step(c)
}

// changeTask does what operators do with tasks.
func (p *player) changeTask(o *op) error {
	t, ok := pick(o.r[0], p.m.tasks)
	if first, found := pick(o.r[0], p.passed()); found && o.r[3]>>16%2 == 0 {
		t = first
	}
	if !ok {
		return nil
	}
	c := &engine.ChangeTask{
		Head: engine.Head{Namespace: t.ns}, Task: t.id, Delay: among(o.r[2], 0, 0, 3*time.Second),
		Reason: among(o.r[2]>>8, "", "so"),
		Change: among(o.r[1], engine.CancelTask, engine.RescheduleTask, engine.RescheduleTask),
	}
	if t.isSettled() || o.r[1]>>8%16 == 0 {
		c.Change = among(o.r[1]>>12, engine.ReplayTask, engine.ReplayTask, engine.ReplayTask, engine.DiscardTask)
	}
	if o.r[3]%12 == 0 {
		c.Task = p.id()
	}
	if o.r[3]>>8%4 == 0 {
		c.RequestID = fmt.Sprintf("r%d", p.ids+uint64(len(p.trace)))
	}
	return p.step(c)
}

// followTask begins a wait for the end of a task, or ends a worker.
func (p *player) followTask(o *op) error {
	if w, ok := pick(o.r[0], p.m.workers); ok && o.r[1]%3 == 0 {
		head := engine.Head{Namespace: w.pull.Namespace, Link: 1 + uint64(o.r[2]%3)}
		if o.r[2]>>8%2 == 0 {
			return p.step(&engine.Leave{Head: head, Ticket: w.pull.ID})
		}
		return p.step(&engine.Detach{Head: head, Ticket: w.pull.ID})
	}
	t, ok := pick(o.r[0], p.m.tasks)
	if !ok {
		return nil
	}
	if o.r[1]>>16%4 == 0 {
		return p.step(&engine.Leave{
			Head: engine.Head{Namespace: t.ns, Link: 1 + uint64(o.r[2]%3)}, Ticket: interlock.TicketID(t.id),
		})
	}
	c := &engine.FollowTask{
		Head: engine.Head{Namespace: t.ns, Link: 1 + uint64(o.r[2]%3)}, Task: t.id, Attach: o.r[1]>>8%3 > 0,
	}
	if s := p.session(o.r[3], 1); s != nil && s.ns == t.ns && o.r[3]>>8%2 == 0 {
		c.Session, c.Flow = s.id, p.flow(o, s)
	}
	return p.step(c)
}

// flow chooses a flow of a session: one in which it has something, mostly.
func (p *player) flow(o *op, s *session) string {
	var list []*request
	for _, r := range p.m.requests {
		if r.session == s && (r.active() || r.phase == waiting) {
			list = append(list, r)
		}
	}
	if r, ok := pick(o.r[4], list); ok && o.r[4]>>16%4 > 0 {
		return r.ask.Flow
	}
	return among(o.r[4]>>20, "", "sub")
}

// repeatWork sends what was submitted or acknowledged again.
func (p *player) repeatWork(o *op) error {
	if o.r[0]%2 == 0 {
		if c, ok := pick(o.r[1], p.acked); ok && !p.isGone(c.Namespace, c.Session) {
			c.From = nil
			return p.step(&c)
		}
		return nil
	}
	c, ok := pick(o.r[1], p.submitted)
	if !ok || p.isGone(c.Namespace, c.Session) {
		return nil
	}
	c.From, c.Task.ID = nil, p.id()
	if o.r[2]%4 == 0 {
		c.Task.Purpose = "something else"
	}
	return p.step(&c)
}

func (p *player) isGone(ns interlock.Namespace, id interlock.SessionID) bool {
	s := p.m.sessionByID(ns, id)
	return s != nil && s.ended
}
