package server

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/record"
)

// The figures by namespace: waits and holds by the pattern of their keys, by the organisation
// of runs and by the claimant group. These names are their tenants' own and their number has
// no bound, so the busiest have a series each and all others are one, "other" (busiest.go).
// Only the role metrics sees them, and every caller of a server without credentials.
//
// No counter of a series ever goes down. A series that loses its place goes away with what it
// has counted: added to "other", that would look as if it had all happened just now. Later
// counts go to "other". If it comes back, it begins with zero.

const (
	// DefaultSeries is how many label sets each metric by namespace has at most, besides
	// "other", and MaxSeries how many it can have.
	DefaultSeries = 50
	MaxSeries     = 1000
)

// coarseBuckets are few, because each label set has all of them.
var coarseBuckets = [...]float64{.1, 1, 10, 60, 600}

// histogramCounts is a histogram with these buckets.
type histogramCounts struct {
	count   uint64
	sum     float64
	buckets [len(coarseBuckets)]uint64 // not cumulated
}

func (h *histogramCounts) observe(d time.Duration) {
	seconds := d.Seconds()
	h.count++
	h.sum += seconds
	for i, limit := range coarseBuckets {
		if seconds <= limit {
			h.buckets[i]++
			break
		}
	}
}

// series are the histograms of one label set.
type series struct{ wait, hold histogramCounts }

// tenantFigures implement prometheus.Collector. The committer of the shard counts, and any
// number of goroutines collect.
type tenantFigures struct {
	mu     sync.Mutex
	groups []tenantFigure
}

// tenantFigure is one way to tell tenants' waits and holds apart.
type tenantFigure struct {
	top        *busiest
	wait, hold *prometheus.Desc
}

// The order of tenantFigures.groups.
const (
	byPattern = iota
	byOrg
	byClaimants
)

// newTenantFigures makes the figures with so many label sets each; nil for 0.
func newTenantFigures(room int) *tenantFigures {
	if room <= 0 {
		return nil
	}
	t := &tenantFigures{}
	for _, of := range []struct{ label, what string }{
		byPattern:   {"pattern", `by the pattern of their keys, "" for keys that fit none`},
		byOrg:       {"org", "of runs, by their organisation"},
		byClaimants: {"group", "by their claimant group"},
	} {
		labels := []string{"namespace", of.label}
		t.groups = append(t.groups, tenantFigure{
			top: newBusiest(min(room, MaxSeries)),
			wait: prometheus.NewDesc("interlock_"+of.label+"_wait_seconds",
				"Time that requests waited until they were granted or left the line, "+of.what+".", labels, nil),
			hold: prometheus.NewDesc("interlock_"+of.label+"_hold_seconds",
				"Time that leases were held, "+of.what+".", labels, nil),
		})
	}
	return t
}

// waited counts how long a request waited, held how long a lease was held.
func (t *tenantFigures) waited(ev *record.Event, d time.Duration) {
	if t == nil || len(ev.Claims) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, pattern := range ev.Patterns() {
		t.of(byPattern, ev, pattern).wait.observe(d)
	}
	if org := ev.Org(); org != "" {
		t.of(byOrg, ev, org).wait.observe(d)
	}
	if group := ev.Claimants(); group != "" {
		t.of(byClaimants, ev, group).wait.observe(d)
	}
}

// held is described at waited.
func (t *tenantFigures) held(ev *record.Event) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, pattern := range ev.Patterns() {
		t.of(byPattern, ev, pattern).hold.observe(ev.Held)
	}
	if org := ev.Org(); org != "" {
		t.of(byOrg, ev, org).hold.observe(ev.Held)
	}
	if group := ev.Claimants(); group != "" {
		t.of(byClaimants, ev, group).hold.observe(ev.Held)
	}
}

// of finds the series under which something in the namespace of an event is counted.
func (t *tenantFigures) of(group int, ev *record.Event, text string) *series {
	return t.groups[group].top.of(name{ev.Namespace, text}, ev.At)
}

// Describe sends the figures' names and labels.
func (t *tenantFigures) Describe(ch chan<- *prometheus.Desc) {
	for i := range t.groups {
		ch <- t.groups[i].wait
		ch <- t.groups[i].hold
	}
}

// Collect sends the counters. They are copied first, so nothing waits for their reader.
func (t *tenantFigures) Collect(ch chan<- prometheus.Metric) {
	type row struct {
		name
		series
	}
	for i := range t.groups {
		g := &t.groups[i]
		rows := make([]row, 0, g.top.room+1)
		t.mu.Lock()
		g.top.each(func(n name, s series) { rows = append(rows, row{n, s}) })
		t.mu.Unlock()
		for j := range rows {
			r := &rows[j]
			r.wait.send(ch, g.wait, r.name)
			r.hold.send(ch, g.hold, r.name)
		}
	}
}

func (h *histogramCounts) send(ch chan<- prometheus.Metric, desc *prometheus.Desc, n name) {
	if h.count == 0 {
		return
	}
	upTo, sum := make(map[float64]uint64, len(coarseBuckets)), uint64(0)
	for i, limit := range coarseBuckets {
		sum += h.buckets[i]
		upTo[limit] = sum
	}
	ch <- prometheus.MustNewConstHistogram(desc, h.count, h.sum, upTo, string(n.namespace), n.name)
}

// LimitSeries sets how many label sets each metric by namespace has, besides "other": 0 turns these
// metrics off, and without a call it is DefaultSeries. It is called before the observer is given to
// a shard.
func (o *Observer) LimitSeries(n int) { o.figures.limitSeries(n) }

func (f *figures) limitSeries(n int) {
	f.tenants, f.theirs = newTenantFigures(n), nil
	if f.tenants == nil {
		return
	}
	f.theirs = prometheus.NewRegistry()
	f.theirs.MustRegister(f.tenants)
}

// seesTenants reports whether a caller may see the figures by namespace.
func seesTenants(by *interlock.Principal) bool { return by.Has(interlock.RoleMetrics) }
