package engine

import (
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
	"github.com/interlockdev/interlock/engine/internal/store"
)

// SessionRow is a session as others see it: it has no id. Text in it came from agents.
type SessionRow struct {
	Number       uint64 // the same in all its events
	Name         string // public
	Agent        string
	Principal    string // that opened it; "" without credentials
	Progress     string
	Open         time.Duration
	HeartbeatAge time.Duration
	ExpiresIn    time.Duration
	TTL          time.Duration
	Connected    bool // it has a session stream at this moment
	Leases       int
	Waits        int
	Holds        []interlock.Claim // of its first leases, at most MaxShownHolders
	WaitsFor     []interlock.Claim // of its first waits, at most MaxShownHolders
}

// SessionList lists live sessions in the order in which they were opened.
type SessionList struct {
	Namespace interlock.Namespace
	Agent     string // "": of all
	Principal string // "": of all
	Waiting   bool   // only those with a wait
	Holding   bool   // only those with a lease
	After     uint64 // Next of the page before; 0: from the beginning
	Limit     int    // 0: 100, and at most 1000

	Rows []SessionRow
	More bool   // there are more than Limit
	Next uint64 // the listing continues after it, whatever becomes of these sessions

	begun bool
	at    *collection.Element[*store.Session]
	row   sessionCount
}

// sessionCount counts the objects of a session, in parts.
type sessionCount struct {
	part         int
	lists        [][]*store.Request
	leases       int
	waits        int
	held, waited first[*store.Request]
}

func (l *SessionList) Look(e *Engine) (done bool) {
	s := e.turnTo(l.Namespace)
	if s == nil {
		return true
	}
	if !l.begun {
		l.begun, l.at = true, s.Roster.Front()
	}
	for looks := glances; looks > 0; {
		if l.at == nil {
			return true
		}
		x := l.at.Value
		if !l.wants(x) {
			looks--
			l.at = l.at.Next()
			continue
		}
		if len(l.Rows) == rowsOf(l.Limit) {
			l.More = true
			return true
		}
		if !l.row.look(x, &looks) {
			return false
		}
		if (!l.Waiting || l.row.waits > 0) && (!l.Holding || l.row.leases > 0) {
			l.Rows = append(l.Rows, l.row.show(x))
			l.Next = x.Num
		}
		l.row, l.at = sessionCount{}, l.at.Next()
	}
	return false
}

func (l *SessionList) wants(x *store.Session) bool {
	return x.Num > l.After && !x.Dead && (l.Agent == "" || x.Agent == l.Agent) &&
		(l.Principal == "" || x.Owner == l.Principal) && (!l.Waiting && !l.Holding || x.Work > 0)
}

// look counts on and reports whether that was all of the session.
func (c *sessionCount) look(x *store.Session, looks *int) (all bool) {
	c.held.limit, c.waited.limit = MaxShownHolders, MaxShownHolders
	for *looks > 0 {
		if len(c.lists) == 0 {
			*looks--
			if x.Work == 0 || !x.Flows.Part(c.part, func(f *store.FlowState) {
				c.lists = append(c.lists, f.Leases, f.Waits)
			}) {
				return true
			}
			c.part++
			continue
		}
		list := c.lists[0]
		n := min(len(list), *looks)
		for _, r := range list[:n] {
			c.add(r)
		}
		*looks -= n
		if c.lists[0] = list[n:]; n == len(list) {
			c.lists = c.lists[1:]
		}
	}
	return false
}

func (c *sessionCount) add(r *store.Request) {
	switch {
	case r.Phase != store.Waiting:
		c.leases++
		c.held.add(r, store.ByNumber)
	case r.Parent == nil:
		c.waits++
		c.waited.add(r, store.ByNumber)
	case r.Parent.Alternatives[0] == r: // the other alternatives are the same wait
		c.waits++
		c.waited.add(r.Parent, store.ByNumber)
	}
}

func (c *sessionCount) show(x *store.Session) SessionRow {
	now := x.NS.Now()
	return SessionRow{
		Number: x.Num, Name: x.Name, Agent: x.Agent, Principal: x.Owner, Progress: x.Progress.Text, Open: now.Sub(x.Opened),
		HeartbeatAge: max(0, now.Sub(x.Renewed)), ExpiresIn: max(0, x.End().Sub(now)), TTL: x.TTL, Connected: x.Caller != nil,
		Leases: c.leases, Waits: c.waits, Holds: firstClaims(c.held.list), WaitsFor: firstClaims(c.waited.list),
	}
}

// firstClaims returns the claims of some requests, at most MaxShownHolders.
func firstClaims(list []*store.Request) (claims []interlock.Claim) {
	for _, r := range list {
		claims = append(claims, r.Claims()...)
		if len(claims) >= MaxShownHolders {
			return slices.Clip(claims[:MaxShownHolders])
		}
	}
	return claims
}
