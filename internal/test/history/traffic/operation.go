package traffic

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/test/history"
)

// The operations. Each returns the operation as it was recorded; its Open reports that the
// outcome is unknown, and an error that the answer was not a possible one.

// body is JSON.
type body map[string]any

// grace is how long a lease of these histories is spared after its end.
const grace = 100 * time.Millisecond

// do is an operation of one request.
func (c *Client) do(ctx context.Context, op *history.Op, r request) (*history.Op, error) {
	a, err := c.ask(ctx, op, r)
	if a != nil && err == nil {
		c.end(op, a)
	}
	return op, err
}

// LeaseAttempt is a request for a lease.
type LeaseAttempt struct {
	Claims  []history.Claim
	TTL     time.Duration
	Wait    bool          // in line, until it is granted
	MaxWait time.Duration // but no longer than this; 0 for no limit
	Fragile bool          // it may be given up without an answer
}

// Acquire asks for a lease, and follows its place in line.
func (c *Client) Acquire(ctx context.Context, x LeaseAttempt) (*history.Op, error) {
	op := c.begin(&history.Op{Kind: history.Acquire, Claims: x.Claims, TTL: x.TTL, Wait: x.Wait})
	claims := []any{}
	for _, claim := range x.Claims {
		claims = append(claims, body{"key": claim.Key, "mode": claim.Mode.String()})
	}
	b := body{
		"agent": c.name, "purpose": op.ID, "claims": claims,
		"ttl_ms": x.TTL.Milliseconds(), "grace_ms": grace.Milliseconds(), "on_conflict": "fail",
	}
	const poll = 200 * time.Millisecond
	r := request{method: http.MethodPost, path: "/v1/leases", body: b, fragile: x.Fragile}
	if x.Wait {
		b["on_conflict"], b["wait_ms"] = "wait", poll.Milliseconds()
		r.wait = poll
		if x.MaxWait > 0 {
			b["max_wait_ms"] = x.MaxWait.Milliseconds()
		}
	}
	for {
		a, err := c.ask(ctx, op, r)
		switch {
		case a == nil || err != nil:
			return op, err
		case a.Outcome != "queued":
			c.end(op, a)
			return op, nil
		}
		r = request{
			method: http.MethodGet, path: fmt.Sprintf("/v1/tickets/%s?wait_ms=%d", a.Ticket.ID, poll.Milliseconds()),
			wait: poll, fragile: x.Fragile,
		}
	}
}

// Renew renews a lease.
func (c *Client) Renew(ctx context.Context, lease string) (*history.Op, error) {
	op := c.begin(&history.Op{Kind: history.Renew, Lease: lease})
	return c.do(ctx, op, request{method: http.MethodPost, path: "/v1/leases/" + lease + "/renew", body: body{}})
}

// Release returns a lease back.
func (c *Client) Release(ctx context.Context, lease string, fragile bool) (*history.Op, error) {
	op := c.begin(&history.Op{Kind: history.Release, Lease: lease})
	return c.do(
		ctx, op, request{method: http.MethodPost, path: "/v1/leases/" + lease + "/release", body: body{}, fragile: fragile},
	)
}

// Look asks for the holder of a key.
func (c *Client) Look(ctx context.Context, key string) (*history.Op, error) {
	op := c.begin(&history.Op{Kind: history.Look, Key: key})
	return c.do(ctx, op, request{method: http.MethodGet, path: "/v1/keys/" + key, fragile: true})
}

// CheckFence asks whether the holder of a fence may write a key.
func (c *Client) CheckFence(ctx context.Context, key string, fence interlock.Fence) (*history.Op, error) {
	op := c.begin(&history.Op{Kind: history.CheckFence, Key: key, Fence: fence})
	return c.do(
		ctx, op,
		request{
			method: http.MethodPost, path: "/v1/fences/check", body: body{"key": key, "fence": fence.String()}, fragile: true,
		},
	)
}

// Read reads documents, all as of one moment.
func (c *Client) Read(ctx context.Context, keys ...string) (*history.Op, error) {
	op := c.begin(&history.Op{Kind: history.Read, Keys: keys})
	return c.do(
		ctx, op,
		request{
			method: http.MethodGet, path: "/v1/state?" + url.Values{"key": keys, "values": {"true"}}.Encode(), fragile: true,
		},
	)
}

// Commit writes its request id to documents, if what was read is current, in the name of a
// lease if there is one.
func (c *Client) Commit(
	ctx context.Context, lease string, reads []history.Version, keys ...string,
) (*history.Op, error) {
	op := &history.Op{Kind: history.Commit, Lease: lease, Reads: reads}
	for _, key := range keys {
		op.Writes = append(op.Writes, history.Write{Key: key})
	}
	c.begin(op)
	read, writes := []any{}, []any{}
	for _, r := range reads {
		if r.Version == 0 {
			read = append(read, body{"key": r.Key, "absent": true})
			continue
		}
		read = append(read, body{"key": r.Key, "version": r.Version.String()})
	}
	for _, key := range keys {
		writes = append(writes, body{"key": key, "put": op.ID})
	}
	b := body{"agent": c.name, "reads": read, "writes": writes}
	if lease != "" {
		b["leases"] = []string{lease}
	}
	return c.do(ctx, op, request{method: http.MethodPost, path: "/v1/commits", body: b, fragile: true})
}

// Submit submits a task for a key.
func (c *Client) Submit(ctx context.Context, queue, key string) (*history.Op, error) {
	op := c.begin(&history.Op{Kind: history.Submit})
	return c.do(ctx, op, request{method: http.MethodPost, path: "/v1/tasks", fragile: true, body: body{
		"agent": c.name, "queue": queue, "payload": op.ID, "claims": []any{body{"key": key}},
	}})
}

// Pull takes a task, if there is one.
func (c *Client) Pull(ctx context.Context, queue string, ttl time.Duration) (*history.Op, error) {
	op := c.begin(&history.Op{Kind: history.Pull, TTL: ttl})
	const wait = 100 * time.Millisecond
	return c.do(ctx, op, request{
		method: http.MethodPost, path: "/v1/queues/" + queue + "/pull", wait: wait, fragile: true,
		body: body{"agent": c.name, "ttl_ms": ttl.Milliseconds(), "wait_ms": wait.Milliseconds()},
	})
}

// Ack acknowledges a task, and counts it in a document of its own.
func (c *Client) Ack(ctx context.Context, pull *history.Op) (*history.Op, error) {
	key := effectKey(pull.Task.Request)
	op := c.begin(&history.Op{Kind: history.Ack, Lease: pull.Granted.Lease, Writes: []history.Write{{Key: key, Add: 1}}})
	return c.do(ctx, op, request{
		method: http.MethodPost, path: "/v1/leases/" + op.Lease + "/ack", fragile: true,
		body: body{"writes": []any{body{"key": key, "add": 1}}},
	})
}

// effectKey is where a submission's effects are counted.
func effectKey(request string) string { return "effect/" + request }

// prepare sets what the agents need: a guarded pattern, and a queue.
func (c *Client) prepare(ctx context.Context) error {
	for _, r := range []request{
		{method: http.MethodPut, path: "/v1/patterns/ledger", body: body{"pattern": "ledger/{id}", "write": "lease"}},
		{method: http.MethodPut, path: "/v1/patterns/register", body: body{"pattern": "register/{id}", "write": "open"}},
		{method: http.MethodPut, path: "/v1/namespace", body: body{"closed": false}},
		{
			method: http.MethodPut, path: "/v1/queues/" + queue,
			body: body{"max_attempts": 1000, "backoff_ms": 10, "max_backoff_ms": 50},
		},
	} {
		c.calls++
		if a, err := c.ask(ctx, &history.Op{ID: fmt.Sprint(c.name, "-", c.calls)}, r); a == nil || err != nil {
			return fmt.Errorf("prepare %s: %v %w", r.path, a, err)
		}
	}
	return nil
}
