package server

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/message"
)

// limiter holds namespaces and their principals to their quotas of requests and of bytes a
// second. The other quotas are the engine's to keep: they are about what is in the journal. The
// limiter's state is volatile: after a restart all begin with a full second.
//
// It reads a namespace's settings when the namespace is first used, and learns when they change
// (Observer.Committed), before the answer to that leaves.
type limiter struct {
	settings func(context.Context, interlock.Namespace) (interlock.Settings, error)
	now      func() time.Duration // monotonic

	tenants sync.Map // from interlock.Namespace to *tenant
	count   atomic.Int64
	changes atomic.Uint64 // counted up before and after settings change
}

const (
	// maxTenants bounds the namespaces that the limiter remembers. Beyond it those
	// without a quota are forgotten: reading their settings again costs little. Those
	// with one are in the engine, which has a limit of its own.
	maxTenants = 2 * interlock.MaxNamespaces

	// maxPrincipals bounds the principals of one namespace that are remembered apart. One that sent
	// nothing for a second is forgotten first; those beyond share one quota.
	maxPrincipals = 1024
)

func newLimiter(s Shard) *limiter {
	began := time.Now()
	return &limiter{
		now: func() time.Duration { return time.Since(began) },
		settings: func(ctx context.Context, namespace interlock.Namespace) (settings interlock.Settings, err error) {
			_, err = s.Read(ctx, namespace, func(e *engine.Engine, _ engine.Time) { settings = e.Settings(namespace) })
			return settings, err
		},
	}
}

// limits returns the tenant that admits to a namespace, or nil when there is no quota to look at.
func (l *limiter) limits(ctx context.Context, namespace interlock.Namespace) *tenant {
	if t := l.tenant(ctx, namespace); t != nil && t.limited.Load() {
		return t
	}
	return nil
}

// tenant returns what is known of a namespace, and finds it out if it is not known yet. nil when
// the shard does not answer: then it will not carry anything out either.
func (l *limiter) tenant(ctx context.Context, namespace interlock.Namespace) *tenant {
	if t, ok := l.tenants.Load(namespace); ok {
		return t.(*tenant)
	}
	before := l.changes.Load()
	s, err := l.settings(ctx, namespace)
	if err != nil {
		return nil
	}
	t := newTenant(namespace, &s)
	if l.changes.Load() != before {
		return t // perhaps by now they are others
	}
	return l.keep(t)
}

// keep remembers a tenant, unless there is one of its name, and returns the one that is remembered.
func (l *limiter) keep(t *tenant) *tenant {
	have, loaded := l.tenants.LoadOrStore(t.namespace, t)
	if !loaded && l.count.Add(1) > maxTenants {
		l.tenants.Range(func(namespace, t any) bool {
			if !t.(*tenant).limited.Load() && l.tenants.CompareAndDelete(namespace, t) {
				l.count.Add(-1)
			}
			return true
		})
	}
	return have.(*tenant)
}

// configured is called when a namespace's settings have changed.
func (l *limiter) configured(namespace interlock.Namespace, s *interlock.Settings) {
	l.changes.Add(1)
	l.keep(newTenant(namespace, s)).configure(s)
	l.changes.Add(1)
}

// tenant is the limiter's state of a namespace.
type tenant struct {
	namespace interlock.Namespace
	limited   atomic.Bool // there is a quota to look at

	mu         sync.Mutex
	quota      amount // of the namespace, a second; 0 is no bound
	each       amount // of each of its principals
	all        quotaBudget
	principals map[string]*quotaBudget
	crowd      quotaBudget // of the principals beyond maxPrincipals
}

// amount is a quantity that quotas limit.
type amount struct{ requests, bytes int64 }

// quotaBudget is the rest of a quota.
type quotaBudget struct{ requests, bytes bucket }

func newTenant(namespace interlock.Namespace, s *interlock.Settings) *tenant {
	t := &tenant{namespace: namespace, principals: map[string]*quotaBudget{}}
	t.configure(s)
	return t
}

func (t *tenant) configure(s *interlock.Settings) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.quota, t.each = quotaOf(&s.Quota), quotaOf(&s.PrincipalQuota)
	t.limited.Store(t.quota != amount{} || t.each != amount{})
}

func quotaOf(q *interlock.Quota) amount {
	return amount{requests: int64(min(q.Requests, maxRate)), bytes: int64(min(q.Bytes, maxRate))}
}

// admit takes a cost out of the namespace's allowance and out of its principal's, or out of
// neither and returns why the request must come back later. Vital operations are never refused
// and count all the same. Without credentials there are no principals.
func (t *tenant) admit(now time.Duration, principal string, cost amount, vital bool) *engine.Effect {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := &quotaBudget{}
	each := amount{}
	if principal != "" && t.each != each {
		own, each = t.allowance(principal, now), t.each
	}
	t.all.refill(t.quota, now)
	own.refill(each, now)
	if vital {
		t.all.count(t.quota, cost)
		own.count(each, cost)
		return nil
	}
	if wait, what, rate := t.all.lacks(t.quota, cost); wait > 0 {
		return overQuota(fmt.Sprintf("the quota of namespace %q is %d %s a second", t.namespace, rate, what), wait, rate)
	}
	if wait, what, rate := own.lacks(each, cost); wait > 0 {
		return overQuota(
			fmt.Sprintf("the quota of principal %q in namespace %q is %d %s a second", principal, t.namespace, rate, what),
			wait, rate,
		)
	}
	t.all.take(t.quota, cost)
	own.take(each, cost)
	return nil
}

// allowance finds or makes a principal's.
func (t *tenant) allowance(principal string, now time.Duration) *quotaBudget {
	a := t.principals[principal]
	if a != nil {
		return a
	}
	if len(t.principals) >= maxPrincipals {
		for name, a := range t.principals {
			if a.full(t.each, now) {
				delete(t.principals, name)
			}
		}
		if len(t.principals) >= maxPrincipals {
			return &t.crowd
		}
	}
	a = &quotaBudget{}
	t.principals[principal] = a
	return a
}

func (a *quotaBudget) refill(q amount, now time.Duration) {
	if q.requests > 0 {
		a.requests.refill(q.requests, now)
	}
	if q.bytes > 0 {
		a.bytes.refill(q.bytes, now)
	}
}

// lacks returns the exhausted part of the cost, and until when it lasts.
func (a *quotaBudget) lacks(q, cost amount) (wait time.Duration, what string, rate int64) {
	if q.requests > 0 && cost.requests > 0 {
		wait, what, rate = a.requests.wait(q.requests), "requests", q.requests
	}
	if q.bytes > 0 && cost.bytes > 0 {
		if w := a.bytes.wait(q.bytes); w > wait {
			wait, what, rate = w, "bytes", q.bytes
		}
	}
	return wait, what, rate
}

func (a *quotaBudget) take(q, cost amount) {
	if q.requests > 0 {
		a.requests.take(cost.requests)
	}
	if q.bytes > 0 {
		a.bytes.take(cost.bytes)
	}
}

func (a *quotaBudget) count(q, cost amount) {
	if q.requests > 0 {
		a.requests.count(q.requests, cost.requests)
	}
	if q.bytes > 0 {
		a.bytes.count(q.bytes, cost.bytes)
	}
}

// full reports whether nothing is missing, so that forgetting it loses nothing.
func (a *quotaBudget) full(q amount, now time.Duration) bool {
	a.refill(q, now)
	return a.requests.spent == 0 && a.bytes.spent == 0
}

// overQuota is the refusal, which contains when there is room again as one for want of a key's
// tokens does.
func overQuota(what string, wait time.Duration, rate int64) *engine.Effect {
	return &engine.Effect{
		Outcome: engine.Refused, Code: interlock.CodeQuota,
		Message: message.Plain(what + ", and that is used up"),
		Conflict: &engine.Conflict{
			Conflict: interlock.Conflict{Capacity: &interlock.Capacity{Tokens: uint32(rate), Refill: wait}},
		},
	}
}
