package engine

import (
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// decide decides on a commit: all of it is done, or nothing.
func (c *Commit) decide(e *Engine) {
	if e.draining {
		e.refuse(e.closedFor())
		return
	}
	sess, ok := e.caller()
	if !ok {
		return
	}
	if no := checkCommit(c); no != nil {
		e.refuseFor(no)
		return
	}
	if problem := e.noRoomForSpace(); problem != nil {
		e.refuse(interlock.CodeTooManyNamespaces, problem)
		return
	}
	leases, ok := e.namedLeases(c.Leases)
	if !ok {
		return
	}
	e.Namespace(c.Namespace)
	if list, ok := c.evaluate(e, sess, leases, nil); ok {
		c.write(e, sess, leases, list)
		c.reportCommitted(e, sess, leases)
	}
}

// evaluate computes the documents that a commit writes. If the commit is refused, ok is
// false. acked is the task that is acknowledged with the commit; nil for a commit of its own.
func (c *Commit) evaluate(
	e *Engine, sess *store.Session, leases []*store.Request, acked *store.Task,
) (list []writeResult, ok bool) {
	s := e.PendingWork.NS
	e.Visited += len(c.Reads) + len(c.Writes)
	if no := c.admit(e, s, sess, leases, acked); no != nil {
		e.refuseFor(no)
		return nil, false
	}
	if list, more := s.Documents.Stale(&c.CommitRequest, e.Clock); len(list) > 0 {
		e.refuseStale(list, more)
		c.reportStale(e, sess, list)
		return nil, false
	}
	list, no := c.carryOut(&s.Documents)
	if no == nil {
		no = c.roomIn(s, sess, list)
	}
	if no != nil {
		e.refuseFor(no)
		return nil, false
	}
	for i := range list {
		e.Visited += len(list[i].body) / objectBytes
	}
	return list, true
}

// admit rewrites the commit's keys in their canonical spelling. It returns the reason for a refusal
// that does not depend on changes since the commit was prepared, or nil.
func (c *Commit) admit(
	e *Engine, s *store.Namespace, sess *store.Session, leases []*store.Request, acked *store.Task,
) *store.Refusal {
	if no := s.SpellReads(c.Reads); no != nil {
		return no
	}
	if problem := e.ClockAnomaly(c.AsOf, s.Documents.Version); problem != nil {
		return &store.Refusal{Code: interlock.CodeFutureVersion, Message: problem}
	}
	policies := make([]*store.Policy, len(c.Writes))
	for i := range c.Writes {
		var no *store.Refusal
		if policies[i], no = s.Spell(&c.Writes[i].Key); no != nil {
			return no
		}
	}
	if no := store.CheckUnique(len(c.Writes), func(i int) interlock.Key { return c.Writes[i].Key }); no != nil {
		return no
	}
	for i := range c.Writes {
		w := &c.Writes[i]
		if no := c.mayWrite(e, policies[i], w, sess, leases, acked); no != nil {
			return no
		}
		if e.lowMem && (w.Op == interlock.Put || w.Op == interlock.Merge) {
			return &store.Refusal{Code: interlock.CodeOverloaded, Message: message.New(message.MemoryFullForWrites)}
		}
		if e.lowSpace && (w.Op == interlock.Put || w.Op == interlock.Merge) {
			return &store.Refusal{Code: interlock.CodeNoSpace, Message: message.New(message.DiskFullForWrites)}
		}
	}
	return nil
}

// version returns the version that a commit makes: the namespace's present one if it has no writes.
func (c *Commit) version(e *Engine) interlock.Version {
	version := e.PendingWork.NS.Documents.Version
	if len(c.Writes) > 0 {
		version = max(version, e.BaseVersion) + 1
	}
	return version
}

// write carries out the writes of a commit and answers it.
func (c *Commit) write(e *Engine, sess *store.Session, leases []*store.Request, list []writeResult) {
	version := c.version(e)
	claims := c.emitWrites(e, sess, leases, list, version, nil)
	c.reply(e, version)
	eff := &e.out.Effects[e.replied]
	eff.Warnings = append(eff.Warnings, e.PendingWork.NS.Warnings(claims)...)
}

// writes reports whether the commit writes a key.
func (c *Commit) writes(key interlock.Key) bool {
	return slices.ContainsFunc(c.Writes, func(w interlock.Write) bool { return w.Key == key })
}

// emitWrites makes the writes of a commit events. The first one is tagged with the
// command's request id, unless the commit comes with the acknowledgement of a task.
func (c *Commit) emitWrites(
	e *Engine, sess *store.Session, leases []*store.Request, list []writeResult, version interlock.Version,
	acked *store.Task,
) []interlock.Claim {
	agent, flow := c.author(sess)
	claims := make([]interlock.Claim, len(c.Writes))
	size := len(list) * usualBytes
	for i := range list {
		size += len(list[i].body)
	}
	e.out.Entry, e.out.Events = slices.Grow(e.out.Entry, size), slices.Grow(e.out.Events, len(list))
	for i := range c.Writes {
		w := &c.Writes[i]
		claims[i] = interlock.Claim{Key: w.Key, Mode: lockmode.X}
		*e.draft() = record.Event{
			Kind: record.Written, Namespace: c.Namespace, Claims: claims[i : i+1 : i+1], Version: version, Op: uint8(w.Op),
			ContentType: list[i].contentType, Blob: list[i].body, Agent: agent, Flow: flow, Actor: c.Actor, Note: c.Note,
		}
		if sess != nil {
			e.ev.Session, e.ev.SessionName = sess.Num, sess.Name
		}
		if r := cover(leases, w.Key); r != nil {
			e.ev.Fence = r.Fence
		}
		if i == 0 && acked == nil {
			e.tag(e.ev, Done)
		}
		e.emit(e.ev)
	}
	return claims
}

// author returns the names that a commit's documents record as their author.
func (c *Commit) author(sess *store.Session) (agent, flow string) {
	if sess == nil {
		return c.Agent, c.Flow
	}
	return sess.Agent, flowOr(c.Flow)
}

// reply answers a commit that was carried out, now or before under the same
// request id.
func (c *Commit) reply(e *Engine, version interlock.Version) {
	eff := e.reply(Done)
	eff.Version = version
	s := &e.PendingWork.NS.Documents
	for i := range c.Writes {
		w := &c.Writes[i]
		doc := interlock.Document{Key: w.Key, Version: version, Op: w.Op, Absent: w.Op == interlock.Delete}
		if d := s.Known[w.Key]; d != nil {
			if x := d.Written(version); x != nil {
				doc = x.Show(w.Key, w.Op == interlock.Add, e.Clock)
			}
		}
		eff.Documents = append(eff.Documents, doc)
	}
}

// again answers a commit that was carried out before. The command holds what it
// wrote; its outcome is reported as far as that is still kept.
func (c *Commit) again(e *Engine, a *store.StoredAnswer) {
	for i := range c.Writes {
		_, c.Writes[i].Key = e.PendingWork.NS.Fit(c.Writes[i].Key)
	}
	c.reply(e, a.Version)
}
