package engine_test

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

// variable is one in a pattern's shape.
var variable = regexp.MustCompile(`\{([a-z_]+)(:[a-z]+|\.\.\.)?\}`)

// memo remembers the answers of a function that depend on nothing but the question.
type memo[Q comparable, A any] struct {
	work func(Q) A

	mu    sync.RWMutex
	known map[Q]A // guarded by mu
}

func newMemo[Q comparable, A any](work func(Q) A) *memo[Q, A] {
	return &memo[Q, A]{work: work, known: map[Q]A{}}
}

func (m *memo[Q, A]) get(q Q) A {
	m.mu.RLock()
	a, ok := m.known[q]
	m.mu.RUnlock()
	if ok {
		return a
	}
	a = m.work(q)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known[q] = a
	return a
}

var (
	shapes   = newMemo(shapeRegexp)
	literals = newMemo(literalBytes)
	// spellings has "" for a key that does not fit.
	spellings = newMemo(func(q spelledKey) string {
		text, ok := spell(q.from, q.to, q.key)
		if !ok {
			return ""
		}
		return text
	})
)

// shaped returns the regular expression of a shape: a group with the variable's name
// for each variable.
func shaped(shape string) *regexp.Regexp { return shapes.get(shape) }

func shapeRegexp(shape string) *regexp.Regexp {
	var b strings.Builder
	for shape != "" {
		at := variable.FindStringSubmatchIndex(shape)
		if at == nil {
			b.WriteString(regexp.QuoteMeta(shape))
			break
		}
		literal, name, kind := shape[:at[0]], shape[at[2]:at[3]], ""
		if at[4] >= 0 {
			kind = shape[at[4]:at[5]]
		}
		switch kind {
		case "...": // with the slash before it, for there may be no segment
			b.WriteString(regexp.QuoteMeta(strings.TrimSuffix(literal, "/")) + "(?:/(?P<" + name + ">.+))?")
		case ":int":
			b.WriteString(regexp.QuoteMeta(literal) + "(?P<" + name + ">[0-9]+)")
		default:
			b.WriteString(regexp.QuoteMeta(literal) + "(?P<" + name + ">[^/]+)")
		}
		shape = shape[at[1]:]
	}
	return regexp.MustCompile("^" + b.String() + "$")
}

// spelledKey is a question to spelled.
type spelledKey struct{ from, to, key string }

// spelled writes key, which fits the shape from, as the shape to has it; ok is false
// when it does not fit.
func spelled(from, to, key string) (text string, ok bool) {
	text = spellings.get(spelledKey{from, to, key})
	return text, text != ""
}

// spell is spelled without a memory.
func spell(from, to, key string) (text string, ok bool) {
	parts := shaped(from).FindStringSubmatch(key)
	if parts == nil {
		return "", false
	}
	text = variable.ReplaceAllStringFunc(to, func(v string) string {
		name := variable.FindStringSubmatch(v)
		value := parts[shaped(from).SubexpIndex(name[1])]
		switch name[2] {
		case ":int":
			value = strings.TrimLeft(value, "0")
			if value == "" {
				value = "0"
			}
		case ":lower":
			value = strings.ToLower(value)
		}
		return value
	})
	text = strings.TrimSuffix(text, "/")
	return text, from == to || shaped(to).MatchString(text)
}

// spell returns the one spelling of a key: as the most specific pattern spells it, again
// and again until that changes nothing.
func (m *model) spell(ns interlock.Namespace, key interlock.Key) interlock.Key {
	for {
		_, text := m.fit(ns, key)
		if text == key || isReserved(key) {
			return key
		}
		key = text
	}
}

// pattern is the one that counts for a key in its one spelling.
func (m *model) pattern(ns interlock.Namespace, key interlock.Key) *interlock.Pattern {
	p, _ := m.fit(ns, key)
	return p
}

// fit returns the most specific pattern that a key fits as it stands, and the key as the
// pattern spells it. That is the one with most literal text, of those the one with most
// variables of a kind, and of those the first by name.
func (m *model) fit(ns interlock.Namespace, key interlock.Key) (best *interlock.Pattern, text interlock.Key) {
	text = key
	for _, p := range m.patterns[ns] {
		if best != nil && !m.stricter(p, best) {
			continue
		}
		for _, shape := range append([]string{p.Shape}, p.Aliases...) {
			if as, ok := spelled(shape, p.Shape, string(key)); ok {
				best, text = p, interlock.Key(as)
				break
			}
		}
	}
	return best, text
}

// literal counts the bytes of a shape that every key of it has. The slash before
// segments that may be missing is none of them.
func literal(shape string) int { return literals.get(shape) }

func literalBytes(shape string) int {
	return len(strings.TrimSuffix(variable.ReplaceAllString(shape, ""), "/"))
}

// specific ranks a pattern: first by its literal text, then by variables of a kind.
func specific(p *interlock.Pattern) int {
	return 100*literal(p.Shape) + strings.Count(p.Shape, ":int}") + strings.Count(p.Shape, ":lower}")
}

// wrongWithPattern names the rules of its key's pattern that a claim breaks.
func (m *model) wrongWithPattern(head *engine.Head, c interlock.Claim, group string) (codes []interlock.Code) {
	p := m.pattern(head.Namespace, c.Key)
	if p == nil && m.settings[head.Namespace].Closed {
		codes = append(codes, interlock.CodeUnmatchedKey)
	}
	if c.Mode == interlock.Permits {
		switch {
		case c.Count == 0:
			codes = append(codes, interlock.CodeInvalidRequest)
		case p == nil || p.Capacity == 0 && p.Rate == 0:
			codes = append(codes, interlock.CodeNoCapacity)
		case c.Count > mostPermits(p, group):
			codes = append(codes, interlock.CodeTooManyPermits)
		}
	}
	if p != nil && !allowed(p, principalOf(head.Actor), c.Mode) ||
		m.forbiddenBelow(head.Namespace, principalOf(head.Actor), c) ||
		m.forbiddenAbove(head.Namespace, principalOf(head.Actor), c) {
		codes = append(codes, interlock.CodeModeForbidden)
	}
	return codes
}

// bound fills in a duration that r leaves out from the patterns of its keys, or, with
// always, also shortens one that is longer. Of several patterns the strictest counts.
func (m *model) bound(r *request, d *time.Duration, of func(*interlock.Pattern) time.Duration, always bool) {
	unset := *d == 0
	for _, c := range r.claims {
		p := m.pattern(r.ns, c.Key)
		if p == nil || of(p) == 0 || !unset && !always {
			continue
		}
		if *d == 0 || *d > of(p) {
			*d = of(p)
		}
	}
}

// boundWait bounds how long r may stand in line.
func (m *model) boundWait(r *request) {
	m.bound(r, &r.ask.MaxWait, func(p *interlock.Pattern) time.Duration { return p.MaxWait }, true)
}

// terms fills in what a request leaves out.
func (m *model) terms(r *request) {
	a := &r.ask
	m.bound(r, &a.TTL, func(p *interlock.Pattern) time.Duration { return p.TTL }, false)
	m.bound(r, &a.Grace, func(p *interlock.Pattern) time.Duration { return p.Grace }, false)
	m.bound(r, &a.MaxHold, func(p *interlock.Pattern) time.Duration { return p.MaxHold }, true)
	m.bound(r, &a.Stall, func(p *interlock.Pattern) time.Duration { return p.Stall }, true)
	m.boundWait(r)
	switch {
	case a.TTL == 0 && r.session != nil && !r.session.adapts:
		a.TTL = r.session.ttl
	case a.TTL == 0:
		a.TTL = interlock.DefaultTTL
	}
	switch a.Grace {
	case 0:
		a.Grace = interlock.DefaultGrace
	case engine.NoGrace:
		a.Grace = 0
	}
	for _, c := range r.claims {
		p := m.pattern(r.ns, c.Key)
		if p == nil {
			continue
		}
		if p.MaxTTL > 0 {
			a.TTL = min(a.TTL, p.MaxTTL)
		}
		if p.MaxGrace > 0 {
			a.Grace = min(a.Grace, p.MaxGrace)
		}
		a.LockDelay = max(a.LockDelay, p.LockDelay)
	}
}

// renewedTTL is the ttl of r after a renewal that asks for one, 0 for none.
func (m *model) renewedTTL(r *request, ttl time.Duration) time.Duration {
	if ttl == 0 {
		return r.ttl()
	}
	for _, c := range r.claims {
		if p := m.pattern(r.ns, c.Key); p != nil && p.MaxTTL > 0 {
			ttl = min(ttl, p.MaxTTL)
		}
	}
	return r.session.cap(ttl)
}

// permitRules: a pattern or the settings are what was sent.
func (m *model) permitRules(cmd engine.Command, ev *record.Event) error {
	if ev.Kind != record.Configured {
		return m.permitRevision(cmd, ev)
	}
	if _, ok := cmd.(*engine.Configure); !ok {
		return errors.New("nobody asked for it")
	}
	return nil
}

// foldRules takes in a pattern or the settings.
func (m *model) foldRules(cmd engine.Command) {
	ns := cmd.Header().Namespace
	m.refill()
	if m.patterns == nil {
		m.patterns, m.settings = map[interlock.Namespace][]*interlock.Pattern{}, map[interlock.Namespace]interlock.Settings{}
	}
	if c, ok := cmd.(*engine.Configure); ok {
		m.settings[ns] = c.Settings
	} else {
		m.foldRevision(cmd)
	}
	m.carry()
}

// numbers are a span of them in a member, as in gpu:{0..7}.
var numbers = regexp.MustCompile(`\{([0-9]+)\.\.([0-9]+)\}`)

// members are the keys that patterns list and that begin with prefix.
func (m *model) members(ns interlock.Namespace, prefix string) (keys []interlock.Key) {
	for _, p := range m.patterns[ns] {
		for _, member := range p.Members {
			for _, key := range expanded(member) {
				if strings.HasPrefix(key, prefix) {
					keys = append(keys, interlock.Key(key))
				}
			}
		}
	}
	return keys
}

func expanded(member string) (keys []string) {
	at := numbers.FindStringSubmatch(member)
	if at == nil {
		return []string{member}
	}
	first, _ := strconv.Atoi(at[1])
	last, _ := strconv.Atoi(at[2])
	for n := first; n <= last; n++ {
		keys = append(keys, strings.Replace(member, at[0], strconv.Itoa(n), 1))
	}
	return keys
}
