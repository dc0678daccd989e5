package shard

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/filejournal"
)

// BenchmarkTwoTenants measures the cycles of one tenant alone and beside another one that
// makes the engine search: for deadlocks among very many, and for the ranks of a long chain.
// A cycle is an acquire and a release, one after the other. Blocks of both kinds alternate.
// The busy tenant is at work when a block beside it begins, and has nothing left over when
// one without it does: else its searches would go on there, and the ratio would flatter.
//
// The metrics are the percentiles of both kinds, and how many times as long those beside the
// busy tenant are. Rows with a file journal write and sync what they answer, as a server does.
//
// The rows "cycles" are the control: there the busy tenant acquires and releases a key of its own,
// which makes the engine search nothing. They show the price of not being alone: the quiet tenant
// loses the fast path of a shard without other users, waits for the syncs of others, and shares the
// processors with the goroutines of the other one.
func BenchmarkTwoTenants(b *testing.B) {
	inMemory := func(b *testing.B) journal.Journal { return newNullJournal(b) }
	inFiles := func(b *testing.B) journal.Journal {
		j, err := filejournal.Open(b.Context(), b.TempDir(), filejournal.Options{})
		if err != nil {
			b.Fatal(err)
		}
		return j
	}
	for _, busy := range []struct {
		name    string
		journal func(*testing.B) journal.Journal
		setUp   func(*neighbour)
		again   func(*neighbour)
	}{
		{"cycles", inMemory, (*neighbour).open, (*neighbour).cycle},
		{"permits=1800", inMemory, func(n *neighbour) { n.holdPermits(1800) }, (*neighbour).wantPermits},
		{"line=10000", inMemory, func(n *neighbour) { n.standInLine(10_000) }, (*neighbour).closeCircle},
		{"chain=16000", inMemory, func(n *neighbour) { n.chain(16_000) }, (*neighbour).raise},
		{"cycles/files", inFiles, (*neighbour).open, (*neighbour).cycle},
		{"permits=1800/files", inFiles, func(n *neighbour) { n.holdPermits(1800) }, (*neighbour).wantPermits},
		{"line=10000/files", inFiles, func(n *neighbour) { n.standInLine(10_000) }, (*neighbour).closeCircle},
		{"chain=16000/files", inFiles, func(n *neighbour) { n.chain(16_000) }, (*neighbour).raise},
	} {
		b.Run(busy.name, func(b *testing.B) {
			clock := &leapClock{Clock: newWallClock()}
			s, err := Open(b.Context(), Config{Journal: busy.journal(b), SnapshotBytes: -1, Clock: clock})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close(background)
			n, quiet := newNeighbour(b, s), newNeighbour(b, s)
			n.clock, quiet.namespace = clock, "quiet"
			busy.setUp(n)
			const block = 200
			var alone, beside []time.Duration
			cycles := func(took []time.Duration) []time.Duration {
				for range block {
					start := time.Now()
					quiet.release(quiet.ask("", "k", engine.Acquire{}))
					took = append(took, time.Since(start))
				}
				return took
			}
			for b.Loop() { // one block of each kind
				n.rest()
				alone = cycles(alone)
				var stop atomic.Bool
				begun, stopped := make(chan struct{}), make(chan struct{})
				go func() {
					defer close(stopped)
					busy.again(n)
					close(begun)
					for !stop.Load() {
						busy.again(n)
					}
				}()
				<-begun
				beside = cycles(beside)
				stop.Store(true)
				<-stopped
			}
			b.ReportMetric(0, "ns/op")
			for _, p := range []int{50, 99} {
				a, with := percentile(alone, p), percentile(beside, p)
				b.ReportMetric(float64(a.Nanoseconds())/1000, fmt.Sprintf("p%d-alone-us", p))
				b.ReportMetric(float64(with.Nanoseconds())/1000, fmt.Sprintf("p%d-beside-us", p))
				b.ReportMetric(float64(with)/float64(a), fmt.Sprintf("p%d-ratio", p))
			}
		})
	}
}

// neighbour is a tenant with one session. Its commands are carried out one by one.
type neighbour struct {
	b         testing.TB
	s         *Shard
	namespace interlock.Namespace
	session   interlock.SessionID
	got       anyEffect
	next      int

	clock *leapClock

	// Further needs of BenchmarkLimits.
	to    engine.Caller // instead of got
	lease interlock.LeaseID
	other interlock.SessionID
	names map[interlock.SessionID]string
	by    *interlock.Principal
	keep  int // leases that are there in any case, also the quiet tenant's
}

// anyEffect takes what is delivered, also a refusal.
type anyEffect chan engine.Effect

func (c anyEffect) Deliver(eff *engine.Effect, _ interlock.At) {
	select {
	case c <- *eff:
	default: // without a waiter
	}
}

func newNeighbour(b testing.TB, s *Shard) *neighbour {
	return &neighbour{
		b: b, s: s, namespace: "busy", got: make(anyEffect, 1), names: map[interlock.SessionID]string{}, keep: 1,
	}
}

func (n *neighbour) head() engine.Head {
	h := engine.Head{Namespace: n.namespace, Session: n.session, From: n.got}
	if n.to != nil {
		h.From = n.to
	}
	if n.by != nil {
		h.Actor, h.Principal = n.by.Name, n.by
	}
	return h
}

func (n *neighbour) do(cmd engine.Command) engine.Effect {
	if err := n.s.Submit(cmd); err != nil {
		n.b.Error(err)
	}
	return <-n.got
}

// open opens the session that has the tenant's flows.
func (n *neighbour) open() { n.openFor(interlock.MaxTTL) }

// openFor opens a session that ends when nothing is heard of it for so long.
func (n *neighbour) openFor(ttl time.Duration) {
	id := interlock.SessionID(newID())
	n.session = interlock.SessionID{}
	eff := n.do(&engine.OpenSession{Head: n.head(), ID: id, Agent: "busy", TTL: ttl})
	n.session, n.names[id] = id, eff.Session.Name
}

// ask acquires a key in a flow, as changed by more.
func (n *neighbour) ask(flow string, key interlock.Key, more engine.Acquire) interlock.LeaseID {
	more.Head, more.ID, more.Flow, more.Agent, more.TTL, more.OnConflict = n.head(), newID(), flow, "busy",
		interlock.MaxTTL, interlock.Wait
	if more.Claims == nil {
		more.Claims = []interlock.Claim{{Key: key, Mode: interlock.Exclusive}}
	}
	n.do(&more)
	return more.ID
}

func (n *neighbour) release(lease interlock.LeaseID) {
	n.do(&engine.Release{Head: n.head(), Lease: lease})
}

func (n *neighbour) leave(lease interlock.LeaseID) {
	n.do(&engine.Leave{Head: n.head(), Ticket: interlock.TicketID(lease)})
}

func (n *neighbour) permits(flow string, count uint32) interlock.LeaseID {
	return n.ask(flow, "", engine.Acquire{LeaseRequest: interlock.LeaseRequest{
		Claims: []interlock.Claim{{Key: "p", Mode: interlock.Permits, Count: count}},
	}})
}

// cycle acquires a key without contention, and releases it.
func (n *neighbour) cycle() { n.release(n.ask("", "own", engine.Acquire{})) }

// holdPermits has very many flows hold one permit of a key, and wait for two more.
func (n *neighbour) holdPermits(flows int) {
	n.open()
	n.do(&engine.SetPattern{
		Head: n.head(), Pattern: interlock.Pattern{Name: "p", Shape: "p", Capacity: uint32(flows) + 10},
	})
	n.permits("idle", 9)
	for i := range flows {
		n.permits(fmt.Sprint(i), 1)
	}
	for i := range flows - 1 { // more may not wait for one key
		n.permits(fmt.Sprint(i), 2)
	}
}

func (n *neighbour) wantPermits() {
	n.leave(n.permits("9", 3))
}

// standInLine has very many flows wait for one key, each holding another.
func (n *neighbour) standInLine(flows int) {
	n.open()
	n.ask("idle", "hot", engine.Acquire{})
	for i := range flows - 1 {
		n.ask(fmt.Sprint(i), interlock.Key(fmt.Sprint("own-", i)), engine.Acquire{})
		n.ask(fmt.Sprint(i), "hot", engine.Acquire{})
	}
}

// closeCircle makes a flow join the end of the line while another one waits for its key.
func (n *neighbour) closeCircle() {
	own := n.ask("last", "last", engine.Acquire{})
	other := n.ask("other", "last", engine.Acquire{})
	n.leave(n.ask("last", "hot", engine.Acquire{}))
	n.leave(other)
	n.release(own)
}

// chain has very many flows each hold a key and wait for that of the next.
func (n *neighbour) chain(flows int) {
	n.open()
	for i := range flows {
		n.ask(fmt.Sprint(i), interlock.Key(fmt.Sprint("k", i)), engine.Acquire{})
	}
	for i := range flows - 1 {
		n.ask(fmt.Sprint(i), interlock.Key(fmt.Sprint("k", i+1)), engine.Acquire{})
	}
}

// raise sends a priority to the head of the chain, and takes it back.
func (n *neighbour) raise() {
	n.leave(n.ask("head", "k0", engine.Acquire{LeaseRequest: interlock.LeaseRequest{Priority: 1 + n.next%9}}))
	n.next++
}
