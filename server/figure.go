package server

import (
	"context"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/internal/traceparent"
)

// figures are the metrics. docs/operations.md explains the use of each.
//
// Counters of each lease are looked up by small numbers rather than by label: the committer of
// the shard does the counting, and it alone touches those maps. A series is made when it is
// first used, so that a scrape is not mostly zeros.
type figures struct {
	registry *prometheus.Registry
	tenants  *tenantFigures
	theirs   *prometheus.Registry // of tenants; nil without them

	wait, hold    byModeAndReason
	acquires      *prometheus.CounterVec
	common        map[string]prometheus.Counter // of acquires
	expiries      [tiers]prometheus.Counter
	commits       *prometheus.CounterVec
	committed     prometheus.Counter // of commits
	stale         prometheus.Counter // of commits
	written       [interlock.Add + 1]prometheus.Counter
	effects       map[string]prometheus.Counter
	tasks         taskFigures
	fenceRefusals prometheus.Counter
	deadlocks     prometheus.Counter
	yields        prometheus.Counter
	droppedLines  prometheus.Counter
	unreadable    prometheus.Counter
	jumped        prometheus.Gauge

	appendSeconds, batchEntries, batchBytes, lag, snapshotSeconds prometheus.Histogram

	forwarded *prometheus.CounterVec
	relayed   prometheus.Gauge
	unreached prometheus.Gauge
	calls     *prometheus.CounterVec
	byRoute   sync.Map // of routeStatus to prometheus.Counter
	streams   prometheus.Gauge
	viewers   prometheus.Gauge // among the streams
	webhooks  *prometheus.CounterVec
	redis     *prometheus.CounterVec // what its port refuses
}

// The tiers of expiry: a holder was warned, its lease reached its hard end, its key
// went to the next.
const (
	tierSoft = iota
	tierGrace
	tierEnded
	tiers
)

type routeStatus struct {
	route  string
	status int
}

// histogram has classic buckets, and the native form of Prometheus, which is finer.
func histogram(name, help string, buckets []float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: buckets,
		NativeHistogramBucketFactor:     1.1,
		NativeHistogramMaxBucketNumber:  100,
		NativeHistogramMinResetDuration: time.Hour,
	}
}

var (
	thinkBuckets   = []float64{.001, .01, .1, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 3600}
	storageBuckets = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1}
	countBuckets   = prometheus.ExponentialBuckets(1, 2, 13)
	byteBuckets    = prometheus.ExponentialBuckets(64, 4, 8)
)

// ofCollector is the memory that the garbage collector last found in use: the state's, without
// the garbage that the other figures of memory include. And how long it stopped everything,
// which it does once when it begins and once when it ends, so that the count shows whether it
// is at work.
var ofCollector = collectors.GoRuntimeMetricsRule{
	Matcher: regexp.MustCompile(`^(/gc/heap/live:bytes|/sched/pauses/total/gc:seconds)$`),
}

func newFigures() *figures {
	f := &figures{registry: prometheus.NewRegistry(), common: map[string]prometheus.Counter{}}
	wait := prometheus.NewHistogramVec(histogram("interlock_wait_seconds",
		"Time that requests waited until they were granted or left the line.", thinkBuckets), []string{"mode", "outcome"})
	hold := prometheus.NewHistogramVec(histogram("interlock_hold_seconds",
		"Time that leases were held, by how they ended.", thinkBuckets), []string{"mode", "outcome"})
	f.wait.vec, f.hold.vec = wait, hold
	f.acquires = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "interlock_acquires_total",
		Help: "Requests for a lease, by their first answer: granted, queued, skipped, or the code of a refusal.",
	}, []string{"outcome"})
	for _, outcome := range []string{
		"granted", "queued", "skipped", "held", "at_capacity", "rate_limited", "deadlock", "too_many_waiters", "no_space",
		"shutting_down",
	} {
		f.common[outcome] = f.acquires.WithLabelValues(outcome)
	}
	expiries := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "interlock_expiries_total",
		Help: "Tiers of expiry that leases reached: soft (the holder was warned), grace (the hard end), ended (the key " +
			"was passed on).",
	}, []string{"tier"})
	for tier, name := range [tiers]string{"soft", "grace", "ended"} {
		f.expiries[tier] = expiries.WithLabelValues(name)
	}
	f.newStateFigures()
	f.newTaskFigures()
	f.fenceRefusals = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "interlock_fence_refusals_total",
		Help: "Fence checks and revocations with a fence that belongs to no live lease.",
	})
	f.deadlocks = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "interlock_deadlocks_total",
		Help: "Waits that were ended to break a deadlock.",
	})
	f.yields = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "interlock_yield_requests_total",
		Help: "Times that a holder was asked to yield.",
	})
	f.droppedLines = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "interlock_log_lines_dropped_total",
		Help: "Log lines of ended leases that were dropped because the log was too slow.",
	})
	f.unreadable = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "interlock_history_unreadable_total",
		Help: "Readers of events and documents whose stream was ended because the journal could not be read.",
	})
	f.jumped = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "interlock_fences_jumped",
		Help: "1 if fences jumped when this ownership began: the journal is a copy, was restored, or has another primary.",
	})
	f.appendSeconds = prometheus.NewHistogram(histogram("interlock_journal_append_seconds",
		"Duration of one durable append to the journal.", storageBuckets))
	f.batchEntries = prometheus.NewHistogram(histogram("interlock_journal_batch_entries",
		"Entries in one durable append.", countBuckets))
	f.batchBytes = prometheus.NewHistogram(histogram("interlock_journal_batch_bytes",
		"Bytes in one durable append.", byteBuckets))
	f.lag = prometheus.NewHistogram(histogram("interlock_engine_lag_seconds",
		"Time that the oldest command of a group waited for the engine.", storageBuckets))
	f.snapshotSeconds = prometheus.NewHistogram(histogram("interlock_snapshot_seconds",
		"Time to make and store a snapshot of the state, beside the running engine or when the shard closes.", thinkBuckets))
	f.calls = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "interlock_http_requests_total",
		Help: "HTTP calls by route and status; 499 means that the caller left before its answer.",
	}, []string{"route", "status"})
	f.streams = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "interlock_event_streams",
		Help: "Current readers of /v1/events, of /v1/watch, and of the stream of /v1/overview.",
	})
	f.viewers = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "interlock_overview_viewers",
		Help: "Current viewers of the stream of /v1/overview, such as open dashboards.",
	})
	f.forwarded = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "interlock_forwarded_total",
		Help: "Calls and streams that were forwarded to the owner of another shard, by API: http, stream or resp.",
	}, []string{"api"})
	f.unreached = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "interlock_unreached_servers",
		Help: "Servers over the same journal that do not answer this one.",
	})
	f.relayed = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "interlock_relayed_streams",
		Help: "Current session streams that this server relays to the owner of another shard.",
	})
	f.redis = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "interlock_resp_refused_total",
		Help: "Commands at the Redis port that Redis would carry out, by reason: script, not_owner or unclear_owner.",
	}, []string{"reason"})
	f.registry.MustRegister(wait, hold, f.acquires, expiries, f.fenceRefusals, f.deadlocks, f.yields, f.droppedLines,
		f.unreached, f.unreadable, f.forwarded, f.relayed, f.jumped,
		f.appendSeconds, f.batchEntries, f.batchBytes, f.lag, f.calls,
		f.streams, f.viewers, f.snapshotSeconds, f.redis,
		collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(ofCollector)),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	f.limitSeries(DefaultSeries)
	return f
}

// event counts one event. It is called for each, so it is short.
func (f *figures) event(ev *record.Event) {
	switch ev.Kind {
	case record.Granted:
		f.wait.observe(ev, 0, 0)
		f.tenants.waited(ev, 0)
	case record.Admitted:
		f.wait.observe(ev, 0, ev.Waited)
		f.tenants.waited(ev, ev.Waited)
	case record.Left:
		f.wait.observe(ev, ev.Reason, ev.Waited)
		f.tenants.waited(ev, ev.Waited)
		if ev.Reason == record.ByDeadlock {
			f.deadlocks.Inc()
		}
	case record.YieldRequested:
		f.yields.Inc()
	case record.Written:
		f.written[ev.Op].Inc()
	case record.EffectChanged:
		f.effects[eventState(ev)].Inc()
	case record.TaskSubmitted, record.TaskDispatched, record.AttemptFailed, record.TaskMoved, record.ApprovalRequested,
		record.ApprovalDecided:
		f.tasks.event(ev)
	case record.Grace:
		f.expiries[tierGrace].Inc()
	case record.Ended:
		f.hold.observe(ev, ev.Reason, ev.Held)
		f.tenants.held(ev)
		switch ev.Reason {
		case record.ByTTL, record.ByForgetting, record.ByMaxHold, record.ByStall, record.ByDeath:
			f.expiries[tierEnded].Inc()
		}
	}
}

// byModeAndReason is a histogram by the strongest mode of a request and by how it
// ended; without a reason it was granted.
type byModeAndReason struct {
	vec   *prometheus.HistogramVec
	known [interlock.Member + 1][]prometheus.Observer // by the reason
}

// observe counts the time of an event's request. If the request came from a trace that its caller has sampled, the
// trace is the exemplar of the bucket, which only a scrape in the format of OpenMetrics shows.
func (h *byModeAndReason) observe(ev *record.Event, why record.Reason, d time.Duration) {
	if len(ev.Claims) == 0 {
		return // a declared wait is for no lease
	}
	mode := strongest(ev.Claims)
	known := &h.known[mode]
	if int(why) >= len(*known) {
		*known = append(*known, make([]prometheus.Observer, int(why)+1-len(*known))...)
	}
	series := (*known)[why]
	if series == nil {
		outcome := why.String()
		if why == 0 {
			outcome = "granted"
		}
		series = h.vec.WithLabelValues(mode.String(), outcome)
		(*known)[why] = series
	}
	if c, _ := traceparent.Parse(ev.Trace); c.Sampled() {
		series.(prometheus.ExemplarObserver).ObserveWithExemplar(d.Seconds(), prometheus.Labels{"trace_id": c.TraceID})
		return
	}
	series.Observe(d.Seconds())
}

func (f *figures) acquired(eff *engine.Effect) {
	name := eff.Outcome.String()
	if eff.Outcome == engine.Refused {
		name = string(eff.Code)
	}
	if counter, ok := f.common[name]; ok {
		counter.Inc()
	} else {
		f.acquires.WithLabelValues(name).Inc() // a code: the list is closed
	}
}

// httpCall counts one call.
func (o *Observer) httpCall(route string, status int) {
	key := routeStatus{route, status}
	if counter, ok := o.figures.byRoute.Load(key); ok {
		counter.(prometheus.Counter).Inc()
		return
	}
	name := route
	if name == "" {
		name = "other"
	}
	counter := o.figures.calls.WithLabelValues(name, strconv.Itoa(status))
	o.figures.byRoute.Store(key, counter)
	counter.Inc()
}

// FencesJumped notes that fences jumped when this ownership began.
func (o *Observer) FencesJumped() { o.figures.jumped.Set(1) }

// watch adds the figures that each scrape reads from the shard.
func (o *Observer) watch(shard Shard, version, journal string, l *limiter, f *flight) {
	o.limiter.Store(l)
	o.watched.Do(func() {
		o.figures.registry.MustRegister(&sizes{shard: shard}, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "interlock_build_info",
			Help:        "Always 1; the labels are the running version, and what keeps the journal.",
			ConstLabels: prometheus.Labels{"version": version, "journal": journal},
		}, func() float64 { return 1 }), prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "interlock_in_flight_bytes", Help: "Bytes of requests and answers in flight.",
		}, func() float64 { return float64(f.bytes()) }), prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "interlock_in_flight_refused_total",
			Help: "Calls and event readers refused because a namespace had too many bytes in flight.",
		}, func() float64 { return float64(f.refused.Load()) }))
	})
}

// sizes asks the shard how much there is.
type sizes struct{ shard Shard }

var (
	sizeLeases     = prometheus.NewDesc("interlock_leases", "Current leases.", nil, nil)
	sizeWaiters    = prometheus.NewDesc("interlock_waiters", "Current waiters.", nil, nil)
	sizeSessions   = prometheus.NewDesc("interlock_sessions", "Current sessions.", nil, nil)
	sizeKeys       = prometheus.NewDesc("interlock_keys", "Keys in memory.", nil, nil)
	sizeNamespaces = prometheus.NewDesc("interlock_namespaces", "Namespaces in memory.", nil, nil)
	sizeIndex      = prometheus.NewDesc("interlock_journal_index", "The newest durable index.", nil, nil)
	sizeEpoch      = prometheus.NewDesc("interlock_epoch", "The epoch of this server's ownership.", nil, nil)
)

func (s *sizes) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		sizeLeases, sizeWaiters, sizeSessions, sizeKeys, sizeNamespaces, sizeIndex, sizeEpoch,
	} {
		ch <- d
	}
}

// Collect leaves out what a failed or stuck shard cannot tell, and one that another
// server has taken over.
func (s *sizes) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64) { ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v) }
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	var n engine.Counts
	at, err := s.shard.Read(ctx, "", func(e *engine.Engine, _ engine.Time) { n = e.Counts() })
	if err != nil {
		return
	}
	gauge(sizeIndex, float64(at.Index))
	gauge(sizeEpoch, float64(at.Epoch))
	gauge(sizeLeases, float64(n.Leases))
	gauge(sizeWaiters, float64(n.Waiters))
	gauge(sizeSessions, float64(n.Sessions))
	gauge(sizeKeys, float64(n.Keys))
	gauge(sizeNamespaces, float64(n.Namespaces))
}

// getMetrics is GET /metrics. With credentials it wants one, because the sums are
// those of all tenants; and the role metrics, for the figures by namespace.
func (c *call) getMetrics() {
	c.answered = true
	c.w.Header()["X-Content-Type-Options"] = noSniff
	handler := c.s.metrics
	if seesTenants(c.identity.Principal) {
		handler = c.s.allMetrics
	}
	handler.ServeHTTP(c.w, c.r)
}
