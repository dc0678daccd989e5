package store

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// A namespace's key patterns, and their rules for a request.

// Policy is a registered pattern, ready for use.
type Policy struct {
	interlock.Pattern
	shape    keypath.Shape
	respells bool // the shape admits several spellings
	aliases  []alias
	members  []interlock.Key
	alone    []string  // its name, as in record.Event.Patterns
	Refusals *Refusals // volatile; nil for none
}

// alias is another shape of the same keys.
type alias struct {
	keypath.Shape
	order []int // for each of its variables, which one of the pattern's shape it is
}

// Compile checks a pattern and turns it into a policy, or returns a description of its first
// error.
func Compile(p interlock.Pattern) (*Policy, *message.Text) {
	pol := &Policy{Pattern: p, alone: []string{p.Name}}
	var problem *message.Text
	if p.Name == "" || len(p.Name) > interlock.MaxNameBytes || keypath.Problem(p.Name) != nil ||
		strings.Contains(p.Name, "/") {
		return nil, message.New(message.PatternName, message.Num(interlock.MaxNameBytes))
	}
	if pol.shape, problem = keypath.ParseShape(p.Shape); problem != nil {
		return nil, message.New(message.BadShape, message.Str(keypath.Clip(p.Shape, 64)), message.Sub(problem))
	}
	pol.respells = pol.shape.Respells()
	names := pol.shape.Names()
	if len(p.Aliases) > keypath.MaxVariables {
		return nil, message.New(message.AliasCount, message.Num(keypath.MaxVariables))
	}
	for _, text := range p.Aliases {
		sh, problem := keypath.ParseShape(text)
		if problem != nil {
			return nil, message.New(message.BadAlias, message.Str(keypath.Clip(text, 64)), message.Sub(problem))
		}
		a := alias{Shape: sh}
		for _, name := range sh.Names() {
			a.order = append(a.order, slices.Index(names, name))
		}
		if len(a.order) != len(names) || slices.Contains(a.order, -1) {
			return nil, message.New(message.AliasVariables, message.Str(keypath.Clip(text, 64)), message.Str(p.Shape))
		}
		pol.aliases = append(pol.aliases, a)
	}
	for _, text := range p.Members {
		if problem := pol.addMembers(text); problem != nil {
			return nil, problem
		}
	}
	if problem := pol.numbers(); problem != nil {
		return nil, problem
	}
	return pol, nil
}

// addMembers adds the keys that an entry of Members stands for.
func (p *Policy) addMembers(text string) *message.Text {
	first, last, head, tail := uint64(0), uint64(0), text, ""
	open, end := strings.IndexByte(text, '{'), strings.IndexByte(text, '}')
	ranged := open >= 0 && end > open
	if ranged {
		from, to, ok := strings.Cut(text[open+1:end], "..")
		var err1, err2 error
		first, err1 = strconv.ParseUint(from, 10, 32)
		last, err2 = strconv.ParseUint(to, 10, 32)
		if !ok || err1 != nil || err2 != nil || last < first {
			return message.New(message.MemberForm, message.Str(keypath.Clip(text, 64)))
		}
		head, tail = text[:open], text[end+1:]
	}
	for i := first; i <= last; i++ {
		key := head + tail
		if ranged {
			key = head + strconv.FormatUint(i, 10) + tail
		}
		if problem := keypath.Problem(key); problem != nil {
			return message.New(message.BadMember, message.Str(keypath.Clip(key, 64)), message.Sub(problem))
		}
		canonical, ok := p.canonical(key)
		if !ok || canonical != key {
			return message.New(message.MemberMisfit, message.Str(keypath.Clip(key, 64)), message.Str(p.Shape))
		}
		if p.members = append(p.members, interlock.Key(key)); len(p.members) > interlock.MaxMembers {
			return message.New(message.MemberCount, message.Num(interlock.MaxMembers))
		}
	}
	return nil
}

// numbers returns the fault of the pattern's numbers, or "".
func (p *Policy) numbers() *message.Text {
	switch {
	case p.Capacity > interlock.MaxCount || p.Rate > interlock.MaxCount || p.Burst > interlock.MaxCount:
		return message.New(message.NumbersTooLarge, message.Num(interlock.MaxCount))
	case p.Rate == 0 && (p.Burst != 0 || p.Per != 0):
		return message.New(message.BurstWithoutRate)
	case p.Rate > 0 && (p.Per < 0 || p.Per > interlock.MaxTTL):
		return message.New(message.NotUpTo, message.Str("per"), message.Dur(p.Per), message.Dur(interlock.MaxTTL))
	case p.Rate > 0 && p.Tick() < minTick:
		return message.New(message.RateTooHigh, message.Dur(minTick))
	case p.Rate > 0 && p.Tick() > maxFill/time.Duration(p.BurstLimit()):
		return message.New(message.BucketTooSlow, message.Num(p.BurstLimit()), message.Dur(maxFill))
	case p.MaxWaiters < 0 || p.MaxWaiters > interlock.MaxWaitersPerKey:
		return message.New(
			message.NotUpTo, message.Str("max_waiters"), message.Num(p.MaxWaiters), message.Num(interlock.MaxWaitersPerKey),
		)
	case len(p.Groups) > interlock.MaxGroups:
		return message.New(message.GroupCount, message.Num(len(p.Groups)), message.Num(interlock.MaxGroups))
	case len(p.Groups) > 0 && p.Capacity == 0:
		return message.New(message.GroupsWithoutCapacity)
	case p.Preempt > interlock.PreemptNever || p.Park > interlock.ParkNever || p.OnDeadlock > interlock.DeadlockRevoke:
		return message.New(message.UnknownPatternValue)
	}
	for _, d := range []struct {
		name     string
		value    time.Duration
		min, max time.Duration
	}{
		{"ttl", p.TTL, interlock.MinTTL, interlock.MaxTTL},
		{"max_ttl", p.MaxTTL, interlock.MinTTL, interlock.MaxTTL},
		{"grace", p.Grace, 0, interlock.MaxGrace},
		{"max_grace", p.MaxGrace, 0, interlock.MaxGrace},
		{"max_hold", p.MaxHold, 0, interlock.MaxMaxHold},
		{"stall", p.Stall, 0, interlock.MaxStall},
		{"lock_delay", p.LockDelay, 0, interlock.MaxLockDelay},
		{"max_wait", p.MaxWait, 0, interlock.MaxMaxWait},
		{"max_park", p.MaxPark, 0, interlock.MaxPark},
	} {
		if d.value != 0 && (d.value < d.min || d.value > d.max) {
			return message.New(
				message.NotBetween, message.Str(d.name), message.Dur(d.value), message.Dur(d.min), message.Dur(d.max),
			)
		}
	}
	if problem := p.writing(); problem != nil {
		return problem
	}
	if p.MaxTTL > 0 && p.TTL > p.MaxTTL {
		return message.New(
			message.AboveMaximum, message.Str("ttl"), message.Dur(p.TTL), message.Str("max_ttl"), message.Dur(p.MaxTTL),
		)
	}
	if p.MaxGrace > 0 && p.Grace > p.MaxGrace {
		return message.New(
			message.AboveMaximum, message.Str("grace"), message.Dur(p.Grace), message.Str("max_grace"), message.Dur(p.MaxGrace),
		)
	}
	var reserved uint64
	for i, g := range p.Groups {
		if len(g.Name) > interlock.MaxNameBytes || g.Max > 0 && g.Min > g.Max || g.Max > p.Capacity {
			return message.New(message.GroupNumbers, message.Str(keypath.Clip(g.Name, 64)))
		}
		if slices.ContainsFunc(p.Groups[:i], func(o interlock.Group) bool { return o.Name == g.Name }) {
			return message.New(message.GroupTwice, message.Str(g.Name))
		}
		reserved += uint64(g.Min)
	}
	if reserved > uint64(p.Capacity) {
		return message.New(message.GroupMinimums, message.Num(reserved), message.Num(p.Capacity))
	}
	for _, r := range p.Allow {
		if r.Principal == "" || len(r.Principal) > interlock.MaxNameBytes || len(p.Allow) > interlock.MaxGroups {
			return message.New(message.AllowCount, message.Num(interlock.MaxGroups))
		}
		for _, m := range r.Modes {
			if m == 0 || m > interlock.Member {
				return message.New(message.AllowMode)
			}
		}
	}
	return nil
}

// canonical returns the one spelling of a key that fits the shape or an alias. That
// spelling is its own.
func (p *Policy) canonical(key string) (string, bool) {
	var room [keypath.MaxVariables + 1]string
	if values, ok := p.shape.Match(room[:0], key); ok {
		if !p.respells {
			return key, true
		}
		return p.settle(key, values)
	}
	for i := range p.aliases {
		a := &p.aliases[i]
		if values, ok := a.Match(room[:0], key); ok {
			ordered := make([]string, len(values))
			for j, v := range values {
				ordered[a.order[j]] = v
			}
			// The shape decides how its variables are spelled.
			text := p.shape.Fill(ordered)
			if values, ok := p.shape.Match(room[:0], text); ok {
				return p.settle(text, values)
			}
		}
	}
	return "", false
}

// settle writes the values of key as the shape spells them. Small letters may end a
// variable earlier than the capitals did, so the result is read again until it reads as
// itself. If it does not fit the shape any more, the key never did.
func (p *Policy) settle(key string, values []string) (string, bool) {
	for range keypath.MaxVariables {
		text := p.shape.Fill(values)
		if text == key {
			return text, true
		}
		var ok bool
		if values, ok = p.shape.Match(values[:0], text); !ok {
			return "", false
		}
		key = text
	}
	return "", false
}

// Fit returns the pattern of a key, and the key's one spelling. Without patterns, or
// where none fits, that is the key itself, and so it is for a reserved key: else a pattern could lead its writers
// elsewhere.
//
// A pattern may respell a key into one that a more specific pattern is for. That one
// counts then, and may respell the key again. Each round goes to a pattern further
// ahead in the list, since the last one fits its own spelling, so there is an end.
func (s *Namespace) Fit(key interlock.Key) (*Policy, interlock.Key) {
	if s == nil {
		return nil, key
	}
	return fitIn(s.Patterns, &s.heads, s.Agenda.objects, key)
}

// fitIn is fit for some patterns. It counts those that it looks at.
func fitIn(patterns []*Policy, heads *heads, looks *int, key interlock.Key) (*Policy, interlock.Key) {
	for {
		next, text := firstFit(patterns, heads, looks, key)
		if next == nil || text == key || key.IsReserved() {
			return next, key
		}
		key = text
	}
}

// firstFit returns the most specific pattern that a key fits as it stands, and the key as
// that pattern spells it; nil for none.
func firstFit(patterns []*Policy, heads *heads, looks *int, key interlock.Key) (first *Policy, spelled interlock.Key) {
	best, spelled := len(patterns), key
	try := func(i int) {
		*looks++
		if canonical, ok := patterns[i].canonical(string(key)); ok && keypath.Problem(canonical) == nil {
			best, first, spelled = i, patterns[i], interlock.Key(canonical)
		}
	}
	if len(patterns) <= fewPatterns {
		for i := 0; i < best; i++ {
			try(i)
		}
		return first, spelled
	}
	for _, n := range heads.sizes {
		if n > len(key) {
			break
		}
		for _, i := range heads.at[string(key[:n])] {
			if i >= best {
				break
			}
			try(i)
		}
	}
	return first, spelled
}

// fewPatterns is how many are tried one after the other.
const fewPatterns = 16

// heads finds the patterns that a key may fit, by the literal text with which their shapes
// and aliases begin.
type heads struct {
	sizes []int            // of the texts, ascending
	at    map[string][]int // indexes in space.patterns, ascending
}

func headsOf(patterns []*Policy) (h heads) {
	if len(patterns) <= fewPatterns {
		return h
	}
	h.at = map[string][]int{}
	add := func(sh *keypath.Shape, i int) {
		text := sh.Prefix()
		if at, found := slices.BinarySearch(h.sizes, len(text)); !found {
			h.sizes = slices.Insert(h.sizes, at, len(text))
		}
		h.at[text] = append(h.at[text], i)
	}
	for i, p := range patterns {
		add(&p.shape, i)
		for j := range p.aliases {
			add(&p.aliases[j].Shape, i)
		}
	}
	return h
}

// PolicyAt returns the pattern of a key in its one spelling; nil for none.
func (s *Namespace) PolicyAt(key string) *Policy {
	p, _ := s.Fit(interlock.Key(key))
	return p
}

// Overlap returns which other pattern is for the same keys as p, or "".
func (s *Namespace) Overlap(p *Policy) *message.Text {
	mine := p.forms()
	for _, other := range s.Patterns {
		if other.Name == p.Name {
			continue
		}
		for i, form := range other.forms() {
			if j := slices.Index(mine, form); j >= 0 {
				return message.New(
					message.SameKeys, message.Sub(p.spelling(j)), message.Sub(other.spelling(i)), message.Str(other.Name),
				)
			}
		}
	}
	return nil
}

// forms lists the forms of the shape and of the aliases.
func (p *Policy) forms() []string {
	forms := []string{p.shape.Form()}
	for i := range p.aliases {
		forms = append(forms, p.aliases[i].Form())
	}
	return forms
}

// spelling returns which one of forms is meant, in the operator's words.
func (p *Policy) spelling(i int) *message.Text {
	if i == 0 {
		return message.New(message.TheShape, message.Str(p.Shape))
	}
	return message.New(message.TheAlias, message.Str(p.Aliases[i-1]))
}

// Pattern returns the pattern of a name, or nil.
func (s *Namespace) Pattern(name string) *Policy {
	for _, p := range s.Patterns {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// evolvePattern folds record.PatternSet and record.PatternDropped.
func (st *State) evolvePattern(ev *record.Event) error {
	s := st.Namespace(ev.Namespace)
	guarded := s.guarded
	old := s.Pattern(ev.PatternName)
	s.Patterns = slices.DeleteFunc(slices.Clone(s.Patterns), func(p *Policy) bool { return p == old })
	var added *Policy
	if ev.Kind == record.PatternSet {
		pattern, err := record.DecodePattern(ev.Blob)
		if err != nil {
			return err
		}
		p, problem := Compile(pattern)
		if problem != nil {
			return fmt.Errorf("engine: pattern %q: %s", ev.PatternName, problem)
		}
		i, _ := slices.BinarySearchFunc(s.Patterns, p, func(a, b *Policy) int {
			return cmp.Or(
				cmp.Compare(b.shape.Literal(), a.shape.Literal()), cmp.Compare(b.shape.Typed(), a.shape.Typed()),
				strings.Compare(a.Name, b.Name),
			)
		})
		if old != nil {
			p.Refusals = old.Refusals
		}
		s.Patterns = slices.Insert(s.Patterns, i, p)
		added = p
	}
	s.heads = headsOf(s.Patterns)
	s.guarded, s.Audited, s.rated = 0, 0, false
	for _, p := range s.Patterns {
		s.rated = s.rated || p.Rate > 0
		if p.AuditRefusals {
			s.Audited++
		}
		if len(p.Allow) > 0 {
			s.guarded++
		}
	}
	s.evolveRevision(ev)
	st.repool(s, old, added, ev.At)
	if s.guarded+guarded > 0 {
		st.sortAnew(s)
	}
	return nil
}

// evolveSettings folds record.Configured.
func (s *Namespace) evolveSettings(ev *record.Event) (err error) {
	if s.Settings, s.Unmatched, err = record.DecodeSettings(ev.Blob); err == nil {
		s.watchSpelling()
	}
	return err
}

// MembersWith lists the members of the namespace's patterns that begin with a
// prefix, in the order of the patterns' names and then as they are listed.
func (s *Namespace) MembersWith(prefix string) (keys []interlock.Key) {
	if s == nil {
		return nil
	}
	byName := slices.SortedFunc(
		slices.Values(s.Patterns), func(a, b *Policy) int { return strings.Compare(a.Name, b.Name) },
	)
	for _, p := range byName {
		for _, key := range p.members {
			if strings.HasPrefix(string(key), prefix) && len(keys) < interlock.MaxAlternatives {
				keys = append(keys, key)
			}
		}
	}
	return keys
}
