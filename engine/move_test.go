package engine_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

// shardOf is an engine with its journal, for moves between two.
type shardOf struct {
	e       *engine.Engine
	journal [][]byte
	number  int
}

// step takes a step of move number in a namespace, and expects an outcome.
func (s *shardOf) step(c *engine.MoveNamespace, ns interlock.Namespace, at engine.Time, want interlock.Outcome) error {
	c.Namespace, c.At = ns, at
	var out engine.Output
	s.e.Step(c, &out)
	if len(out.Entry) > 0 {
		s.journal = append(s.journal, out.Entry)
	}
	if len(out.Effects) != 1 || out.Effects[0].Outcome != want {
		return fmt.Errorf("step %d of %q answers %+v, want %v", c.Step, ns, out.Effects, want)
	}
	return nil
}

// replayed makes the engine anew from its journal, and compares it.
func (s *shardOf) replayed() error {
	fresh := engine.New()
	for i, entry := range s.journal {
		if err := fresh.Apply(entry); err != nil {
			return fmt.Errorf("entry %d: %w", i, err)
		}
	}
	return s.same(fresh)
}

// same compares the state with that of a replay, and with what a snapshot keeps of it.
func (s *shardOf) same(fresh *engine.Engine) error {
	if fresh.Hash() != s.e.Hash() {
		return errors.New("the state after a replay has another hash (I17)")
	}
	var buf bytes.Buffer
	if err := s.e.WriteSnapshot(&buf); err != nil {
		return err
	}
	again, err := engine.ReadSnapshot(&buf)
	if err != nil {
		return err
	}
	if again.Hash() != s.e.Hash() {
		return errors.New("a snapshot reads back with another hash (I17)")
	}
	return nil
}

// exported closes a namespace and returns what moves.
func exported(
	e *engine.Engine, ns interlock.Namespace, number uint64,
) (from engine.NamespaceExport, pieces [][]byte, err error) {
	if from, err = e.Exports(ns, number); err != nil {
		return from, nil, err
	}
	err = e.Export(ns, number, func(piece []byte) error {
		pieces = append(pieces, bytes.Clone(piece))
		return nil
	})
	return from, pieces, err
}

// carry copies a closed namespace into another shard, up to the step before it opens there. Every step is
// repeated, and must change nothing then.
func carry(from, to *shardOf, ns interlock.Namespace, number uint64, at engine.Time) error {
	export, pieces, err := exported(from.e, ns, number)
	if err != nil {
		return err
	}
	move := func(step record.MoveStep, piece []byte) *engine.MoveNamespace {
		return &engine.MoveNamespace{Number: number, Other: from.number, Step: step, From: export, Piece: piece}
	}
	// A first attempt breaks off in the middle.
	list := []*engine.MoveNamespace{move(record.MoveArriving, nil)}
	for _, piece := range pieces[:len(pieces)/2] {
		list = append(list, move(record.MoveCopied, piece))
	}
	list = append(list, move(record.MoveArriving, nil))
	for _, piece := range pieces {
		list = append(list, move(record.MoveCopied, piece))
	}
	list = append(list, move(record.MoveArrived, nil), move(record.MoveArrived, nil), move(record.MoveArriving, nil))
	for _, c := range list {
		if err := to.step(c, ns, at, engine.Done); err != nil {
			return err
		}
	}
	return nil
}

// relocate moves all namespaces of the rig into a new engine, which continues in the place of the old one.
func (g *rig) relocate() error {
	old, err := g.replay()
	if err != nil {
		return err
	}
	at := old.Last
	source := &shardOf{e: old, number: 3}
	target := &shardOf{e: g.bounded(engine.New()), number: 5}
	begin := engine.EncodeEntry([]record.Event{{
		Kind: record.Counters, At: at, AsOf: interlock.Version(old.PastVersion), Version: old.BaseVersion,
		Fence: old.Fence / 2, Num: old.Num / 2, Session: old.SessionNum / 2, Epoch: g.epoch,
	}})
	if err := target.e.Apply(begin); err != nil {
		return err
	}
	target.journal = append(target.journal, begin)
	for i, s := range old.Sorted() {
		if s.IsBare() {
			continue
		}
		number, ns := uint64(i+1), s.Name
		closes := &engine.MoveNamespace{Number: number, Other: 5, Step: record.MoveClosed}
		if err := source.step(closes, ns, at, engine.Done); err != nil {
			return err
		}
		for _, w := range s.SortedWebhooks() { // its cursor is where the log of the target begins
			moved, k := *w, webhookOf{ns, w.Name}
			moved.Cursor = interlock.Index(number)
			s.Webhooks[w.Name] = &moved
			if known, ok := g.m.webhooks[k]; ok {
				known.Cursor = moved.Cursor
				g.m.webhooks[k] = known
			}
		}
		_, before, err := exported(old, ns, number)
		if err != nil {
			return err
		}
		if err := carry(source, target, ns, number, at); err != nil {
			return err
		}
		opened := engine.EncodeEntry([]record.Event{{
			Kind: record.NamespaceMoved, At: at, Namespace: ns, Op: uint8(record.MoveOpened), Generation: number,
			OtherShard: 3, By: number,
		}})
		if err := target.e.Apply(opened); err != nil {
			return err
		}
		target.journal = append(target.journal, opened)
		closed := &shardOf{e: target.e}
		probe, err := closed.probe(ns, number, at)
		if err != nil {
			return err
		}
		if !slices.EqualFunc(before, probe, bytes.Equal) {
			return fmt.Errorf("namespace %q has another state after its move", ns)
		}
	}
	if target.e.Fence < old.Fence {
		return fmt.Errorf("fences fall from %d to %d", old.Fence, target.e.Fence)
	}
	if err := target.replayed(); err != nil {
		return err
	}
	g.journal, g.snapshot, g.snapAt, g.picture = target.journal, nil, 0, nil
	fresh, err := g.replay()
	if err != nil {
		return err
	}
	g.use(fresh)
	g.epoch++
	return g.step(&engine.Recover{Epoch: g.epoch})
}

// probe returns the pieces of a namespace that is open, from a copy of the engine.
func (s *shardOf) probe(ns interlock.Namespace, number uint64, at engine.Time) ([][]byte, error) {
	var buf bytes.Buffer
	if err := s.e.WriteSnapshot(&buf); err != nil {
		return nil, err
	}
	again, err := engine.ReadSnapshot(&buf)
	if err != nil {
		return nil, err
	}
	other := &shardOf{e: again}
	closes := &engine.MoveNamespace{Number: number + 1, Step: record.MoveClosed}
	if err := other.step(closes, ns, at, engine.Done); err != nil {
		return nil, err
	}
	_, pieces, err := exported(again, ns, number+1)
	return pieces, err
}

// mover is two shards and a namespace with a session, a lease and a waiter, for tests of single steps.
type mover struct {
	t        *testing.T
	from, to *shardOf
	now      engine.Time
	ids      uint64
}

const moving = interlock.Namespace("acme")

func newMover(t *testing.T) *mover {
	m := &mover{t: t, now: begin, from: &shardOf{e: engine.New(), number: 3}, to: &shardOf{e: engine.New(), number: 5}}
	for _, s := range []*shardOf{m.from, m.to} {
		m.do(s, &engine.Recover{Epoch: 1})
	}
	return m
}

func (m *mover) id() [16]byte {
	m.ids++
	return counted(m.ids)
}

func (m *mover) do(s *shardOf, cmd engine.Command) engine.Effect {
	m.t.Helper()
	h := cmd.Header()
	h.At = m.now
	if _, ok := cmd.(*engine.Recover); !ok && h.Namespace == "" {
		h.Namespace = moving
	}
	h.From = &listener{"caller"}
	var out engine.Output
	s.e.Step(cmd, &out)
	if len(out.Entry) > 0 {
		s.journal = append(s.journal, out.Entry)
	}
	must(m.t, s.replayed())
	if len(out.Effects) == 0 {
		return engine.Effect{}
	}
	return out.Effects[0]
}

// takes has a shard take a step of a move.
func (m *mover) takes(s *shardOf, number uint64, step record.MoveStep) {
	m.t.Helper()
	c := &engine.MoveNamespace{Number: number, Other: m.from.number + m.to.number - s.number, Step: step, Cursor: 7}
	must(m.t, s.step(c, moving, m.now, engine.Done))
}

func (m *mover) open(s *shardOf) interlock.SessionID {
	eff := m.do(s, &engine.OpenSession{ID: interlock.SessionID(m.id()), Agent: "agent", TTL: 30 * time.Second})
	return eff.Session.ID
}

func (m *mover) acquire(s *shardOf, x interlock.SessionID, key interlock.Key) engine.Effect {
	c := &engine.Acquire{ID: m.id(), LeaseRequest: interlock.LeaseRequest{
		Claims: []interlock.Claim{{Key: key, Mode: interlock.Exclusive}}, OnConflict: interlock.Wait,
	}}
	c.Session = x
	return m.do(s, c)
}

// TestClosedNamespace: a namespace that moves answers nothing, nothing ends in it however long the move takes,
// and where it opens its sessions have their full time again. Another namespace of the shard goes on.
func TestClosedNamespace(t *testing.T) {
	for _, back := range []bool{false, true} {
		m := newMover(t)
		holder, waiter := m.open(m.from), m.open(m.from)
		lease := m.acquire(m.from, holder, "k").Lease
		ticket := m.acquire(m.from, waiter, "k")
		if lease.ID.IsZero() || ticket.Outcome != engine.Queued {
			t.Fatalf("want a lease and a waiter, got %+v and %+v", lease, ticket)
		}
		m.takes(m.from, 1, record.MoveClosed)
		m.now = m.now.Add(time.Hour)
		if eff := m.acquire(m.from, holder, "other"); eff.Code != interlock.CodeMoving {
			t.Errorf("a closed namespace answers %+v", eff)
		}
		beat := &engine.Heartbeat{}
		beat.Session = holder
		if eff := m.do(m.from, beat); eff.Code != interlock.CodeMoving {
			t.Errorf("a closed namespace answers a heartbeat with %+v", eff)
		}
		if at, ok := m.from.e.NextTimer(); ok {
			t.Errorf("something is due at %v in a closed namespace", at)
		}
		if !m.from.e.IsMoving(moving) || len(m.from.e.MovingNamespaces()) != 1 {
			t.Errorf("the source has %+v", m.from.e.MovingNamespaces())
		}
		other := &engine.OpenSession{ID: interlock.SessionID(m.id()), Agent: "agent"}
		other.Namespace = "other"
		if eff := m.do(m.from, other); eff.Outcome != engine.Done {
			t.Errorf("another namespace answers %+v", eff)
		}
		at := m.from
		if back {
			m.takes(m.from, 1, record.MoveReopened)
		} else {
			at = m.to
			must(t, carry(m.from, m.to, moving, 1, m.now))
			if eff := m.do(m.to, beat); eff.Code != interlock.CodeMoving {
				t.Errorf("a copy answers a heartbeat with %+v", eff)
			}
			m.takes(m.to, 1, record.MoveOpened)
			m.takes(m.from, 1, record.MoveLeft)
			if eff := m.acquire(m.from, holder, "late"); eff.Code != interlock.CodeMoving {
				t.Errorf("the source answers %+v after the namespace has left", eff)
			}
			if n := len(m.from.e.Namespaces[moving].Sessions); n != 0 || len(m.from.e.MovingNamespaces()) != 0 {
				t.Errorf("the source keeps %d sessions of the namespace", n)
			}
		}
		m.now = m.now.Add(29 * time.Second)
		beat = &engine.Heartbeat{}
		beat.Session = holder
		if eff := m.do(at, beat); eff.Outcome != engine.Done || len(eff.Losses) != 0 {
			t.Errorf("a heartbeat after the move is answered by %+v", eff)
		}
		release := &engine.Release{Lease: lease.ID}
		release.Session = holder
		if eff := m.do(at, release); eff.Outcome != engine.Done {
			t.Errorf("a release after the move is answered by %+v", eff)
		}
		poll := &engine.Poll{Ticket: ticket.Ticket.ID}
		poll.Session = waiter
		eff := m.do(at, poll)
		if eff.Outcome != engine.Granted || eff.Lease.Fence <= lease.Fence {
			t.Errorf("the waiter has %+v after the move, want a lease with a fence above %d", eff, lease.Fence)
		}
	}
}

// moved is the life of a shard that a namespace arrives in, and leaves again for another one.
func moved(t *testing.T) [][]byte {
	t.Helper()
	m := newMover(t)
	x := m.open(m.from)
	m.acquire(m.from, x, "k")
	m.acquire(m.from, m.open(m.from), "k")
	m.takes(m.from, 1, record.MoveClosed)
	must(t, carry(m.from, m.to, moving, 1, m.now))
	m.takes(m.to, 1, record.MoveOpened)
	m.acquire(m.to, x, "other")
	m.takes(m.to, 2, record.MoveClosed)
	m.takes(m.to, 2, record.MoveReopened)
	m.acquire(m.to, x, "third")
	m.takes(m.to, 3, record.MoveClosed)
	m.takes(m.to, 3, record.MoveLeft)
	m.do(m.to, &engine.OpenSession{
		Head: engine.Head{Namespace: "other"}, ID: interlock.SessionID(m.id()), Agent: "agent",
	})
	return m.to.journal
}

// TestFenceAboveBoth: after a move no fence repeats one of the source, or of the target.
func TestFenceAboveBoth(t *testing.T) {
	for _, ahead := range []int{0, 1} {
		m := newMover(t)
		var highest interlock.Fence
		for i, s := range []*shardOf{m.from, m.to} {
			x := m.open(s)
			for n := range 3 + 20*(i^ahead) {
				highest = max(highest, m.acquire(s, x, interlock.Key(fmt.Sprintf("k%d", n))).Lease.Fence)
			}
			m.do(s, &engine.CloseSession{Head: engine.Head{Session: x}}) // the highest fence is no living lease's
			if i == 1 {
				remove := &engine.DeleteNamespace{Force: true}
				m.do(s, remove)
			}
		}
		m.takes(m.from, 1, record.MoveClosed)
		must(t, carry(m.from, m.to, moving, 1, m.now))
		m.takes(m.to, 1, record.MoveOpened)
		if got := m.acquire(m.to, m.open(m.to), "new").Lease.Fence; got <= highest {
			t.Errorf("the first fence after the move is %d, and %d was given out before", got, highest)
		}
	}
}

// TestMoveOrder: a step that does not follow the one before is refused and changes nothing, so a server with
// an old directory does no harm.
func TestMoveOrder(t *testing.T) {
	m := newMover(t)
	m.acquire(m.from, m.open(m.from), "k")
	m.acquire(m.to, m.open(m.to), "k")
	move := func(number uint64, step record.MoveStep) *engine.MoveNamespace {
		return &engine.MoveNamespace{Number: number, Step: step}
	}
	refused := func(s *shardOf, c *engine.MoveNamespace) {
		t.Helper()
		before := s.e.Hash()
		must(t, s.step(c, moving, m.now, engine.Refused))
		if s.e.Hash() != before {
			t.Errorf("step %d of move %d was refused and changed something", c.Step, c.Number)
		}
	}
	refused(m.to, move(1, record.MoveArriving)) // it has a namespace of that name
	refused(m.from, move(1, record.MoveCopied))
	refused(m.from, move(1, record.MoveArrived))
	must(t, m.from.step(move(2, record.MoveClosed), moving, m.now, engine.Done))
	must(t, m.from.step(move(2, record.MoveClosed), moving, m.now, engine.Done))
	refused(m.from, move(1, record.MoveClosed))
	refused(m.from, move(1, record.MoveLeft))
	refused(m.from, move(1, record.MoveReopened))
	refused(m.from, move(2, record.MoveArriving))
	refused(m.from, move(2, record.MoveOpened))
	refused(m.from, move(2, record.MoveDropped))
	if _, _, err := exported(m.from.e, moving, 1); err == nil {
		t.Error("move 1 exports what move 2 has closed")
	}
	must(t, m.from.step(move(2, record.MoveReopened), moving, m.now, engine.Done))
	must(t, m.from.step(move(2, record.MoveReopened), moving, m.now, engine.Done))
	must(t, m.from.step(move(2, record.MoveLeft), moving, m.now, engine.Done)) // it was taken back: nothing to do
	if m.from.e.Namespaces[moving] == nil {
		t.Fatal("a namespace that was opened again is gone")
	}

	empty := &shardOf{e: engine.New()}
	m.do(empty, &engine.Recover{Epoch: 1})
	must(t, empty.step(move(4, record.MoveArriving), moving, m.now, engine.Done))
	refused(empty, move(4, record.MoveOpened)) // the copy is not complete
	refused(empty, move(4, record.MoveLeft))
	must(t, empty.step(move(4, record.MoveDropped), moving, m.now, engine.Done))
	must(t, empty.step(move(4, record.MoveDropped), moving, m.now, engine.Done))
	if len(empty.e.Namespaces) != 0 {
		t.Error("a copy that was dropped is still there")
	}
}
