package traffic

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/api"
	"github.com/interlockdev/interlock/internal/test/history"
)

// Site is where the servers are.
type Site struct {
	// Patience bounds how long a client waits for an answer, beyond the wait that the request
	// itself allows. 0 stands for 2 s.
	Patience time.Duration

	// Namespace is that of all operations; "" is the default one.
	Namespace interlock.Namespace

	// Doubled means that a request that is sent once may arrive twice.
	Doubled bool

	mu      sync.Mutex
	servers []*api.Client
}

// Move sets the addresses of the servers: host:port, the likeliest first.
func (s *Site) Move(addresses ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.servers = nil
	for _, address := range addresses {
		s.servers = append(s.servers, api.New(api.Config{
			Bases: []*url.URL{{Scheme: "http", Host: address}}, Timeout: cmp.Or(s.Patience, 2*time.Second),
			Namespace: s.Namespace,
		}))
	}
}

// next returns the server for a try.
func (s *Site) next(try int) *api.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.servers[try%len(s.servers)]
}

// Client does one operation after the other.
type Client struct {
	name   string
	site   *Site
	record *history.Recorder
	random *rand.Rand
	calls  int
	try    int // which of the site's addresses is asked
	// patient means that no request is abandoned.
	patient bool
}

// NewClient makes a client. Its name must be its own in the history.
func NewClient(name string, site *Site, record *history.Recorder, seed uint64) *Client {
	h := uint64(len(name))
	for _, b := range []byte(name) {
		h = h*31 + uint64(b)
	}
	return &Client{name: name, site: site, record: record, random: rand.New(rand.NewPCG(seed, h))}
}

// request is an operation as it is sent.
type request struct {
	method, path string
	body         any
	wait         time.Duration // for how long the server is asked to wait
	fragile      bool          // it may be given up when it was not answered at once
}

// reply is as much of any answer as a history needs.
type reply struct {
	status  int
	Code    interlock.Code
	Detail  string
	Outcome string
	At      struct {
		Epoch interlock.Epoch `json:"epoch,string"`
		Index interlock.Index `json:"index,string"`
	}
	Lease   *leaseReply
	Ticket  struct{ ID string }
	Holders []struct {
		Key     string
		Mode    string
		Fence   interlock.Fence `json:"fence,string"`
		Purpose string
	}
	More      int               `json:"more_holders"`
	Version   interlock.Version `json:"version,string"`
	AsOf      interlock.Version `json:"as_of,string"`
	Documents []struct {
		Key     string
		Version interlock.Version `json:"version,string"`
		Value   any
	}
	Packet struct {
		Stale []struct {
			Key string
			Now struct {
				Version interlock.Version `json:"version,string"`
			}
		}
	}
	Task  *taskReply
	Tasks []struct {
		Task  taskReply
		Lease leaseReply
	}
}

type leaseReply struct {
	ID     string
	Fence  interlock.Fence `json:"fence,string"`
	TTL    int64           `json:"ttl_ms"`
	Claims []struct{ Key, Mode string }
}

type taskReply struct {
	ID      string
	Payload any
	Attempt int
}

func (a *reply) String() string {
	return fmt.Sprintf("%d %s%s %s", a.status, a.Outcome, a.Code, a.Detail)
}

// begin records an operation of the client's.
func (c *Client) begin(op *history.Op) *history.Op {
	c.calls++
	op.Client, op.ID = c.name, c.name+"-"+strconv.Itoa(c.calls)
	if c.site.Doubled {
		op.Sent++
	}
	c.record.Begin(op)
	return op
}

// ask sends an operation until it is answered. It returns nil when ctx ended, or when the
// operation was given up: then its outcome is unknown.
func (c *Client) ask(ctx context.Context, op *history.Op, r request) (*reply, error) {
	pause := time.Millisecond
	for ctx.Err() == nil {
		sent := op.Sent
		a, err := c.send(ctx, op, r)
		switch {
		case err == nil && !passing(a.Code):
			return a, c.expected(op, a)
		case err == nil && a.Code == interlock.CodeNotOwner, err != nil:
			c.try++
		}
		reached := err != nil && op.Sent > sent || err == nil && a.Code == interlock.CodeOutcomeUnknown
		if r.fragile && !c.patient && reached && c.random.IntN(4) == 0 {
			return nil, nil
		}
		c.sleep(ctx, pause)
		pause = min(2*pause, 50*time.Millisecond)
	}
	return nil, nil
}

// passing reports whether a refusal does not depend on the request: it is to be repeated.
func passing(c interlock.Code) bool {
	return c.Transient() || c == interlock.CodeOutcomeUnknown || c == interlock.CodeNoSpace
}

// expected is an error unless the work of the agents can lead to an answer.
func (c *Client) expected(op *history.Op, a *reply) error {
	switch a.Code {
	case "", interlock.CodeHeld, interlock.CodeStale, interlock.CodeFenced, interlock.CodeExpired, interlock.CodeTaken, interlock.CodeReleased,
		interlock.CodeInGrace, interlock.CodeTaskMoved, interlock.CodeWaitLimit, interlock.CodeOfferLapsed:
		return nil
	}
	return fmt.Errorf("%s: %s: unexpected answer: %s", c.name, op.Kind, a)
}

func (c *Client) sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// send sends an operation once. The transport may send it again by itself; each time is
// counted.
func (c *Client) send(ctx context.Context, op *history.Op, r request) (*reply, error) {
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { op.Sent++ }})
	call := api.Request{Method: r.method, Path: r.path, Body: r.body, Wait: r.wait}
	if r.method != http.MethodGet {
		call.ID = op.ID
	}
	answer, err := c.site.next(c.try).Do(ctx, call)
	if _, refused := errors.AsType[*api.Problem](err); err != nil && !refused {
		return nil, err
	}
	a := &reply{status: answer.Status}
	return a, json.Unmarshal(answer.Body, a)
}

// end records the answer.
func (c *Client) end(op *history.Op, a *reply) {
	told := history.Answer{Epoch: a.At.Epoch, Index: a.At.Index, Code: a.Code, More: a.More}
	if a.Lease != nil && a.Code == "" && op.Kind != history.Commit {
		told.Granted = a.Lease.grant()
	}
	for _, h := range a.Holders {
		if mode, ok := interlock.ParseMode(h.Mode); ok && (op.Kind != history.Look || h.Key == op.Key) {
			told.Holders = append(
				told.Holders, history.Holder{Claim: history.Claim{Key: h.Key, Mode: mode}, Fence: h.Fence, Request: h.Purpose},
			)
		}
	}
	for _, s := range a.Packet.Stale {
		told.Stale = append(told.Stale, history.Version{Key: s.Key, Version: s.Now.Version})
	}
	switch op.Kind {
	case history.Read:
		told.Version = a.AsOf
		for _, d := range a.Documents {
			doc := history.Doc{Version: history.Version{Key: d.Key, Version: d.Version}}
			switch v := d.Value.(type) {
			case string:
				doc.Request = v
			case float64:
				doc.Count = int64(v)
			}
			told.Docs = append(told.Docs, doc)
		}
	case history.Commit, history.Ack:
		told.Version = a.Version
	case history.Submit:
		if a.Task != nil {
			told.Task = &history.Task{ID: a.Task.ID, Request: op.ID}
		}
	case history.Pull:
		if len(a.Tasks) > 0 {
			t := &a.Tasks[0]
			told.Granted = t.Lease.grant()
			told.Task = &history.Task{ID: t.Task.ID, Request: fmt.Sprint(t.Task.Payload), Attempt: t.Task.Attempt}
		}
	}
	c.record.End(op, told)
}

func (l *leaseReply) grant() *history.Grant {
	g := &history.Grant{Lease: l.ID, Fence: l.Fence, TTL: time.Duration(l.TTL) * time.Millisecond}
	for _, claim := range l.Claims {
		mode, _ := interlock.ParseMode(claim.Mode)
		g.Claims = append(g.Claims, history.Claim{Key: claim.Key, Mode: mode})
	}
	return g
}
