package scenariotest

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
)

// arguments are the with of a step. A lease in it is a *client.Lease.
type arguments map[string]any

func (a arguments) text(name string) string {
	s, _ := a[name].(string)
	return s
}

func (a arguments) duration(name string) time.Duration {
	n, _ := a[name].(float64)
	return millis(n)
}

func (a arguments) count(name string) int {
	n, _ := a[name].(float64)
	return int(n)
}

func (a arguments) lease() *client.Lease {
	l, _ := a["lease"].(*client.Lease)
	return l
}

// do carries out the operation of a step. A nil result without an error means that the library has no such operation.
func (r *runner) do(ctx context.Context, c *client.Client, s *step, with arguments) (map[string]any, error) {
	none := map[string]any{}
	switch s.Do {
	case "acquire":
		return acquire(ctx, c, with)
	case "release":
		lost := lostOf(with.lease())
		err := with.lease().Release(ctx, client.Outcome{Outcome: with.text("outcome"), Note: with.text("note")})
		if err != nil && lost != nil {
			err = lost
		}
		return none, err
	case "check":
		return none, lostOf(with.lease())
	case "lost":
		ctx, cancel := context.WithTimeout(ctx, with.duration("within_ms"))
		defer cancel()
		select {
		case <-with.lease().Context().Done():
			return map[string]any{"held": false}, nil
		case <-ctx.Done():
			return nil, fmt.Errorf("the lease is still held after %v", with.duration("within_ms"))
		}
	case "renew":
		c.SetProgress(with.text("progress"))
		return none, with.lease().Renew(ctx, client.Renewal{TTL: with.duration("ttl_ms")})
	case "check_fence":
		fence, err := strconv.ParseUint(with.text("fence"), 10, 64)
		if err != nil {
			return nil, err
		}
		return none, c.CheckFence(ctx, interlock.Key(with.text("key")), interlock.Fence(fence))
	case "read":
		doc, err := c.Document(ctx, interlock.Key(with.text("key")))
		if err != nil {
			return nil, err
		}
		x := map[string]any{"absent": doc.Absent, "version": digits(doc.Version)}
		if !doc.Absent {
			var value any
			err = json.Unmarshal(doc.Body, &value)
			x["value"] = value
		}
		return x, err
	case "commit":
		return commit(ctx, c, with)
	case "why":
		return nil, nil // the session stream has no such operation
	case "fail":
		fail(ctx, with.lease())
		return none, nil
	case "drop":
		r.drop(with.text("name"))
		return none, nil
	case "close":
		return none, r.close(ctx, s.Client)
	}
	return nil, fmt.Errorf("there is no operation %s", s.Do)
}

// fail ends a body under a lease by a panic.
func fail(ctx context.Context, l *client.Lease) {
	defer func() { _ = recover() }()
	defer func() { _ = l.Release(ctx, client.Outcome{}) }()
	panic("the body fails")
}

func acquire(ctx context.Context, c *client.Client, with arguments) (map[string]any, error) {
	req := client.Request{
		Any: with["any"] == true, OnConflict: interlock.Wait, Flow: with.text("flow"), Purpose: with.text("purpose"),
		Priority: with.count("priority"),
		Terms: interlock.Terms{
			TTL: with.duration("ttl_ms"), Grace: with.duration("grace_ms"), MaxHold: with.duration("max_hold_ms"),
		},
	}
	if with["grace_ms"] == float64(0) {
		req.Grace = client.NoGrace
	}
	mode := interlock.Exclusive
	if with["mode"] != nil {
		mode, _ = interlock.ParseMode(with.text("mode"))
	}
	if with["permits"] != nil {
		mode = interlock.Permits
	}
	keys, _ := with["keys"].([]any)
	for _, key := range keys {
		req.Claims = append(req.Claims, interlock.Claim{
			Key: interlock.Key(key.(string)), Mode: mode, Count: uint32(with.count("permits")),
		})
	}
	if wait, bounded := with["wait_ms"].(float64); bounded {
		if wait == 0 {
			req.OnConflict = interlock.Fail
		} else {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeoutCause(ctx, millis(wait), errWaited)
			defer cancel()
		}
	}
	lease, err := c.Acquire(ctx, req)
	if err != nil {
		return nil, err
	}
	held := []any{}
	for _, claim := range lease.Claims() {
		held = append(held, string(claim.Key))
	}
	notes := []any{}
	for _, note := range lease.Notes() {
		notes = append(notes, map[string]any{"agent": note.Agent, "text": note.Text})
	}
	return map[string]any{
		"lease": lease, "keys": held, "fence": digits(lease.Fence()), "changed": lease.Changed(), "notes": notes,
	}, nil
}

// lostOf returns why a lease is lost, if it is.
func lostOf(l *client.Lease) error {
	if err := l.Err(); err != nil {
		return fmt.Errorf("%w: %w", errLost, err)
	}
	return nil
}

func commit(ctx context.Context, c *client.Client, with arguments) (map[string]any, error) {
	req := client.Commit{Note: with.text("note")}
	reads, _ := with["reads"].([]any)
	for _, x := range reads {
		x := arguments(x.(map[string]any))
		version, _ := strconv.ParseUint(x.text("version"), 10, 64)
		req.Reads = append(req.Reads, interlock.Read{
			Key: interlock.Key(x.text("key")), Version: interlock.Version(version), Absent: x["absent"] == true,
		})
	}
	writes, _ := with["writes"].([]any)
	for _, x := range writes {
		x := arguments(x.(map[string]any))
		key := interlock.Key(x.text("key"))
		if x["add"] != nil {
			req.Writes = append(req.Writes, client.Add(key, int64(x.count("add"))))
			continue
		}
		body, err := json.Marshal(x["put"])
		if err != nil {
			return nil, err
		}
		req.Writes = append(req.Writes, client.Put(key, body))
	}
	leases, _ := with["leases"].([]any)
	for _, l := range leases {
		req.Leases = append(req.Leases, l.(*client.Lease).ID())
	}
	done, err := c.Commit(ctx, req)
	if err != nil {
		return nil, err
	}
	return map[string]any{"version": digits(done.Version)}, nil
}
