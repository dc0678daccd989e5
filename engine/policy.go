package engine

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// refuseFor answers the command's caller with it.
func (e *Engine) refuseFor(no *refusal) {
	eff := e.refuse(no.code, no.message)
	if eff.Conflict = no.conflict; eff.Conflict == nil {
		eff.Conflict = &Conflict{Key: no.key, Nearest: no.nearest}
	}
}

// checkClaims rewrites the claims' keys in their canonical spelling and returns a refusal if a
// pattern does not admit one of them, or nil. Claims of the lease had, nil for none, were
// admitted once and may be kept.
func (e *Engine) checkClaims(claims []interlock.Claim, group string, had *request) *refusal {
	if no := outsideGroup(e.head.Principal, group); no != nil && had == nil {
		return no
	}
	s := e.pendingWork.ns
	for i := range claims {
		c := &claims[i]
		p, key := s.fit(c.Key)
		c.Key = key
		if had != nil && had.has(*c) {
			continue
		}
		if p == nil && s.closed() {
			return s.unknownKey(c.Key)
		}
		if no := p.forbids(*c, e.head.Principal, group); no != nil {
			no.key = key
			return no
		}
		if no := s.forbidsBelow(*c, e.head.Principal); no != nil {
			return no
		}
	}
	if key, twice := duplicate(claims); twice {
		return &refusal{
			code: interlock.CodeDuplicateClaim, key: key,
			message: message.New(message.ClaimedTwiceRespelled, message.Str(key)),
		}
	}
	return nil
}

// closed reports whether keys that match no pattern are refused.
func (s *namespace) closed() bool {
	return s != nil && (s.unmatched == record.ClosedKeys || s.unmatched == record.ImpliedKeys && len(s.patterns) > 0)
}

// forbids returns why a claim is not admitted under the pattern, nil for none.
func (p *policy) forbids(c interlock.Claim, by *interlock.Principal, group string) *refusal {
	if no := p.excludes(c, by); no != nil {
		return no
	}
	if c.Mode != interlock.Permits {
		return nil
	}
	if p == nil || p.Capacity == 0 && p.Rate == 0 {
		return &refusal{code: interlock.CodeNoCapacity, message: message.New(message.NoCapacity, message.Str(c.Key))}
	}
	if most := p.most(group); c.Count > most {
		var ofGroup *message.Text
		if p.groupIndex(group) != unlisted {
			ofGroup = message.New(message.OfGroup, message.Str(group))
		}
		return &refusal{code: interlock.CodeTooManyPermits, message: message.New(message.TooManyPermits, message.Num(c.Count), message.Str(c.Key), message.Sub(ofGroup), message.Num(most))}
	}
	return nil
}

// excludes returns why a principal may not claim so under the pattern, nil if it may.
func (p *policy) excludes(c interlock.Claim, by *interlock.Principal) *refusal {
	if p == nil || p.allows(by, c.Mode) {
		return nil
	}
	return &refusal{code: interlock.CodeModeForbidden, key: c.Key, message: message.New(message.ModeForbidden, message.Str(p.Name), message.Sub(displayName(by)), message.Str(c.Key), message.Str(c.Mode.String()))}
}

func displayName(by *interlock.Principal) *message.Text {
	if by == nil || by.Name == "" {
		return message.New(message.UnnamedCaller)
	}
	return message.New(message.Quoted, message.Str(by.Name))
}

// allows reports whether the pattern lets a principal claim a mode.
func (p *policy) allows(by *interlock.Principal, mode interlock.Mode) bool {
	for _, r := range p.Allow {
		if by.Matches(r.Principal) {
			return len(r.Modes) == 0 || slices.Contains(r.Modes, mode)
		}
	}
	return len(p.Allow) == 0
}

// most is how many permits one request of a group can ever get.
func (p *policy) most(group string) uint32 {
	most := p.mostHeld(group)
	if p.Rate > 0 {
		most = min(most, p.burst())
	}
	return most
}

// mostHeld returns the maximum number of permits that a group can ever have.
func (p *policy) mostHeld(group string) uint32 {
	most := uint32(interlock.MaxCount)
	if p.Capacity > 0 {
		most = p.Capacity
		for _, g := range p.Groups {
			if g.Name != group {
				most -= g.Min
			}
		}
		if i := p.groupIndex(group); i != unlisted {
			g := &p.Groups[i]
			most = max(most, g.Min)
			if g.Max > 0 {
				most = min(most, g.Max)
			}
		}
	}
	return most
}

// groupIndex finds the share of a claimant group; unlisted when it has none of its
// own.
func (p *policy) groupIndex(name string) int {
	return slices.IndexFunc(p.Groups, func(g interlock.Group) bool { return g.Name == name })
}

// strangers warns of claims on permits in the name of a group that the pattern does
// not list, although it lists some: a misspelled group has no share.
func (s *namespace) strangers(claims []interlock.Claim, group string) (warnings []*message.Text) {
	if s == nil || group == "" {
		return nil
	}
	for _, c := range claims {
		p := s.policyAt(string(c.Key))
		if c.Mode != interlock.Permits || p == nil || len(p.Groups) == 0 || p.groupIndex(group) != unlisted {
			continue
		}
		var names []string
		for i := range p.Groups {
			names = append(names, strconv.Quote(p.Groups[i].Name))
		}
		warnings = append(warnings, message.New(message.GroupNotListed, message.Str(c.Key), message.Str(group), message.Str(strings.Join(names, ", "))))
	}
	return warnings
}

// bound sets the times of an admitted request in s by its keys' patterns: their defaults
// where it names none, and their limits.
func (c *Acquire) bound(s *namespace, bare bool) {
	if s == nil || len(s.patterns) == 0 {
		return
	}
	found := make([]*policy, 0, 4)
	for _, claim := range c.Claims {
		if p := s.policyAt(string(claim.Key)); p != nil && !slices.Contains(found, p) {
			found = append(found, p)
		}
	}
	for _, p := range found {
		if bare {
			c.TTL = cmp.Or(c.TTL, p.TTL)
		}
		if c.Grace == 0 {
			c.Grace = p.Grace
		}
	}
	for _, p := range found {
		if p.MaxTTL > 0 && (c.TTL > p.MaxTTL || c.TTL == 0 && (!bare || interlock.DefaultTTL > p.MaxTTL)) {
			c.TTL = p.MaxTTL
		}
		if p.MaxGrace > 0 && c.Grace != NoGrace && cmp.Or(c.Grace, interlock.DefaultGrace) > p.MaxGrace {
			c.Grace = p.MaxGrace
		}
		c.MaxHold = tighter(c.MaxHold, p.MaxHold)
		c.Stall = tighter(c.Stall, p.Stall)
		c.MaxWait = tighter(c.MaxWait, p.MaxWait)
		c.LockDelay = max(c.LockDelay, p.LockDelay)
	}
}

// tighter returns the smaller of two bounds, where 0 is no bound.
func tighter(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// unknownKey refuses a key that fits no pattern, with what its caller may have
// meant: the key as the nearest patterns would spell it, and their shapes.
func (s *namespace) unknownKey(key interlock.Key) *refusal {
	first := keypath.FirstWord(string(key))
	// The rest after it, in the parts that a variable may take.
	rest := strings.TrimLeft(string(key)[min(len(key), strings.Index(string(key), first)+len(first)):], keypath.Separators)
	words := strings.FieldsFunc(rest, func(r rune) bool { return r == ':' || r == '/' })
	type near struct {
		policy   *policy
		distance int
	}
	var found []near
	for _, p := range s.patterns {
		want := keypath.FirstWord(p.shape.Prefix())
		found = append(found, near{p, keypath.Distance(strings.ToLower(first), strings.ToLower(want))})
	}
	slices.SortStableFunc(found, func(a, b near) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), strings.Compare(a.policy.Name, b.policy.Name))
	})
	no := &refusal{code: interlock.CodeUnknownPattern, key: key}
	if len(found) == 0 {
		no.message = message.New(message.NoPatternInClosed, message.Str(key))
		return no
	}
	var shapes []string
	next := message.New(message.ListPatterns)
	for _, f := range found[:min(3, len(found))] {
		if want := len(keypath.FirstWord(f.policy.shape.Prefix())); f.distance < want && f.distance <= 1+min(1, want/5) {
			if len(no.nearest)+len(shapes) == 0 {
				next = message.New(message.UseShape, message.Str(f.policy.Shape))
			}
			if meant, ok := f.policy.respell(words); ok {
				if len(no.nearest) == 0 {
					next = message.New(message.UseKeySuchAs, message.Str(meant))
				}
				no.nearest = append(no.nearest, meant)
			}
			shapes = append(shapes, f.policy.Shape)
		}
	}
	no.nearest = append(no.nearest, shapes...)
	no.message = message.New(message.KeyFitsNoPattern, message.Str(key), message.Sub(next))
	return no
}

// respell makes a key of the shape with words for its variables. Words that stand in
// the shape itself are for none of them.
func (p *policy) respell(words []string) (string, bool) {
	n := len(p.shape.Names())
	for _, w := range p.shape.Words() {
		if i := slices.Index(words, w); i >= 0 {
			words = slices.Delete(slices.Clone(words), i, i+1)
		}
	}
	if p.shape.TakesRest() {
		if len(words) < n-1 {
			return "", false
		}
		words = append(slices.Clone(words[:n-1]), strings.Join(words[n-1:], "/"))
	}
	if len(words) != n {
		return "", false
	}
	return p.canonical(p.shape.Fill(words))
}
