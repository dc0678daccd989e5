package server

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// The bodies of the calls, field by field as openapi.json names them. What a later
// version will know is refused with unsupported, never ignored: an agent that
// asks for two permits must not get an exclusive lease.

var acquireFields = []string{
	"agent", "session", "flow", "purpose", "claims", "ttl_ms", "grace_ms", "max_hold_ms", "stall_ms",
	"priority", "wait_ms", "on_conflict",
}

// decodeAcquire reads the body of POST /v1/leases. wait is how long the caller
// wants to wait within the call.
func decodeAcquire(d *jsonIn, cmd *engine.Acquire) (wait time.Duration) {
	var waitGiven, conflictGiven, claimsGiven bool
	d.object(acquireFields, func(field int) {
		switch acquireFields[field] {
		case "agent":
			cmd.Agent = d.str()
		case "session":
			cmd.Session = d.sessionID()
		case "flow":
			cmd.Flow = d.str()
		case "purpose":
			cmd.Purpose = d.str()
		case "claims":
			claimsGiven = true
			d.array(interlock.MaxClaims, tooManyClaims, func() { cmd.Claims = append(cmd.Claims, d.claim()) })
		case "ttl_ms":
			cmd.TTL = d.ms()
		case "grace_ms":
			if cmd.Grace = d.ms(); cmd.Grace == 0 {
				cmd.Grace = engine.NoGrace
			}
		case "max_hold_ms":
			cmd.MaxHold = d.ms()
		case "stall_ms":
			if d.ms() != 0 {
				d.unsupported("stall_ms", "leave it out, and bound the lease by max_hold_ms")
			}
		case "priority":
			cmd.Priority = d.priority()
		case "wait_ms":
			waitGiven = true
			wait = d.ms()
		case "on_conflict":
			conflictGiven = true
			cmd.OnConflict = d.onConflict()
		}
	})
	switch {
	case d.err != nil:
		return 0
	case !claimsGiven:
		d.fail("field claims is missing: name what is wanted, such as {\"claims\": [{\"key\": \"account:12345\"}]}")
	case waitGiven && !conflictGiven:
		cmd.OnConflict = interlock.Wait
	case wait > 0 && cmd.OnConflict != interlock.Wait && cmd.OnConflict != interlock.Preempt:
		d.fail("field wait_ms: only a request with on_conflict wait or preempt waits: leave one of the two out")
	}
	return min(wait, interlock.MaxLongPoll)
}

func tooManyClaims() *interlock.Error {
	return &interlock.Error{
		Code:    interlock.CodeTooManyClaims,
		Message: fmt.Sprintf("more than %d claims: claim a common ancestor of the keys instead", interlock.MaxClaims),
	}
}

var claimFields = []string{"key", "mode", "permits"}

func (d *jsonIn) claim() (c interlock.Claim) {
	d.object(claimFields, func(field int) {
		switch claimFields[field] {
		case "key":
			c.Key = interlock.Key(d.str())
		case "mode":
			c.Mode = d.mode()
		case "permits":
			d.unsupported("permits", "claim the key in a mode instead")
		}
	})
	return c
}

func (d *jsonIn) mode() interlock.Mode {
	name := d.str()
	m, ok := interlock.ParseMode(name)
	if !ok && d.err == nil {
		d.err = &interlock.Error{Code: interlock.CodeInvalidMode, Message: fmt.Sprintf(
			"field %s: no mode %q: use exclusive, shared, intent-exclusive or intent-shared", d.path, clipped(name),
		)}
	}
	return m
}

func (d *jsonIn) onConflict() interlock.OnConflict {
	name := d.str()
	c, ok := interlock.ParseOnConflict(name)
	if !ok && d.err == nil {
		d.fail("field %s: want wait, fail, skip or preempt, found %q", d.path, clipped(name))
	}
	return c
}

func (d *jsonIn) unsupported(what, instead string) {
	if d.err == nil {
		d.err = &interlock.Error{
			Code:    interlock.CodeUnsupported,
			Message: what + " is not part of this version: " + instead,
		}
	}
}

// ms reads a duration. What is too long for a duration becomes the longest one,
// which is above every limit, so that the engine's refusal names the limit.
func (d *jsonIn) ms() time.Duration {
	v := d.int()
	switch {
	case v < 0:
		if d.err == nil {
			d.err = &interlock.Error{Code: interlock.CodeInvalidTTL, Message: fmt.Sprintf("field %s: a duration is not negative", d.path)}
		}
		return 0
	case v > math.MaxInt64/int64(time.Millisecond):
		return math.MaxInt64
	}
	return time.Duration(v) * time.Millisecond
}

func (d *jsonIn) priority() int {
	v := d.int()
	if (v < -interlock.MaxPriority || v > interlock.MaxPriority) && d.err == nil {
		d.err = &interlock.Error{Code: interlock.CodeInvalidPriority, Message: fmt.Sprintf(
			"field %s: a priority is from %d to %d", d.path, -interlock.MaxPriority, interlock.MaxPriority,
		)}
	}
	return int(v)
}

func (d *jsonIn) sessionID() interlock.SessionID {
	id, err := interlock.ParseSessionID(d.str())
	// The id of zeros means "no session" further in.
	if (err != nil || id.IsZero()) && d.err == nil {
		d.err = badID("session", "s_")
	}
	return id
}

// fence reads a decimal string.
func (d *jsonIn) fence() interlock.Fence {
	if d.i < len(d.b) && (d.b[d.i] >= '0' && d.b[d.i] <= '9') {
		d.fail("field %s: a fence is a decimal string, such as \"17\": a JSON number loses precision above 2^53", d.path)
		return 0
	}
	text := d.str()
	v, err := parseDecimal(text)
	if err != nil && d.err == nil {
		d.fail("field %s: want a decimal string such as \"17\", found %q", d.path, clipped(text))
	}
	return interlock.Fence(v)
}

// parseDecimal takes exactly what the counters are written as: no sign, no
// leading zero.
func parseDecimal(s string) (uint64, error) {
	v, err := strconv.ParseUint(s, 10, 64)
	if err == nil && strconv.FormatUint(v, 10) != s {
		err = strconv.ErrSyntax
	}
	return v, err
}

// progress reads a text, or any JSON object, which is kept as its text.
func (d *jsonIn) progress() string {
	if d.i < len(d.b) && d.b[d.i] == '{' {
		return string(d.any(1))
	}
	return d.str()
}

var releaseFields = []string{"outcome", "note"}

func decodeRelease(d *jsonIn, cmd *engine.Release) {
	d.object(releaseFields, func(field int) {
		switch releaseFields[field] {
		case "outcome":
			cmd.Outcome = d.str()
		case "note":
			cmd.Note = d.str()
		}
	})
}

var progressFields = []string{"progress"}

func decodeProgress(d *jsonIn, progress *string) {
	d.object(progressFields, func(int) { *progress = d.progress() })
}

var sessionFields = []string{"agent", "ttl_ms"}

func decodeOpenSession(d *jsonIn, cmd *engine.OpenSession) {
	d.object(sessionFields, func(field int) {
		switch sessionFields[field] {
		case "agent":
			cmd.Agent = d.str()
		case "ttl_ms":
			cmd.TTL = d.ms()
		}
	})
}

var fenceFields = []string{"key", "fence"}

func decodeCheckFence(d *jsonIn, cmd *engine.CheckFence) {
	d.object(fenceFields, func(field int) {
		switch fenceFields[field] {
		case "key":
			cmd.Key = interlock.Key(d.str())
		case "fence":
			cmd.Fence = d.fence()
		}
	})
	d.required(cmd.Key, cmd.Fence)
}

var revokeFields = []string{"key", "fence", "reason"}

func decodeRevoke(d *jsonIn, cmd *engine.Revoke) {
	d.object(revokeFields, func(field int) {
		switch revokeFields[field] {
		case "key":
			cmd.Key = interlock.Key(d.str())
		case "fence":
			cmd.Fence = d.fence()
		case "reason":
			cmd.Reason = d.str()
		}
	})
	d.required(cmd.Key, cmd.Fence)
}

func (d *jsonIn) required(key interlock.Key, fence interlock.Fence) {
	switch {
	case d.err != nil:
	case key == "":
		d.fail("field key is missing")
	case fence == 0:
		d.fail("field fence is missing, or 0, which no lease has")
	}
}
