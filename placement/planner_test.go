package placement

import (
	"slices"
	"testing"
	"time"
)

// trial is a planner with the view that it sees, which the test changes.
type trial struct {
	*testing.T
	planner *Planner
	now     time.Time
	view    View
}

// newTrial has the planner of member "a", among others, and shards with the holders.
func newTrial(t *testing.T, members string, holders ...string) *trial {
	r := &trial{T: t, planner: NewPlanner("a", seatTTL), now: time.Unix(1000, 0)}
	for _, m := range members {
		r.view.Members = append(r.view.Members, Member{ID: string(m)})
	}
	for _, h := range holders {
		r.view.Seats = append(r.view.Seats, Seat{Holder: h})
	}
	return r
}

// step has the planner decide after a time.
func (r *trial) step(d time.Duration) Decision {
	r.now = r.now.Add(d)
	return r.planner.Step(r.now, r.view)
}

// want checks the decisions of each half second up to a time: nothing but the last one, which is described
// as the shards taken and the one given up.
func (r *trial) want(after time.Duration, take []int, give int) {
	r.Helper()
	for at := time.Duration(0); ; at += pollEvery {
		d := r.step(min(pollEvery, at))
		last := at >= after
		switch {
		case !last && (len(d.Take) > 0 || d.Give != None):
			r.Fatalf("after %v the decision is %+v, want none until %v", at, d, after)
		case last && (!slices.Equal(d.Take, take) || d.Give != give):
			r.Fatalf("after %v the decision is %+v, want to take %v and give up %d", at, d, take, give)
		}
		if last {
			return
		}
	}
}

// taker returns the member that is the first to take shard 0 of two free ones.
func (r *trial) taker() string { return NewPlan(r.view).Takers[0] }

// TestTakeFree has free shards that belong to this server, and to another that never takes its own.
func TestTakeFree(t *testing.T) {
	r := newTrial(t, "ab", "", "")
	mine, other := 0, 1
	if r.taker() != "a" {
		mine, other = 1, 0
	}
	r.want(0, []int{mine}, None)
	r.view.Seats[mine].Holder = "a"
	r.want(2*pollEvery, []int{other}, None)

	// Another shard of the other server is not taken any earlier.
	r.view.Seats[mine].Holder, r.view.Seats[other].Holder = "", "a"
	r.want(2*pollEvery, []int{mine}, None)
}

// TestTakeLate has a shard that two other servers should take, one after the other, and do not.
func TestTakeLate(t *testing.T) {
	r := newTrial(t, "abc", "a", "a", "")
	r.want(2*pollEvery, []int{2}, None)

	r = newTrial(t, "abc", "a", "a", "")
	r.view.Seats[2].Needs = 1
	r.view.Members[1].Reads, r.view.Members[2].Reads = 1, 1
	r.want(time.Minute, nil, None)

	r = newTrial(t, "abc", "a", "a", "")
	r.view.Members[0].Draining = true
	if d := r.step(0); len(d.Take) > 0 {
		t.Errorf("a draining server takes %v", d.Take)
	}
}

// TestAlone has no other server that could do it: a draining one takes the shards, and keeps them.
func TestAlone(t *testing.T) {
	r := newTrial(t, "a", "", "")
	r.view.Members[0].Draining = true
	r.want(0, []int{0, 1}, None)
	r.view.Seats[0].Holder, r.view.Seats[1].Holder = "a", "a"
	r.want(10*time.Second, nil, None)

	r.view.Members = append(r.view.Members, Member{ID: "b", Draining: true})
	r.want(10*time.Second, nil, None)
}

// TestNotLiving has a server that is not among the members: it does nothing.
func TestNotLiving(t *testing.T) {
	r := newTrial(t, "b", "a", "", "a")
	r.want(10*time.Second, nil, None)
}

// TestGive lets shards go to a member that joins: the first after a second, in which the members could
// change again, and each next one 5 s later.
func TestGive(t *testing.T) {
	r := newTrial(t, "ab", "a", "a", "a", "a")
	r.view.Members = r.view.Members[:1]
	r.step(0)
	r.view.Members = r.view.Members[:2]
	first := NewPlan(r.view).Transfers[0].Shard
	r.want(time.Second, nil, first)
	r.want(giveLimit-pollEvery, nil, None) // it is not closed yet
	r.view.Seats[first].Holder = ""
	r.want(0, nil, None)
	r.view.Seats[first].Holder = "b"
	second := NewPlan(r.view).Transfers[0].Shard
	r.want(0, nil, second)
	r.view.Seats[second].Holder = "b"
	r.want(time.Minute, nil, None) // they are even

	r = newTrial(t, "ab", "a", "a", "a", "a")
	r.want(time.Second, nil, first)
	r.view.Seats[first].Holder = "b"
	r.want(givePause, nil, second)
}

// TestGiveAgain has a shard that is still there after half a minute: it is named again.
func TestGiveAgain(t *testing.T) {
	r := newTrial(t, "ab", "a", "a")
	first := NewPlan(r.view).Transfers[0].Shard
	r.want(time.Second, nil, first)
	r.want(giveLimit, nil, first)
}

// TestGiveInTurn has two servers that each could give one to a third: the others' turn comes first, unless
// they do not use it.
func TestGiveInTurn(t *testing.T) {
	r := newTrial(t, "abc", "a", "a", "a", "b", "b", "b", "b")
	if next := NewPlan(r.view).Transfers; next[0].From != "b" || next[1].From != "a" {
		t.Fatalf("the plan is %v, and the test expects first b, then a", next)
	}
	first := NewPlan(r.view).Transfers[0].Shard
	r.want(5*time.Second, nil, None)
	r.view.Seats[first].Holder = ""
	r.want(pollEvery/2, nil, None)
	r.view.Seats[first].Holder = "c"
	r.want(0, nil, NewPlan(r.view).Transfers[0].Shard)

	r = newTrial(t, "abc", "a", "a", "a", "b", "b", "b", "b")
	r.want(2*givePause, nil, NewPlan(r.view).Transfers[1].Shard)
}

// TestDrain lets all go without pauses, one after the other.
func TestDrain(t *testing.T) {
	r := newTrial(t, "abc", "a", "a", "a", "b")
	r.view.Members[0].Draining = true
	for range 3 {
		d := r.step(pollEvery)
		if d.Give == None || r.view.Seats[d.Give].Holder != "a" {
			t.Fatalf("the decision is %+v", d)
		}
		if next := r.step(pollEvery); next.Give != None {
			t.Fatalf("shard %d is given up before shard %d is closed", next.Give, d.Give)
		}
		r.view.Seats[d.Give].Holder = "c"
	}
	r.want(10*time.Second, nil, None)
}

// TestSlowReceiver lets a shard go to a member that does not take it: it receives none for a minute.
func TestSlowReceiver(t *testing.T) {
	r := newTrial(t, "abc", "a", "a", "a", "a", "c", "c")
	first := NewPlan(r.view).Transfers[0]
	if first.From != "a" || first.To != "b" {
		t.Fatalf("the plan is %+v, and the test expects a transfer to b", first)
	}
	r.want(time.Second, nil, first.Shard)
	r.view.Seats[first.Shard].Holder = ""
	for range 2 {
		if d := r.step(pollEvery); len(d.Take) > 0 {
			t.Fatalf("%v are taken at once", d.Take)
		}
	}
	r.step(pollEvery)
	r.view.Seats[first.Shard].Holder = "c" // which was faster
	for at := pollEvery; at < distrust-givePause; at += pollEvery {
		if d := r.step(pollEvery); d.Give != None {
			t.Fatalf("after %v shard %d is given up", at, d.Give)
		}
	}

	// It takes one all the same.
	r.view.Seats[first.Shard].Holder = ""
	r.step(pollEvery)
	r.view.Seats[first.Shard].Holder = "b"
	if d := r.step(time.Second); d.Give != None {
		t.Fatalf("shard %d is given up at once", d.Give)
	}
	if d := r.step(time.Second); d.Give == None {
		t.Error("no shard is given up to a member that took one")
	}
}

// TestFlap loses seats twice in a minute: the server rests. Many seats at once are one loss, and those
// that it gave up are none.
func TestFlap(t *testing.T) {
	lose := func(r *trial) {
		for s := range r.view.Seats {
			r.view.Seats[s].Holder = "b"
		}
		r.step(pollEvery)
		for s := range r.view.Seats {
			r.view.Seats[s].Holder = "a"
		}
	}
	r := newTrial(t, "ab", "a", "a")
	r.step(0)
	r.view.Seats[0].Holder = "b"
	r.step(pollEvery)
	r.view.Seats[1].Holder = "b"
	if d := r.step(pollEvery); d.Resting {
		t.Fatal("two seats lost within a second are a reason to rest")
	}
	r.view.Seats[0].Holder = "a"
	r.step(lossWindow / 2)
	lose(r)
	began := r.now
	r.view.Seats[0].Holder, r.view.Seats[1].Holder = "b", "b"
	for r.now.Sub(began) < rest-2*pollEvery {
		r.view.Seats[0].Holder = ""
		if d := r.step(pollEvery); !d.Resting || len(d.Take) > 0 {
			t.Fatalf("%v after the second loss the decision is %+v", r.now.Sub(began), d)
		}
		r.view.Seats[0].Holder = "b"
		r.step(pollEvery)
	}
	r.view.Seats[0].Holder = ""
	if d := r.step(2 * pollEvery); d.Resting || len(d.Take) == 0 {
		t.Errorf("%v after the second loss the decision is %+v", r.now.Sub(began), d)
	}

	r = newTrial(t, "ab", "a")
	r.step(0)
	lose(r)
	r.step(lossWindow)
	lose(r)
	if d := r.step(pollEvery); d.Resting {
		t.Error("two losses in more than a minute are a reason to rest")
	}

	r = newTrial(t, "a", "a")
	r.step(0)
	lose(r)
	r.step(seatTTL)
	lose(r)
	r.view.Seats[0].Holder = ""
	if d := r.step(pollEvery); !d.Resting || !slices.Equal(d.Take, []int{0}) {
		t.Errorf("alone after two losses, the decision is %+v", d)
	}
}

// TestGivenIsNotLost lets shards go to two members that join: this is no reason to rest.
func TestGivenIsNotLost(t *testing.T) {
	r := newTrial(t, "abc", "a", "a", "a", "a", "a", "a")
	for range 200 {
		d := r.step(pollEvery)
		if d.Resting {
			t.Fatal("the server rests")
		}
		if d.Give != None {
			r.view.Seats[d.Give].Holder = NewPlan(r.view).Transfers[0].To
		}
	}
	if n := loads(r.view); n["a"] != 2 || n["b"] != 2 || n["c"] != 2 {
		t.Errorf("in the end the members have %v", n)
	}
}

// TestDeadHolder has seats of a server that is dead: they are taken when they are free, and not before.
func TestDeadHolder(t *testing.T) {
	r := newTrial(t, "a", "x", "x")
	r.want(seatTTL, nil, None)
	r.view.Seats[0].Holder, r.view.Seats[1].Holder = "", ""
	r.want(0, []int{0, 1}, None)
}
