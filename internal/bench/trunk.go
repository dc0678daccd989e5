package bench

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
)

const (
	// beatEvery is between two heartbeats of a session: a third of the ttl.
	beatEvery = 10 * time.Second
	// chunk is how many operations of a stream are under way: all streams together stay below the number of commands
	// that may wait for an engine, and a stream's buffers in the server stay small.
	chunk = 250
)

// trunk is a namespace, its stream and its sessions. One goroutine works on it:
//
//	jobs, heartbeats ──► exchange ──► connected ──► attach
//	                         │
//	                         └──► attempt, again while the link breaks
//
// Operations are repeated under their numbers after a broken link, as the client does, so each happens once.
type trunk struct {
	swarm   *swarm
	number  int // among the trunks
	members []member

	jobs   chan job
	link   proto.ClientLink // nil: none
	frames chan arrival     // what comes on it
	server int              // that is tried next, or is connected
	owner  string           // the address of the server that the connected one relays to; "" if it does not
	epoch  interlock.Epoch  // of the shard that answered last

	single   bool      // heartbeats go one by one
	beatAt   time.Time // when the next one is due
	beatNext int       // with single, the member's place
}

// arrival is a frame, which belongs to the reader again when the next one is taken; or the end of the link.
type arrival struct {
	frame *proto.ServerFrame
	err   error
}

// job is something to be done by the goroutine of a trunk.
type job struct {
	ctx  context.Context
	do   func(*trunk, context.Context) error
	done chan error
}

// run works until ctx ends.
func (t *trunk) run(ctx context.Context) error {
	defer t.hangUp()
	t.pace(false)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(time.Until(t.beatAt))
		select {
		case <-ctx.Done():
			return nil
		case j := <-t.jobs:
			j.done <- j.do(t, j.ctx)
		case a := <-t.frames:
			if a.err == nil {
				t.heard(a.frame)
				continue
			}
			t.hangUp()
			if err := t.connected(ctx); err != nil {
				return err
			}
		case <-timer.C:
			if err := t.beat(ctx); err != nil {
				return err
			}
		}
	}
}

// work lets the trunk's goroutine do something and waits for it.
func (t *trunk) work(ctx context.Context, do func(*trunk, context.Context) error) error {
	j := job{ctx, do, make(chan error, 1)}
	select {
	case t.jobs <- j:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case err := <-j.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// pace chooses how heartbeats are sent from now on.
func (t *trunk) pace(single bool) {
	t.single, t.beatNext = single, 0
	every := beatEvery
	if single {
		every /= time.Duration(len(t.members))
	}
	// Streams do not beat together.
	t.beatAt = time.Now().Add(every * time.Duration(t.number) / time.Duration(len(t.swarm.trunks)))
}

// beat sends the heartbeats that are due.
func (t *trunk) beat(ctx context.Context) error {
	if !t.single {
		t.beatAt = time.Now().Add(beatEvery)
		return t.heartbeat(ctx)
	}
	if err := t.connected(ctx); err != nil {
		return err
	}
	t.beatAt = t.beatAt.Add(beatEvery / time.Duration(len(t.members)))
	m := &t.members[t.beatNext]
	t.beatNext = (t.beatNext + 1) % len(t.members)
	if m.alive() {
		// A link that breaks is found by its reader, and the next attach is a heartbeat too.
		_ = t.link.Send(&proto.ClientFrame{Ops: []proto.Op{m.op(proto.OpHeartbeat)}})
	}
	return nil
}

// heard takes answers to heartbeats that nothing waits for.
func (t *trunk) heard(f *proto.ServerFrame) {
	t.owner = cmp.Or(f.Owner, t.owner)
	for i := range f.Replies {
		switch r := &f.Replies[i]; {
		case r.Seq == 0: // a push
		case r.Outcome == proto.Done:
			t.swarm.beats.Add(1)
		case r.Outcome == proto.Refused && ended(r.Code):
			t.members[r.Slot-1].gone = true
		}
	}
}

// alive reports whether the session is open.
func (m *member) alive() bool { return m.id != (interlock.SessionID{}) && !m.gone }

// heartbeat renews all leases of all sessions.
func (t *trunk) heartbeat(ctx context.Context) error {
	var ops []proto.Op
	for i := range t.members {
		if m := &t.members[i]; m.alive() {
			ops = append(ops, m.op(proto.OpHeartbeat))
		}
	}
	for bundle := range slices.Chunk(ops, chunk) {
		if err := t.exchange(ctx, bundle, t.renewed); err != nil {
			return err
		}
	}
	return nil
}

// renewed takes the answer to a heartbeat.
func (t *trunk) renewed(m *member, op *proto.Op, r *proto.Reply) error {
	if r.Outcome == proto.Refused && ended(r.Code) {
		m.gone = true
		return nil
	}
	t.swarm.beats.Add(1)
	return t.expect(op, r, proto.Done)
}

// open opens all sessions.
func (t *trunk) open(ctx context.Context) error {
	return t.inChunks(ctx, len(t.members), func(i int) []proto.Op {
		m := &t.members[i]
		op := proto.Op{
			Kind: proto.OpOpen, Slot: m.slot, Seq: 1, Agent: fmt.Sprintf("agent-%d-%d", t.number, i),
			RequestID: fmt.Sprintf("bench-%d-%d-%d", time.Now().UnixNano(), t.number, i),
		}
		return []proto.Op{op}
	}, func(m *member, op *proto.Op, r *proto.Reply) error {
		if r.Session != nil {
			m.id = r.Session.ID
		}
		return t.expect(op, r, proto.Done)
	})
}

// acquire takes all leases: one of each session, then the next ones. So a session has all answers but one.
func (t *trunk) acquire(ctx context.Context) error {
	most := 0
	for i := range t.members {
		most = max(most, t.members[i].want)
	}
	return t.inChunks(ctx, most*len(t.members), func(i int) []proto.Op {
		m, k := &t.members[i%len(t.members)], i/len(t.members)
		if k >= m.want {
			return nil
		}
		op := m.op(proto.OpAcquire)
		op.Acked, op.Brief, op.OnConflict = m.seq-1, true, interlock.Fail
		op.Claims = []interlock.Claim{{Key: interlock.Key(fmt.Sprint("bench:", m.first+k))}}
		return []proto.Op{op}
	}, func(m *member, op *proto.Op, r *proto.Reply) error {
		m.leases = append(m.leases, grip{r.Lease.ID, r.Lease.Fence})
		return t.expect(op, r, proto.Granted)
	})
}

// verify reads each lease, and counts those that are lost.
func (t *trunk) verify(ctx context.Context) error {
	fences := map[interlock.LeaseID]interlock.Fence{}
	return t.inChunks(ctx, len(t.members), func(i int) []proto.Op {
		m := &t.members[i]
		if m.gone {
			t.swarm.lost.Add(int64(len(m.leases)))
			return nil
		}
		ops := make([]proto.Op, len(m.leases))
		for k, l := range m.leases {
			ops[k] = m.op(proto.OpGetLease)
			ops[k].ID, fences[l.id] = l.id, l.fence
		}
		return ops
	}, func(_ *member, op *proto.Op, r *proto.Reply) error {
		if r.Outcome == proto.Refused || r.Lease.State != interlock.Held || r.Lease.Fence != fences[op.ID] {
			t.swarm.lost.Add(1)
		}
		delete(fences, op.ID)
		return nil
	})
}

// close ends all sessions, which releases their leases.
func (t *trunk) close(ctx context.Context) error {
	return t.inChunks(ctx, len(t.members), func(i int) []proto.Op {
		m := &t.members[i]
		if m.gone {
			return nil
		}
		m.gone = true
		return []proto.Op{m.op(proto.OpClose)}
	}, func(_ *member, op *proto.Op, r *proto.Reply) error { return t.expect(op, r, proto.Done) })
}

// op is the member's next operation.
func (m *member) op(kind proto.OpKind) proto.Op {
	m.seq++
	return proto.Op{Kind: kind, Slot: m.slot, Seq: m.seq}
}

// ended reports whether a refusal means that the session has ended.
func ended(code interlock.Code) bool {
	return code == interlock.CodeSessionEnded || code == interlock.CodeUnknownSession
}

// busy reports whether a refusal ends by itself.
func busy(code interlock.Code) bool {
	switch code {
	case interlock.CodeOverloaded, interlock.CodeNoSpace, interlock.CodeNotOwner, interlock.CodeShuttingDown,
		interlock.CodeUnreachable, interlock.CodeOutcomeUnknown:
		return true
	}
	return false
}

// expect returns an error if an operation was answered in another way.
func (t *trunk) expect(op *proto.Op, r *proto.Reply, want interlock.Outcome) error {
	if r.Outcome == want {
		return nil
	}
	return fmt.Errorf("operation %d of the stream was answered with %v %s: %s", op.Kind, r.Outcome, r.Code, r.Message)
}

// inChunks exchanges the operations of n members, some at a time, and keeps the sessions alive meanwhile.
func (t *trunk) inChunks(
	ctx context.Context, n int, of func(i int) []proto.Op, take func(*member, *proto.Op, *proto.Reply) error,
) error {
	var ops []proto.Op
	for i := range n {
		ops = append(ops, of(i)...)
		if len(ops) < chunk && i < n-1 {
			continue
		}
		if err := t.exchange(ctx, ops, take); err != nil {
			return err
		}
		ops = ops[:0]
		for !t.beatAt.After(time.Now()) {
			if err := t.beat(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}
