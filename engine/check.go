package engine

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
)

// The form of commands: errors that do not depend on the state. These functions know no state.
// task_form.go and commit_form.go are the same for tasks and commits.

// refusal is the reason why claims are not admitted, regardless of their holders.
type refusal struct {
	code    interlock.Code
	message string
	key     interlock.Key
	nearest []string

	conflict *Conflict // the blockers; nil if only key and nearest are reported
}

// checkAcquire normalises c and returns the code and the description of its first error, or "".
func checkAcquire(c *Acquire) (interlock.Code, string) {
	if code, problem := checkSize(c); code != "" {
		return code, problem
	}
	c.Any = c.Any && len(c.Claims) > 1 // one alternative is an ordinary claim
	if problem := checkNamespace(c.Namespace); problem != "" {
		return interlock.CodeInvalidNamespace, problem
	}
	if code, problem := checkForm(c.Claims); code != "" {
		return code, problem
	}
	if c.Priority < -interlock.MaxPriority || c.Priority > interlock.MaxPriority {
		return interlock.CodeInvalidPriority, fmt.Sprintf("priority %d is not between -%d and %d", c.Priority, interlock.MaxPriority, interlock.MaxPriority)
	}
	if code, problem := checkTexts(
		text{"agent", c.Agent, interlock.MaxNameBytes}, text{"flow", c.Flow, interlock.MaxNameBytes},
		text{"purpose", c.Purpose, interlock.MaxPurposeBytes}, text{"trace", c.Trace, interlock.MaxNameBytes},
		text{"group", c.Group, interlock.MaxNameBytes},
	); code != "" {
		return code, problem
	}
	return checkTimes(c)
}

// checkSize returns the code and the description of an error in the size of c, or "".
func checkSize(c *Acquire) (interlock.Code, string) {
	n := len(c.Claims)
	if !c.Any {
		if n == 0 || n > interlock.MaxClaims {
			return interlock.CodeTooManyClaims, fmt.Sprintf("%d claims: a request has 1 to %d", n, interlock.MaxClaims)
		}
		return "", ""
	}
	if n == 0 || n > interlock.MaxAlternatives {
		return interlock.CodeTooManyClaims, fmt.Sprintf("%d alternatives: a request for any one of several has 1 to %d", n, interlock.MaxAlternatives)
	}
	bytes := 0
	for i := range c.Claims {
		if m := c.Claims[i].Mode; m > interlock.Permits {
			return interlock.CodeInvalidMode, fmt.Sprintf("claim %d on %s is of mode %s, which is never one of several alternatives", i+1, c.Claims[i].Key, m)
		}
		bytes += len(c.Claims[i].Key)
	}
	if bytes > maxAnyBytes {
		return interlock.CodeTooManyClaims, fmt.Sprintf("the keys of the alternatives have %d bytes together: at most %d", bytes, maxAnyBytes)
	}
	return "", ""
}

// checkForm normalises claims and returns a code and a description of the first error in their
// form, or "".
func checkForm(claims []interlock.Claim) (interlock.Code, string) {
	for i := range claims {
		claim := &claims[i]
		if problem := keypath.Problem(string(claim.Key)); problem != "" {
			return interlock.CodeInvalidKey, fmt.Sprintf("key %q %s", keypath.Clip(string(claim.Key), 64), problem)
		}
		if claim.Mode == 0 {
			claim.Mode = interlock.Exclusive
		}
		if claim.Mode > interlock.Member {
			return interlock.CodeInvalidMode, fmt.Sprintf("claim %d on %s has mode %d, which does not exist", i+1, claim.Key, claim.Mode)
		}
		if claim.Mode.Counts() != (claim.Count > 0) || claim.Count > interlock.MaxCount {
			return interlock.CodeInvalidRequest, fmt.Sprintf("claim %d on %s: %s with a count of %d: from 1 to %d with permits, none with a mode", i+1, claim.Key, claim.Mode, claim.Count, interlock.MaxCount)
		}
	}
	if code, problem := checkBarrier(claims); code != "" {
		return code, problem
	}
	if code, problem := checkMember(claims); code != "" {
		return code, problem
	}
	if key, twice := duplicate(claims); twice {
		return interlock.CodeDuplicateClaim, fmt.Sprintf("key %s is claimed twice: claim it once, with the stronger mode", key)
	}
	return "", ""
}

// checkBarrier returns the code and the description of an error in the barriers of a request,
// or "".
func checkBarrier(claims []interlock.Claim) (interlock.Code, string) {
	for i, c := range claims {
		switch {
		case c.Mode != interlock.Barrier:
		case len(claims) > 1:
			return interlock.CodeInvalidRequest, fmt.Sprintf("claim %d on %s: a barrier is the only claim of its request", i+1, c.Key)
		case c.Count < 2 || c.Count > interlock.MaxParties:
			return interlock.CodeInvalidRequest, fmt.Sprintf("a barrier of %d parties: it has 2 to %d", c.Count, interlock.MaxParties)
		}
	}
	return "", ""
}

// checkMember returns the code and the description of an error in a claim of membership, or "".
func checkMember(claims []interlock.Claim) (interlock.Code, string) {
	for i, c := range claims {
		switch {
		case c.Mode != interlock.Member:
		case len(claims) > 1:
			return interlock.CodeInvalidRequest, fmt.Sprintf("claim %d on %s: a membership is the only claim of its request", i+1, c.Key)
		case c.Count < 1 || c.Count > interlock.MaxParts:
			return interlock.CodeInvalidRequest, fmt.Sprintf("%d parts of %s: a key has 1 to %d", c.Count, c.Key, interlock.MaxParts)
		default:
			last := string(c.Key) + "/" + strconv.Itoa(int(c.Count-1))
			if problem := keypath.Problem(last); problem != "" {
				return interlock.CodeInvalidKey, fmt.Sprintf("the part %q %s", keypath.Clip(last, 64), problem)
			}
		}
	}
	return "", ""
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
		if keypath.Problem(string(claim.Key)) != "" {
			return interlock.Key(keypath.Clip(string(claim.Key), 64))
		}
	}
	return ""
}

func checkTimes(c *Acquire) (interlock.Code, string) {
	switch {
	case c.TTL != 0 && (c.TTL < interlock.MinTTL || c.TTL > interlock.MaxTTL):
		return interlock.CodeInvalidTTL, fmt.Sprintf("ttl %v is not between %v and %v", c.TTL, interlock.MinTTL, interlock.MaxTTL)
	case c.Grace != NoGrace && (c.Grace < 0 || c.Grace > interlock.MaxGrace):
		return interlock.CodeInvalidTTL, fmt.Sprintf("grace %v is not between 0 and %v", c.Grace, interlock.MaxGrace)
	case c.MaxHold < 0 || c.MaxHold > interlock.MaxMaxHold:
		return interlock.CodeInvalidTTL, fmt.Sprintf("max_hold %v is not between 0 and %v", c.MaxHold, interlock.MaxMaxHold)
	case c.Stall < 0 || c.Stall > interlock.MaxStall:
		return interlock.CodeInvalidTTL, fmt.Sprintf("stall %v is not between 0 and %v", c.Stall, interlock.MaxStall)
	case c.LockDelay < 0 || c.LockDelay > interlock.MaxLockDelay:
		return interlock.CodeInvalidTTL, fmt.Sprintf("lock_delay %v is not between 0 and %v", c.LockDelay, interlock.MaxLockDelay)
	case c.MaxWait < 0 || c.MaxWait > interlock.MaxMaxWait:
		return interlock.CodeInvalidTTL, fmt.Sprintf("max_wait %v is not between 0 and %v", c.MaxWait, interlock.MaxMaxWait)
	}
	return "", ""
}

func checkMaxWait(d time.Duration) (interlock.Code, string) {
	if d < 0 || d > interlock.MaxMaxWait {
		return interlock.CodeInvalidTTL, fmt.Sprintf("max_wait %v is not between 0 and %v", d, interlock.MaxMaxWait)
	}
	return "", ""
}

// checkConvert normalises c and returns the code and the description of its first error, or "".
func checkConvert(c *Convert) (interlock.Code, string) {
	if n := len(c.Claims); n == 0 || n > interlock.MaxClaims {
		return interlock.CodeTooManyClaims, fmt.Sprintf("%d claims: a lease has 1 to %d; to give all up, release it", n, interlock.MaxClaims)
	}
	if code, problem := checkForm(c.Claims); code != "" {
		return code, problem
	}
	for _, claim := range c.Claims {
		if claim.Mode.Counts() && claim.Mode != interlock.Permits {
			return interlock.CodeInvalidMode, fmt.Sprintf("a lease cannot be converted to a claim of mode %v on %s: acquire that by itself", claim.Mode, claim.Key)
		}
	}
	if c.OnConflict == interlock.Skip {
		return interlock.CodeInvalidRequest, "a conversion cannot be skipped: on_conflict is fail, wait or preempt"
	}
	return checkMaxWait(c.MaxWait)
}

func checkDeclare(c *Declare) (interlock.Code, string) {
	if problem := checkNamespace(c.Namespace); problem != "" {
		return interlock.CodeInvalidNamespace, problem
	}
	if c.On.Session == "" && c.On.Agent == "" {
		return interlock.CodeInvalidRequest, "for whom? name a session, or an agent that has one"
	}
	if code, problem := checkTexts(
		text{"agent", c.Agent, interlock.MaxNameBytes}, text{"flow", c.Flow, interlock.MaxNameBytes}, text{"purpose", c.Purpose, interlock.MaxPurposeBytes},
		text{"session to wait for", c.On.Session, interlock.MaxNameBytes}, text{"agent to wait for", c.On.Agent, interlock.MaxNameBytes},
		text{"flow to wait for", c.On.Flow, interlock.MaxNameBytes},
	); code != "" {
		return code, problem
	}
	return checkMaxWait(c.MaxWait)
}

func checkPark(c *Park) (interlock.Code, string) {
	switch {
	case c.Free && c.Keep:
		return interlock.CodeInvalidRequest, "the keys of a parked lease are either kept or freed: ask for one of both"
	case c.For < 0 || c.For > interlock.MaxPark:
		return interlock.CodeInvalidTTL, fmt.Sprintf("a lease is parked for 0 to %v, not for %v", interlock.MaxPark, c.For)
	}
	return checkTexts(text{"reason", c.Reason, interlock.MaxReasonBytes})
}

func checkClaimEffect(c *ClaimEffect) (interlock.Code, string) {
	if problem := checkNamespace(c.Namespace); problem != "" {
		return interlock.CodeInvalidNamespace, problem
	}
	switch {
	case c.Action == "":
		return interlock.CodeInvalidRequest, "an effect is known by its action: say what is to be done"
	case c.TTL < 0 || c.TTL > interlock.MaxEffectTTL:
		return interlock.CodeInvalidTTL, fmt.Sprintf("ttl %v is not between 0 and %v", c.TTL, time.Duration(interlock.MaxEffectTTL))
	}
	return checkTexts(
		text{"action", c.Action, interlock.MaxActionBytes}, text{"agent", c.Agent, interlock.MaxNameBytes},
		text{"flow", c.Flow, interlock.MaxNameBytes},
	)
}

func checkSettleEffect(c *SettleEffect) (interlock.Code, string) {
	byID, byDigest := !c.ID.IsZero(), c.Digest != [32]byte{}
	problem := ""
	switch {
	case byID == byDigest:
		problem = "an effect is named by its claimer's id, or by its digest: give one of both"
	case c.State == interlock.EffectClaimed || c.State > interlock.EffectUnknown:
		problem = "an effect is settled as done, as unknown, or as not done"
	case byDigest && c.State == interlock.EffectUnknown:
		problem = "it is unknown already: find out whether it happened"
	case c.Result != "" && c.State != interlock.EffectDone:
		problem = "only what was done has a result"
	case c.Result != "" && !json.Valid([]byte(c.Result)):
		problem = "the result is not JSON"
	}
	if problem != "" {
		return interlock.CodeInvalidRequest, problem
	}
	return checkTexts(text{"result", c.Result, interlock.MaxResultBytes}, text{"reason", c.Reason, interlock.MaxReasonBytes})
}

// text is something that a caller wrote, with its limit.
type text struct {
	name  string
	value string
	limit int
}

func checkTexts(texts ...text) (interlock.Code, string) {
	for i := range texts {
		t := &texts[i]
		if t.value == "" {
			continue
		}
		if len(t.value) > t.limit {
			return interlock.CodeTooLong, fmt.Sprintf("%s has %d bytes: at most %d are kept, so shorten it", t.name, len(t.value), t.limit)
		}
		if !utf8.ValidString(t.value) {
			return interlock.CodeInvalidRequest, t.name + " is not valid UTF-8"
		}
	}
	return "", ""
}

func checkNamespace(ns interlock.Namespace) string {
	if ns == "" || len(ns) > interlock.MaxNamespaceBytes {
		return fmt.Sprintf("namespace %q: a namespace has 1 to %d bytes", keypath.Clip(string(ns), 64), interlock.MaxNamespaceBytes)
	}
	for _, b := range []byte(ns) {
		if b <= ' ' || b >= 0x7f || b == '/' {
			return fmt.Sprintf("namespace %q: a namespace has visible ASCII characters other than '/'", keypath.Clip(string(ns), 64))
		}
	}
	return ""
}

// maxAnyBytes bounds the keys of alternatives together, because events list them.
const maxAnyBytes = 64 << 10
