package store

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// Closed reports whether keys that match no pattern are refused.
func (s *Namespace) Closed() bool {
	return s != nil && (s.Unmatched == record.ClosedKeys || s.Unmatched == record.ImpliedKeys && len(s.Patterns) > 0)
}

// Complete sets the mode of a claim without one: one permit where the key's pattern bounds permits or
// tokens, so that the bound is for every caller, and else exclusive access.
func (p *Policy) Complete(c *interlock.Claim) {
	switch {
	case c.Mode != 0:
	case p != nil && (p.Capacity > 0 || p.Rate > 0):
		c.Mode, c.Count = interlock.Permits, 1
	default:
		c.Mode = lockmode.X
	}
}

// Forbids returns why a claim is not admitted under the pattern, nil for none.
func (p *Policy) Forbids(c interlock.Claim, by *interlock.Principal, group string) *Refusal {
	if no := p.excludes(c, by); no != nil {
		return no
	}
	if c.Mode != interlock.Permits {
		return nil
	}
	if p == nil || p.Capacity == 0 && p.Rate == 0 {
		return &Refusal{Code: interlock.CodeNoCapacity, Message: message.New(message.NoCapacity, message.Str(c.Key))}
	}
	if most := p.most(group); c.Count > most {
		var ofGroup *message.Text
		if p.groupIndex(group) != Unlisted {
			ofGroup = message.New(message.OfGroup, message.Str(group))
		}
		return &Refusal{
			Code: interlock.CodeTooManyPermits,
			Message: message.New(
				message.TooManyPermits, message.Num(c.Count), message.Str(c.Key), message.Sub(ofGroup), message.Num(most),
			),
		}
	}
	return nil
}

// excludes returns why a principal may not claim so under the pattern, nil if it may.
func (p *Policy) excludes(c interlock.Claim, by *interlock.Principal) *Refusal {
	if p == nil || p.allows(by, c.Mode) {
		return nil
	}
	return &Refusal{
		Code: interlock.CodeModeForbidden, Key: c.Key,
		Message: message.New(
			message.ModeForbidden, message.Str(p.Name), message.Sub(DisplayName(by)), message.Str(c.Key),
			message.Str(c.Mode.String()),
		),
	}
}

func DisplayName(by *interlock.Principal) *message.Text {
	if by == nil || by.Name == "" {
		return message.New(message.UnnamedCaller)
	}
	return message.New(message.Quoted, message.Str(by.Name))
}

// allows reports whether the pattern lets a principal claim a mode.
func (p *Policy) allows(by *interlock.Principal, mode interlock.Mode) bool {
	return p.allowsAny(by, func(m interlock.Mode) bool { return m == mode })
}

// allowsAny reports whether the pattern lets a principal claim one of some modes.
func (p *Policy) allowsAny(by *interlock.Principal, isOne func(interlock.Mode) bool) bool {
	for _, r := range p.Allow {
		if by.Matches(r.Principal) {
			return len(r.Modes) == 0 || slices.ContainsFunc(r.Modes, isOne)
		}
	}
	return len(p.Allow) == 0
}

// most is how many permits one request of a group can ever get.
func (p *Policy) most(group string) uint32 {
	most := p.MostHeld(group)
	if p.Rate > 0 {
		most = min(most, p.BurstLimit())
	}
	return most
}

// MostHeld returns the maximum number of permits that a group can ever have.
func (p *Policy) MostHeld(group string) uint32 {
	most := uint32(interlock.MaxCount)
	if p.Capacity > 0 {
		most = p.Capacity
		for _, g := range p.Groups {
			if g.Name != group {
				most -= g.Min
			}
		}
		if i := p.groupIndex(group); i != Unlisted {
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
func (p *Policy) groupIndex(name string) int {
	return slices.IndexFunc(p.Groups, func(g interlock.Group) bool { return g.Name == name })
}

// Strangers warns of claims on permits in the name of a group that the pattern does
// not list, although it lists some: a misspelled group has no share.
func (s *Namespace) Strangers(claims []interlock.Claim, group string) (warnings []*message.Text) {
	if s == nil || group == "" {
		return nil
	}
	for _, c := range claims {
		p := s.PolicyAt(string(c.Key))
		if c.Mode != interlock.Permits || p == nil || len(p.Groups) == 0 || p.groupIndex(group) != Unlisted {
			continue
		}
		var names []string
		for i := range p.Groups {
			names = append(names, strconv.Quote(p.Groups[i].Name))
		}
		warnings = append(
			warnings,
			message.New(message.GroupNotListed, message.Str(c.Key), message.Str(group), message.Str(strings.Join(names, ", "))),
		)
	}
	return warnings
}

// UnknownKey refuses a key that fits no pattern, with what its caller may have
// meant: the key as the nearest patterns would spell it, and their shapes.
func (s *Namespace) UnknownKey(key interlock.Key) *Refusal {
	first := keypath.FirstWord(string(key))
	// The rest after it, in the parts that a variable may take.
	rest := strings.TrimLeft(string(key)[min(len(key), strings.Index(string(key), first)+len(first)):], keypath.Separators)
	words := strings.FieldsFunc(rest, func(r rune) bool { return r == ':' || r == '/' })
	type near struct {
		policy   *Policy
		distance int
	}
	var found []near
	for _, p := range s.Patterns {
		want := keypath.FirstWord(p.shape.Prefix())
		found = append(found, near{p, keypath.Distance(strings.ToLower(first), strings.ToLower(want))})
	}
	slices.SortStableFunc(found, func(a, b near) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), strings.Compare(a.policy.Name, b.policy.Name))
	})
	no := &Refusal{Code: interlock.CodeUnmatchedKey, Key: key}
	if len(found) == 0 {
		no.Message = message.New(message.NoPatternInClosed, message.Str(key))
		return no
	}
	var shapes []string
	next := message.New(message.ListPatterns)
	for _, f := range found[:min(3, len(found))] {
		if want := len(keypath.FirstWord(f.policy.shape.Prefix())); f.distance < want && f.distance <= 1+min(1, want/5) {
			if len(no.Nearest)+len(shapes) == 0 {
				next = message.New(message.UseShape, message.Str(f.policy.Shape))
			}
			if meant, ok := f.policy.respell(words); ok {
				if len(no.Nearest) == 0 {
					next = message.New(message.UseKeySuchAs, message.Str(meant))
				}
				no.Nearest = append(no.Nearest, meant)
			}
			shapes = append(shapes, f.policy.Shape)
		}
	}
	no.Nearest = append(no.Nearest, shapes...)
	no.Message = message.New(message.KeyFitsNoPattern, message.Str(key), message.Sub(next))
	return no
}

// respell makes a key of the shape with words for its variables. Words that stand in
// the shape itself are for none of them.
func (p *Policy) respell(words []string) (string, bool) {
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

// writing returns the fault of a pattern's write policy, or "".
func (p *Policy) writing() *message.Text {
	switch {
	case p.Write > interlock.WriteOpen:
		return message.New(message.WriteUnknown)
	case p.Writer != "" && p.WriterQueue != "":
		return message.New(message.WriterTwice)
	case p.Write == interlock.WriteSingle && p.Writer == "" && p.WriterQueue == "":
		return message.New(message.WriterMissing)
	case p.Write != interlock.WriteSingle && (p.Writer != "" || p.WriterQueue != ""):
		return message.New(message.WriterWithoutPolicy)
	case p.WriterQueue != "":
		return CheckName("queue", p.WriterQueue)
	}
	if _, problem := CheckTexts(Text{"writer", p.Writer, interlock.MaxNameBytes}); problem != nil {
		return problem
	}
	return nil
}
