package engine

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
)

// The form of commands: errors that do not depend on the state. These functions know no state.
// task_form.go and commit_form.go are the same for tasks and commits.

// checkAcquire normalises c and returns the code and the description of its first error, or "".
func checkAcquire(c *Acquire) (interlock.Code, *message.Text) {
	if code, problem := checkSize(c); code != "" {
		return code, problem
	}
	c.Any = c.Any && len(c.Claims) > 1 // one alternative is an ordinary claim
	if problem := checkNamespace(c.Namespace); problem != nil {
		return interlock.CodeInvalidNamespace, problem
	}
	if code, problem := checkForm(c.Claims); code != "" {
		return code, problem
	}
	if c.Priority < -interlock.MaxPriority || c.Priority > interlock.MaxPriority {
		return interlock.CodeInvalidPriority, message.New(
			message.NotBetween, message.Str("priority"), message.Num(c.Priority), message.Num(-interlock.MaxPriority),
			message.Num(interlock.MaxPriority),
		)
	}
	if c.MaxPosition < 0 {
		return interlock.CodeInvalidRequest, message.New(
			message.NotBetween, message.Str("max_position"), message.Num(c.MaxPosition), message.Num(0),
			message.Num(interlock.MaxWaitersPerKey),
		)
	}
	if code, problem := store.CheckTexts(
		store.Text{Name: "agent", Value: c.Agent, Limit: interlock.MaxNameBytes},
		store.Text{Name: "flow", Value: c.Flow, Limit: interlock.MaxNameBytes},
		store.Text{Name: "purpose", Value: c.Purpose, Limit: interlock.MaxPurposeBytes},
		store.Text{Name: "trace", Value: c.Trace, Limit: interlock.MaxNameBytes},
		store.Text{Name: "group", Value: c.Group, Limit: interlock.MaxNameBytes},
	); code != "" {
		return code, problem
	}
	return checkTimes(c)
}

func checkRenew(c *Renew) (interlock.Code, *message.Text) {
	if code, problem := checkTTL(c.TTL); code != "" {
		return code, problem
	}
	return store.CheckTexts(store.Text{Name: "progress", Value: c.Progress, Limit: interlock.MaxProgressBytes})
}

// checkTTL checks the ttl of a lease or a session, where 0 is none.
func checkTTL(ttl time.Duration) (interlock.Code, *message.Text) {
	if ttl != 0 && (ttl < interlock.MinTTL || ttl > interlock.MaxTTL) {
		return interlock.CodeInvalidTTL, message.New(
			message.NotBetween, message.Str("ttl"), message.Dur(ttl), message.Dur(interlock.MinTTL),
			message.Dur(interlock.MaxTTL),
		)
	}
	return "", nil
}

// checkSize returns the code and the description of an error in the size of c, or "".
func checkSize(c *Acquire) (interlock.Code, *message.Text) {
	n := len(c.Claims)
	if !c.Any {
		if n == 0 || n > interlock.MaxClaims {
			return interlock.CodeTooManyClaims, message.New(message.ClaimCount, message.Num(n), message.Num(interlock.MaxClaims))
		}
		return "", nil
	}
	if n == 0 || n > interlock.MaxAlternatives {
		return interlock.CodeTooManyClaims, message.New(
			message.AlternativeCount, message.Num(n), message.Num(interlock.MaxAlternatives),
		)
	}
	bytes := 0
	for i := range c.Claims {
		if m := c.Claims[i].Mode; m > interlock.Permits {
			return interlock.CodeInvalidMode, message.New(
				message.AlternativeMode, message.Num(i+1), message.Str(c.Claims[i].Key), message.Str(m.String()),
			)
		}
		bytes += len(c.Claims[i].Key)
	}
	if bytes > maxAnyBytes {
		return interlock.CodeTooManyClaims, message.New(
			message.AlternativesTooLong, message.Num(bytes), message.Num(maxAnyBytes),
		)
	}
	return "", nil
}

// checkForm returns a code and a description of the first error in the form of claims, or "". A claim
// without a mode has it from its key's pattern later: see store.Policy.Complete.
func checkForm(claims []interlock.Claim) (interlock.Code, *message.Text) {
	for i := range claims {
		claim := &claims[i]
		if problem := keypath.Problem(string(claim.Key)); problem != nil {
			return interlock.CodeInvalidKey, message.New(
				message.InvalidKey, message.Str(keypath.Clip(string(claim.Key), 64)), message.Sub(problem),
			)
		}
		if claim.Mode > interlock.Member {
			return interlock.CodeInvalidMode, message.New(
				message.UnknownMode, message.Num(i+1), message.Str(claim.Key), message.Num(claim.Mode),
			)
		}
		if claim.Mode.Counts() != (claim.Count > 0) || claim.Count > interlock.MaxCount {
			return interlock.CodeInvalidRequest, message.New(
				message.ModeWithCount, message.Num(i+1), message.Str(claim.Key), message.Str(claim.Mode.String()),
				message.Num(claim.Count), message.Num(interlock.MaxCount),
			)
		}
	}
	if code, problem := checkBarrier(claims); code != "" {
		return code, problem
	}
	if code, problem := checkMember(claims); code != "" {
		return code, problem
	}
	if key, twice := duplicate(claims); twice {
		return interlock.CodeDuplicateClaim, message.New(message.ClaimedTwice, message.Str(key))
	}
	return "", nil
}

// checkBarrier returns the code and the description of an error in the barriers of a request,
// or "".
func checkBarrier(claims []interlock.Claim) (interlock.Code, *message.Text) {
	for i, c := range claims {
		switch {
		case c.Mode != interlock.Barrier:
		case len(claims) > 1:
			return interlock.CodeInvalidRequest, message.New(message.BarrierNotAlone, message.Num(i+1), message.Str(c.Key))
		case c.Count < 2 || c.Count > interlock.MaxParties:
			return interlock.CodeInvalidRequest, message.New(
				message.BarrierParties, message.Num(c.Count), message.Num(interlock.MaxParties),
			)
		}
	}
	return "", nil
}

// checkMember returns the code and the description of an error in a claim of membership, or "".
func checkMember(claims []interlock.Claim) (interlock.Code, *message.Text) {
	for i, c := range claims {
		switch {
		case c.Mode != interlock.Member:
		case len(claims) > 1:
			return interlock.CodeInvalidRequest, message.New(message.MembershipNotAlone, message.Num(i+1), message.Str(c.Key))
		case c.Count < 1 || c.Count > interlock.MaxParts:
			return interlock.CodeInvalidRequest, message.New(
				message.PartCount, message.Num(c.Count), message.Str(c.Key), message.Num(interlock.MaxParts),
			)
		default:
			last := string(c.Key) + "/" + strconv.Itoa(int(c.Count-1))
			if problem := keypath.Problem(last); problem != nil {
				return interlock.CodeInvalidKey, message.New(
					message.InvalidPart, message.Str(keypath.Clip(last, 64)), message.Sub(problem),
				)
			}
		}
	}
	return "", nil
}

// duplicate returns a key that is claimed twice, if there is one.
func duplicate(claims []interlock.Claim) (key interlock.Key, twice bool) {
	if len(claims) == 1 {
		return "", false
	}
	seen := make(map[interlock.Key]bool, len(claims))
	for _, c := range claims {
		if seen[c.Key] {
			return c.Key, true
		}
		seen[c.Key] = true
	}
	return "", false
}

func badKey(claims []interlock.Claim) interlock.Key {
	for _, claim := range claims {
		if keypath.Problem(string(claim.Key)) != nil {
			return interlock.Key(keypath.Clip(string(claim.Key), 64))
		}
	}
	return ""
}

func checkTimes(c *Acquire) (interlock.Code, *message.Text) {
	if code, problem := checkTTL(c.TTL); code != "" {
		return code, problem
	}
	switch {
	case c.Grace != NoGrace && (c.Grace < 0 || c.Grace > interlock.MaxGrace):
		return interlock.CodeInvalidTTL, message.New(
			message.NotUpTo, message.Str("grace"), message.Dur(c.Grace), message.Dur(interlock.MaxGrace),
		)
	case c.MaxHold < 0 || c.MaxHold > interlock.MaxMaxHold:
		return interlock.CodeInvalidTTL, message.New(
			message.NotUpTo, message.Str("max_hold"), message.Dur(c.MaxHold), message.Dur(interlock.MaxMaxHold),
		)
	case c.Stall < 0 || c.Stall > interlock.MaxStall:
		return interlock.CodeInvalidTTL, message.New(
			message.NotUpTo, message.Str("stall"), message.Dur(c.Stall), message.Dur(interlock.MaxStall),
		)
	case c.LockDelay < 0 || c.LockDelay > interlock.MaxLockDelay:
		return interlock.CodeInvalidTTL, message.New(
			message.NotUpTo, message.Str("lock_delay"), message.Dur(c.LockDelay), message.Dur(interlock.MaxLockDelay),
		)
	case c.MaxWait < 0 || c.MaxWait > interlock.MaxMaxWait:
		return interlock.CodeInvalidTTL, message.New(
			message.NotUpTo, message.Str("max_wait"), message.Dur(c.MaxWait), message.Dur(interlock.MaxMaxWait),
		)
	}
	return "", nil
}

func checkMaxWait(d time.Duration) (interlock.Code, *message.Text) {
	if d < 0 || d > interlock.MaxMaxWait {
		return interlock.CodeInvalidTTL, message.New(
			message.NotUpTo, message.Str("max_wait"), message.Dur(d), message.Dur(interlock.MaxMaxWait),
		)
	}
	return "", nil
}

// checkConvert normalises c and returns the code and the description of its first error, or "".
func checkConvert(c *Convert) (interlock.Code, *message.Text) {
	if n := len(c.Claims); n == 0 || n > interlock.MaxClaims {
		return interlock.CodeTooManyClaims, message.New(
			message.ConversionClaimCount, message.Num(n), message.Num(interlock.MaxClaims),
		)
	}
	if code, problem := checkForm(c.Claims); code != "" {
		return code, problem
	}
	for _, claim := range c.Claims {
		if claim.Mode.Counts() && claim.Mode != interlock.Permits {
			return interlock.CodeInvalidMode, message.New(
				message.ConversionMode, message.Str(claim.Mode.String()), message.Str(claim.Key),
			)
		}
	}
	if c.OnConflict == interlock.Skip {
		return interlock.CodeInvalidRequest, message.New(message.ConversionSkip)
	}
	return checkMaxWait(c.MaxWait)
}

func checkDeclare(c *Declare) (interlock.Code, *message.Text) {
	if problem := checkNamespace(c.Namespace); problem != nil {
		return interlock.CodeInvalidNamespace, problem
	}
	if c.On.Session == "" && c.On.Agent == "" {
		return interlock.CodeInvalidRequest, message.New(message.WaitForWhom)
	}
	if code, problem := store.CheckTexts(
		store.Text{Name: "agent", Value: c.Agent, Limit: interlock.MaxNameBytes},
		store.Text{Name: "flow", Value: c.Flow, Limit: interlock.MaxNameBytes},
		store.Text{Name: "purpose", Value: c.Purpose, Limit: interlock.MaxPurposeBytes},
		store.Text{Name: "session to wait for", Value: c.On.Session, Limit: interlock.MaxNameBytes},
		store.Text{Name: "agent to wait for", Value: c.On.Agent, Limit: interlock.MaxNameBytes},
		store.Text{Name: "flow to wait for", Value: c.On.Flow, Limit: interlock.MaxNameBytes},
	); code != "" {
		return code, problem
	}
	return checkMaxWait(c.MaxWait)
}

func checkPark(c *Park) (interlock.Code, *message.Text) {
	switch {
	case c.Free && c.Keep:
		return interlock.CodeInvalidRequest, message.New(message.KeepOrFree)
	case c.For < 0 || c.For > interlock.MaxPark:
		return interlock.CodeInvalidTTL, message.New(message.ParkTooLong, message.Dur(interlock.MaxPark), message.Dur(c.For))
	}
	return store.CheckTexts(store.Text{Name: "reason", Value: c.Reason, Limit: interlock.MaxReasonBytes})
}

func checkClaimEffect(c *ClaimEffect) (interlock.Code, *message.Text) {
	if problem := checkNamespace(c.Namespace); problem != nil {
		return interlock.CodeInvalidNamespace, problem
	}
	switch {
	case c.Action == "":
		return interlock.CodeInvalidRequest, message.New(message.EffectWithoutAction)
	case c.TTL < 0 || c.TTL > interlock.MaxEffectTTL:
		return interlock.CodeInvalidTTL, message.New(
			message.NotUpTo, message.Str("ttl"), message.Dur(c.TTL), message.Dur(time.Duration(interlock.MaxEffectTTL)),
		)
	}
	return store.CheckTexts(
		store.Text{Name: "action", Value: c.Action, Limit: interlock.MaxActionBytes},
		store.Text{Name: "agent", Value: c.Agent, Limit: interlock.MaxNameBytes},
		store.Text{Name: "flow", Value: c.Flow, Limit: interlock.MaxNameBytes},
	)
}

func checkSettleEffect(c *SettleEffect) (interlock.Code, *message.Text) {
	byID, byDigest := !c.ID.IsZero(), c.Digest != [32]byte{}
	var problem *message.Text
	switch {
	case byID == byDigest:
		problem = message.New(message.EffectNamedHow)
	case c.State == interlock.EffectClaimed || c.State > interlock.EffectUnknown:
		problem = message.New(message.EffectSettledAs)
	case byDigest && c.State == interlock.EffectUnknown:
		problem = message.New(message.EffectUnknownAlready)
	case c.Result != "" && c.State != interlock.EffectDone:
		problem = message.New(message.ResultOfUndone)
	case c.Result != "" && !json.Valid([]byte(c.Result)):
		problem = message.New(message.ResultNotJSON)
	}
	if problem != nil {
		return interlock.CodeInvalidRequest, problem
	}
	return store.CheckTexts(
		store.Text{Name: "result", Value: c.Result, Limit: interlock.MaxResultBytes},
		store.Text{Name: "reason", Value: c.Reason, Limit: interlock.MaxReasonBytes},
	)
}

func checkNamespace(ns interlock.Namespace) *message.Text {
	if ns == "" || len(ns) > interlock.MaxNamespaceBytes {
		return message.New(
			message.NamespaceLength, message.Str(keypath.Clip(string(ns), 64)), message.Num(interlock.MaxNamespaceBytes),
		)
	}
	for _, b := range []byte(ns) {
		if b <= ' ' || b >= 0x7f || b == '/' {
			return message.New(message.NamespaceCharacters, message.Str(keypath.Clip(string(ns), 64)))
		}
	}
	return nil
}

// maxAnyBytes bounds the keys of alternatives together, because events list them.
const maxAnyBytes = 64 << 10
