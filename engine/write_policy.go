package engine

import (
	"cmp"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
	"github.com/interlockdev/interlock/engine/message"
)

// The conditions for commits to a key: see interlock.WritePolicy.

// writing returns what is wrong with a pattern's write policy, or "".
func (p *policy) writing() *message.Text {
	switch {
	case p.Write > interlock.WriteOpen:
		return message.New(message.WriteUnknown)
	case p.Writer != "" && p.WriterQueue != "":
		return message.New(message.WriterTwice)
	case p.Write == interlock.WriteSingle && p.Writer == "" && p.WriterQueue == "":
		return message.New(message.WriterMissing)
	case p.Write != interlock.WriteSingle && (p.Writer != "" || p.WriterQueue != ""):
		return message.New(message.WriterWithoutPolicy)
	case p.WriterQueue != "":
		return checkName("queue", p.WriterQueue)
	}
	if _, problem := checkTexts(text{"writer", p.Writer, interlock.MaxNameBytes}); problem != nil {
		return problem
	}
	return nil
}

// mayCommit returns why one of a commit's writes is not admitted under its key's pattern,
// nil for none.
func (e *Engine) mayCommit(p *policy, c *Commit, w *interlock.Write, sess *session, leases []*request, acked *task) *refusal {
	if p == nil {
		return e.mayEdit(p, c, w, sess, leases)
	}
	by := e.head.Principal
	switch {
	case p.Write == interlock.WriteVersion && w.Op != interlock.Add && !namesVersion(c, w.Key):
		return &refusal{code: interlock.CodeVersionRequired, key: w.Key, message: message.New(message.VersionDemanded, message.Str(p.Name), message.Str(w.Key))}
	case p.Write == interlock.WriteLease && cover(leases, w.Key) == nil:
		return &refusal{code: interlock.CodeLeaseRequired, key: w.Key, message: message.New(message.LeaseDemanded, message.Str(p.Name), message.Str(w.Key))}
	case p.WriterQueue != "" && !(acked.isFor(p.WriterQueue) && cover(leases, w.Key) != nil):
		return &refusal{code: interlock.CodeWriterOnly, key: w.Key, message: message.New(message.WriterQueueOnly, message.Str(p.Name), message.Str(w.Key), message.Str(p.WriterQueue))}
	case p.Write == interlock.WriteLease:
		return cover(leases, w.Key).mayWriteBy(by, w.Key)
	case p.WriterQueue != "":
		return cmp.Or(acked.queue.notWriter(by), cover(leases, w.Key).mayWriteBy(by, w.Key))
	case p.Write == interlock.WriteSingle && p.Writer != "" && e.head.Actor != p.Writer:
		return &refusal{code: interlock.CodeWriterOnly, key: w.Key, message: message.New(message.WriterOnly, message.Str(p.Name), message.Str(p.Writer), message.Str(w.Key), message.Sub(displayName(e.head.Principal)))}
	case p.Write != interlock.WriteOpen:
		return e.mayEdit(p, c, w, sess, leases)
	}
	return nil
}

// mayEdit returns the reason why a write may not change the document at its key, nil if it may:
// an exclusive lease of another holder keeps it out, whether or not there is a document, and a
// write that replaces a document names the version, or a lease. An addition is always allowed:
// it commutes, so it is right after any other write. p is the key's pattern, nil for none; its
// policy is not open.
func (e *Engine) mayEdit(p *policy, c *Commit, w *interlock.Write, sess *session, leases []*request) *refusal {
	if w.Op == interlock.Add {
		return nil
	}
	mine := cover(leases, w.Key)
	if mine == nil {
		if no := e.leasedAway(c, w.Key, sess); no != nil {
			return no
		}
	}
	switch {
	case e.pendingWork.ns.docs.known[w.Key].isAbsent():
		return nil
	case p != nil && p.Write != interlock.WriteGuarded, c.AsOf > 0, reads(c, w.Key):
		return nil
	case mine != nil:
		return mine.mayWriteBy(e.head.Principal, w.Key)
	}
	return &refusal{code: interlock.CodeVersionRequired, key: w.Key, message: message.New(message.VersionNotNamed, message.Str(w.Key))}
}

// leasedAway returns why a commit may not write the document at a key: another holder
// has claimed the key, or an ancestor of it, exclusively. The committing flow's own leases
// do not count, although the commit does not name them.
func (e *Engine) leasedAway(c *Commit, key interlock.Key, sess *session) *refusal {
	m := e.pendingWork.ns.exclusiveAt(key)
	if m == nil {
		return nil
	}
	r := m.req
	if sess != nil && r.session() == sess && r.flowName() == flowOr(c.Flow) {
		return nil
	}
	v := e.glance(nil)
	defer v.done()
	v.add(m)
	line := m.node.line.length()
	conflict := &Conflict{
		Key: key, Kind: interlock.OtherAgent, Holders: v.holders(), Writing: true,
		Queue: interlock.Queue{Length: line, ETA: e.expect(m.node, v.found, line)},
	}
	switch {
	case m.node.key != string(key):
		conflict.Kind = interlock.AncestorHeld
	case sess != nil && r.session() == sess:
		conflict.Kind = interlock.SameAgentOtherFlow
	}
	return &refusal{code: interlock.CodeHeld, key: key, conflict: conflict, message: message.New(message.LeasedExclusively, message.Str(key))}
}

// exclusiveAt returns the claim that makes a holder's access to a key exclusive: its own, or
// else that of the nearest ancestor; nil for none. A lease that is over for its holder does not
// count, although its keys may stay closed for its lock delay. All leases on a key that is held
// exclusively belong to one flow, so if there are more than a step may look at, any of them
// stands for the exclusive one.
func (s *namespace) exclusiveAt(key interlock.Key) *need {
	for name, more := string(key), true; more; name, more = keypath.Parent(name) {
		n := s.nodeAt(name)
		if n == nil || !n.modes.Has(lockmode.X) {
			continue
		}
		var last *need
		looks := 0
		for h := n.first; h != nil; h = h.next {
			if looks++; !h.req.isOver() {
				last = h
			}
			if h == last && (h.mode == lockmode.X && h.counts == 0 || looks >= StepObjects) {
				*s.agenda.objects += looks
				return h
			}
		}
		*s.agenda.objects += looks
	}
	return nil
}

// checkWriters returns why a pattern cannot name the queue that it names, nil if it can.
func (s *namespace) checkWriters(p *policy) *refusal {
	if p.WriterQueue != "" && s.registered(p.WriterQueue) == nil {
		return noSuchQueue(p.WriterQueue)
	}
	return nil
}

// writtenBy returns the pattern with the given queue as its writer, nil for none.
func (s *namespace) writtenBy(queue string) *policy {
	for _, p := range s.patterns {
		if p.WriterQueue == queue {
			return p
		}
	}
	return nil
}

// cover returns the first of some leases that claims a key, or a key above it,
// exclusively.
func cover(leases []*request, key interlock.Key) *request {
	for _, r := range leases {
		for _, c := range r.claims() {
			if c.Mode == lockmode.X && (c.Key == key || keypath.IsBelow(string(key), string(c.Key))) {
				return r
			}
		}
	}
	return nil
}

// namedLeases returns the leases that a commit names. If one of them is not in its holder's
// hands, the command is refused and ok is false. Naming one that is offered takes it up.
func (e *Engine) namedLeases(ids []interlock.LeaseID) (leases []*request, ok bool) {
	for _, id := range ids {
		r := e.findHeld(id)
		switch {
		case r == nil:
			return nil, false
		case r.isPutAside():
			e.refuseParked(r)
			return nil, false
		case r.holdsOn() && r.share.member.phase == closed:
			e.replyGone(r.share.member)
			return nil, false
		}
		if !e.mayTake(r) {
			return nil, false
		}
		e.claim(r)
		leases = append(leases, r)
	}
	return leases, true
}

// roomIn returns the reason why a commit's writes have no room, or nil. A commit that does not
// enlarge the state always has room.
func (c *Commit) roomIn(s *namespace, sess *session, made []writeResult) *refusal {
	more, bytes := 0, 0
	agent, flow := c.author(sess)
	for i := range c.Writes {
		w := &c.Writes[i]
		d := s.docs.known[w.Key]
		if !d.isAbsent() {
			more--
			bytes -= d.now.weight()
		}
		if w.Op != interlock.Delete {
			x := poolEdition{
				doc: &document{key: w.Key}, contentType: made[i].contentType, body: made[i].body,
				agent: agent, flow: flow, principal: c.Actor, note: c.Note,
			}
			more++
			bytes += x.weight()
		}
	}
	if limit := within(interlock.MaxDocuments, s.settings.Quota.Documents); more > 0 && len(s.docs.present)+more > limit {
		return &refusal{code: interlock.CodeTooManyDocuments, message: message.New(message.DocumentsAtLimit, message.Str(s.name), message.Num(len(s.docs.present)), message.Num(limit))}
	}
	if limit := within(interlock.MaxStateBytes, s.settings.Quota.State); bytes > 0 && s.docs.bytes+bytes > limit {
		return &refusal{code: interlock.CodeTooMuchState, message: message.New(message.DocumentsTooLarge, message.Str(s.name), message.Num(s.docs.bytes), message.Num(interlock.DocumentBytes), message.Num(limit), message.Num(bytes))}
	}
	return nil
}
