package server

import (
	"fmt"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

var acquireFields = []string{
	"agent", "session", "flow", "purpose", "claims", "any", "any_prefix", "group", "divide", "ttl_ms", "grace_ms", "max_hold_ms",
	"stall_ms", "lock_delay_ms", "max_wait_ms", "priority", "as_of", "documents", "wait_ms", "on_conflict",
}

// decodeAcquire reads the body of POST /v1/leases. wait is how long the caller
// wants to wait within the call.
func decodeAcquire(d *jsonIn, cmd *engine.Acquire) (wait time.Duration) {
	var p patience
	var claimsGiven, anyGiven, prefixGiven, divideGiven bool
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
			cmd.Claims = d.claims(interlock.MaxAlternatives)
		case "any":
			anyGiven = true
			cmd.Any = d.yes()
		case "any_prefix":
			prefixGiven = true
			cmd.Prefix = d.str()
		case "group":
			cmd.Group = d.str()
		case "divide":
			divideGiven = true
			cmd.Division = named(d, "hash, range or load", interlock.ParseDivision)
		case "ttl_ms":
			cmd.TTL = d.ms()
		case "grace_ms":
			if cmd.Grace = d.ms(); cmd.Grace == 0 {
				cmd.Grace = engine.NoGrace
			}
		case "max_hold_ms":
			cmd.MaxHold = d.ms()
		case "stall_ms":
			cmd.Stall = d.ms()
		case "lock_delay_ms":
			cmd.LockDelay = d.ms()
		case "max_wait_ms":
			cmd.MaxWait = d.ms()
		case "priority":
			cmd.Priority = d.priority()
		case "as_of":
			cmd.AsOf = d.version()
		case "documents":
			cmd.Documents = d.yes()
		case "wait_ms":
			p.readWait(d)
		case "on_conflict":
			p.readConflict(d)
		}
	})
	switch {
	case d.err != nil:
		return 0
	case !claimsGiven && !prefixGiven:
		d.fail("field claims is missing: name what is wanted, such as {\"claims\": [{\"key\": \"account:12345\"}]}")
	case prefixGiven && (claimsGiven || anyGiven):
		d.fail("field any_prefix stands for all keys of a pool: leave claims and any out")
	case prefixGiven && cmd.Prefix == "":
		d.fail("field any_prefix is empty: name the beginning of the pool's keys, such as gpu:")
	case !cmd.Any && len(cmd.Claims) > interlock.MaxClaims:
		d.err = tooManyClaims()
	case divideGiven && !hasMode(cmd.Claims, interlock.Member):
		d.fail("field divide: only a claim with parts is divided: claim {\"key\": \"queue:orders\", \"parts\": 16}, or leave divide out")
	}
	cmd.Any = cmd.Any || prefixGiven
	cmd.OnConflict, wait = p.settle(d)
	return wait
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
		Code:    interlock.CodeTooManyClaims,
		Message: fmt.Sprintf("more than %d alternatives: list the keys as members of a pattern and ask by any_prefix instead", interlock.MaxAlternatives),
	}
}

// patience is the part of a body about a conflict: what to do, and how long to wait within the
// call.
type patience struct {
	onConflict               interlock.OnConflict
	wait                     time.Duration
	conflictGiven, waitGiven bool
}

func (p *patience) readWait(d *jsonIn) { p.wait, p.waitGiven = d.ms(), true }

func (p *patience) readConflict(d *jsonIn) {
	p.onConflict = named(d, "wait, fail, skip or preempt", interlock.ParseOnConflict)
	p.conflictGiven = true
}

// settle returns what is meant: a body with a time to wait, and nothing else, waits.
func (p *patience) settle(d *jsonIn) (interlock.OnConflict, time.Duration) {
	switch {
	case d.err != nil:
	case p.waitGiven && !p.conflictGiven:
		p.onConflict = interlock.Wait
	case p.wait > 0 && p.onConflict != interlock.Wait && p.onConflict != interlock.Preempt:
		d.fail("field wait_ms: only a request with on_conflict wait or preempt waits: leave one of the two out")
	}
	return p.onConflict, min(p.wait, interlock.MaxLongPoll)
}

// settleHeld is settle for a caller that has a lease already and cannot skip.
func (p *patience) settleHeld(d *jsonIn) (interlock.OnConflict, time.Duration) {
	if p.onConflict == interlock.Skip {
		d.fail("field on_conflict: what concerns a lease of one's own is not skipped: want wait, fail or preempt")
	}
	return p.settle(d)
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
		d.fail("field %s.mode: mode %s comes with a number: give the claim the field %s", d.path, mode, countField(mode))
	case counted == "":
		c.Mode = mode
	case mode != 0 && mode != c.Mode:
		d.fail("field %s: a claim has a mode or %s, not both: leave one of them out", d.path, counted)
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

var convertFields = []string{"claims", "wait_ms", "on_conflict", "max_wait_ms"}

func decodeConvert(d *jsonIn, cmd *engine.Convert) (wait time.Duration) {
	var p patience
	var claimsGiven bool
	d.object(convertFields, func(field int) {
		switch convertFields[field] {
		case "claims":
			claimsGiven = true
			cmd.Claims = d.claims(interlock.MaxClaims)
		case "wait_ms":
			p.readWait(d)
		case "on_conflict":
			p.readConflict(d)
		case "max_wait_ms":
			cmd.MaxWait = d.ms()
		}
	})
	if !claimsGiven {
		d.fail("field claims is missing: name all that the lease is to claim afterwards, what it keeps included")
	}
	cmd.OnConflict, wait = p.settleHeld(d)
	return wait
}

var arriveFields = []string{"wait_ms", "max_wait_ms"}

func decodeArrive(d *jsonIn, cmd *engine.Arrive) (wait time.Duration) {
	d.object(arriveFields, func(field int) {
		switch arriveFields[field] {
		case "wait_ms":
			wait = d.ms()
		case "max_wait_ms":
			cmd.MaxWait = d.ms()
		}
	})
	return min(wait, interlock.MaxLongPoll)
}

var parkFields = []string{"keys", "for_ms", "reason"}

func decodePark(d *jsonIn, cmd *engine.Park) {
	d.object(parkFields, func(field int) {
		switch parkFields[field] {
		case "keys":
			cmd.Free = named(d, "keep or free", parseParkedKeys)
			cmd.Keep = !cmd.Free
		case "for_ms":
			cmd.For = d.ms()
		case "reason":
			cmd.Reason = d.str()
		}
	})
}

// parseParkedKeys reads what becomes of the keys of a lease that is parked.
func parseParkedKeys(name string) (freed, ok bool) {
	return name == "free", name == "free" || name == "keep"
}

var resumeFields = []string{"session", "flow", "wait_ms", "on_conflict", "max_wait_ms", "unapproved"}

func decodeResume(d *jsonIn, cmd *engine.Resume) (wait time.Duration) {
	var p patience
	d.object(resumeFields, func(field int) {
		switch resumeFields[field] {
		case "session":
			cmd.Session = d.sessionID()
		case "flow":
			cmd.Flow = d.str()
		case "wait_ms":
			p.readWait(d)
		case "on_conflict":
			p.readConflict(d)
		case "max_wait_ms":
			cmd.MaxWait = d.ms()
		case "unapproved":
			cmd.Unapproved = d.yes()
		}
	})
	cmd.OnConflict, wait = p.settleHeld(d)
	return wait
}

var (
	declareFields = []string{"session", "flow", "agent", "purpose", "on", "wait_ms", "max_wait_ms"}
	partyFields   = []string{"session", "flow", "agent"}
)

func decodeDeclare(d *jsonIn, cmd *engine.Declare) (wait time.Duration) {
	d.object(declareFields, func(field int) {
		switch declareFields[field] {
		case "session":
			cmd.Session = d.sessionID()
		case "flow":
			cmd.Flow = d.str()
		case "agent":
			cmd.Agent = d.str()
		case "purpose":
			cmd.Purpose = d.str()
		case "on":
			cmd.On = d.party()
		case "wait_ms":
			wait = d.ms()
		case "max_wait_ms":
			cmd.MaxWait = d.ms()
		}
	})
	if cmd.On.Session == "" && cmd.On.Agent == "" {
		d.fail("field on is missing, or names nobody: name whom the wait is for, such as {\"on\": {\"agent\": \"support-2\"}}")
	}
	return min(wait, interlock.MaxLongPoll)
}

// party reads the named party, by public names.
func (d *jsonIn) party() (p engine.Party) {
	d.object(partyFields, func(field int) {
		switch partyFields[field] {
		case "session":
			if p.Session = d.str(); strings.HasPrefix(p.Session, "s_") {
				d.fail("field %s: want the public name of a session, as holders and waits show it; an id is its owner's secret", d.path)
			}
		case "flow":
			p.Flow = d.str()
		case "agent":
			p.Agent = d.str()
		}
	})
	return p
}
