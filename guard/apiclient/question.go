package apiclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/guard/signed"
	"github.com/interlockdev/interlock/internal/api"
)

// Lease is the part of a lease that a guard needs.
type Lease struct {
	ID        interlock.LeaseID
	Fence     interlock.Fence
	Agent     string
	Session   string // public name
	ExpiresIn time.Duration
}

// Holder is a holder of a key, or of something above or below it.
type Holder struct {
	Agent   string
	Session string // public name
	Purpose string // other agents' text
	Key     interlock.Key
	Mode    interlock.Mode
	Fence   interlock.Fence
	Held    time.Duration
	Left    time.Duration
}

// Held is a key with the holders of the very key.
type Held struct {
	Key     interlock.Key
	Holders []Holder
	More    int // holders that are not shown
}

// Lease looks a lease up with its holder's eyes; it renews nothing. One that is over
// is a refusal.
func (d *Client) Lease(ctx context.Context, id interlock.LeaseID) (Lease, error) {
	var answer struct{ Lease leaseWire }
	if err := d.call(ctx, http.MethodGet, "/v1/leases/"+id.String(), nil, nil, &answer); err != nil {
		return Lease{}, err
	}
	return answer.Lease.toLease(id), d.confirmed(answer.Lease.Fence != 0)
}

// CheckFence asks whether a write under fence may go ahead at key: nil means that the fence is
// that of a live lease that claims the key, or an ancestor, exclusively.
func (d *Client) CheckFence(ctx context.Context, key interlock.Key, fence interlock.Fence) error {
	return d.order(ctx, checkPath, map[string]string{"key": string(key), "fence": decimal(fence)}, "valid")
}

// Holders lists the holders that block a writer of key: those at it, those below it, and those
// above it with a mode that extends to descendants. There may be more than are listed.
func (d *Client) Holders(ctx context.Context, key interlock.Key) (list []Holder, more int, err error) {
	segments := strings.Split(string(key), "/")
	for i := range segments {
		segments[i] = url.PathEscape(segments[i])
	}
	var answer heldWire
	if err := d.call(ctx, http.MethodGet, "/v1/keys/"+strings.Join(segments, "/"), nil, nil, &answer); err != nil {
		return nil, 0, err
	}
	held := answer.toHeld()
	return held.Holders, held.More, d.confirmed(held.Key != "")
}

// List lists the keys that begin with prefix and are held, in their order, and returns the
// cursor that the listing continues with, "" at its end.
func (d *Client) List(ctx context.Context, prefix, cursor string, limit int) (list []Held, next string, err error) {
	query := url.Values{"prefix": {prefix}, "state": {"held"}, "limit": {strconv.Itoa(limit)}}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	var answer struct {
		Keys   []heldWire
		Cursor string
	}
	if err := d.call(ctx, http.MethodGet, "/v1/keys", query, nil, &answer); err != nil {
		return nil, "", err
	}
	for i := range answer.Keys {
		list = append(list, answer.Keys[i].toHeld())
	}
	return list, answer.Cursor, d.confirmed(answer.Keys != nil)
}

// Acquire takes a key exclusively for agent, at once or not at all, in no session and without
// grace: the lease lives for ttl and no longer.
func (d *Client) Acquire(
	ctx context.Context, agent, purpose string, key interlock.Key, ttl time.Duration,
) (Lease, error) {
	body := map[string]any{
		"agent": agent, "purpose": purpose, "claims": []map[string]string{{"key": string(key)}},
		"ttl_ms": ttl.Milliseconds(), "grace_ms": 0, "on_conflict": "fail",
	}
	var answer struct{ Lease leaseWire }
	if err := d.call(ctx, http.MethodPost, "/v1/leases", nil, body, &answer); err != nil {
		return Lease{}, err
	}
	id, err := interlock.ParseLeaseID(answer.Lease.ID)
	return answer.Lease.toLease(id), d.confirmed(err == nil && answer.Lease.Fence != 0)
}

// Revoke revokes the lease that holds key under a fence.
func (d *Client) Revoke(ctx context.Context, key interlock.Key, fence interlock.Fence, reason string) error {
	return d.order(
		ctx, "/v1/revocations", map[string]string{"key": string(key), "fence": decimal(fence), "reason": reason}, "revoked",
	)
}

// order is a question with nothing in its answer but the outcome.
func (d *Client) order(ctx context.Context, path string, body map[string]string, outcome string) error {
	var answer struct{ Outcome string }
	if err := d.call(ctx, http.MethodPost, path, nil, body, &answer); err != nil {
		return err
	}
	return d.confirmed(answer.Outcome == outcome)
}

// FenceKeys returns the public keys that verify signed fences.
func (d *Client) FenceKeys(ctx context.Context) (signed.KeySet, error) {
	var answer json.RawMessage
	if err := d.call(ctx, http.MethodGet, "/v1/fences/keys", nil, nil, &answer); err != nil {
		return nil, err
	}
	return signed.ParseKeySet(answer)
}

func decimal(fence interlock.Fence) string { return strconv.FormatUint(uint64(fence), 10) }

// Grant is a lease of the journal, and when it was in force.
type Grant struct {
	Agent  string
	Claims []interlock.Claim
	Began  time.Time
	Ended  time.Time // zero: it is in force
}

// Grants lists the leases on keys that begin with prefix and that were in force since then, as far as
// the journal reaches back.
func (d *Client) Grants(ctx context.Context, prefix string, since time.Time) (list []Grant, err error) {
	answer, err := d.client.Do(ctx, api.Request{
		Method: http.MethodGet, Path: "/v1/events", Query: url.Values{
			"prefix": {prefix}, "event": {"granted,ended"}, "since": {since.UTC().Format(time.RFC3339)},
		},
	})
	if err != nil {
		return nil, d.failed(ctx, answer, err)
	}
	open := map[uint64]int{} // the grants without an end, by the number of the request
	events := json.NewDecoder(bytes.NewReader(answer.Body))
	for {
		var ev api.Event
		switch err := events.Decode(&ev); {
		case errors.Is(err, io.EOF):
			return d.stillHeld(ctx, prefix, since, list)
		case err != nil || ev.Event == "end":
			return nil, fmt.Errorf("%w: the events of %s broke off (%v)", ErrUnreachable, d.bases, err)
		}
		g := Grant{Agent: ev.Agent, Began: time.Time(ev.Time)}
		for _, claim := range ev.Claims {
			mode, _ := interlock.ParseMode(claim.Mode) // of a later version: none that this one knows
			g.Claims = append(g.Claims, interlock.Claim{Key: claim.Key, Mode: mode})
		}
		if ev.Event == "granted" {
			open[ev.Request] = len(list)
			list = append(list, g)
			continue
		}
		if i, known := open[ev.Request]; known {
			delete(open, ev.Request)
			list[i].Ended = g.Began
			continue
		}
		g.Began, g.Ended = g.Began.Add(-milliseconds(ev.Held)), g.Began
		list = append(list, g)
	}
}

// stillHeld adds the leases that were granted before since and are in force.
func (d *Client) stillHeld(ctx context.Context, prefix string, since time.Time, list []Grant) ([]Grant, error) {
	now := time.Now()
	for cursor := ""; ; {
		held, next, err := d.List(ctx, prefix, cursor, 1000)
		if err != nil {
			return nil, err
		}
		for _, key := range held {
			for _, h := range key.Holders {
				if began := now.Add(-h.Held); began.Before(since) {
					list = append(list, Grant{Agent: h.Agent, Claims: []interlock.Claim{{Key: h.Key, Mode: h.Mode}}, Began: began})
				}
			}
		}
		if cursor = next; cursor == "" {
			return list, nil
		}
	}
}

// How the words look in JSON.
type (
	leaseWire struct {
		ID        string
		Fence     uint64 `json:",string"`
		Holder    struct{ Agent, Session string }
		ExpiresIn int64 `json:"expires_in_ms"`
	}
	holderWire struct {
		Agent, Session, Purpose string
		Key                     interlock.Key
		Mode                    string
		Fence                   uint64 `json:",string"`
		Held                    int64  `json:"held_ms"`
		ExpiresIn               int64  `json:"expires_in_ms"`
	}
	heldWire struct {
		Key     interlock.Key
		Holders []holderWire
		More    int `json:"more_holders"`
	}
)

func (w *leaseWire) toLease(id interlock.LeaseID) Lease {
	return Lease{
		ID: id, Fence: interlock.Fence(w.Fence), Agent: w.Holder.Agent, Session: w.Holder.Session,
		ExpiresIn: milliseconds(w.ExpiresIn),
	}
}

func (w *heldWire) toHeld() Held {
	held := Held{Key: w.Key, More: w.More}
	for _, h := range w.Holders {
		mode, _ := interlock.ParseMode(h.Mode) // of a later version: none that this one knows
		held.Holders = append(held.Holders, Holder{
			Agent: h.Agent, Session: h.Session, Purpose: h.Purpose, Key: h.Key, Mode: mode,
			Fence: interlock.Fence(h.Fence), Held: milliseconds(h.Held), Left: milliseconds(h.ExpiresIn),
		})
	}
	return held
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
