package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/interlockdev/interlock"
)

// Membership is the request of Join. Key, Parts and Work are required.
type Membership struct {
	Key      interlock.Key
	Parts    int                // into which the key is shared out, the same for all members
	Division interlock.Division // how; the first member's counts
	Flow     string             // as in Request
	Purpose  string
	TTL      time.Duration // how long it outlives the last heartbeat; 0: the key pattern's, else the session's
	Grace    time.Duration // how long stopping a part may take; 0: the key pattern's, else interlock.DefaultGrace

	// Work is called for each part that this member gets, in a goroutine of its own. When its
	// context ends, the part moves to another member, or the membership is over: Work must stop
	// all its work on the part, and return. Only then is the part handed over. If that takes
	// longer than Grace, the part moves without waiting, and only its fence separates the two.
	// A Work that returns earlier leaves the part idle until then.
	//
	// The context belongs to the member's flow. Calls for one part never overlap.
	Work func(ctx context.Context, part Part)
}

// Part is a part of a shared-out key in this member's hands.
type Part struct {
	Key   interlock.Key // the shared-out key, a slash and the index
	Index int
	Fence interlock.Fence // to pass along wherever the part's work writes
	Grace time.Duration   // how long stopping it may take
}

// Member is one of the processes that share out the parts of a key.
type Member struct {
	c     *Client
	ctx   context.Context // that of Join, for its values
	lease *Lease
	work  func(ctx context.Context, part Part)

	stopping context.Context // ends when Leave stops all work
	stop     context.CancelCauseFunc
	running  sync.WaitGroup

	// Client.mu guards the rest.
	turns   map[interlock.Key]chan struct{} // closed when the last call of Work for a part is over
	leaving bool
}

// Join makes this client one of the members that share the parts of a key, and calls
// Membership.Work for each part that is assigned to it, now and later. Parts move when members
// come, leave or die, and no two members ever have the same part. ctx bounds the joining and
// not the membership; the errors are those of Acquire.
func (c *Client) Join(ctx context.Context, as Membership) (*Member, error) {
	if as.Work == nil {
		return nil, errors.New("client: Membership.Work is required")
	}
	m := &Member{c: c, ctx: ctx, work: as.Work, turns: map[interlock.Key]chan struct{}{}}
	m.stopping, m.stop = context.WithCancelCause(context.Background())
	req := Request{
		Claims: []interlock.Claim{{
			Key: as.Key, Mode: interlock.Member, Count: uint32(min(max(as.Parts, 0), interlock.MaxCount)),
		}},
		Flow: as.Flow, Purpose: as.Purpose, Terms: interlock.Terms{TTL: as.TTL, Grace: as.Grace, Division: as.Division},
		OnConflict: interlock.Wait, member: m,
	}
	lease, err := c.Acquire(ctx, req)
	if err != nil {
		m.stop(nil)
		return nil, err
	}
	c.mu.Lock()
	m.lease = lease
	same := lease.g.member == m
	c.mu.Unlock()
	if !same {
		_ = lease.Release(ctx, Outcome{}) // one of two handles
		return nil, &interlock.Error{
			Code: interlock.CodeInvalidRequest, Key: as.Key,
			Message: fmt.Sprintf("flow %q is already a member of %s: use one flow for each member", lease.Flow(), as.Key),
		}
	}
	return m, nil
}

// Context ends when the membership is lost or was left. Other members then have its parts, or
// none does; to go on, join again.
func (m *Member) Context() context.Context { return m.lease.Context() }

// Info returns the present report of the membership's lease.
func (m *Member) Info() interlock.Lease { return m.lease.Info() }

// Parts returns the member's present parts, in order.
func (m *Member) Parts() (list []Part) {
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	for _, g := range m.lease.g.s.leases {
		if g.of == m.lease.g {
			list = append(list, g.part())
		}
	}
	slices.SortFunc(list, func(a, b Part) int { return cmp.Compare(a.Index, b.Index) })
	return list
}

// Leave stops the work on all parts, waits until it has ended, and leaves. If ctx
// ends before, the member stays one, without working; call Leave again. The other
// errors are those of Lease.Release.
func (m *Member) Leave(ctx context.Context) error {
	m.c.mu.Lock()
	m.leaving = true
	m.c.mu.Unlock()
	m.stop(errLeft)
	idle := make(chan struct{})
	go func() {
		m.running.Wait()
		close(idle)
	}()
	select {
	case <-idle:
	case <-ctx.Done():
		return fmt.Errorf("waiting for the work on the parts of %s to stop: %w", m.lease.Key(), context.Cause(ctx))
	}
	return m.lease.Release(ctx, Outcome{})
}

// errLeft is the cause of a part's context after Leave.
var errLeft = &interlock.Error{Code: interlock.CodeReleased, Message: "the member is leaving: stop work on the part"}

// begin starts the work on a new part, after the earlier work on it. Client.mu is held.
func (m *Member) begin(g *grant) {
	if m.leaving {
		return
	}
	part, before, over := g.part(), m.turns[g.key()], make(chan struct{})
	m.turns[part.Key] = over
	m.running.Go(func() {
		defer close(over)
		if before != nil {
			<-before
		}
		m.attend(g.handle(m.ctx), part)
	})
}

// attend works on a part until it is to be handed over, and hands it over.
func (m *Member) attend(lease *Lease, part Part) {
	ctx, cancel := context.WithCancelCause(lease.Context())
	defer cancel(nil)
	defer context.AfterFunc(m.stopping, func() { cancel(context.Cause(m.stopping)) })()
	if ctx.Err() == nil {
		m.work(ctx, part)
	}
	<-ctx.Done()
	if m.stopping.Err() == nil {
		_ = lease.Release(context.Background(), Outcome{}) // a lost lease goes by itself
	}
	// A member that leaves takes its parts along.
}

// part describes a lease that is one.
func (g *grant) part() Part {
	key := g.key()
	index, _ := strconv.Atoi(string(key[strings.LastIndexByte(string(key), '/')+1:]))
	return Part{Key: key, Index: index, Fence: g.info.Fence, Grace: max(g.info.Grace, 0)}
}

// isMember reports whether the lease is a membership.
func (g *grant) isMember() bool {
	return len(g.info.Claims) == 1 && g.info.Claims[0].Mode == interlock.Member
}

// The functions below are called with Client.mu held.

// memberOf returns the membership that a lease is a part of. joining reports that it is one of
// a membership that is still being asked for; the answer will show it.
func (s *session) memberOf(l *interlock.Lease) (of *grant, joining bool) {
	slash := strings.LastIndexByte(string(keyOf(l)), '/')
	if slash < 0 || len(l.Claims) != 1 {
		return nil, false
	}
	key := l.Claims[0].Key[:slash]
	for _, g := range s.leases {
		if g.isMember() && g.key() == key && g.flow == l.Flow {
			return g, false
		}
	}
	for _, k := range s.window.all() {
		if c := k.op.Claims; len(c) == 1 && c[0].Mode == interlock.Member && c[0].Key == key && k.op.Flow == l.Flow {
			return nil, true
		}
	}
	return nil, false
}

// adopt takes a part of a membership.
func (s *session) adopt(c *Client, of *grant, l interlock.Lease, at interlock.At) {
	if _, leaving := s.leaving[l.ID]; leaving || s.leases[l.ID] != nil {
		return
	}
	g := &grant{c: c, s: s, id: l.ID, flow: l.Flow, of: of, info: l, at: at, refs: 1}
	s.leases[g.id] = g
	if of.member != nil {
		of.member.begin(g)
	}
}

// review compares the parts that are worked on with those that the server shows.
func (s *session) review(c *Client, of *grant) {
	if !of.isMember() {
		return
	}
	shown := map[interlock.LeaseID]bool{}
	for _, p := range of.info.Parts {
		shown[p.Lease] = true
		if p.Stop {
			if g := s.leases[p.Lease]; g != nil {
				s.lost(g, passedOn(g, interlock.CodeInGrace), false)
			}
			continue
		}
		s.adopt(c, of, interlock.Lease{
			ID: p.Lease, Fence: p.Fence, Claims: []interlock.Claim{{Key: p.Key, Mode: interlock.Exclusive}},
			Agent: of.info.Agent, Session: of.info.Session, Flow: of.flow, Purpose: of.info.Purpose,
			TTL: of.info.TTL, Grace: of.info.Grace, ExpiresIn: of.info.ExpiresIn, State: interlock.Held,
		}, of.at)
	}
	for _, g := range s.leases {
		if g.of == of && !shown[g.id] {
			s.lost(g, passedOn(g, interlock.CodeTaken), true)
		}
	}
}

// disown ends the work on the parts of a membership that is over.
func (s *session) disown(of *grant, why *interlock.Error, ended bool) {
	for _, g := range s.leases {
		if g.of == of {
			e := *why
			e.Key = g.key()
			s.lost(g, &e, ended)
		}
	}
}

func passedOn(g *grant, code interlock.Code) *interlock.Error {
	return &interlock.Error{
		Code: code, Key: g.key(), At: g.at, EndedBy: "preempted",
		Message: "the part " + string(g.key()) + " goes to another member: stop work on it",
		Advice: interlock.Advice{
			Action: interlock.ActStop, Message: "stop work on the part and write nothing more to it",
		},
	}
}
