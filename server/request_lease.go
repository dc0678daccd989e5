package server

import (
	"fmt"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// decodeAcquire reads the body of POST /v1/leases. wait is how long the caller
// wants to wait within the call.
func decodeAcquire(d *jsonIn, cmd *engine.Acquire) (wait time.Duration) {
	has := d.acquireRequest(cmd, &wait)
	switch {
	case d.err != nil:
		return 0
	case has&(acquireHasClaims|acquireHasPrefix) == 0:
		d.fail("field claims is missing: name the keys to claim, such as {\"claims\": [{\"key\": \"account:12345\"}]}")
	case has&acquireHasPrefix != 0 && has&(acquireHasClaims|acquireHasAny) != 0:
		d.fail("field any_prefix covers all keys of a pool: omit claims and any")
	case has&acquireHasPrefix != 0 && cmd.Prefix == "":
		d.fail("field any_prefix is empty: use the common prefix of the pool's keys, such as gpu:")
	case !cmd.Any && len(cmd.Claims) > interlock.MaxClaims:
		d.err = tooManyClaims()
	case has&acquireHasDivision != 0 && !hasMode(cmd.Claims, interlock.Member):
		d.fail(
			"field divide: only a claim with parts can be divided: claim {\"key\": \"queue:orders\", \"parts\": 16}, or " +
				"omit divide",
		)
	}
	cmd.Any = cmd.Any || cmd.Prefix != ""
	return d.settle(&cmd.OnConflict, wait, has, acquireHasWait, acquireHasOnConflict)
}

func hasMode(claims []interlock.Claim, m interlock.Mode) bool {
	for i := range claims {
		if claims[i].Mode == m {
			return true
		}
	}
	return false
}

func tooManyClaims() *interlock.Error {
	return &interlock.Error{
		Code:    interlock.CodeTooManyClaims,
		Message: fmt.Sprintf("more than %d claims: claim a common ancestor of the keys instead", interlock.MaxClaims),
	}
}

func tooManyAlternatives() *interlock.Error {
	return &interlock.Error{
		Code: interlock.CodeTooManyClaims,
		Message: fmt.Sprintf(
			"more than %d alternatives: list the keys as members of a pattern and use any_prefix instead",
			interlock.MaxAlternatives,
		),
	}
}

// settle checks the fields of a body about a conflict, and returns how long it waits within the call.
// A body with a time to wait, and without on_conflict, waits. has are the fields of the body; waitMS and
// onConflict are two of them.
func (d *jsonIn) settle(c *interlock.OnConflict, wait time.Duration, has, waitMS, onConflict given) time.Duration {
	switch {
	case d.err != nil:
	case has&(waitMS|onConflict) == waitMS:
		*c = interlock.Wait
	case wait > 0 && *c != interlock.Wait && *c != interlock.Preempt:
		d.fail("field wait_ms needs on_conflict wait or preempt: omit one of the two")
	}
	return min(wait, interlock.MaxLongPoll)
}

// settleHeld is settle for a caller that has a lease already and cannot skip.
func (d *jsonIn) settleHeld(c *interlock.OnConflict, wait time.Duration, has, waitMS, onConflict given) time.Duration {
	if *c == interlock.Skip {
		d.fail("field on_conflict: skip is not allowed for a lease that you hold: want wait, fail or preempt")
	}
	return d.settle(c, wait, has, waitMS, onConflict)
}

func (d *jsonIn) claims(limit int) (claims []interlock.Claim) {
	tooMany := tooManyClaims
	if limit > interlock.MaxClaims {
		tooMany = tooManyAlternatives
	}
	d.array(limit, tooMany, func() { claims = append(claims, d.claim()) })
	return claims
}

var claimFields = []string{"key", "mode", "permits", "parties", "parts"}

// counts are the fields of a claim that count. Each makes its mode.
var counts = map[string]struct {
	mode interlock.Mode
	most int64
}{
	"permits": {interlock.Permits, interlock.MaxCount},
	"parties": {interlock.Barrier, interlock.MaxParties},
	"parts":   {interlock.Member, interlock.MaxParts},
}

// countField is the name of the field that goes with a mode that counts.
func countField(m interlock.Mode) string {
	switch m {
	case interlock.Permits:
		return "permits"
	case interlock.Barrier:
		return "parties"
	case interlock.Member:
		return "parts"
	}
	return ""
}

// claim reads a key with a mode, or with a count, which makes the mode. Both may
// stand together, as they do in answers, when they say the same.
func (d *jsonIn) claim() (c interlock.Claim) {
	var mode interlock.Mode
	var counted string
	d.object(claimFields, func(field int) {
		switch name := claimFields[field]; name {
		case "key":
			c.Key = interlock.Key(d.str())
		case "mode":
			mode = d.mode()
		default:
			if counted != "" {
				d.fail("field %s: a claim has %s or %s, not both", d.path, counted, name)
			}
			counted = name
			c.Mode, c.Count = counts[name].mode, uint32(d.whole(1, counts[name].most))
		}
	})
	switch {
	case d.err != nil:
	case counted == "" && mode.Counts():
		d.fail("field %s.mode: mode %s needs a number: add the field %s to the claim", d.path, mode, countField(mode))
	case counted == "":
		c.Mode = mode
	case mode != 0 && mode != c.Mode:
		d.fail("field %s: a claim has a mode or %s, not both: omit one", d.path, counted)
	}
	return c
}

// modeNames are the modes without a count, for messages.
const modeNames = "exclusive, shared, intent-exclusive, intent-shared or shared+intent-exclusive"

func (d *jsonIn) mode() interlock.Mode {
	name := d.str()
	m, ok := interlock.ParseMode(name)
	if !ok && d.err == nil {
		d.err = &interlock.Error{Code: interlock.CodeInvalidMode, Message: fmt.Sprintf(
			"field %s: no mode %q: use %s", d.path, clipped(name), modeNames,
		)}
	}
	return m
}

// grace reads a grace period. 0 asks for none, which is not the same as to leave it out.
func (d *jsonIn) grace() time.Duration {
	if grace := d.ms(); grace != 0 {
		return grace
	}
	return engine.NoGrace
}

func decodeConvert(d *jsonIn, cmd *engine.Convert) (wait time.Duration) {
	has := d.convertRequest(cmd, &wait)
	if has&convertHasClaims == 0 {
		d.fail("field claims is missing: name all claims of the converted lease, including the unchanged ones")
	}
	return d.settleHeld(&cmd.OnConflict, wait, has, convertHasWait, convertHasOnConflict)
}

func decodeArrive(d *jsonIn, cmd *engine.Arrive) (wait time.Duration) {
	d.arriveRequest(cmd, &wait)
	return min(wait, interlock.MaxLongPoll)
}

func decodePark(d *jsonIn, cmd *engine.Park) {
	var keys string
	d.parkRequest(cmd, &keys)
	cmd.Free, cmd.Keep = keys == "free", keys == "keep"
}

func decodeResume(d *jsonIn, cmd *engine.Resume) (wait time.Duration) {
	has := d.resumeRequest(cmd, &wait)
	return d.settleHeld(&cmd.OnConflict, wait, has, resumeHasWait, resumeHasOnConflict)
}

func decodeDeclare(d *jsonIn, cmd *engine.Declare) (wait time.Duration) {
	d.declareRequest(cmd, &wait)
	switch {
	case strings.HasPrefix(cmd.On.Session, "s_"):
		d.fail(
			"field on.session: want the public name of a session, as holders and waits show it; the id is the owner's secret",
		)
	case cmd.On.Session == "" && cmd.On.Agent == "":
		d.fail(
			"field on is missing or empty: name the target of the wait, such as {\"on\": {\"agent\": \"support-2\"}}",
		)
	}
	return min(wait, interlock.MaxLongPoll)
}
