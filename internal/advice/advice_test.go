package advice

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/record"
)

// history makes events.
type history struct {
	r     *Reducer
	index interlock.Index
	now   record.Time
	fence interlock.Fence
	next  byte
}

func newHistory() *history { return &history{r: New(), now: record.Time(time.Hour)} }

func (h *history) add(ev *record.Event) {
	h.index++
	h.now += record.Time(time.Second)
	ev.At, ev.Namespace = h.now, "one"
	h.r.Add(h.index, ev)
}

func claims(mode interlock.Mode, keys ...string) (list []interlock.Claim) {
	for _, k := range keys {
		list = append(list, interlock.Claim{Key: interlock.Key(k), Mode: mode, Count: 1})
	}
	return list
}

// held is a lease in a history.
type held struct {
	h  *history
	ev record.Event
}

// take has an agent take a lease, after a wait.
func (h *history) take(agent string, waited time.Duration, list []interlock.Claim) *held {
	h.next++
	h.fence++
	ev := record.Event{Agent: agent, Flow: "main", Claims: list, ID: [16]byte{h.next, 1}}
	ev.TTL = 10 * time.Second
	if waited > 0 {
		ev.Kind = record.Queued
		queued := ev
		h.add(&queued)
		ev.Kind, ev.Waited, ev.Fence = record.Admitted, waited, h.fence
	} else {
		ev.Kind, ev.Fence = record.Granted, h.fence
	}
	granted := ev
	h.add(&granted)
	return &held{h, ev}
}

func (l *held) write(key string) *held {
	l.h.add(&record.Event{Kind: record.Written, Fence: l.ev.Fence, Claims: claims(interlock.Exclusive, key)})
	return l
}

func (l *held) end(reason record.Reason, after time.Duration) {
	ev := l.ev
	ev.Kind, ev.Reason, ev.Held, ev.Waited = record.Ended, reason, after, 0
	l.h.add(&ev)
}

func (l *held) release() { l.end(record.ByRelease, time.Second) }

func (h *history) pattern(name, shape string, capacity uint32) {
	ev := record.Event{Kind: record.PatternSet, PatternName: name}
	ev.Blob = record.AppendPattern(nil, &interlock.Pattern{Name: name, Shape: shape, Capacity: capacity})
	h.add(&ev)
}

// both takes two keys, one after the other.
func (h *history) both(agent, first, second string, waited time.Duration, mode interlock.Mode) {
	a := h.take(agent, 0, claims(mode, first))
	b := h.take(agent, waited, claims(mode, second))
	b.release()
	a.release()
}

const x = interlock.Exclusive

// TestAdvice: each advice appears where it is planted, and no other one does.
func TestAdvice(t *testing.T) {
	for _, tt := range []struct {
		name string
		plan func(*history)
		want string
	}{
		{"both orders", func(h *history) {
			for range 3 {
				h.both("billing", "b", "a", time.Second, x)
			}
			h.both("support", "a", "b", 0, x)
			h.add(&record.Event{Kind: record.Left, Reason: record.ByDeadlock, Cycle: []interlock.CycleStep{
				{Agent: "billing", Key: "a"}, {Agent: "support", Key: "b"},
			}})
		}, `lock_order [b a] [billing support] 1/4: interlock run b a -- COMMAND`},
		{"a circle of three", func(h *history) {
			h.both("one", "a", "b", 0, x)
			h.both("two", "b", "c", 0, x)
			h.both("three", "c", "a", time.Second, x)
		}, `lock_order [a b c] [one three two] 1/3: interlock run a b c -- COMMAND`},
		{"one order", func(h *history) {
			h.both("billing", "a", "b", time.Second, x)
			h.both("support", "a", "b", time.Second, x)
		}, ``},
		{"both orders of one agent", func(h *history) {
			h.both("billing", "a", "b", time.Second, x)
			h.both("billing", "b", "a", time.Second, x)
		}, ``},
		{"both orders, of readers", func(h *history) {
			h.both("billing", "a", "b", time.Second, interlock.Shared)
			h.both("support", "b", "a", time.Second, interlock.Shared)
		}, ``},
		{"both keys in one request", func(h *history) {
			h.take("billing", time.Second, claims(x, "a", "b")).release()
			h.take("support", time.Second, claims(x, "b", "a")).release()
		}, ``},
		{"a coarse key", func(h *history) {
			for i := range 8 {
				h.take("billing", time.Second, claims(x, "repo:web")).write(fmt.Sprintf("repo:web/f%d/x", i)).release()
			}
		}, `coarse_key [repo:web] [] 7/7: interlock run repo:web/CHILD -- COMMAND`},
		{"a key that is as coarse as its writes", func(h *history) {
			for range 8 {
				h.take("billing", time.Second, claims(x, "repo:web")).write("repo:web/go.mod").release()
			}
		}, ``},
		{"a coarse key without waits", func(h *history) {
			for i := range 8 {
				h.take("billing", 0, claims(x, "repo:web")).write(fmt.Sprintf("repo:web/f%d", i)).release()
			}
		}, ``},
		{"a short ttl", func(h *history) {
			for i := range 30 {
				if l := h.take("billing", 0, claims(x, fmt.Sprint("account:", i))); i < 3 {
					l.end(record.ByTTL, 10*time.Second)
				} else {
					l.end(record.ByRelease, 40*time.Second)
				}
			}
		}, `short_ttl [account:0] [] 3/30: interlock run --ttl 1m10s account:0 -- COMMAND`},
		{"a short ttl, of a pattern", func(h *history) {
			h.pattern("accounts", "account:{id:int}", 0)
			for i := range 30 {
				if l := h.take("billing", 0, claims(x, fmt.Sprint("account:", i))); i < 3 {
					l.end(record.ByTTL, 10*time.Second)
				} else {
					l.end(record.ByRelease, 40*time.Second)
				}
			}
		}, `short_ttl [account:0] [] 3/30: interlock pattern set accounts --ttl 1m10s`},
		{"long holds that renew", func(h *history) {
			for range 30 {
				h.take("billing", 0, claims(x, "account:1")).end(record.ByRelease, 40*time.Second)
			}
		}, ``},
		{"sessions that died", func(h *history) {
			for i := range 30 {
				if l := h.take("billing", 0, claims(x, fmt.Sprint("account:", i))); i < 3 {
					l.end(record.ByDeath, 10*time.Second)
				} else {
					l.end(record.ByRelease, 40*time.Second)
				}
			}
		}, ``},
		{"a ttl that is long enough", func(h *history) {
			for i := range 30 {
				if l := h.take("billing", 0, claims(x, "account:1")); i < 3 {
					l.end(record.ByTTL, 10*time.Second)
				} else {
					l.end(record.ByRelease, 2*time.Second)
				}
			}
		}, ``},
		{"a capacity that is not used", func(h *history) {
			h.pattern("gpus", "pool/{name}", 10)
			for range 12 {
				a := h.take("one", 0, claims(interlock.Permits, "pool/gpu"))
				h.take("two", 0, claims(interlock.Permits, "pool/gpu")).release()
				a.release()
			}
		}, `unused_capacity [pool/gpu] [] 2/10: interlock pattern set gpus --capacity 2`},
		{"a capacity from before the first event", func(h *history) {
			h.r.SetPattern("one", &interlock.Pattern{Name: "gpus", Shape: "pool/{name}", Capacity: 10})
			for range 30 {
				h.take("one", 0, claims(interlock.Permits, "pool/gpu")).release()
			}
		}, `unused_capacity [pool/gpu] [] 1/10: interlock pattern set gpus --capacity 1`},
		{"a capacity that is used", func(h *history) {
			h.pattern("gpus", "pool/{name}", 2)
			for range 12 {
				a := h.take("one", 0, claims(interlock.Permits, "pool/gpu"))
				h.take("two", 0, claims(interlock.Permits, "pool/gpu")).release()
				a.release()
			}
		}, ``},
		{"permits that began before the first event", func(h *history) {
			h.pattern("gpus", "pool/{name}", 10)
			for i := range 30 {
				old := &held{h, record.Event{ID: [16]byte{byte(i), 9}, Claims: claims(interlock.Permits, "pool/gpu")}}
				if i < 6 {
					old.release()
				}
				h.take("two", 0, claims(interlock.Permits, "pool/gpu")).release()
			}
		}, ``},
		{"a hot key", func(h *history) {
			for i := range 12 {
				h.take("one", 20*time.Second, claims(x, "hot")).release()
				h.take("one", time.Second, claims(x, fmt.Sprint("cold:", i))).release()
			}
		}, `hot_key [hot] [] 12/12: interlock why hot`},
		{"many keys, none of them hot", func(h *history) {
			for i := range 120 {
				h.take("one", 20*time.Second, claims(x, fmt.Sprint("key:", i%10))).release()
			}
		}, ``},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHistory()
			tt.plan(h)
			res := h.r.Result()
			var lines []string
			for _, a := range res.Advice {
				lines = append(lines, fmt.Sprintf("%s %v %v %d/%d: %s", a.Kind, a.Keys, a.Agents, a.Count, a.Of, a.Command))
				if a.Text == "" || len(a.Indexes) == 0 || len(a.Indexes) > MaxExamples {
					t.Errorf("%+v has no evidence", a)
				}
			}
			if got := strings.Join(lines, "\n"); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
			if again := h.r.Result(); !reflect.DeepEqual(again, res) {
				t.Errorf("a second result differs: %+v", again)
			}
			if len(h.r.held) > 0 || len(h.r.byFence) > 0 || len(h.r.open) > 0 {
				t.Errorf("%d flows, %d fences and %d leases are left", len(h.r.held), len(h.r.byFence), len(h.r.open))
			}
		})
	}
}

// TestOrderRemovesCircles: in random orders of random keys, the advised order has every key of a knot once.
func TestOrderRemovesCircles(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		h := newHistory()
		for i := range 40 {
			a, b := rng.IntN(8), rng.IntN(8)
			if a != b {
				h.both(fmt.Sprint("agent-", i%5), fmt.Sprint("k", a), fmt.Sprint("k", b), time.Second, x)
			}
		}
		knots := h.r.knots()
		advice := h.r.Result().Advice
		if len(knots) == 0 || len(advice) != len(knots) {
			t.Fatalf("%d knots and %d advices", len(knots), len(advice))
		}
		for i, k := range knots {
			var want []interlock.Key
			for _, p := range k {
				want = append(want, p.key)
			}
			got := slices.Sorted(slices.Values(advice[i].Keys))
			if len(knots) == 1 && !slices.Equal(got, want) {
				t.Fatalf("the order has %v, want %v", got, want)
			}
			if advice[i].Count*2 > advice[i].Of {
				t.Errorf("%d of %d orders are against the one advised", advice[i].Count, advice[i].Of)
			}
		}
	}
}

// TestBounds: what does not fit is counted.
func TestBounds(t *testing.T) {
	r := New()
	for i := range MaxOpen + MaxKeys {
		ev := record.Event{
			Kind: record.Granted, Namespace: "one", Fence: interlock.Fence(i + 1), Claims: claims(x, fmt.Sprint(i)),
		}
		ev.ID = [16]byte{byte(i), byte(i >> 8), byte(i >> 16)}
		ev.Agent = fmt.Sprint(i)
		r.Add(interlock.Index(i+1), &ev)
		left := ev
		left.Kind, left.Waited, left.ID = record.Left, time.Second, [16]byte{15: 1}
		r.Add(interlock.Index(i+1), &left)
	}
	if len(r.open) != MaxOpen || len(r.keys) != MaxKeys {
		t.Errorf("%d leases and %d keys are kept", len(r.open), len(r.keys))
	}
	if got := r.Result().Left; got != MaxKeys+MaxOpen {
		t.Errorf("%d are left out, want %d", got, MaxKeys+MaxOpen)
	}
}
