package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/record"
)

// A namespace's key patterns, and what they say about a request.

// policy is a registered pattern, ready for use.
type policy struct {
	interlock.Pattern
	shape    keypath.Shape
	respells bool // the shape admits several spellings
	aliases  []alias
	members  []interlock.Key
	alone    []string  // its name, as in record.Event.Patterns
	refusals *refusals // volatile; nil for none
}

// alias is another shape of the same keys.
type alias struct {
	keypath.Shape
	order []int // for each of its variables, which one of the pattern's shape it is
}

// compile checks a pattern and turns it into a policy, or returns a description of its first
// error.
func compile(p interlock.Pattern) (*policy, string) {
	pol := &policy{Pattern: p, alone: []string{p.Name}}
	var problem string
	if p.Name == "" || len(p.Name) > interlock.MaxNameBytes || keypath.Problem(p.Name) != "" || strings.Contains(p.Name, "/") {
		return nil, fmt.Sprintf("a pattern's name has 1 to %d visible characters and no slash", interlock.MaxNameBytes)
	}
	if pol.shape, problem = keypath.ParseShape(p.Shape); problem != "" {
		return nil, fmt.Sprintf("shape %q: %s", keypath.Clip(p.Shape, 64), problem)
	}
	pol.respells = pol.shape.Respells()
	names := pol.shape.Names()
	if len(p.Aliases) > keypath.MaxVariables {
		return nil, fmt.Sprintf("a pattern has at most %d aliases", keypath.MaxVariables)
	}
	for _, text := range p.Aliases {
		sh, problem := keypath.ParseShape(text)
		if problem != "" {
			return nil, fmt.Sprintf("alias %q: %s", keypath.Clip(text, 64), problem)
		}
		a := alias{Shape: sh}
		for _, name := range sh.Names() {
			a.order = append(a.order, slices.Index(names, name))
		}
		if len(a.order) != len(names) || slices.Contains(a.order, -1) {
			return nil, fmt.Sprintf("alias %q must have the same variables as %s", keypath.Clip(text, 64), p.Shape)
		}
		pol.aliases = append(pol.aliases, a)
	}
	for _, text := range p.Members {
		if problem := pol.addMembers(text); problem != "" {
			return nil, problem
		}
	}
	if problem := pol.numbers(); problem != "" {
		return nil, problem
	}
	return pol, ""
}

// addMembers adds the keys that an entry of Members stands for.
func (p *policy) addMembers(text string) string {
	first, last, head, tail := uint64(0), uint64(0), text, ""
	open, end := strings.IndexByte(text, '{'), strings.IndexByte(text, '}')
	ranged := open >= 0 && end > open
	if ranged {
		from, to, ok := strings.Cut(text[open+1:end], "..")
		var err1, err2 error
		first, err1 = strconv.ParseUint(from, 10, 32)
		last, err2 = strconv.ParseUint(to, 10, 32)
		if !ok || err1 != nil || err2 != nil || last < first {
			return fmt.Sprintf("member %q: write a key, or a range of numbers such as gpu:{0..7}", keypath.Clip(text, 64))
		}
		head, tail = text[:open], text[end+1:]
	}
	for i := first; i <= last; i++ {
		key := head + tail
		if ranged {
			key = head + strconv.FormatUint(i, 10) + tail
		}
		if problem := keypath.Problem(key); problem != "" {
			return fmt.Sprintf("member %q %s", keypath.Clip(key, 64), problem)
		}
		canonical, ok := p.canonical(key)
		if !ok || canonical != key {
			return fmt.Sprintf("member %q does not fit the shape %s", keypath.Clip(key, 64), p.Shape)
		}
		if p.members = append(p.members, interlock.Key(key)); len(p.members) > interlock.MaxMembers {
			return fmt.Sprintf("more than %d members", interlock.MaxMembers)
		}
	}
	return ""
}

// numbers returns what is wrong with the pattern's numbers, or "".
func (p *policy) numbers() string {
	switch {
	case p.Capacity > interlock.MaxCount || p.Rate > interlock.MaxCount || p.Burst > interlock.MaxCount:
		return fmt.Sprintf("capacity, rate and burst are at most %d", interlock.MaxCount)
	case p.Rate == 0 && (p.Burst != 0 || p.Per != 0):
		return "burst and per mean nothing without a rate"
	case p.Rate > 0 && (p.Per < 0 || p.Per > interlock.MaxTTL):
		return fmt.Sprintf("per %v is not between 0 and %v", p.Per, interlock.MaxTTL)
	case p.Rate > 0 && p.tick() < minTick:
		return fmt.Sprintf("a rate is at most one token in %v", minTick)
	case p.Rate > 0 && p.tick() > maxFill/time.Duration(p.burst()):
		return fmt.Sprintf("a full bucket of %d tokens would take longer than %v to come back", p.burst(), maxFill)
	case p.MaxWaiters < 0 || p.MaxWaiters > interlock.MaxWaitersPerKey:
		return fmt.Sprintf("max_waiters %d is not between 0 and %d", p.MaxWaiters, interlock.MaxWaitersPerKey)
	case len(p.Groups) > interlock.MaxGroups:
		return fmt.Sprintf("%d groups: a pattern has at most %d", len(p.Groups), interlock.MaxGroups)
	case len(p.Groups) > 0 && p.Capacity == 0:
		return "groups share out a capacity: give one"
	case p.Preempt > interlock.PreemptNever || p.Park > interlock.ParkNever || p.OnDeadlock > interlock.DeadlockRevoke:
		return "preempt, park or on_deadlock has a value that does not exist"
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
			return fmt.Sprintf("%s %v is not between %v and %v", d.name, d.value, d.min, d.max)
		}
	}
	if problem := p.writing(); problem != "" {
		return problem
	}
	if p.MaxTTL > 0 && p.TTL > p.MaxTTL {
		return fmt.Sprintf("ttl %v is above max_ttl %v", p.TTL, p.MaxTTL)
	}
	if p.MaxGrace > 0 && p.Grace > p.MaxGrace {
		return fmt.Sprintf("grace %v is above max_grace %v", p.Grace, p.MaxGrace)
	}
	var reserved uint64
	for i, g := range p.Groups {
		if len(g.Name) > interlock.MaxNameBytes || g.Max > 0 && g.Min > g.Max || g.Max > p.Capacity {
			return fmt.Sprintf("group %q: its name is too long, or its numbers are not min <= max <= capacity", keypath.Clip(g.Name, 64))
		}
		if slices.ContainsFunc(p.Groups[:i], func(o interlock.Group) bool { return o.Name == g.Name }) {
			return fmt.Sprintf("group %q stands twice", g.Name)
		}
		reserved += uint64(g.Min)
	}
	if reserved > uint64(p.Capacity) {
		return fmt.Sprintf("the groups' minimums add up to %d, and the capacity is %d", reserved, p.Capacity)
	}
	for _, r := range p.Allow {
		if r.Principal == "" || len(r.Principal) > interlock.MaxNameBytes || len(p.Allow) > interlock.MaxGroups {
			return fmt.Sprintf("allow: at most %d rules, each with a principal or *", interlock.MaxGroups)
		}
		for _, m := range r.Modes {
			if m == 0 || m > interlock.Member {
				return "allow: a mode does not exist"
			}
		}
	}
	return ""
}

// canonical returns the one spelling of a key that fits the shape or an alias. That
// spelling is its own.
func (p *policy) canonical(key string) (string, bool) {
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
func (p *policy) settle(key string, values []string) (string, bool) {
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

// fit returns the pattern of a key, and the key's one spelling. Without patterns, or
// where none fits, that is the key itself.
//
// A pattern may respell a key into one that a more specific pattern is for. That one
// counts then, and may respell the key again. Each round goes to a pattern further
// ahead in the list, since the last one fits its own spelling, so there is an end.
func (s *namespace) fit(key interlock.Key) (*policy, interlock.Key) {
	if s == nil {
		return nil, key
	}
	return fitIn(s.patterns, &s.heads, s.agenda.objects, key)
}

// fitIn is fit for some patterns. It counts those that it looks at.
func fitIn(patterns []*policy, heads *heads, looks *int, key interlock.Key) (*policy, interlock.Key) {
	for {
		next, text := firstFit(patterns, heads, looks, key)
		if next == nil || text == key {
			return next, key
		}
		key = text
	}
}

// firstFit returns the most specific pattern that a key fits as it stands, and the key as
// that pattern spells it; nil for none.
func firstFit(patterns []*policy, heads *heads, looks *int, key interlock.Key) (first *policy, spelled interlock.Key) {
	best, spelled := len(patterns), key
	try := func(i int) {
		*looks++
		if canonical, ok := patterns[i].canonical(string(key)); ok && keypath.Problem(canonical) == "" {
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

func headsOf(patterns []*policy) (h heads) {
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

// policyAt returns the pattern of a key in its one spelling; nil for none.
func (s *namespace) policyAt(key string) *policy {
	p, _ := s.fit(interlock.Key(key))
	return p
}

func (c *SetPattern) decide(e *Engine) {
	if !e.configurable() {
		return
	}
	e.register(&c.Pattern, 0)
}

// register sets a pattern, if permitted, to an earlier revision, or with reverted 0 to a new
// one.
func (e *Engine) register(pattern *interlock.Pattern, reverted uint64) {
	p, problem := compile(*pattern)
	if problem != "" {
		e.refuse(interlock.CodeInvalidPattern, problem)
		return
	}
	for _, rule := range pattern.Allow {
		if problem := checkEntry(rule.Principal); problem != "" {
			e.refuse(interlock.CodeInvalidPattern, "allow: "+problem)
			return
		}
	}
	space := e.ns(e.head.Namespace)
	if no := space.checkWriters(p); no != nil {
		e.refuseFor(no)
		return
	}
	if problem := space.overlap(p); problem != "" {
		e.refuse(interlock.CodeInvalidPattern, problem)
		return
	}
	if space.pattern(p.Name) == nil && len(space.patterns) >= interlock.MaxPatterns {
		e.refuse(interlock.CodeTooManyPatterns, fmt.Sprintf("namespace %q has %d patterns, which is its limit: drop one first", space.name, interlock.MaxPatterns))
		return
	}
	e.revise(p.Name, record.AppendPattern(nil, pattern), reverted)
}

// overlap returns which other pattern is for the same keys as p, or "".
func (s *namespace) overlap(p *policy) string {
	mine := p.forms()
	for _, other := range s.patterns {
		if other.Name == p.Name {
			continue
		}
		for i, form := range other.forms() {
			if j := slices.Index(mine, form); j >= 0 {
				return fmt.Sprintf("%s is for the same keys as %s of pattern %q: change that one, or drop it first", p.spelling(j), other.spelling(i), other.Name)
			}
		}
	}
	return ""
}

// forms lists the forms of the shape and of the aliases.
func (p *policy) forms() []string {
	forms := []string{p.shape.Form()}
	for i := range p.aliases {
		forms = append(forms, p.aliases[i].Form())
	}
	return forms
}

// spelling returns which one of forms is meant, in the operator's words.
func (p *policy) spelling(i int) string {
	if i == 0 {
		return "shape " + p.Shape
	}
	return "alias " + p.Aliases[i-1]
}

func (c *DropPattern) decide(e *Engine) {
	if space := e.agenda.ns; space == nil || space.pattern(c.Name) == nil {
		e.refuseNoPattern(c.Name)
		return
	}
	e.revise(c.Name, nil, 0)
}

func (e *Engine) refuseNoPattern(name string) {
	e.refuse(interlock.CodeNoSuchPattern, fmt.Sprintf("there is no pattern %q: list the patterns to see their names", keypath.Clip(name, 64)))
}

func (c *Configure) decide(e *Engine) {
	if !e.configurable() {
		return
	}
	for _, q := range []interlock.Quota{c.Settings.Quota, c.Settings.PrincipalQuota} {
		if min(q.Keys, q.Leases, q.Waiters, q.Sessions, q.Requests, q.Bytes, q.Documents, q.State) < 0 {
			e.refuse(interlock.CodeInvalidPattern, "a quota is a number that is not negative; 0 means the limit of the version")
			return
		}
	}
	if c.Settings.PrincipalQuota.Keys > 0 {
		e.refuse(interlock.CodeInvalidPattern, "keys are counted for the whole namespace, since principals share them: leave keys out of the principals' quota, and bound their leases")
		return
	}
	if c.Settings.PrincipalQuota.Documents > 0 || c.Settings.PrincipalQuota.State > 0 {
		e.refuse(interlock.CodeInvalidPattern, "documents are counted for the whole namespace, since principals share them: leave them out of the principals' quota")
		return
	}
	if r := c.Settings.EffectRetention; r < 0 || r > interlock.EffectWindow {
		e.refuse(interlock.CodeInvalidPattern, fmt.Sprintf("the retention of done effects is %v: want 0, for the default, up to %v", r, time.Duration(interlock.EffectWindow)))
		return
	}
	*e.draft() = record.Event{Kind: record.Configured, Namespace: c.Namespace, Blob: record.AppendSettings(nil, &c.Settings, record.RuleFor(&c.Settings)), Actor: c.Actor}
	e.tag(e.ev, Done)
	e.emit(e.ev)
	e.reply(Done)
}

// configurable refuses a command about a namespace that cannot be, or not now.
func (e *Engine) configurable() bool {
	if problem := checkNamespace(e.head.Namespace); problem != "" {
		e.refuse(interlock.CodeInvalidNamespace, problem)
	} else if problem := e.noRoomForSpace(); problem != "" {
		e.refuse(interlock.CodeTooManyNamespaces, problem)
	} else if code, problem := e.closedFor(); code != "" {
		e.refuse(code, problem)
	} else {
		return true
	}
	return false
}

// pattern returns the pattern of a name, or nil.
func (s *namespace) pattern(name string) *policy {
	for _, p := range s.patterns {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// evolvePattern folds record.PatternSet and record.PatternDropped.
func (e *Engine) evolvePattern(ev *record.Event) error {
	s := e.ns(ev.Namespace)
	guarded := s.guarded
	old := s.pattern(ev.PatternName)
	s.patterns = slices.DeleteFunc(slices.Clone(s.patterns), func(p *policy) bool { return p == old })
	var added *policy
	if ev.Kind == record.PatternSet {
		pattern, err := record.DecodePattern(ev.Blob)
		if err != nil {
			return err
		}
		p, problem := compile(pattern)
		if problem != "" {
			return fmt.Errorf("engine: pattern %q: %s", ev.PatternName, problem)
		}
		i, _ := slices.BinarySearchFunc(s.patterns, p, func(a, b *policy) int {
			return cmp.Or(
				cmp.Compare(b.shape.Literal(), a.shape.Literal()), cmp.Compare(b.shape.Typed(), a.shape.Typed()),
				strings.Compare(a.Name, b.Name),
			)
		})
		if old != nil {
			p.refusals = old.refusals
		}
		s.patterns = slices.Insert(s.patterns, i, p)
		added = p
	}
	s.heads = headsOf(s.patterns)
	s.guarded, s.audited = 0, 0
	for _, p := range s.patterns {
		if p.AuditRefusals {
			s.audited++
		}
		if len(p.Allow) > 0 {
			s.guarded++
		}
	}
	s.evolveRevision(ev)
	e.repool(s, old, added, ev.At)
	if s.guarded+guarded > 0 {
		e.sortAnew(s)
	}
	return nil
}

// evolveSettings folds record.Configured.
func (s *namespace) evolveSettings(ev *record.Event) (err error) {
	if s.settings, s.unmatched, err = record.DecodeSettings(ev.Blob); err == nil {
		s.watchSpelling()
	}
	return err
}

// Patterns lists a namespace's key patterns by their names.
func (e *Engine) Patterns(ns interlock.Namespace) (list []interlock.Pattern) {
	if s := e.spaces[ns]; s != nil {
		for _, p := range s.patterns {
			list = append(list, p.Pattern)
		}
	}
	slices.SortFunc(list, func(a, b interlock.Pattern) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Settings returns a namespace's settings as they take effect now.
func (e *Engine) Settings(ns interlock.Namespace) (settings interlock.Settings) {
	if s := e.spaces[ns]; s != nil {
		settings = s.settings
		settings.Closed = s.closed()
	}
	return settings
}

// membersWith lists the members of the namespace's patterns that begin with a
// prefix, in the order of the patterns' names and then as they are listed.
func (s *namespace) membersWith(prefix string) (keys []interlock.Key) {
	if s == nil {
		return nil
	}
	byName := slices.SortedFunc(slices.Values(s.patterns), func(a, b *policy) int { return strings.Compare(a.Name, b.Name) })
	for _, p := range byName {
		for _, key := range p.members {
			if strings.HasPrefix(string(key), prefix) && len(keys) < interlock.MaxAlternatives {
				keys = append(keys, key)
			}
		}
	}
	return keys
}
