package engine_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/internal/prose"
)

// Whatever a client does, one step's events stay far below what a journal takes at
// once, and what a step leaves undone is done by the next, also after a restart.

// largestEntry is the bound of one step and one more event of the largest kind.
const largestEntry = 512 << 10

// listLooks is how many objects a list has that a step looks at as a whole, in tests.
const listLooks = 1000

// unitObjects is how many objects what a step was about may have when it has looked at
// engine.StepObjects. The largest is a generation of a barrier, which is granted as one: two
// looks at each claim of each party.
const unitObjects = 2 * interlock.MaxParties * interlock.MaxClaims

// load drives an engine without a model, for cases too large for one.
type load struct {
	t   *testing.T
	e   *engine.Engine
	now engine.Time
	ids uint64
	out engine.Output
	log [][]byte
}

func newLoad(t *testing.T) *load {
	l := &load{t: t, e: engine.New(), now: engine.Time(1_700_000_000) * engine.Time(time.Second)}
	l.step(&engine.Recover{Head: engine.Head{At: l.now}, Epoch: 1})
	return l
}

func (l *load) id() (id [16]byte) {
	l.ids++
	binary.BigEndian.PutUint64(id[8:], l.ids)
	return id
}

func (l *load) head(session interlock.SessionID) engine.Head {
	return engine.Head{At: l.now, Namespace: "default", Session: session, From: "me"}
}

// step returns the answer to the command's caller, if there is one.
func (l *load) step(cmd engine.Command) *engine.Effect {
	l.t.Helper()
	l.out = engine.Output{}
	l.e.Step(cmd, &l.out)
	if n := len(l.out.Entry); n > largestEntry {
		l.t.Fatalf("the entry of a %T has %d bytes", cmd, n)
	} else if n > 0 {
		l.log = append(l.log, bytes.Clone(l.out.Entry))
	}
	if n := l.e.Looked(); n > engine.StepLooks+listLooks {
		l.t.Fatalf("a %T looks at %d objects", cmd, n)
	}
	_, all := cmd.(*engine.Recover) // which looks at all there is
	if n := l.e.Objects(); n > engine.StepObjects+unitObjects && !all {
		l.t.Fatalf("a %T looks at %d other objects", cmd, n)
	}
	if n := l.e.Ranked(); n > engine.StepRanks+listLooks {
		l.t.Fatalf("a %T looks at %d objects for ranks", cmd, n)
	}
	for i := range l.out.Effects {
		if l.out.Effects[i].To == "me" {
			return &l.out.Effects[i]
		}
	}
	return nil
}

// restart continues with the state of the journal.
func (l *load) restart() {
	l.t.Helper()
	l.e = engine.New()
	for _, entry := range l.log {
		if err := l.e.Apply(entry); err != nil {
			l.t.Fatal(err)
		}
	}
	l.step(&engine.Recover{Head: engine.Head{At: l.now}, Epoch: 2})
}

func (l *load) open(ttl time.Duration) interlock.SessionID {
	id := interlock.SessionID(l.id())
	l.step(&engine.OpenSession{Head: l.head(interlock.SessionID{}), ID: id, Agent: "a", TTL: ttl})
	return id
}

func (l *load) acquire(
	session interlock.SessionID, flow string, ttl time.Duration, keys ...string,
) (interlock.LeaseID, *engine.Effect) {
	l.t.Helper()
	c := &engine.Acquire{Head: l.head(session), ID: l.id(), LeaseRequest: interlock.LeaseRequest{
		Flow: flow, Terms: interlock.Terms{TTL: ttl}, OnConflict: interlock.Wait,
	}, Attach: true}
	for _, key := range keys {
		c.Claims = append(c.Claims, interlock.Claim{Key: interlock.Key(key)})
	}
	return c.ID, l.step(c)
}

// pass lets time pass and fires the due timers. It returns the number of steps.
func (l *load) pass(d time.Duration) (steps int) {
	l.t.Helper()
	l.now = l.now.Add(d)
	for {
		at, ok := l.e.NextTimer()
		if !ok || at > l.now {
			return steps
		}
		if steps++; steps > 100_000 {
			l.t.Fatal("it does not come to an end")
		}
		l.step(&engine.Tick{Head: engine.Head{At: l.now}})
	}
}

func TestOneSessionsEndsAreBounded(t *testing.T) {
	l := newLoad(t)
	s := l.open(time.Minute)
	long := strings.Repeat("k", 500)
	for i := range 32 {
		keys := make([]string, interlock.MaxClaims)
		for j := range keys {
			keys[j] = fmt.Sprintf("%s%d-%d", long, i, j)
		}
		l.acquire(s, "", time.Second, keys...)
	}
	for i := range 15_000 {
		l.acquire(s, "", time.Second, fmt.Sprintf("k%d", i))
	}
	l.pass(2 * time.Second)
	l.pass(10 * time.Second)
	if n := l.e.Counts().Leases; n != 0 {
		t.Errorf("%d leases are left", n)
	}
}

func TestLongCycleIsCut(t *testing.T) {
	l := newLoad(t)
	s := l.open(time.Minute)
	const n = 1300
	key := func(i int) string { return fmt.Sprintf("%s%d", strings.Repeat("k", 500), i%n) }
	flow := func(i int) string { return fmt.Sprintf("%s%d", strings.Repeat("f", 120), i%n) }
	for i := range n {
		l.acquire(s, flow(i), 0, key(i))
	}
	var lease interlock.LeaseID
	for i := range n {
		lease, _ = l.acquire(s, flow(i), 0, key(i+1))
	}
	l.pass(0)
	last := l.step(&engine.Poll{Head: l.head(s), Ticket: interlock.TicketID(lease)})
	if last.Code != interlock.CodeDeadlock || len(last.Conflict.Cycle) != interlock.MaxCycleSteps ||
		!last.Conflict.Cycle[0].Victim {
		t.Errorf("%v %s with a cycle of %d steps", last.Outcome, last.Code, len(last.Conflict.Cycle))
	}
}

// longClaims are claims with the longest keys, as many as a request may have.
func longClaims(mode interlock.Mode) (claims []interlock.Claim) {
	for i := range interlock.MaxClaims {
		claims = append(
			claims, interlock.Claim{Key: interlock.Key(fmt.Sprintf("%s%d", strings.Repeat("k", 500), i)), Mode: mode},
		)
	}
	return claims
}

// TestAskingIsBounded preempts many holders of leases with the longest lists of claims.
func TestAskingIsBounded(t *testing.T) {
	for _, policy := range []interlock.PreemptPolicy{interlock.PreemptAsk, interlock.PreemptRevoke} {
		l := newLoad(t)
		l.step(&engine.SetPattern{
			Head: l.head(interlock.SessionID{}), Pattern: interlock.Pattern{Name: "all", Shape: "{key}", Preempt: policy},
		})
		for range 64 {
			l.step(&engine.Acquire{Head: l.head(interlock.SessionID{}), ID: l.id(), LeaseRequest: interlock.LeaseRequest{
				Claims: longClaims(interlock.Shared),
			}})
		}
		l.step(&engine.Acquire{
			Head: l.head(interlock.SessionID{}), ID: l.id(), LeaseRequest: interlock.LeaseRequest{
				Claims: longClaims(interlock.Exclusive), OnConflict: interlock.Preempt,
			},
		})
		asked := 0
		for i := range l.out.Events {
			if l.out.Events[i].Kind == record.YieldRequested {
				asked++
			}
		}
		if asked == 0 {
			t.Errorf("with policy %v nobody is asked", policy)
		}
	}
}

// TestForfeitIsBounded has a deadlock's victim lose very many leases.
func TestForfeitIsBounded(t *testing.T) {
	l := newLoad(t)
	l.step(&engine.SetPattern{Head: l.head(interlock.SessionID{}), Pattern: interlock.Pattern{
		Name: "all", Shape: "d/{key}", OnDeadlock: interlock.DeadlockRevoke,
	}})
	l.step(&engine.Configure{Head: l.head(interlock.SessionID{}), Settings: interlock.Settings{}})
	s := l.open(time.Hour)
	for i := range 10_000 {
		l.acquire(s, "victim", 0, fmt.Sprintf("d/%d", i))
	}
	for i := range 10_001 {
		l.acquire(s, "other", 0, fmt.Sprintf("k%d", i))
	}
	l.acquire(s, "other", 0, "d")
	if _, eff := l.acquire(s, "victim", 0, "k0"); eff.Code == interlock.CodeDeadlock {
		return
	}
	t.Error("there is no deadlock, or another victim")
}

func TestDeadlockIsFoundAfterRestart(t *testing.T) {
	l := newLoad(t)
	bulk, s := l.open(time.Hour), l.open(time.Hour)
	for i := range 6000 {
		l.acquire(bulk, "", 10*time.Second, fmt.Sprintf("bulk%d", i))
	}
	l.acquire(s, "one", time.Hour, "k1")
	l.acquire(s, "two", time.Hour, "k2")
	l.acquire(s, "one", time.Hour, "k2")
	l.now = l.now.Add(10 * time.Second)
	// This closes the cycle in a step that is full with the ends of the others.
	if _, eff := l.acquire(s, "two", time.Hour, "k1"); eff.Outcome != engine.Queued {
		t.Fatalf("the cycle was found at once (%v), so this test shows nothing", eff.Outcome)
	}
	l.restart()
	l.pass(0)
	if edges := l.e.Waits("default"); len(edges) != 1 {
		t.Errorf("%d edges are left of the two that made a cycle", len(edges))
	}
}

// TestSearchGoesOn has a deadlock among very many that hold permits of one key and wait
// for more of them: no step looks at all, and it is broken all the same. A restart in
// between begins the search anew.
func TestSearchGoesOn(t *testing.T) {
	t.Parallel()
	const n = 600
	for _, restart := range []bool{false, true} {
		l := newLoad(t)
		l.step(&engine.SetPattern{
			Head: l.head(interlock.SessionID{}), Pattern: interlock.Pattern{Name: "all", Shape: "{key}", Capacity: n},
		})
		s := l.open(time.Hour)
		permits := func(i int, count uint32) *engine.Effect {
			return l.step(&engine.Acquire{
				Head: l.head(s), ID: l.id(), LeaseRequest: interlock.LeaseRequest{
					Flow: fmt.Sprint(i), OnConflict: interlock.Wait,
					Claims: []interlock.Claim{{Key: "p", Mode: interlock.Permits, Count: count}},
				},
			})
		}
		for i := range n {
			permits(i, 1)
		}
		for i := range n - 1 {
			permits(i, 2)
			l.pass(0)
		}
		// the last of them closes the circle: one permit cannot come back to serve two
		if w := l.e.Counts().Waiters; w != n-2 {
			t.Fatalf("%d waiters before the last", w)
		}
		permits(n-1, 2)
		if !l.e.IsSearching() {
			t.Fatal("the search came to its end in one step, so this test shows nothing")
		}
		if restart {
			l.restart()
		}
		if steps := l.pass(0); steps < n/engine.StepLooks {
			t.Errorf("%d steps", steps)
		}
		if w := l.e.Counts().Waiters; w >= n-1 {
			t.Errorf("%d of %d waiters are left: no circle was broken", w, n)
		}
		if l.e.IsSearching() {
			t.Error("the search has not come to its end")
		}
	}
}

// TestSearchGoesOnBesideCommands closes a deadlock at the end of a long line, while commands of
// the same namespace arrive without ticks: each command carries out a slice of the search. A
// wait in the line costs at most four looks: its place, itself, its holder and the next waiter.
func TestSearchGoesOnBesideCommands(t *testing.T) {
	const n, most = 2000, 4*2000/engine.StepLooks + 4
	l := newLoad(t)
	s := l.open(time.Hour)
	l.acquire(s, "idle", 0, "hot")
	for i := range n {
		l.acquire(s, fmt.Sprint(i), 0, fmt.Sprintf("own%d", i))
		l.acquire(s, fmt.Sprint(i), 0, "hot")
	}
	l.acquire(s, "last", 0, "last")
	l.acquire(s, fmt.Sprint(n-1), 0, "last")
	l.pass(0)
	before := l.e.Counts().Waiters
	if _, eff := l.acquire(s, "last", 0, "hot"); eff.Outcome != engine.Queued {
		t.Fatalf("the deadlock was found at once (%v), so this test shows nothing", eff.Outcome)
	}
	commands := 0
	for ; l.e.Counts().Waiters > before; commands++ {
		if commands == most {
			t.Fatalf("the deadlock was not found within %d commands", most)
		}
		lease, eff := l.acquire(s, "other", 0, "quick")
		if eff.Outcome != engine.Granted {
			t.Fatal(eff.Outcome, prose.Sentence(eff.Message))
		}
		l.step(&engine.Release{Head: l.head(s), Lease: lease})
		commands++
	}
	if commands < n/engine.StepLooks {
		t.Errorf("found after %d commands, so this test shows little", commands)
	}
}

// TestRanksGoOn raises and lowers the priority at one end of a long chain of waits: no single
// step ranks the whole chain, but all of it is ranked in the end.
func TestRanksGoOn(t *testing.T) {
	const n = 6000
	l := newLoad(t)
	s := l.open(time.Hour)
	key := func(i int) string { return fmt.Sprintf("k%d", i) }
	for i := range n {
		l.acquire(s, fmt.Sprint(i), 0, key(i))
	}
	for i := 1; i < n; i++ {
		l.acquire(s, fmt.Sprint(i), 0, key(i-1))
	}
	priorities := func(want int) {
		t.Helper()
		steps := l.pass(0)
		if steps < n/engine.StepRanks {
			t.Errorf("%d steps", steps)
		}
		for i := range n - 1 {
			view, err := l.e.Key("default", interlock.Key(key(i)))
			if err != nil || len(view.Waiters) != 1 || view.Waiters[0].Priority != want {
				t.Fatalf("at key %d: %+v %v, want the priority %d", i, view.Waiters, err, want)
			}
		}
	}
	c := &engine.Acquire{Head: l.head(s), ID: l.id(), LeaseRequest: interlock.LeaseRequest{
		Flow: "first", Priority: 7, OnConflict: interlock.Wait, Claims: []interlock.Claim{{Key: interlock.Key(key(n - 1))}},
	}}
	l.step(c)
	priorities(7)
	l.step(&engine.Leave{Head: l.head(s), Ticket: interlock.TicketID(c.ID)})
	priorities(0)
}

func TestSessionTimersAreGathered(t *testing.T) {
	l := newLoad(t)
	s := l.open(time.Hour)
	for i := range 4000 {
		l.acquire(s, "", time.Minute, fmt.Sprintf("k%d", i))
		l.now = l.now.Add(time.Millisecond)
	}
	if steps := l.pass(2*time.Minute) + l.pass(10*time.Second); steps > 1000 {
		t.Errorf("%d steps for 4,000 leases", steps)
	}
	if n := l.e.Counts().Leases; n != 0 {
		t.Errorf("%d leases are left", n)
	}
}

func TestRefusedNamespacesAreForgotten(t *testing.T) {
	l := newLoad(t)
	l.step(&engine.Limit{Head: engine.Head{At: l.now}, LowSpace: true})
	for i := range 100 {
		c := &engine.Acquire{Head: l.head(interlock.SessionID{}), ID: l.id(), LeaseRequest: interlock.LeaseRequest{
			Claims: []interlock.Claim{{Key: "k"}},
		}}
		c.Namespace = interlock.Namespace(fmt.Sprintf("tenant%d", i))
		if eff := l.step(c); eff.Code != interlock.CodeNoSpace {
			t.Fatal(eff.Code)
		}
	}
	if n := l.e.Counts().Namespaces; n != 0 {
		t.Errorf("%d namespaces are left", n)
	}
}

func TestNamespaceLimit(t *testing.T) {
	l := newLoad(t)
	open := func(i int) interlock.Code {
		c := &engine.OpenSession{Head: l.head(interlock.SessionID{}), ID: interlock.SessionID(l.id()), Agent: "a"}
		c.Namespace = interlock.Namespace(fmt.Sprintf("tenant%d", i))
		return l.step(c).Code
	}
	for i := range interlock.MaxNamespaces {
		if code := open(i); code != "" {
			t.Fatal(code)
		}
	}
	if code := open(interlock.MaxNamespaces); code != interlock.CodeTooManyNamespaces {
		t.Errorf("one more: %q", code)
	}
	if code := open(7); code != "" {
		t.Errorf("one that is there: %q", code)
	}
}

func TestRepeatedAnswerIsWhole(t *testing.T) {
	l := newLoad(t)
	s, other := l.open(time.Hour), l.open(time.Hour)
	l.acquire(s, "", 0, "k")
	again := &engine.Acquire{Head: l.head(s), ID: l.id(), LeaseRequest: interlock.LeaseRequest{
		Claims: []interlock.Claim{{Key: "k"}},
	}}
	again.Seq = 1
	refused := &engine.Acquire{Head: l.head(other), ID: l.id(), LeaseRequest: interlock.LeaseRequest{
		Claims: []interlock.Claim{{Key: "k"}},
	}}
	refused.Seq = 1
	for range 2 {
		if eff := l.step(again); eff.Outcome != engine.Granted || !eff.Lease.Reused {
			t.Errorf("%v, reused %v", eff.Outcome, eff.Lease.Reused)
		}
		if eff := l.step(refused); eff.Code != interlock.CodeHeld || len(eff.Conflict.Holders) != 1 {
			t.Errorf("%v %s", eff.Outcome, eff.Code)
		}
	}
}

func TestWhoActed(t *testing.T) {
	l := newLoad(t)
	l.open(time.Second)
	l.now = l.now.Add(time.Minute)
	c := &engine.Acquire{Head: l.head(interlock.SessionID{}), ID: l.id(), LeaseRequest: interlock.LeaseRequest{
		Claims: []interlock.Claim{{Key: "k"}},
	}}
	c.Actor = "alice"
	l.step(c)
	for _, ev := range l.out.Events {
		if want := map[record.Kind]string{record.Granted: "alice"}[ev.Kind]; ev.Actor != want {
			t.Errorf("%v by %q, want %q", ev.Kind, ev.Actor, want)
		}
	}
}

func TestRevocationIsExplained(t *testing.T) {
	l := newLoad(t)
	lease, eff := l.acquire(interlock.SessionID{}, "", 0, "k")
	c := &engine.Revoke{Head: l.head(interlock.SessionID{}), Key: "k", Fence: eff.Lease.Fence, Reason: "stuck since noon"}
	c.Actor = "ops"
	l.step(c)
	eff = l.step(&engine.Renew{Head: l.head(interlock.SessionID{}), Lease: lease})
	if eff.Code != interlock.CodeRevoked || !strings.Contains(prose.Sentence(eff.Message), `("ops")`) ||
		!strings.Contains(prose.Sentence(eff.Message), `"stuck since noon"`) {
		t.Errorf("%s: %s", eff.Code, prose.Sentence(eff.Message))
	}
}

// An ended wait is reported as such: neither as the end of a lease that was never granted, nor
// as a lapsed offer that was never made.
func TestEndOfAWaitIsExplained(t *testing.T) {
	l := newLoad(t)
	s := l.open(time.Hour)
	lease, _ := l.acquire(s, "", time.Hour, "k")
	l.acquire(l.open(time.Hour), "", time.Hour, "j")
	ticket := l.id()
	convert := &engine.Convert{
		Head: l.head(s), Lease: lease, ID: ticket, Claims: []interlock.Claim{{Key: "k"}, {Key: "j"}},
		OnConflict: interlock.Wait,
	}
	if eff := l.step(convert); eff.Outcome != engine.Queued {
		t.Fatal(eff.Outcome, prose.Sentence(eff.Message))
	}
	l.step(&engine.Leave{Head: l.head(s), Ticket: ticket})
	if eff := l.step(&engine.Poll{Head: l.head(s), Ticket: ticket}); eff.Code != interlock.CodeLeft ||
		!strings.HasPrefix(prose.Sentence(eff.Message), "the request for k was withdrawn") {
		t.Errorf("%s: %s", eff.Code, prose.Sentence(eff.Message))
	}
	var nobody interlock.SessionID
	ticket = l.id()
	l.step(&engine.Acquire{Head: l.head(nobody), ID: ticket, LeaseRequest: interlock.LeaseRequest{
		Claims: []interlock.Claim{{Key: "k"}}, OnConflict: interlock.Wait,
	}})
	l.pass(interlock.BareTicketTTL)
	if eff := l.step(&engine.Poll{Head: l.head(nobody), Ticket: ticket}); eff.Code != interlock.CodeOfferLapsed ||
		strings.Contains(prose.Sentence(eff.Message), "offered") {
		t.Errorf("%s: %s", eff.Code, prose.Sentence(eff.Message))
	}
}

func TestTakenMeansTaken(t *testing.T) {
	l := newLoad(t)
	s := l.open(time.Hour)
	lease, _ := l.acquire(s, "", time.Second, "dir/file")
	l.pass(time.Minute)
	l.pass(10 * time.Second) // its grace
	renew := &engine.Renew{Head: l.head(s), Lease: lease}
	if eff := l.step(renew); eff.Code != interlock.CodeExpired {
		t.Errorf("free: %s", eff.Code)
	}
	l.acquire(l.open(time.Hour), "", time.Hour, "dir")
	if eff := l.step(renew); eff.Code != interlock.CodeTaken {
		t.Errorf("the directory is held: %s", eff.Code)
	}
}

func TestEstimatesHaveAnEnd(t *testing.T) {
	l := newLoad(t)
	var nobody interlock.SessionID
	lease, _ := l.acquire(nobody, "", 24*time.Hour, "x:k")
	for range 14 {
		l.now = l.now.Add(23 * time.Hour)
		l.step(&engine.Renew{Head: l.head(nobody), Lease: lease})
	}
	l.step(&engine.Release{Head: l.head(nobody), Lease: lease})
	l.acquire(nobody, "", 24*time.Hour, "x:k")
	var eff *engine.Effect
	for range 5000 {
		_, eff = l.acquire(nobody, "", 0, "x:k")
	}
	if eta := eff.Ticket.ETA; eta <= 0 || eta > 365*24*time.Hour {
		t.Errorf("%v", eta)
	}
}

// TestManyTasksWatched: a step looks at few of very many tasks that could run again; the
// others follow in later ones, and none is forgotten.
func TestManyTasksWatched(t *testing.T) {
	const tasks = 20_000
	s := newStand()
	id := s.session(t)
	s.step(&engine.SetQueue{Head: s.head(id), Queue: interlock.TaskQueue{Name: "q"}})
	for i := range tasks {
		s.step(&engine.Submit{Head: s.head(id), Task: engine.TaskSpec{
			ID: counted(uint64(1<<40 + i)), TaskSpec: interlock.TaskSpec{
				Queue: "q", Claims: []interlock.Claim{{Key: interlock.Key(fmt.Sprintf("all/%d", i))}},
			},
		}})
	}
	all := s.acquire(id, "all")
	pull := func(max int) int {
		c := &engine.Pull{Head: s.head(id), ID: s.id(), Queue: "q", Max: max}
		for range max {
			c.Leases = append(c.Leases, s.id())
		}
		s.step(c)
		return len(s.out.Effects[0].Handed)
	}
	settled := func() (steps int) {
		for at, due := s.e.NextTimer(); due && at <= s.now; at, due = s.e.NextTimer() {
			s.step(&engine.Tick{Head: engine.Head{At: s.now}})
			steps++
		}
		return steps
	}
	for range 4 { // they find that another waiter has passed them
		if n := pull(1); n != 0 {
			t.Fatalf("%d tasks are handed out below a key that is held", n)
		}
	}
	s.release(id, all)
	if settled() == 0 {
		t.Error("one step looked at all of them")
	}
	handed := 0
	for n := pull(interlock.MaxPull); n > 0; n = pull(interlock.MaxPull) {
		handed += n
		settled()
	}
	if handed != tasks {
		t.Errorf("%d of %d tasks were handed out", handed, tasks)
	}
}

// TestSearchBegunAgain releases a lease of a flow while a search that takes many steps has
// found one of its waits servable, and another not. The search begins again, and still finds
// the deadlock: the first wait stands in line as long as the second one lasts.
func TestSearchBegunAgain(t *testing.T) {
	met := false
	for looks := 1; looks <= 12; looks++ {
		for gap := range 30 {
			l := newLoad(t)
			l.e.LookAtMost(looks)
			s, other := l.open(time.Hour), l.open(time.Hour)
			ask := func(s interlock.SessionID, flow string, any bool, claims ...interlock.Claim) interlock.LeaseID {
				id := l.id()
				l.step(&engine.Acquire{Head: l.head(s), ID: id, LeaseRequest: interlock.LeaseRequest{
					Flow: flow, OnConflict: interlock.Wait, Claims: claims, Any: any,
				}, Attach: true})
				return id
			}
			shared := interlock.Claim{Key: "a", Mode: interlock.Shared}
			ask(other, "holder", false, interlock.Claim{Key: "a/x/1"})
			own := ask(s, "main", false, interlock.Claim{Key: "a/y", Mode: interlock.Shared})
			ask(s, "main", false, shared)
			ask(
				other, "between", true, interlock.Claim{Key: "a/x"},
				interlock.Claim{Key: "a/x/1", Mode: interlock.IntentExclusive},
			)
			l.pass(0)
			ask(s, "main", false, shared)
			for range gap {
				l.step(&engine.Tick{Head: engine.Head{At: l.now}})
			}
			met = met || l.e.IsSearching()
			l.step(&engine.Release{Head: l.head(s), Lease: own})
			l.pass(0)
			if w := l.e.Counts().Waiters; w != 2 {
				t.Errorf("with %d looks a step, and %d steps before the release, %d of 3 waiters are left; want 2", looks, gap, w)
			}
		}
	}
	if !met {
		t.Error("no search was under way at the release, so this test shows nothing")
	}
}
