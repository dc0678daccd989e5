package history

import (
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
)

// take is a grant to a client library: the lease has the name of its acquisition.
func (h *tale) take(key string, fence interlock.Fence, ttl time.Duration) *Op {
	op := h.grant(key, fence, 0, ttl)
	op.Granted.Lease = op.ID
	return op
}

// lapse is the end of a lease by itself, from the time of its ttl on.
func (h *tale) lapse(of *Op) {
	op := unknown(h.add(Op{Kind: Lapse, Lease: of.ID}, 0, Answer{}))
	op.Call = of.Call + of.TTL
}

// grantedTwice is a call that is seen to hold a key, before another one takes and releases it; then it is answered.
func (h *tale) grantedTwice(ttl time.Duration) {
	a := h.take("k", 2, ttl)
	h.lapse(a)
	h.answeredLater(a)
}

// offeredTwice is such a call that waits and takes so long, with a lease that never lapses.
func (h *tale) offeredTwice(took time.Duration) {
	a := h.take("k", 2, long)
	a.Wait = true
	h.answeredLater(a)
	a.Call = a.Return - took
}

func (h *tale) answeredLater(a *Op) {
	h.add(Op{Kind: Acquire, Claims: a.Claims, TTL: long}, 0, Answer{
		Code: interlock.CodeHeld, Holders: []Holder{{Claim: a.Claims[0], Request: a.ID}},
	})
	b := h.take("k", 1, long)
	end := h.use(Release, b, Answer{})
	a.Return = end.Return + time.Second/2
}

// use is an operation under a lease, with its answer.
func (h *tale) use(kind Kind, of *Op, a Answer) *Op {
	op := Op{Kind: kind, Lease: of.ID}
	switch kind {
	case CheckFence:
		op.Lease, op.Key, op.Fence = "", of.Claims[0].Key, of.Granted.Fence
	case Commit:
		op.Writes = []Write{{Key: "doc"}}
	}
	return h.add(op, 0, a)
}

// Each of these histories of results is impossible, and the check reports it; the others are possible.
func TestResults(t *testing.T) {
	gone := Answer{Code: interlock.CodeExpired}
	const locks, registers = "locks at k are Illegal", "registers at doc are Illegal"
	for _, tt := range []struct {
		name string
		tell func(h *tale)
		want string
	}{
		{"held, used and released", func(h *tale) {
			a := h.take("k", 1, long)
			h.use(Held, a, Answer{})
			h.use(Commit, a, Answer{Version: 1})
			h.use(CheckFence, a, Answer{})
			h.use(Release, a, Answer{})
			h.use(CheckFence, a, Answer{Code: interlock.CodeFenced})
			h.take("k", 2, long)
		}, ""},
		{"a lease whose ttl is over", func(h *tale) {
			a := h.take("k", 1, time.Second)
			h.lapse(a)
			b := h.take("k", 2, long)
			h.use(Held, a, gone)
			h.use(Commit, a, gone)
			h.use(Release, a, Answer{})
			h.use(Held, b, Answer{})
		}, ""},
		{"a grant that its client did not see before the one that it saw", func(h *tale) {
			h.grantedTwice(time.Second)
		}, ""},
		{"two grants to one call within the ttl of the first", func(h *tale) {
			h.grantedTwice(time.Minute)
		}, locks},
		{"an offer that passed on before its waiter was granted the key again", func(h *tale) {
			h.offeredTwice(offered + time.Second)
		}, ""},
		{"an offer that passed on too early", func(h *tale) { h.offeredTwice(offered) }, locks},
		{"a lease that ends before its ttl", func(h *tale) {
			a := h.take("k", 1, 10*time.Second)
			h.lapse(a)
			h.take("k", 2, long)
		}, locks},
		{"a lease that is lost for no reason", func(h *tale) {
			a := h.take("k", 1, long)
			h.use(Held, a, gone)
		}, locks},
		{"a holder that does not know of its end", func(h *tale) {
			a := h.take("k", 1, time.Second)
			h.lapse(a)
			h.take("k", 2, long)
			h.use(Held, a, Answer{})
		}, locks},
		{"a write of a holder that has slept", func(h *tale) {
			a := h.take("k", 1, time.Second)
			h.lapse(a)
			h.take("k", 2, long)
			h.use(Commit, a, Answer{Version: 1})
		}, locks},
		{"its fence, which counts", func(h *tale) {
			a := h.take("k", 1, time.Second)
			h.lapse(a)
			h.take("k", 2, long)
			h.use(CheckFence, a, Answer{})
		}, locks},
		{"a fence that is not above the last one", func(h *tale) {
			h.use(Release, h.take("k", 2, long), Answer{})
			h.take("k", 1, long)
		}, locks},
		{"an acknowledged release that is lost", func(h *tale) {
			a := h.take("k", 1, long)
			h.use(Release, a, Answer{})
			h.wait(a, 0).Wait = false
		}, locks},
		{"a write that others see, without an answer", func(h *tale) {
			a := h.take("k", 1, time.Second)
			h.lapse(a)
			c := unknown(h.use(Commit, a, Answer{Version: 1}))
			h.read("doc", 1, 0, c, 1)
			h.take("k", 2, long)
		}, ""},
		{"the same, but the lease was another's", func(h *tale) {
			a := h.take("k", 1, time.Second)
			h.lapse(a)
			h.take("k", 2, long)
			c := unknown(h.use(Commit, a, Answer{Version: 1}))
			h.read("doc", 1, 0, c, 1)
		}, locks},
		{"an acquisition given up, whose lease goes back", func(h *tale) {
			a := unknown(h.take("k", 1, long))
			op := unknown(h.add(Op{Kind: Lapse, Lease: a.ID}, 0, Answer{}))
			op.Call = a.Call
			h.wait(&Op{
				ID: a.ID, Claims: a.Claims, Answer: Answer{Granted: &Grant{Fence: 1}},
			}, 0).Call = a.Call
			h.take("k", 2, long)
		}, ""},
		{"two holders after many acquisitions that were given up", func(h *tale) {
			for range 40 {
				a := unknown(h.take("k", 1, long))
				unknown(h.add(Op{Kind: Lapse, Lease: a.ID}, 0, Answer{})).Call = a.Call
			}
			for fence := range interlock.Fence(40) {
				a := h.take("k", fence+1, long)
				h.use(Held, a, Answer{})
				h.use(Release, a, Answer{})
			}
			h.take("k", 41, long)
			h.take("k", 42, long)
		}, locks},
		{"a lost update", func(h *tale) {
			a := h.take("k", 1, long)
			h.use(Commit, a, Answer{Version: 1}).Reads = []Version{{"doc", 0}}
			h.use(Commit, a, Answer{Version: 2}).Reads = []Version{{"doc", 0}}
		}, registers},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := &tale{}
			tt.tell(h)
			got := strings.Join(CheckResults(h.ops), "\n")
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("found %q, want %q", got, tt.want)
			}
		})
	}
}
