package otlp

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	collector "go.opentelemetry.io/proto/slim/otlp/collector/metrics/v1"
	"google.golang.org/protobuf/proto"

	"github.com/interlockdev/interlock/internal/invisible"
)

// Config is how metrics are pushed.
type Config struct {
	// Endpoint is the collector's URL, as ParseEndpoint returns it.
	Endpoint string
	// Headers are sent with each push.
	Headers http.Header
	// Every is the time from one push to the next. It must be positive.
	Every time.Duration
	// Resource has the attributes of the process, such as service.name.
	Resource map[string]string
	// Version is that of the program.
	Version string
	// Metrics returns what is pushed.
	Metrics prometheus.Gatherer
	// Log gets a line when failures begin and when they end.
	Log *slog.Logger
	// Transport carries the requests. nil means http.DefaultTransport.
	Transport http.RoundTripper
}

// answerTimeout bounds one push, and Every does if it is shorter.
const answerTimeout = 10 * time.Second

// lastTimeout bounds the push at the end, because the process waits for it.
const lastTimeout = 2 * time.Second

// Pusher pushes metrics. It is itself a gatherer, of how that went.
type Pusher struct {
	cfg      Config
	sender   *Sender
	registry *prometheus.Registry
	pushed   prometheus.Counter
	failed   prometheus.Counter
	started  time.Time
	failing  int // pushes in a row
}

// New makes a pusher, which does nothing before Run.
func New(cfg Config) *Pusher {
	p := &Pusher{cfg: cfg, registry: prometheus.NewRegistry(), started: time.Now()}
	p.sender = NewSender(cfg.Endpoint, cfg.Headers, cfg.Version, cfg.Transport)
	pushes := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "interlock_otlp_pushes_total",
		Help: "Pushes of metrics to the collector of OpenTelemetry, by outcome: pushed or failed.",
	}, []string{"outcome"})
	p.registry.MustRegister(pushes)
	p.pushed, p.failed = pushes.WithLabelValues("pushed"), pushes.WithLabelValues("failed")
	return p
}

// Gather returns the metrics about pushes.
func (p *Pusher) Gather() ([]*dto.MetricFamily, error) { return p.registry.Gather() }

// Run pushes until ctx ends, and then once more, unless the last push failed.
func (p *Pusher) Run(ctx context.Context) {
	ticks := time.NewTicker(p.cfg.Every)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			p.push(ctx, min(p.cfg.Every, answerTimeout))
		case <-ctx.Done():
			if p.failing == 0 {
				p.push(context.WithoutCancel(ctx), lastTimeout)
			}
			return
		}
	}
}

// push pushes once and counts the outcome.
func (p *Pusher) push(ctx context.Context, limit time.Duration) {
	short, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := p.send(short)
	switch {
	case err == nil && p.failing > 0:
		p.cfg.Log.Info("metrics are pushed again", "failed", p.failing)
	case err != nil && ctx.Err() != nil:
		return // the end came during the push, which is repeated
	case err != nil && p.failing == 0:
		p.cfg.Log.Warn("metrics cannot be pushed; going on, and trying again", "error", err, "every", p.cfg.Every)
	}
	if err != nil {
		p.failing++
		p.failed.Inc()
		return
	}
	p.failing = 0
	p.pushed.Inc()
}

// send gathers the metrics and posts them.
func (p *Pusher) send(ctx context.Context) error {
	families, err := p.cfg.Metrics.Gather()
	if err != nil {
		return fmt.Errorf("the metrics cannot be gathered: %w", err)
	}
	message := &collector.ExportMetricsServiceRequest{ResourceMetrics: p.convert(families, time.Now())}
	plain, err := proto.Marshal(message)
	if err != nil {
		return err
	}
	body, err := p.sender.post(ctx, "application/x-protobuf", plain)
	if err != nil {
		return err
	}
	var answer collector.ExportMetricsServiceResponse
	if proto.Unmarshal(body, &answer) != nil {
		return nil // a proxy's own words
	}
	if part := answer.GetPartialSuccess(); part.GetRejectedDataPoints() > 0 {
		why := invisible.Line(part.GetErrorMessage())
		return fmt.Errorf("the collector refuses %d data points: %.200s", part.GetRejectedDataPoints(), why)
	}
	return nil
}
