package engine

import (
	"cmp"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
)

// The conditions for commits to a key: see interlock.WritePolicy.

// mayWrite returns why one of a commit's writes is not admitted under its key's pattern,
// nil for none.
func (c *Commit) mayWrite(
	e *Engine, p *store.Policy, w *interlock.Write, sess *store.Session, leases []*store.Request, acked *store.Task,
) *store.Refusal {
	by := e.head.Principal
	if no := store.ReservedKey(w.Key, by); no != nil {
		return no
	}
	if p == nil {
		return c.mayEdit(e, p, w, sess, leases)
	}
	switch {
	case p.Write == interlock.WriteVersion && w.Op != interlock.Add && !namesVersion(c, w.Key):
		return &store.Refusal{
			Code: interlock.CodeVersionRequired, Key: w.Key,
			Message: message.New(message.VersionDemanded, message.Str(p.Name), message.Str(w.Key)),
		}
	case p.Write == interlock.WriteLease && cover(leases, w.Key) == nil:
		return &store.Refusal{
			Code: interlock.CodeLeaseRequired, Key: w.Key,
			Message: message.New(message.LeaseDemanded, message.Str(p.Name), message.Str(w.Key)),
		}
	case p.WriterQueue != "" && !(acked.IsFor(p.WriterQueue) && cover(leases, w.Key) != nil):
		return &store.Refusal{
			Code: interlock.CodeWriterOnly, Key: w.Key,
			Message: message.New(message.WriterQueueOnly, message.Str(p.Name), message.Str(w.Key), message.Str(p.WriterQueue)),
		}
	case p.Write == interlock.WriteLease:
		return cover(leases, w.Key).MayWriteBy(by, w.Key)
	case p.WriterQueue != "":
		return cmp.Or(acked.Queue.NotWriter(by), cover(leases, w.Key).MayWriteBy(by, w.Key))
	case p.Write == interlock.WriteSingle && p.Writer != "" && e.head.Actor != p.Writer:
		return &store.Refusal{
			Code: interlock.CodeWriterOnly, Key: w.Key,
			Message: message.New(
				message.WriterOnly, message.Str(p.Name), message.Str(p.Writer), message.Str(w.Key),
				message.Sub(store.DisplayName(e.head.Principal)),
			),
		}
	case p.Write != interlock.WriteOpen:
		return c.mayEdit(e, p, w, sess, leases)
	}
	return nil
}

// mayEdit returns the reason why a write may not change the document at its key, nil if it may:
// an exclusive lease of another holder keeps it out, whether or not there is a document, and a
// write that replaces a document names the version, or a lease. An addition is always allowed:
// it commutes, so it is right after any other write. p is the key's pattern, nil for none; its
// policy is not open.
func (c *Commit) mayEdit(
	e *Engine, p *store.Policy, w *interlock.Write, sess *store.Session, leases []*store.Request,
) *store.Refusal {
	if w.Op == interlock.Add {
		return nil
	}
	mine := cover(leases, w.Key)
	if mine == nil {
		if no := c.leasedAway(e, w.Key, sess); no != nil {
			return no
		}
	}
	switch {
	case e.PendingWork.NS.Documents.Known[w.Key].IsAbsent():
		return nil
	case p != nil && p.Write != interlock.WriteGuarded, c.AsOf > 0, store.ReadsKey(&c.CommitRequest, w.Key):
		return nil
	case mine != nil:
		return mine.MayWriteBy(e.head.Principal, w.Key)
	}
	return &store.Refusal{
		Code: interlock.CodeVersionRequired, Key: w.Key, Message: message.New(message.VersionNotNamed, message.Str(w.Key)),
	}
}

// leasedAway returns why a commit may not write the document at a key: another holder
// has claimed the key, or an ancestor of it, exclusively. The committing flow's own leases
// do not count, although the commit does not name them.
func (c *Commit) leasedAway(e *Engine, key interlock.Key, sess *store.Session) *store.Refusal {
	m := e.PendingWork.NS.ExclusiveAt(key)
	if m == nil {
		return nil
	}
	r := m.Req
	if sess != nil && r.Session() == sess && r.FlowName() == flowOr(c.Flow) {
		return nil
	}
	v := e.Glance(nil)
	defer v.Done()
	v.Add(m)
	line := m.Node.Line.Length()
	conflict := &store.Conflict{Writing: true, Conflict: interlock.Conflict{
		Key: key, Kind: interlock.OtherAgent, Holders: v.Holders(),
		Line: interlock.Line{Length: line, ETA: m.Node.ETA(v.Found, line)},
	}}
	switch {
	case m.Node.Key != string(key):
		conflict.Kind = interlock.AncestorHeld
	case sess != nil && r.Session() == sess:
		conflict.Kind = interlock.SameAgentOtherFlow
	}
	return &store.Refusal{
		Code: interlock.CodeHeld, Key: key, Conflict: conflict,
		Message: message.New(message.LeasedExclusively, message.Str(key)),
	}
}

// cover returns the first of some leases that claims a key, or a key above it,
// exclusively.
func cover(leases []*store.Request, key interlock.Key) *store.Request {
	for _, r := range leases {
		for _, c := range r.Claims() {
			if c.Mode == lockmode.X && (c.Key == key || keypath.IsBelow(string(key), string(c.Key))) {
				return r
			}
		}
	}
	return nil
}

// namedLeases returns the leases that a commit names. If one of them is not in its holder's
// hands, the command is refused and ok is false. Naming one that is offered takes it up.
func (e *Engine) namedLeases(ids []interlock.LeaseID) (leases []*store.Request, ok bool) {
	for _, id := range ids {
		r := e.findHeld(id)
		switch {
		case r == nil:
			return nil, false
		case r.IsPutAside():
			e.refuseParked(r)
			return nil, false
		case r.HoldsOn() && r.Share.Member.Phase == store.Closed:
			e.replyGone(r.Share.Member)
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
func (c *Commit) roomIn(s *store.Namespace, sess *store.Session, made []writeResult) *store.Refusal {
	more, bytes := 0, 0
	agent, flow := c.author(sess)
	for i := range c.Writes {
		w := &c.Writes[i]
		d := s.Documents.Known[w.Key]
		if !d.IsAbsent() {
			more--
			bytes -= d.Now.Weight()
		}
		if w.Op != interlock.Delete {
			x := store.DocumentVersion{
				Doc: &store.Document{Key: w.Key}, ContentType: made[i].contentType, Body: made[i].body,
				Agent: agent, Flow: flow, Principal: c.Actor, Note: c.Note,
			}
			more++
			bytes += x.Weight()
		}
	}
	if limit := store.Within(interlock.MaxDocuments, s.Settings.Quota.Documents); more > 0 &&
		len(s.Documents.Present)+more > limit {
		return &store.Refusal{
			Code: interlock.CodeTooManyDocuments,
			Message: message.New(
				message.DocumentsAtLimit, message.Str(s.Name), message.Num(len(s.Documents.Present)), message.Num(limit),
			),
		}
	}
	if limit := store.Within(interlock.MaxStateBytes, s.Settings.Quota.State); bytes > 0 &&
		s.Documents.Bytes+bytes > limit {
		return &store.Refusal{
			Code: interlock.CodeTooMuchState,
			Message: message.New(
				message.DocumentsTooLarge, message.Str(s.Name), message.Num(s.Documents.Bytes),
				message.Num(interlock.DocumentBytes), message.Num(limit), message.Num(bytes),
			),
		}
	}
	return nil
}
