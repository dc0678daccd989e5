package history

import (
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
)

const long = time.Hour

// tale makes a history by hand: each operation is called and answered at the next moments,
// unless it is said to overlap.
type tale struct{ ops []*Op }

func (h *tale) add(op Op, index interlock.Index, a Answer) *Op {
	n := time.Duration(len(h.ops))
	op.Client = "c" + string(rune('a'+len(h.ops)%8))
	if op.ID == "" {
		op.ID = op.Client + "-" + string(rune('0'+len(h.ops)))
	}
	op.Call, op.Return, op.Sent = 2*n*time.Second, (2*n+1)*time.Second, 1
	if a.Epoch == 0 {
		a.Epoch = 1
	}
	a.Index = index
	op.Answer = a
	h.ops = append(h.ops, &op)
	return &op
}

func (h *tale) grant(key string, fence interlock.Fence, index interlock.Index, ttl time.Duration) *Op {
	claims := []Claim{{key, interlock.Exclusive}}
	return h.add(Op{Kind: Acquire, Claims: claims, TTL: ttl}, index,
		Answer{Granted: &Grant{Lease: "l" + fence.String(), Fence: fence, Claims: claims, TTL: ttl}})
}

func (h *tale) release(fence interlock.Fence, index interlock.Index) *Op {
	return h.add(Op{Kind: Release, Lease: "l" + fence.String()}, index, Answer{})
}

func (h *tale) look(key string, index interlock.Index, holders ...*Op) *Op {
	var list []Holder
	for _, by := range holders {
		list = append(list, Holder{by.Claims[0], by.Granted.Fence, by.ID})
	}
	return h.add(Op{Kind: Look, Key: key}, index, Answer{Holders: list})
}

// wait is for a key until its limit, which shows the holder.
func (h *tale) wait(by *Op, index interlock.Index) *Op {
	return h.add(Op{Kind: Acquire, Claims: by.Claims, TTL: long, Wait: true}, index,
		Answer{Code: interlock.CodeWaitLimit, Holders: []Holder{{by.Claims[0], by.Granted.Fence, by.ID}}})
}

func (h *tale) commit(key string, read, made interlock.Version, index interlock.Index) *Op {
	return h.add(
		Op{Kind: Commit, Reads: []Version{{key, read}}, Writes: []Write{{Key: key}}}, index, Answer{Version: made},
	)
}

func (h *tale) read(key string, asOf interlock.Version, index interlock.Index, by *Op, version interlock.Version) *Op {
	d := Doc{Version: Version{key, version}}
	if by != nil {
		d.Request = by.ID
	}
	return h.add(Op{Kind: Read, Keys: []string{key}}, index, Answer{Version: asOf, Docs: []Doc{d}})
}

func (h *tale) submit(id string, index interlock.Index) *Op {
	op := h.add(Op{Kind: Submit}, index, Answer{})
	op.Task = &Task{ID: id, Request: op.ID}
	return op
}

func (h *tale) pull(of *Op, attempt int, fence interlock.Fence, index interlock.Index) *Op {
	task := *of.Task
	task.Attempt = attempt
	return h.add(Op{Kind: Pull}, index, Answer{
		Task: &task,
		Granted: &Grant{
			Lease: "l" + fence.String(), Fence: fence, Claims: []Claim{{"job", interlock.Exclusive}}, TTL: time.Second,
		},
	})
}

func (h *tale) ack(pull *Op, made interlock.Version, index interlock.Index) *Op {
	return h.add(
		Op{Kind: Ack, Lease: pull.Granted.Lease, Writes: []Write{{Key: "effect", Add: 1}}}, index, Answer{Version: made},
	)
}

// unknown takes the answer of an operation away.
func unknown(op *Op) *Op {
	op.Answer, op.Return = Answer{}, Never
	return op
}

// Each of these histories is impossible, and the check reports the reason; "" stands for one
// that is possible, however odd.
func TestHistories(t *testing.T) {
	for _, tt := range []struct {
		name string
		tell func(h *tale)
		want []string
	}{
		{"nothing", func(*tale) {}, nil},
		{"one after the other", func(h *tale) {
			a := h.grant("k", 1, 2, long)
			h.look("k", 2, a)
			h.release(1, 3)
			h.look("k", 3)
			h.grant("k", 2, 4, long)
		}, nil},
		{"two holders", func(h *tale) {
			h.grant("k", 1, 2, long)
			h.grant("k", 2, 3, long)
		}, []string{"two holders", "locks at k are Illegal"}},
		{"two holders above each other", func(h *tale) {
			h.grant("k", 1, 2, long)
			h.grant("k/x", 2, 3, long)
		}, []string{"two holders"}},
		{"two readers", func(h *tale) {
			for i, op := range []*Op{h.grant("k", 1, 2, long), h.grant("k", 2, 3, long)} {
				op.Claims[0].Mode, op.Granted.Claims[0].Mode = interlock.Shared, interlock.Shared
				op.Granted.Fence = interlock.Fence(i + 1)
			}
		}, nil},
		{"a holder that others see after the next one", func(h *tale) {
			a := h.grant("k", 1, 2, long)
			h.release(1, 3)
			h.grant("k", 2, 4, long)
			h.look("k", 4, a)
		}, []string{"held again", "ended before its time", "Illegal"}},
		{"a wait that ended in the entry in which its holder did", func(h *tale) {
			a := h.grant("k", 1, 2, time.Second)
			h.wait(a, 3)
			h.grant("k", 2, 3, long).Call = 2 * time.Second // while that one waited
		}, nil},
		{"a wait that ended after its holder did", func(h *tale) {
			a := h.grant("k", 1, 2, time.Second)
			h.grant("k", 2, 3, long)
			h.wait(a, 4)
		}, []string{"held again"}},
		{"a holder that a look leaves out", func(h *tale) {
			h.grant("k", 1, 2, long)
			h.look("k", 2)
		}, []string{"ended before its time", "Illegal"}},
		{"a holder that is not listed among too many", func(h *tale) {
			a := h.grant("k", 1, 2, long)
			a.Claims[0].Mode, a.Granted.Claims[0].Mode = interlock.Shared, interlock.Shared
			h.look("k", 2).More = 1
		}, nil},
		{"a holder whose time is over", func(h *tale) {
			h.grant("k", 1, 2, time.Second)
			h.grant("k", 2, 3, time.Second)
		}, nil},
		{"taken too early", func(h *tale) {
			h.grant("k", 1, 2, 4*time.Second)
			h.grant("k", 2, 3, time.Second)
		}, []string{"two holders"}},
		{"renewed in time", func(h *tale) {
			h.grant("k", 1, 2, 4*time.Second)
			r := h.add(Op{Kind: Renew, Lease: "l1"}, 2, Answer{})
			r.Granted = h.ops[0].Granted
			h.grant("k", 2, 3, time.Second)
		}, []string{"two holders"}},
		{"told of an end that was none", func(h *tale) {
			h.grant("k", 1, 2, long)
			h.add(Op{Kind: Renew, Lease: "l1"}, 3, Answer{Code: interlock.CodeExpired})
		}, []string{"ended before its time"}},
		{"a stale fence", func(h *tale) {
			h.grant("k", 2, 2, long)
			h.release(2, 3)
			h.grant("k", 1, 4, long)
		}, []string{"a stale fence", "Illegal"}},
		{"a fence given twice", func(h *tale) {
			h.grant("k", 1, 2, long)
			h.release(1, 3)
			h.grant("k", 1, 4, long).Granted.Lease = "l2"
		}, []string{"given out twice", "held again", "Illegal"}},
		{"a write under a lease that is over", func(h *tale) {
			h.grant("k", 1, 2, time.Second)
			h.grant("k", 2, 3, long)
			h.commit("doc", 0, 1, 4).Lease = "l1"
		}, []string{"held again"}},
		{"a fence accepted that is over", func(h *tale) {
			h.grant("k", 1, 2, long)
			h.release(1, 3)
			h.add(Op{Kind: CheckFence, Key: "k", Fence: 1}, 3, Answer{})
		}, []string{"held again"}},
		{"refused for nobody", func(h *tale) {
			h.add(Op{Kind: Acquire, Claims: []Claim{{"k", interlock.Exclusive}}, TTL: long}, 2, Answer{Code: interlock.CodeHeld})
		}, []string{"nobody was in the way"}},
		{"a grant that nobody was told of", func(h *tale) {
			a := h.grant("k", 1, 2, long)
			h.look("k", 2, a)
			unknown(a)
		}, nil},
		{"a release that nobody was told of", func(h *tale) {
			h.grant("k", 1, 2, long)
			unknown(h.release(1, 3))
			h.grant("k", 2, 4, long)
		}, nil},
		{"a release that came to nothing", func(h *tale) {
			a := h.grant("k", 1, 2, long)
			unknown(h.release(1, 3))
			h.look("k", 4, a)
		}, nil},
		{"a release answered twice", func(h *tale) {
			h.grant("k", 1, 2, long)
			r := h.release(1, 3)
			h.grant("k", 2, 4, long)
			r.Sent, r.Index, r.Return = 2, 4, 6*time.Second
		}, nil},

		{"commits one after the other", func(h *tale) {
			a := h.commit("d", 0, 1, 2)
			h.read("d", 1, 2, a, 1)
			h.commit("d", 1, 2, 3)
		}, nil},
		{"a lost update", func(h *tale) {
			h.commit("d", 0, 1, 2)
			h.commit("d", 0, 2, 3)
		}, []string{"a lost update", "registers at d are Illegal"}},
		{"a version given twice", func(h *tale) {
			h.commit("d", 0, 1, 2)
			h.commit("e", 0, 1, 3)
		}, []string{"given twice", "not new"}},
		{"a stale read", func(h *tale) {
			h.commit("d", 0, 1, 2)
			h.read("d", 0, 3, nil, 0)
		}, []string{"a stale read", "Illegal"}},
		{"a stale read after fail-over", func(h *tale) {
			a := h.commit("d", 0, 1, 2)
			h.commit("d", 1, 2, 4).Epoch = 2
			h.read("d", 1, 2, a, 1)
		}, []string{"an answer from the past", "an answer of an earlier owner", "Illegal"}},
		{"a read of what was never durable", func(h *tale) {
			h.commit("d", 0, 1, 3)
			h.commit("e", 0, 2, 3).Epoch = 2
		}, []string{"given out by two owners"}},
		{"a commit that was lost", func(h *tale) {
			h.commit("d", 0, 1, 2)
			h.read("d", 0, 4, nil, 0).Epoch = 2
		}, []string{"a stale read", "Illegal"}},
		{"another document than was written", func(h *tale) {
			a := h.commit("d", 0, 1, 2)
			h.read("e", 1, 2, a, 1)
		}, []string{"not what was written", "Illegal"}},
		{"half a commit", func(h *tale) {
			a := h.commit("d", 0, 1, 2)
			a.Writes = append(a.Writes, Write{Key: "e"})
			h.read("e", 1, 2, nil, 0)
		}, []string{"not what was written", "Illegal"}},
		{"refused as stale for nothing", func(h *tale) {
			c := h.commit("d", 0, 0, 2)
			c.Code, c.Stale = interlock.CodeStale, []Version{{"d", 0}}
		}, []string{"is what was read"}},
		{"a commit that nobody was told of", func(h *tale) {
			a := h.commit("d", 0, 1, 2)
			h.read("d", 1, 2, a, 1)
			unknown(a)
			h.commit("d", 1, 2, 3)
		}, nil},
		{"and of which nobody saw anything", func(h *tale) {
			unknown(h.commit("d", 0, 1, 2))
			h.read("e", 1, 3, nil, 0)
		}, nil},
		{"and of which a refusal shows the version", func(h *tale) {
			unknown(h.commit("d", 0, 1, 2))
			c := h.commit("d", 0, 0, 3)
			c.Code, c.Stale = interlock.CodeStale, []Version{{"d", 1}}
			h.read("e", 1, 3, nil, 0)
		}, nil},
		{"and of which one of two has made the version that a refusal shows", func(h *tale) {
			both := h.commit("d", 0, 1, 2)
			both.Writes = append(both.Writes, Write{Key: "e"})
			unknown(both)
			unknown(h.commit("d", 0, 1, 2))
			c := h.commit("d", 0, 0, 3)
			c.Code, c.Stale = interlock.CodeStale, []Version{{"d", 1}}
			h.read("e", 1, 3, nil, 0)
		}, nil},
		{"and of which a refusal shows the half", func(h *tale) {
			both := h.commit("d", 0, 1, 2)
			both.Writes = append(both.Writes, Write{Key: "e"})
			unknown(both)
			c := h.commit("d", 0, 0, 3)
			c.Code, c.Stale = interlock.CodeStale, []Version{{"d", 1}}
			h.read("e", 1, 3, nil, 0)
		}, []string{"a refusal shows version"}},
		{"a refusal that shows a version of nobody's", func(h *tale) {
			unknown(h.commit("e", 0, 1, 2))
			c := h.commit("d", 0, 0, 3)
			c.Code, c.Stale = interlock.CodeStale, []Version{{"d", 1}}
		}, []string{"a refusal shows version"}},
		{"a version that is nobody's", func(h *tale) {
			h.commit("d", 0, 1, 2)
			h.read("e", 3, 3, nil, 0)
		}, []string{"versions are nobody's"}},
		{"a change before it was asked for", func(h *tale) {
			a := h.commit("d", 0, 1, 2)
			h.read("x", 1, 5, nil, 0)
			h.commit("d", 1, 2, 3)
			h.ops[2].Index = 4
			_ = a
		}, []string{"from the past", "before it was asked for"}},

		{"a task done", func(h *tale) {
			s := h.submit("t", 2)
			h.ack(h.pull(s, 2, 1, 3), 1, 4)
		}, nil},
		{"a task tried twice", func(h *tale) {
			s := h.submit("t", 2)
			h.pull(s, 1, 1, 3)
			h.ack(h.pull(s, 2, 2, 4), 1, 5)
		}, nil},
		{"an effect twice", func(h *tale) {
			s := h.submit("t", 2)
			one, two := h.pull(s, 1, 1, 3), h.pull(s, 2, 2, 4)
			h.ack(one, 1, 5)
			h.ack(two, 2, 6)
		}, []string{"an effect happened twice", "what had ended was given back"}},
		{"an effect counted twice", func(h *tale) {
			s := h.submit("t", 2)
			unknown(h.ack(h.pull(s, 1, 1, 3), 1, 4))
			h.add(Op{Kind: Read}, 5, Answer{Version: 1, Docs: []Doc{{Version: Version{"effect", 1}, Count: 2}}})
		}, []string{"happened 2 times", "not what was written"}},
		{"a submission twice", func(h *tale) {
			s := h.submit("t", 2)
			p := h.pull(s, 1, 1, 3)
			p.Task.ID = "u"
		}, []string{"an effect happens twice"}},
		{"handed out when it was done", func(h *tale) {
			s := h.submit("t", 2)
			h.ack(h.pull(s, 1, 1, 3), 1, 4)
			h.pull(s, 2, 2, 5)
		}, []string{"after it was done"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := &tale{}
			tt.tell(h)
			got := Check(h.ops)
			for _, want := range tt.want {
				found := false
				for _, p := range got {
					found = found || strings.Contains(p, want)
				}
				if !found {
					t.Errorf("not found: %s", want)
				}
			}
			if len(tt.want) == 0 && len(got) > 0 || t.Failed() {
				t.Errorf("found: %s", strings.Join(got, "\n"))
			}
		})
	}
}
