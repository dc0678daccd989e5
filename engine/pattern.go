package engine

import (
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

func (c *SetPattern) decide(e *Engine) {
	if !e.configurable() || !e.acceptsReason(c.Reason) {
		return
	}
	if p := &c.Pattern; p.Rate > 0 {
		if p.Per == 0 {
			e.refuse(interlock.CodeInvalidPattern, message.New(message.RateWithoutPer))
			return
		}
		p.Burst = max(p.Burst, 1) // so that no period admits more than the rate
	}
	e.register(&c.Pattern, 0, c.Reason)
}

// register sets a pattern, if permitted, to an earlier revision, or with reverted 0 to a new
// one.
func (e *Engine) register(pattern *interlock.Pattern, reverted uint64, reason string) {
	p, problem := store.Compile(*pattern)
	if problem != nil {
		e.refuse(interlock.CodeInvalidPattern, problem)
		return
	}
	for _, rule := range pattern.Allow {
		if problem := checkEntry(rule.Principal); problem != nil {
			e.refuse(interlock.CodeInvalidPattern, message.New(message.InField, message.Str("allow"), message.Sub(problem)))
			return
		}
	}
	space := e.Namespace(e.head.Namespace)
	if no := space.CheckWriters(p); no != nil {
		e.refuseFor(no)
		return
	}
	if problem := space.Overlap(p); problem != nil {
		e.refuse(interlock.CodeInvalidPattern, problem)
		return
	}
	if space.Pattern(p.Name) == nil && len(space.Patterns) >= interlock.MaxPatterns {
		e.refuse(
			interlock.CodeTooManyPatterns,
			message.New(message.PatternsAtLimit, message.Str(space.Name), message.Num(interlock.MaxPatterns)),
		)
		return
	}
	e.revise(p.Name, record.AppendPattern(nil, pattern), reverted, reason)
}

func (c *DropPattern) decide(e *Engine) {
	if space := e.PendingWork.NS; space == nil || space.Pattern(c.Name) == nil {
		e.refuseNoPattern(c.Name)
		return
	}
	e.revise(c.Name, nil, 0, "")
}

func (e *Engine) refuseNoPattern(name string) {
	e.refuse(interlock.CodeUnknownPattern, message.New(message.UnknownPattern, message.Str(keypath.Clip(name, 64))))
}

func (c *Configure) decide(e *Engine) {
	if !e.configurable() {
		return
	}
	for _, q := range []interlock.Quota{c.Settings.Quota, c.Settings.PrincipalQuota} {
		if min(q.Keys, q.Leases, q.Waiters, q.Sessions, q.Requests, q.Bytes, q.Documents, q.State) < 0 {
			e.refuse(interlock.CodeInvalidPattern, message.New(message.QuotaNegative))
			return
		}
	}
	if c.Settings.PrincipalQuota.Keys > 0 {
		e.refuse(interlock.CodeInvalidPattern, message.New(message.QuotaOfKeys))
		return
	}
	if c.Settings.PrincipalQuota.Documents > 0 || c.Settings.PrincipalQuota.State > 0 {
		e.refuse(interlock.CodeInvalidPattern, message.New(message.QuotaOfDocuments))
		return
	}
	if r := c.Settings.EffectRetention; r < 0 || r > interlock.EffectWindow {
		e.refuse(
			interlock.CodeInvalidPattern,
			message.New(message.EffectRetention, message.Dur(r), message.Dur(time.Duration(interlock.EffectWindow))),
		)
		return
	}
	*e.draft() = record.Event{
		Kind: record.Configured, Namespace: c.Namespace,
		Blob: record.AppendSettings(nil, &c.Settings), Actor: c.Actor,
	}
	e.tag(e.ev, Done)
	e.emit(e.ev)
	e.reply(Done)
}

// configurable refuses a command about a namespace that cannot be, or not now.
func (e *Engine) configurable() bool {
	if problem := checkNamespace(e.head.Namespace); problem != nil {
		e.refuse(interlock.CodeInvalidNamespace, problem)
	} else if problem := e.noRoomForSpace(); problem != nil {
		e.refuse(interlock.CodeTooManyNamespaces, problem)
	} else if code, problem := e.closedFor(); code != "" {
		e.refuse(code, problem)
	} else {
		return true
	}
	return false
}

// Patterns lists a namespace's key patterns by their names.
func (e *Engine) Patterns(ns interlock.Namespace) (list []interlock.Pattern) {
	if s := e.Namespaces[ns]; s != nil {
		for _, p := range s.Patterns {
			list = append(list, p.Pattern)
		}
	}
	slices.SortFunc(list, func(a, b interlock.Pattern) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Settings returns a namespace's settings as they take effect now.
func (e *Engine) Settings(ns interlock.Namespace) (settings interlock.Settings) {
	if s := e.Namespaces[ns]; s != nil {
		settings = s.Settings
		settings.Closed = s.Closed()
	}
	return settings
}
