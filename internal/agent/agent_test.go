package agent

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/api"
	"github.com/interlockdev/interlock/internal/test/apitest"
)

// rig is a hub in front of a server in the same process.
type rig struct {
	*testing.T
	api apitest.API
	hub *Hub

	mu    sync.Mutex
	calls []string
}

// inBubble runs a test with a rig in fake time.
func inBubble(t *testing.T, test func(*rig)) {
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t}
		r.open()
		defer r.close()
		test(r)
	})
}

func (r *rig) open() {
	r.Helper()
	r.api.Open(r)
	handler := http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		r.calls = append(r.calls, q.Method+" "+q.URL.Path)
		r.mu.Unlock()
		r.api.ServeHTTP(w, q)
	})
	r.hub = NewHub(Config{Door: "test", API: api.New(api.Config{
		Bases: []*url.URL{{Scheme: "http", Host: "127.0.0.1"}}, Transport: Local(handler),
	})})
}

func (r *rig) close() {
	r.hub.Close()
	r.api.Close()
}

func (r *rig) caller(key string) *Caller {
	return r.hub.Caller(Identity{Key: key, Agent: "agent-" + key})
}

func claims(keys ...interlock.Key) (list []api.ClaimRequest) {
	for _, key := range keys {
		list = append(list, api.ClaimRequest{Key: key})
	}
	return list
}

func (r *rig) acquire(c *Caller, flow string, keys ...interlock.Key) *Reply {
	r.Helper()
	reply, err := c.Acquire(r.Context(), api.AcquireRequest{Claims: claims(keys...), Flow: flow, OnConflict: "wait"}, "")
	if err != nil {
		r.Fatal(err)
	}
	return reply
}

func (r *rig) granted(c *Caller, flow string, keys ...interlock.Key) *api.Granted {
	r.Helper()
	reply := r.acquire(c, flow, keys...)
	if reply.Granted == nil {
		r.Fatalf("the answer is %s", reply.Document)
	}
	return reply.Granted
}

func (r *rig) queued(c *Caller, flow string, keys ...interlock.Key) *api.Queued {
	r.Helper()
	reply := r.acquire(c, flow, keys...)
	if reply.Queued == nil {
		r.Fatalf("the answer is %s", reply.Document)
	}
	return reply.Queued
}

func (r *rig) release(c *Caller, g *api.Granted) {
	r.Helper()
	if err := c.Release(r.Context(), g.Lease.ID, api.ReleaseRequest{}); err != nil {
		r.Error(err)
	}
}

// holder is the agent that holds a key, "" if it is free.
func (r *rig) holder(key interlock.Key) string {
	r.Helper()
	reply, err := r.hub.Caller(Identity{Agent: "probe"}).Acquire(r.Context(), api.AcquireRequest{Claims: claims(key)}, "")
	switch {
	case err != nil:
		r.Fatal(err)
	case reply.Granted != nil:
		r.release(r.caller("probe"), reply.Granted)
		return ""
	case reply.Refused == nil:
		r.Fatalf("the answer is %s", reply.Document)
	}
	name, _, _ := strings.Cut(reply.Refused.Detail[strings.Index(reply.Refused.Detail, "held by ")+len("held by "):], " ")
	return name
}

func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestGrantIsKeptForAnAbsentAgent(t *testing.T) {
	inBubble(t, func(r *rig) {
		ann, ben := r.caller("ann"), r.caller("ben")
		first := r.granted(ann, "", "file:a")
		ticket := r.queued(ben, "edit", "file:a").Ticket.ID
		ben.Follow(Place{Ticket: ticket, Flow: "edit", Keys: []string{"file:a"}})
		pass(20 * time.Second)
		if news := ben.News("edit"); len(news) != 0 {
			r.Errorf("news before the turn: %+v", news)
		}
		r.release(ann, first)
		pass(30 * time.Second)
		news := ben.News("edit")
		if len(news) != 1 || news[0].Ticket != ticket || news[0].Reply.Granted == nil || !news[0].Reply.Granted.Changed {
			r.Fatalf("news %+v", news)
		}
		if len(ben.News("")) != 0 || len(ann.News("edit")) != 0 {
			r.Error("another flow or agent has the news, too")
		}
		again := r.granted(ben, "edit", "file:a")
		if again.Lease.ID != news[0].Reply.Granted.Lease.ID || !again.Changed {
			r.Errorf("the reserved lease is another one: %+v", again)
		}
		if len(ben.News("edit")) != 0 {
			r.Error("the news stays after the lease was taken up")
		}
		pass(2 * time.Minute)
		if got := r.holder("file:a"); got != "agent-ben" {
			r.Errorf("the key is held by %q", got)
		}
		if held := ben.Leases("edit"); len(held) != 1 || held[0].Keys[0] != "file:a" {
			r.Errorf("leases %+v", held)
		}
	})
}

func TestGrantThatIsNotTakenUp(t *testing.T) {
	inBubble(t, func(r *rig) {
		ann, ben, cat := r.caller("ann"), r.caller("ben"), r.caller("cat")
		first := r.granted(ann, "", "file:a")
		ben.Follow(Place{Ticket: r.queued(ben, "", "file:a").Ticket.ID, Keys: []string{"file:a"}})
		waiting := r.queued(cat, "", "file:a").Ticket.ID
		r.release(ann, first)
		pass(59 * time.Second)
		if reply, err := cat.Wait(r.Context(), "", waiting, 0); err != nil || reply.Queued == nil {
			r.Fatalf("it passed on early: %+v, %v", reply, err)
		}
		reply, err := cat.Wait(r.Context(), "", waiting, 10*time.Second)
		if err != nil || reply.Granted == nil {
			r.Fatalf("it does not pass on: %+v, %v", reply, err)
		}
		if notes := reply.Granted.Notes; len(notes) == 0 || notes[len(notes)-1].Text != "not taken up" {
			r.Errorf("notes %+v", notes)
		}
		if len(ben.News("")) != 0 {
			r.Error("the news stays after the lease was given back")
		}
	})
}

// A lease that is given back at the moment when its agent asks for it is requested again.
func TestAskedForWhileItIsGivenBack(t *testing.T) {
	inBubble(t, func(r *rig) {
		ann, ben := r.caller("ann"), r.caller("ben")
		first := r.granted(ann, "", "file:a")
		ben.Follow(Place{Ticket: r.queued(ben, "", "file:a").Ticket.ID})
		r.release(ann, first)
		synctest.Wait()
		<-time.After(r.hub.cfg.Reserve) // the same moment as the end of the reservation
		again := r.granted(ben, "", "file:a")
		synctest.Wait()
		if got := r.holder("file:a"); got != "agent-ben" {
			r.Errorf("the key is held by %q after %+v", got, again.Lease)
		}
	})
}

// An agent that asks again while it waits has one place in line.
func TestAsksAgainWhileItWaits(t *testing.T) {
	inBubble(t, func(r *rig) {
		ann, ben := r.caller("ann"), r.caller("ben")
		r.granted(ann, "", "file:a", "file:b")
		first := r.queued(ben, "edit", "file:a", "file:b").Ticket
		ben.Follow(Place{Ticket: first.ID, Flow: "edit", Keys: []string{"file:b", "file:a"}})
		if again := r.queued(ben, "edit", "file:a", "file:b").Ticket; again.ID != first.ID || again.Length != 1 {
			r.Errorf("ticket %+v, the first one was %+v", again, first)
		}
		if other := r.queued(ben, "other", "file:a", "file:b").Ticket; other.ID == first.ID {
			r.Error("another flow has the ticket, too")
		}
	})
}

// Following keeps no dead agent's session alive.
func TestDeadAgentLeavesTheLine(t *testing.T) {
	inBubble(t, func(r *rig) {
		ann, ben := r.caller("ann"), r.caller("ben")
		r.granted(ann, "", "file:a")
		r.granted(ben, "", "file:b")
		ben.Follow(Place{Ticket: r.queued(ben, "", "file:a").Ticket.ID, Keys: []string{"file:a"}})
		for range 12 {
			pass(time.Minute)
			if err := ann.Touch(r.Context()); err != nil {
				r.Fatal(err)
			}
		}
		if got := r.holder("file:b"); got != "" {
			r.Errorf("the dead agent's key is held by %q", got)
		}
		if got := r.holder("file:a"); got != "agent-ann" {
			r.Errorf("the key is held by %q", got)
		}
	})
}

// A lease with a ttl shorter than the reservation is renewed meanwhile.
func TestReservedLeaseIsRenewed(t *testing.T) {
	inBubble(t, func(r *rig) {
		ann, ben := r.caller("ann"), r.caller("ben")
		if _, err := ann.Do(r.Context(), api.Request{Method: "PUT", Path: "/v1/patterns/files", Body: map[string]any{
			"pattern": "file:{name}", "max_ttl_ms": 10_000,
		}}); err != nil {
			r.Fatal(err)
		}
		first := r.granted(ann, "", "file:a")
		ben.Follow(Place{Ticket: r.queued(ben, "", "file:a").Ticket.ID, Keys: []string{"file:a"}})
		r.release(ann, first)
		pass(50 * time.Second)
		if got := r.holder("file:a"); got != "agent-ben" {
			r.Errorf("the key is held by %q", got)
		}
		if again := r.granted(ben, "", "file:a"); again.Lease.Fence != first.Lease.Fence+1 {
			r.Errorf("the reserved lease is another one: %+v", again)
		}
	})
}

func TestSessionOutlivesTheDoor(t *testing.T) {
	inBubble(t, func(r *rig) {
		g := r.granted(r.caller("ann"), "", "file:a")
		r.close()
		r.open()
		again := r.granted(r.caller("ann"), "", "file:a")
		if again.Lease.ID != g.Lease.ID || !again.Reused {
			r.Errorf("after a restart the lease is %s, before %s", again.Lease.ID, g.Lease.ID)
		}
	})
}

func TestSessionThatLapsed(t *testing.T) {
	inBubble(t, func(r *rig) {
		ann := r.caller("ann")
		g := r.granted(ann, "", "file:a")
		pass(4 * time.Minute)
		if err := ann.Touch(r.Context()); err != nil {
			r.Fatal(err)
		}
		pass(4 * time.Minute)
		if again := r.granted(ann, "", "file:a"); again.Lease.ID != g.Lease.ID {
			r.Error("a touched session is over")
		}
		pass(6 * time.Minute)
		again := r.granted(ann, "", "file:a")
		if again.Lease.Fence <= g.Lease.Fence {
			r.Errorf("fence %d after %d", again.Lease.Fence, g.Lease.Fence)
		}
		pass(6 * time.Minute)
		if err := ann.Touch(r.Context()); err != nil {
			r.Error(err)
		}
		if held := ann.Leases(""); len(held) != 0 {
			r.Errorf("leases of a session that is over: %+v", held)
		}
		r.close()
		r.open()
		r.granted(r.caller("ann"), "", "file:a") // the third session, found behind two that are over
		if got := r.holder("file:a"); got != "agent-ann" {
			r.Errorf("the key is held by %q", got)
		}
	})
}

func TestLeaveAndEnd(t *testing.T) {
	inBubble(t, func(r *rig) {
		ann, ben := r.caller("ann"), r.caller("ben")
		first := r.granted(ann, "", "file:a")
		waits := r.queued(ben, "", "file:a").Ticket.ID
		ben.Follow(Place{Ticket: waits})
		if err := ben.Leave(r.Context(), waits); err != nil {
			r.Error(err)
		}
		r.release(ann, first)
		pass(time.Second)
		if got := r.holder("file:a"); got != "" {
			r.Errorf("the key is held by %q after its waiter left", got)
		}

		first = r.granted(ann, "", "file:a")
		waits = r.queued(ben, "", "file:a").Ticket.ID
		r.release(ann, first)
		if err := ben.Leave(r.Context(), waits); err != nil { // its turn has come meanwhile
			r.Error(err)
		}
		if got := r.holder("file:a"); got != "" {
			r.Errorf("the key is held by %q after its waiter left with the grant", got)
		}

		r.granted(ann, "", "file:a")
		r.granted(ann, "other", "file:b")
		if err := ann.End(r.Context()); err != nil {
			r.Error(err)
		}
		if r.holder("file:a") != "" || r.holder("file:b") != "" || len(ann.Leases("")) != 0 {
			r.Error("something is held after the end of the session")
		}
		r.granted(ann, "", "file:a") // in a new session
	})
}

func TestFlowsConflict(t *testing.T) {
	inBubble(t, func(r *rig) {
		ann := r.caller("ann")
		r.granted(ann, "sub-1", "file:a")
		r.queued(ann, "sub-2", "file:a")
		if reply := r.acquire(ann, "sub-2", "file:b"); reply.Granted == nil {
			r.Errorf("the answer is %s", reply.Document)
		}
	})
}

func TestWithoutKey(t *testing.T) {
	inBubble(t, func(r *rig) {
		c := r.hub.Caller(Identity{Agent: "nameless"})
		if err := c.Touch(r.Context()); err != nil {
			r.Error(err)
		}
		r.granted(c, "", "file:a")
		if got := r.holder("file:a"); got != "nameless" {
			r.Errorf("the key is held by %q", got)
		}
		for _, call := range r.calls {
			if strings.HasPrefix(call, "POST /v1/sessions") {
				r.Errorf("call %s", call)
			}
		}
	})
}
